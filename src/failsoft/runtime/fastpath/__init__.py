"""The fast path: copies of a call that exist for speed only.

A call that succeeds at once, a known error that is retried, and a refusal by an open circuit skip the pipeline here.
Copies made for speed live in this package, except the attempt in ``turn.scheduler``, which works on the state of its
lane. May import ``runtime.call`` and what is below it.
``tests/runtime/fastpath/test_all_routes.py`` runs every route both ways and compares outcomes, metrics and events.
"""
