"""Execution of tools: clocks, deadlines, OS threads, event loops, bulkheads, processes.

``deadline`` ends attempts on time, ``orphans`` moves abandoned ones to a task of their own. Tested in ``tests/runtime/execution``.
"""
