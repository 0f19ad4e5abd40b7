"""Private names of LangChain and LangGraph, all in one place.

Each has a test that fails when a new version changes it. Each is optional: the docstrings say what happens without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from langgraph import errors
from langgraph.prebuilt import ToolNode, tool_node

from failsoft.integration.framework_tool import is_any

MISFIT = "Error invoking tool "  # prefix of ToolNode's message about bad arguments
IN_A_GRAPH = "During task with name "  # LangGraph's note on every error that leaves one of its tasks

_INVALID_RESUME = "_langgraph_invalid_resume"  # LangGraph's mark on a rejected resume value
_UNSET: Any = getattr(tool_node, "_default_handle_tool_errors", None)  # default of ToolNode(handle_tool_errors=)

CONTROL: tuple[type[BaseException], ...] = (
    errors.GraphBubbleUp,  # GraphInterrupt, NodeInterrupt, ParentCommand, GraphDrained
    errors.GraphRecursionError,
    *filter(None, [getattr(errors, "UnknownInterruptError", None)]),  # newer versions
)

try:
    from langchain.agents.middleware import ToolErrorMiddleware

    _HANDLERS = {ToolErrorMiddleware.wrap_tool_call.__code__, ToolErrorMiddleware.awrap_tool_call.__code__}
except ImportError:  # older versions
    _HANDLERS = set()


def is_control(error: BaseException) -> bool:
    """True for LangGraph's control-flow exceptions and groups that contain one."""
    return is_any(error, lambda one: isinstance(one, CONTROL) or getattr(one, _INVALID_RESUME, False))


def find_run(config: Any) -> Any:
    """Return LangGraph's object for the run of the outermost graph. It is freed when the run ends.

    None if it is not found; the calls then belong to no turn.
    """
    found = None
    while True:
        call = (config.get("configurable") or {}).get("__pregel_call")
        loop = getattr(getattr(call, "keywords", {}).get("schedule_task"), "__self__", None)
        if loop is None or loop is found:
            return found
        found, config = loop, getattr(loop, "config", None) or {}


def at_end_of(run: Any, do: Callable[[], None]) -> None:
    """Call ``do`` when a run ends, in whatever way. Without the private name, the run ends when its object is freed."""
    push = getattr(getattr(run, "stack", None), "callback", None)
    if callable(push):
        push(do)


def has_handler(execute: Any) -> bool:
    """True if the ToolNode that runs the tool was given ``handle_tool_errors``.

    False if the node is not found; failsoft's explanation is then used.
    """
    names = getattr(getattr(execute, "__code__", None), "co_freevars", ())
    if "self" not in names:
        return False
    node = execute.__closure__[names.index("self")].cell_contents
    return isinstance(node, ToolNode) and getattr(node, "_handle_tool_errors", _UNSET) is not _UNSET


def is_inside_handler() -> bool:
    """True if a ToolErrorMiddleware up the stack handles this call.

    Middleware cannot ask for its neighbours, so this walks the stack. Only failed calls do it.
    """
    frame = sys._getframe(1) if _HANDLERS else None
    while frame is not None:
        if frame.f_code in _HANDLERS and _handles(**frame.f_locals):
            return True
        frame = frame.f_back
    return False


def _handles(self: Any, tool_name: str, **_: Any) -> bool:
    """True unless the middleware is limited to other tools."""
    return bool(getattr(self, "_should_handle_tool", lambda _: True)(tool_name))
