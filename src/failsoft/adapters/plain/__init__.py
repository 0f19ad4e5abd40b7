"""Tool calls of a plain loop: read what a provider sends, run it, and answer in the provider's form.

``provider_formats`` has one entry per provider. Needs no framework. May import ``integration``, ``core.model`` and
``errors``. Guarded by ``tests/adapters/test_plain.py``.
"""

from failsoft.adapters.plain.loop import close_tool_calls, run_tool_calls, run_tool_calls_sync

__all__ = ["close_tool_calls", "run_tool_calls", "run_tool_calls_sync"]
