"""The vocabulary of failsoft: faults, outcomes, options, and the checks on what users write.

Used by every other package; imports ``core.redact``. Mirrored by ``tests/core/model``.
"""
