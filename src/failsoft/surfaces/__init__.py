"""Doors for people: the command line."""
