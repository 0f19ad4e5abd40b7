"""Adapters for agent frameworks: translation only; decisions belong to the core.

One package per framework, which may import ``integration``, ``runtime`` and what is below them, but no other adapter.
Tested in ``tests/adapters`` with the newest and the oldest framework that each allows.
"""
