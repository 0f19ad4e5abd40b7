"""Effects: may a tool have acted, and may it be repeated?

``tool_effect`` holds what is known of a tool (declared, hinted, recognised by name), ``call_effect`` what is known of
one call. May import ``core.classify`` and ``core.model``. Mirrored by ``tests/core/effects``; ``tests/corpus`` measures
the recognition on real tools.
"""
