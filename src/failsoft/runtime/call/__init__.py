"""One call, from admission to outcome: the pipeline, its drivers, and one attempt.

``pipeline`` is the order of the protections and ``recovery`` the decision after a failure: both only yield ``steps``. A
``driver`` performs them; ``admission`` and ``assessment`` perform those that take no time (``in_place``). ``attempt`` runs
the tool once; ``attempt_on_loop`` and ``attempt_blocking`` are the two ways to wait for it. May import
``runtime.conversation`` and what is below it. Tested in ``tests/runtime/call``.
"""
