"""Texts about failures for the user, the model and the operator.

``catalogue`` holds every text, ``explanation`` explains one call, ``turn_message`` summarises a turn. May import
all of ``core`` but ``core.conversation``. Mirrored by ``tests/core/explain``.
"""
