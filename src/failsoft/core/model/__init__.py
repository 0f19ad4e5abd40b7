"""Data types of failsoft: faults, outcomes, options, and the validation of user input.

Used by every other package; imports ``core.redact``. Mirrored by ``tests/core/model``.
"""
