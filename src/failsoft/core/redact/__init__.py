"""The sanitiser: every text from outside passes it before any sink sees it.

Imports nothing of failsoft. Every pattern runs in linear time (``tests/torture/test_t30_hostile_text.py``). Mirrored by
``tests/core/redact``.
"""
