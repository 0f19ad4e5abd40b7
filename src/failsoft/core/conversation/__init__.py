"""The state of one conversation: missing tools, repeated failures, retry offers, unanswered calls.

Imports ``core.explain`` and ``core.model``. Mirrored by ``tests/core/conversation``.
"""
