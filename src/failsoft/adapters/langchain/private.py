"""Private names of LangChain and LangGraph, all in one place.

Each has a test that fails when a new version changes it. Each is optional: the docstrings say what happens without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from types import FrameType
from typing import Any

from langchain.agents import middleware as langchain_middleware
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langgraph import errors
from langgraph.prebuilt import ToolNode, tool_node

from failsoft.integration.framework_tool import is_any

MISFIT = "Error invoking tool "  # prefix of ToolNode's message about bad arguments
IN_A_GRAPH = "During task with name "  # LangGraph's note on every error that leaves one of its tasks

_INVALID_RESUME = "_langgraph_invalid_resume"  # LangGraph's mark on a rejected resume value
_UNSET: Any = getattr(tool_node, "_default_handle_tool_errors", None)  # default of ToolNode(handle_tool_errors=)

# ToolNode's error for every pydantic error of a tool, where no handler makes a message of it
INVOCATION: Any = getattr(tool_node, "ToolInvocationError", ())

_infer_handled_types: Callable[[Any], Any] = getattr(tool_node, "_infer_handled_types", lambda _: (Exception,))
_HANDLERS: tuple[type[AgentMiddleware[Any, Any, Any]], ...] = (
    *filter(None, [getattr(langchain_middleware, "ToolErrorMiddleware", None)]),  # newer versions
)
_ANSWERING: tuple[type[AgentMiddleware[Any, Any, Any]], ...] = (*_HANDLERS, ToolRetryMiddleware)
_HOOKS = {hook.__code__ for one in _ANSWERING for hook in (one.wrap_tool_call, one.awrap_tool_call)}

CONTROL: tuple[type[BaseException], ...] = (
    errors.GraphBubbleUp,  # GraphInterrupt, NodeInterrupt, ParentCommand, GraphDrained
    errors.GraphRecursionError,
    *filter(None, [getattr(errors, "UnknownInterruptError", None)]),  # newer versions
)


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
    """Call ``do`` when a run ends, however it ends; without the private name, when the run's object is freed."""
    push = getattr(getattr(run, "stack", None), "callback", None)
    if callable(push):
        push(do)


def has_handler(execute: Any, error: Exception) -> bool:
    """True if the ToolNode that runs the tool was given a ``handle_tool_errors`` for such errors, or ``False``.

    False if the node is not found; failsoft's explanation is then used.
    """
    handler: Any = getattr(_node_of(execute), "_handle_tool_errors", _UNSET)
    if handler is _UNSET:
        return False
    if callable(handler) and not isinstance(handler, type):
        handler = _infer_handled_types(handler)
    return isinstance(error, handler) if isinstance(handler, type | tuple) and handler else True


def is_inside_handler(execute: Any, own: Any, tool: str, error: Exception) -> bool:
    """True if a middleware around ``own``, failsoft's, answers this error in the user's words: a ToolErrorMiddleware, or a
    ToolRetryMiddleware whose ``on_failure`` is set.

    Middleware cannot ask for its neighbours, so this looks for them in the ToolNode or, where hooks are composed by hand, on
    the stack. Only failed calls do it.
    """
    node = _node_of(execute)
    for hook in ("_awrap_tool_call", "_wrap_tool_call"):
        composed = [*_middleware_in(getattr(node, hook, None))]
        if any(one is own for one in composed):
            around = takewhile(lambda one: one is not own, composed)
            return any(_answers(one, tool, error) for one in around)
    return any(_answers(one, tool, error) for one in _middleware_on_stack())


def _answers(middleware: Any, tool: str, error: Exception) -> bool:
    if isinstance(middleware, _HANDLERS):
        return bool(getattr(middleware, "_should_handle_tool", lambda _: True)(tool))
    if not isinstance(middleware, ToolRetryMiddleware) or middleware.on_failure == "continue":
        return False  # nothing set: LangChain's own words
    if not getattr(middleware, "_should_retry_tool", lambda _: True)(tool):
        return False
    retry_on = middleware.retry_on  # a function is asked about these errors only; "error" raises all of them
    return middleware.on_failure == "error" or bool(
        retry_on(error) if callable(retry_on) else isinstance(error, retry_on)
    )


def _node_of(execute: Any) -> ToolNode | None:
    """Return the ToolNode that a handler belongs to. Middleware inside failsoft's is between the two."""
    while (function := getattr(execute, "__code__", None)) is not None:
        cells = dict(zip(function.co_freevars, execute.__closure__ or (), strict=True))
        if "self" in cells:
            node = cells["self"].cell_contents
            return node if isinstance(node, ToolNode) else None
        execute = cells["execute"].cell_contents if "execute" in cells else None
    return None


def _middleware_in(hook: Any) -> Iterator[AgentMiddleware[Any, Any, Any]]:
    """Yield the middleware that LangChain has composed into a hook, the outermost first."""
    if isinstance(owner := getattr(hook, "__self__", None), AgentMiddleware):
        yield owner
    elif isinstance(hook, partial):
        yield from _middleware_in(hook.func)
    elif (function := getattr(hook, "__code__", None)) is not None:
        cells = dict(zip(function.co_freevars, hook.__closure__ or (), strict=True))
        for name in ("outer", "inner") if "outer" in cells else ("func",):  # two composed hooks, or one traced
            if name in cells:
                yield from _middleware_in(cells[name].cell_contents)


def _middleware_on_stack() -> Iterator[Any]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _HOOKS:
            yield frame.f_locals["self"]
        frame = frame.f_back
