"""Readings of recorded events for people: waterfall, why, advice, replay.

Works on recorded events only, never on a running turn. May import ``core``. Mirrored by ``tests/analysis``.
"""
