"""Named tuples and patterns that are completed on first use, so that importing failsoft is cheap.

Imports nothing else of failsoft: every other package of ``core`` may use it. ``tests/core/startup`` and
``tests/test_house.py`` guard it; ``bench/s7_import.py`` measures it.
"""
