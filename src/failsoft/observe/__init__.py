"""The event stream: recorded by calls, counted, delivered to readers.

May import ``core``. Mirrored by ``tests/observe``; ``tests/golden`` keeps the stream itself.
"""
