"""Data types of failsoft: faults, outcomes, options, and the validation of user input.

Used by every other package; may import ``core.redact``. Mirrored by ``tests/core/model``.
"""
