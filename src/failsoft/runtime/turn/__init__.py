"""Turns on an event loop: handles, dependencies, the scheduler, and how a turn ends.

``scheduler`` runs the calls, ``commands`` performs what the turn machine (``core.turn``) returns, ``conclusion`` closes
the turn. ``agent_run`` is the turn of a framework's run, ``plan_runner`` runs a plan. Tested in ``tests/runtime/turn``.
"""
