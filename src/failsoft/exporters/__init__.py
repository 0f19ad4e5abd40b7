"""Exporters: the metrics of a runtime in the form that monitoring systems read.

One module per system, each imported only by those who use it. ``event_counts`` counts what the runtime does not count
itself. May import ``runtime`` and what is below it. Tested in ``tests/exporters``.
"""
