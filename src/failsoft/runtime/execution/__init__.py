"""Execution of tools: clocks, deadlines, OS threads, event loops, bulkheads, processes.

``deadline`` ends attempts on time, ``stepping`` steps their coroutines by hand, ``abandoned`` moves those that cannot
be cancelled to a task of their own, ``outliving`` runs that task to its end, ``interrupted_loop`` repairs event loops,
``idle`` ends attempts that make no progress. At the bottom of ``runtime``: may import ``runtime.ports``,
``runtime.scope`` and ``runtime.progress``, and knows no tool and no call. Tested in ``tests/runtime/execution``.
"""
