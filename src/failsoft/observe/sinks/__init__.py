"""Sinks that write the event stream somewhere: JSON lines, the stdlib logger.

May import ``observe`` and ``core``. Mirrored by ``tests/observe/sinks``.
"""
