"""Turns on an event loop: handles, dependencies, the scheduler, and how a turn ends.

``turn`` is what users hold and ``turn_state`` what the parts of a turn share. ``scheduler`` runs the calls and
``commands`` ends those that the turn machine (``core.turn``) gives up. ``body_calls`` runs functions called in the body,
``conclusion`` decides and phrases at the end. ``agent_run`` is the turn of a framework's run, ``plan_runner`` runs a plan.
May import ``runtime.fastpath`` and what is below it. Tested in ``tests/runtime/turn``.
"""
