"""Carry out what the core decides: tools, calls, turns, deadlines, threads and processes.

``runtime.runtime`` is what users hold. Tests are sorted by behaviour, one directory per package, in ``tests/runtime``.
"""
