"""Private names of the SDK, all in one place.

Each has a test that fails when a new version changes it. Each is optional: the docstrings say what happens without it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import CO_COROUTINE
from types import FrameType
from typing import Any

import agents.run
from agents import FunctionTool
from agents import tool as sdk_tool
from agents.lifecycle import RunHooksBase
from agents.tool import (
    default_tool_error_function,
    maybe_invoke_function_tool_failure_error_function,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext

from failsoft.integration.api import reset_variable

# Class of the invokers that ``function_tool`` makes. The SDK looks for it to find a tool's own function.
Invoker: type[Any] = getattr(sdk_tool, "_FailureHandlingFunctionToolInvoker", object)

_BIND = "__agents_bind_function_tool__"  # method of every such invoker: returns an invoker bound to another tool
_WRAPPED = getattr(sdk_tool, "_FUNCTION_TOOL_WRAPPED_CALLABLE_MARKER", "__agents_function_tool_wrapped_callable__")
_HANDLED = getattr(sdk_tool, "_DEFAULT_FAILURE_HANDLED_ATTR", "_function_tool_default_failure_handled")
_SDK_GLOBALS = vars(sdk_tool)
_DEFAULTED = ("mcp", "agent_as_tool")  # tools that get a default failure function from the SDK


async def _unused(_: Any, __: str) -> str:
    raise NotImplementedError


_RAISES = set_function_tool_failure_error_function(
    FunctionTool(
        name="raises", description="", params_json_schema={}, on_invoke_tool=_unused, strict_json_schema=False
    ),
    None,
)


# --- invokers --------------------------------------------------------------------------------------------------------------


def is_made_by_sdk(invoker: Any) -> bool:
    """True for an invoker of a function: it validates the arguments. Other invokers parse them themselves."""
    return isinstance(invoker, Invoker) if Invoker is not object else hasattr(invoker, _BIND)


def bind(invoker: Any, tool: FunctionTool) -> Any:
    """Bind the invoker to a tool, whose failure function it then uses."""
    return getattr(invoker, _BIND)(tool) if is_made_by_sdk(invoker) else invoker


def without_failure_function(invoker: Any) -> Any:
    """Return the invoker without failure function: it raises what its function raises."""
    return bind(invoker, _RAISES)


def invokes_tools(frame: FrameType) -> bool:
    """True for the SDK's own code that invokes a tool: a coroutine of its module ``agents.tool``.

    If the SDK moves that code, its timeout applies as well as ours.
    """
    return frame.f_globals is _SDK_GLOBALS and bool(frame.f_code.co_flags & CO_COROUTINE)


def function_of(invoker: Any) -> Any:
    """Return the function of an invoker; None if unknown."""
    return getattr(getattr(invoker, "_invoke_tool_impl", None), _WRAPPED, None)


def copy_attributes(implementation: Any, invoker: Any) -> Any:
    """Copy the attributes that the SDK looks up from ``invoker``: its function, and how approvals see arguments."""
    if is_made_by_sdk(invoker) and hasattr(invoker, "prepare_arguments"):
        implementation.__agents_prepare_arguments__ = invoker.prepare_arguments
    if (function := function_of(invoker)) is not None:
        setattr(implementation, _WRAPPED, function)
    return implementation


# --- failures --------------------------------------------------------------------------------------------------------------


def uses_default(tool: FunctionTool) -> bool:
    """True if the user has set no failure function. Without the private name, always True."""
    return bool(getattr(tool, "_use_default_failure_error_function", True))


def has_failure_function(tool: FunctionTool, context: ToolContext[Any]) -> bool:
    """True if the user has decided how this tool's failures are handled: a function, or None to raise them.

    The default function that the SDK gives to MCP tools and agents as tools does not count. A hosted program that
    expects structured output cannot read text: the SDK raises then.
    """
    if uses_default(tool):
        return resolve_function_tool_failure_error_function(tool, context) is None
    origin = getattr(getattr(getattr(tool, "_tool_origin", None), "type", None), "value", None)
    if getattr(tool, "_failure_error_function", None) is not default_tool_error_function or origin not in _DEFAULTED:
        return True
    return origin == "mcp" and "failure_error_function" in (getattr(context.agent, "mcp_config", None) or {})


async def fail(tool: FunctionTool, invoker: Any, context: ToolContext[Any], text: str, error: Exception) -> Any:
    """Handle an error as the SDK does: call the tool's failure function, or raise."""
    if not is_made_by_sdk(invoker):
        raise error
    answer = await maybe_invoke_function_tool_failure_error_function(function_tool=tool, context=context, error=error)
    if answer is None:
        raise error
    note_handled(tool, invoker, context, text, error)
    return answer


def note_handled(tool: FunctionTool, invoker: Any, context: ToolContext[Any], text: str, error: Exception) -> None:
    """Mark the SDK's span as failed. Without the private name, the span looks like a success."""
    note = getattr(invoker, "_on_handled_error", None)
    if note is not None:
        note(tool, error, text, context)


def mark_as_failure_text(context: ToolContext[Any]) -> None:
    """Mark the answer as a failure text, which need not match the tool's output schema."""
    setattr(context, _HANDLED, True)


def forget_prepared(context: ToolContext[Any]) -> None:
    """Drop the arguments that were prepared for another tool."""
    context._function_tool_arguments = None


# --- runs ------------------------------------------------------------------------------------------------------------------


class Run:
    """One run of the SDK's runner."""

    def __init__(self) -> None:
        self.at_end: list[Callable[[], None]] = []

    def end(self) -> None:
        for do in self.at_end:
            do()


_RUN: ContextVar[Run | None] = ContextVar("failsoft_openai_run", default=None)


def current_run() -> Run | None:
    """Return the current run; None under a custom runner."""
    return _RUN.get()


def watch_runs(replace_hooks: Callable[[Any], Any], look_at: Callable[[Any], None]) -> None:
    """Wrap the default runner, to see when each agent's runs begin and end, and to replace a run's hooks."""
    find, replace = (
        getattr(agents.run, name, None) for name in ("get_default_agent_runner", "set_default_agent_runner")
    )
    if find is not None and replace is not None and not isinstance(find(), _Runner):
        replace(_Runner(find(), replace_hooks, look_at))


@contextmanager
def _opened() -> Iterator[Run]:
    run = Run()
    token = _RUN.set(run)
    try:
        yield run
    finally:
        reset_variable(_RUN, token)


async def _watched(running: Coroutine[Any, Any, Any]) -> Any:
    with _opened() as run:
        try:
            return await running
        finally:
            run.end()


class _Runner(agents.run.AgentRunner):
    """The default runner, watched. Its frames appear in tracebacks, so they keep no input."""

    def __init__(self, inner: Any, replace_hooks: Callable[[Any], Any], look_at: Callable[[Any], None]) -> None:
        self.inner = inner
        self._replace_hooks = replace_hooks
        self._look_at = look_at

    def _prepare(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._look_at(args[0] if args else options.get("starting_agent"))
        hooks = options.get("hooks")
        if isinstance(hooks, RunHooksBase):  # the SDK rejects others
            options["hooks"] = self._replace_hooks(hooks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, *args: Any, **options: Any) -> Any:
        self._prepare(args, options)
        return _watched(self.inner.run(*args, **options))

    def run_sync(self, *args: Any, **options: Any) -> Any:
        self._prepare(args, options)
        with _opened() as run:
            try:
                return self.inner.run_sync(*args, **options)
            finally:
                run.end()
                del args, options

    def run_streamed(self, *args: Any, **options: Any) -> Any:
        self._prepare(args, options)
        with _opened() as run:
            result = self.inner.run_streamed(*args, **options)
        task = getattr(result, "run_loop_task", None)
        if task is not None:
            task.add_done_callback(lambda _: run.end())
        return result
