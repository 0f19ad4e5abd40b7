"""Decisions as pure functions: no clock, no randomness, no I/O, no third-party module.

Everything failsoft decides is here and can be tested without running a tool. Imports ``failsoft.errors`` and nothing
else of failsoft. Import contracts in pyproject.toml keep it pure; ``tests/core`` mirrors it.
"""
