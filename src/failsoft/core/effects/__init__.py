"""Effects: may a tool have acted, and may it be repeated?

``tool_effect`` says what is known of a tool (declared, hinted, recognised by name), ``call_effect`` what is known of one
call. Mirrored by ``tests/core/effects``; ``tests/corpus`` measures the recognition on real tools.
"""
