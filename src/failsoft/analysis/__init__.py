"""Readings of recorded events for people: waterfall, why, advice, replay.

Works on recorded events only and never on a running turn. Mirrored by ``tests/analysis``.
"""
