"""The event stream: recorded by calls, counted, delivered to readers.

``recorder`` records raw tuples, ``raw_records`` makes events of them, ``delivery`` hands them to consumers.
May import ``core``. Mirrored by ``tests/observe``; ``tests/golden`` keeps the stream itself.
"""
