"""Conversations (threads) while the program runs: what each may retry, and what the store keeps of it.

Decisions are in ``core.conversation``. May import ``runtime.tools`` and what is below it. Tested in ``tests/runtime/conversation``.
"""
