"""Conversations (threads) while the program runs: their retry offers and missing tools, in memory and in the store.

``thread_notes`` holds the notes on threads and ``conversation_log`` writes them. Decisions are in
``core.conversation``. May import ``runtime.tools`` and what is below it. Tested in ``tests/runtime/conversation``.
"""
