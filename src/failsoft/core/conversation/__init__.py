"""The state of one conversation: missing tools, repeated failures, retry offers, unanswered calls.

At the top of ``core``: may import all of it. Mirrored by ``tests/core/conversation``.
"""
