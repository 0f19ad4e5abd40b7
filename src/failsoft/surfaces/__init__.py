"""Surfaces: the command line, and the daemon (``failsoft serve``).

May import everything below. Tested in ``tests/surfaces``.
"""
