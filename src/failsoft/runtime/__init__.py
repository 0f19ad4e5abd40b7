"""The runtime performs what the core decides: tools, calls, turns, deadlines, OS threads and processes.

``runtime.runtime`` is the object that users hold; the packages below it run turns, calls and attempts. May import
``config``, ``analysis``, ``stores``, ``observe`` and ``core``. ``tests/runtime`` has one directory per package, sorted by
behaviour; ``tests/torture`` and ``tests/conformance`` test the whole.
"""
