"""Surfaces for people: the command line.

May import everything below. Tested in ``tests/surfaces``.
"""
