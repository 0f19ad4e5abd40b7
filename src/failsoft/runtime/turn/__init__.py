"""Turns on an event loop: handles, dependencies, the scheduler, and how a turn ends."""
