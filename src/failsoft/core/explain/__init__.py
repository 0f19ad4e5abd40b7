"""Texts about failures for the user, the model and the operator.

``catalogue`` holds every text, ``explanation`` explains one call, ``turn_message`` summarises a turn. Imports
``core.classify``, ``core.effects``, ``core.model`` and ``core.redact``. Mirrored by ``tests/core/explain``.
"""
