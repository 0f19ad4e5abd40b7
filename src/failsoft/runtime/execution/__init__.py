"""Execution of tools: clocks, deadlines, OS threads, event loops, bulkheads, processes.

``deadline`` ends attempts on time, ``abandoned`` moves abandoned ones to a task of their own, ``interrupted_loop`` mends event
loops. At the bottom of ``runtime``: may import ``runtime.ports`` and ``runtime.scope``, and knows no tool and no call. Tested
in ``tests/runtime/execution``.
"""
