"""Adapters for agent frameworks: translation only; decisions belong to the core.

One package per framework. It may import its framework, ``integration``, ``core.model`` and ``errors``, but no other
adapter; ``integration.api`` exports the names from inside that adapters need. Contracts in pyproject.toml check that.
Tested in ``tests/adapters`` with the newest and the oldest framework that each allows.
"""
