"""The vocabulary of failsoft: faults, outcomes, reports, options, and the checks on what users write.

Imports ``core.redact`` and nothing above it. Mirrored by ``tests/core/model``.
"""
