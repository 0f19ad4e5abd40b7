"""The state of one conversation: missing tools, repeated failures, retry offers, unanswered calls.

Mirrored by ``tests/core/conversation``.
"""
