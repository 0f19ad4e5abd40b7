"""The copies of a call that exist for speed only.

A call that succeeds at once, and a known error that is retried, skip the pipeline here. Outcomes, metrics and events are
compared with the pipeline's by ``tests/runtime/fastpath/test_all_routes.py``.
"""
