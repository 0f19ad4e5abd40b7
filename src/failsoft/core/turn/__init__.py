"""The turn machine: dependencies between calls, cascades after a failure, cycles.

Deterministic: it reads no clock and returns commands in a fixed order. May import
``core.effects`` and what is below it, not ``core.resilience``. Mirrored by
``tests/core/turn``; ``tests/properties`` compares the machine with a model.
"""
