"""The turn machine: dependencies between calls, cascades after a failure, cycles.

Deterministic: it reads no clock and returns commands in a fixed order. Imports ``core.model``. Mirrored by
``tests/core/turn``; ``tests/properties`` compares the machine with a model.
"""
