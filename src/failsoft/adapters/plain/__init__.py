"""Tool calls of a plain loop: take what a provider sends, run it, and answer in the provider's form."""

from failsoft.adapters.plain.loop import close_tool_calls, run_tool_calls, run_tool_calls_sync

__all__ = ["close_tool_calls", "run_tool_calls", "run_tool_calls_sync"]
