"""Readings of recorded events for people: waterfall, why, advice, replay.

Works on recorded events only, never on a running turn. ``source`` is the protocol by which events are read from files,
stores and runtimes. Does no I/O. May import ``core``. Mirrored by ``tests/analysis``.
"""
