"""One call, from admission to outcome: the pipeline, its drivers, and one attempt.

``pipeline`` is the order of the protections, ``admission`` lets a call in or refuses it, ``attempt`` runs the tool once,
``recovery`` acts on a failure. May import ``runtime.conversation`` and what is below it. Tested in ``tests/runtime/call``.
"""
