"""Texts for the user, the model and the operator.

``catalogue`` has every text, ``explanation`` chooses for one call, ``turn_message`` for a turn. Imports
``core.classify``, ``core.effects``, ``core.model`` and ``core.redact``. Mirrored by ``tests/core/explain``.
"""
