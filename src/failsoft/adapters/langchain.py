"""LangChain and LangGraph: ``create_agent(..., middleware=[FailsoftMiddleware(runtime)])``.

Rules
-----
- Every tool call of the agent goes through the runtime, under the tool's name. A tool counts as not idempotent until
  it is declared: by ``metadata={"failsoft": {"read_only": True}}``, a manifest entry, or a registered tool of its name.
- A failed call is answered with ``ToolMessage(status="error")``: its content is the explanation for the model, its
  ``artifact`` the whole outcome as plain data. Error messages that the framework or a tool *returns* are failures too.
- What LangGraph steers itself with passes: ``GraphBubbleUp`` (interrupts, commands to a parent, draining),
  ``GraphRecursionError``, resume values that do not fit. So do commands that a tool returns.
- The thread is LangGraph's ``thread_id``. Tools that are missing in it are not offered to the model, and calls that a
  crash or a cancellation left without an answer are closed before the model is asked again.

Put it last, so that it stands next to the tools: middleware before it then sees answers, not exceptions.

Why the async hooks are plain functions: LangChain traces every coroutine function with two hops through a thread pool,
also when nothing is traced. That is more than all the rest here costs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
    from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
    from langchain_core.tools import BaseTool
    from langgraph import errors
    from langgraph.config import get_config
    from pydantic import ValidationError
except ImportError as missing:
    raise ImportError(f"{missing}: install failsoft[langchain]", name=missing.name) from missing

from failsoft.core import own_faults
from failsoft.core.fault import Fault
from failsoft.core.outcome import Outcome
from failsoft.errors import CallFailed, TurnError
from failsoft.runtime.arguments import BrokenToolError, MisfitError
from failsoft.runtime.dangling import explain_dangling
from failsoft.runtime.foreign import Passing
from failsoft.runtime.runtime import Runtime

Execute = Callable[[ToolCallRequest], Awaitable[Any]]

KEY = "failsoft"  # in a tool's metadata: its options
CONTROL: tuple[type[BaseException], ...] = (
    errors.GraphBubbleUp,  # GraphInterrupt, NodeInterrupt, ParentCommand, GraphDrained
    errors.GraphRecursionError,
    *filter(None, [getattr(errors, "UnknownInterruptError", None)]),  # of newer versions
)

_INVALID_RESUME = "_langgraph_invalid_resume"  # how LangGraph marks a resume value that its interrupt refuses
_MISFIT = "Error invoking tool "  # how ToolNode begins when pydantic refused something


class FailsoftMiddleware(AgentMiddleware[Any, Any, Any]):
    """Runs all tools of an agent through a runtime."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime
        self._declared: set[str] = set()

    # --- tools -------------------------------------------------------------------------------------------------------

    def awrap_tool_call(self, request: ToolCallRequest, handler: Execute) -> Coroutine[Any, Any, Any]:
        return self._run(request, handler)

    async def _run(self, request: ToolCallRequest, handler: Execute) -> Any:
        tool, call = request.tool, request.tool_call
        if tool is None:  # made up by the model, or known to middleware further in
            return await handler(request)
        if _is_guarded(tool):
            try:
                return await handler(request)
            except CallFailed as failed:
                return _message(call["id"], failed.outcome)
        run = partial(self.runtime.run, call["name"], call["args"], self._runners(request, tool, handler))
        thread = _thread(request.runtime.config)
        try:
            outcome = await run(thread=thread, id=call["id"] or "")
        except TurnError:  # an id that is not unique in the turn around the agent
            outcome = await run(thread=thread)
        return _translate(call["id"], outcome)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        tool, call = request.tool, request.tool_call
        if tool is None:
            return handler(request)
        if _is_guarded(tool):
            try:
                return handler(request)
            except CallFailed as failed:
                return _message(call["id"], failed.outcome)

        async def execute(made: ToolCallRequest) -> Any:
            return handler(made)

        runners, thread = self._runners(request, tool, execute), _thread(request.runtime.config)
        outcome = self.runtime.run_sync(call["name"], call["args"], runners, thread=thread, id=call["id"] or "")
        return _translate(call["id"], outcome)

    def _runners(self, request: ToolCallRequest, tool: BaseTool, execute: Execute) -> dict[str, Any]:
        """What runs, for every tool of the agent: any of them may stand in for another."""
        known = getattr(request.runtime, "tools", None) or ()  # older versions do not say which others there are
        tools = {each.name: each for each in known} | {request.tool_call["name"]: tool}
        self._declare(tools)
        return {name: partial(_attempt, request, execute, each) for name, each in tools.items()}

    def _declare(self, tools: dict[str, BaseTool]) -> None:
        for name in tools.keys() - self._declared:
            words = (tools[name].metadata or {}).get(KEY) or {}
            if words or name not in self.runtime.tools:
                self.runtime.declare(name, **words)
            self._declared.add(name)

    # --- the model ---------------------------------------------------------------------------------------------------

    def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Coroutine[Any, Any, Any]:
        answer: Coroutine[Any, Any, Any] = handler(self._prepare(request))
        return answer

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        return handler(self._prepare(request))

    def _prepare(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        thread = _thread(_config())
        changes: dict[str, Any] = {}
        hidden = set(self.runtime.threads[thread or ""].unavailable)
        if hidden and any(_name(tool) in hidden for tool in request.tools):
            changes["tools"] = [tool for tool in request.tools if _name(tool) not in hidden]
        if dangling := _find_dangling(request.messages):
            changes["messages"] = self._close(request.messages, dangling, thread)
        return request.override(**changes) if changes else request

    def _close(self, messages: list[AnyMessage], dangling: dict[str, str], thread: str | None) -> list[AnyMessage]:
        """The messages, with an answer to every call right behind the message that asked for it."""
        outcomes = explain_dangling(self.runtime, dangling.items(), thread=thread)
        answers = {outcome.id: _message(outcome.id, outcome) for outcome in outcomes}
        closed: list[AnyMessage] = []
        for message in messages:
            closed.append(message)
            closed += [answers[id] for id in _asked(message) if id in answers]
        return closed


# --- one attempt -------------------------------------------------------------------------------------------------------


class ReturnedError(Exception):
    """An error that came as a message: of the framework, or of the tool itself."""


async def _attempt(request: ToolCallRequest, execute: Execute, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    call = request.tool_call
    if tool is not request.tool or arguments != call["args"]:
        name = call["name"] if tool is request.tool else tool.name
        request = request.override(tool=tool, tool_call={**call, "name": name, "args": arguments})
    try:
        result = await execute(request)
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        raise
    if isinstance(result, ToolMessage) and result.status == "error":
        raise _judge(tool, arguments, str(result.text))
    return result


def _judge(tool: BaseTool, arguments: dict[str, Any], text: str) -> Exception:
    """What an error message stands for. ToolNode blames the arguments whenever pydantic refuses something."""
    if not text.startswith(_MISFIT):
        return ReturnedError(text)
    schema = tool.tool_call_schema
    if isinstance(schema, type) and hasattr(schema, "model_validate"):
        try:
            schema.model_validate(arguments)
        except ValidationError as error:
            return MisfitError(_misfit(error))
    return BrokenToolError(text)


def _misfit(error: ValidationError) -> Fault:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    missing = [str(one["loc"][0]) for one in found if one["type"] == "missing" and one["loc"]]
    invalid = [str(one["loc"][0]) for one in found if one["type"] != "missing" and one["loc"]]
    detail = " ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}." for one in found if one["type"] != "missing")
    return own_faults.bad_arguments(missing=missing, invalid=dict.fromkeys(invalid), detail=detail)


def _is_control(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_control, error.exceptions))
    return isinstance(error, CONTROL) or getattr(error, _INVALID_RESUME, False)


def _is_guarded(tool: BaseTool) -> bool:
    """Is its function one that a runtime has guarded already (``@rt.tool``)?"""
    return any(hasattr(getattr(tool, name, None), "__failsoft__") for name in ("coroutine", "func"))


# --- words -------------------------------------------------------------------------------------------------------------


def _translate(id: str | None, outcome: Outcome[Any]) -> Any:
    if outcome.status != "succeeded":
        return _message(id, outcome)
    if outcome.via != outcome.tool and isinstance(outcome.value, ToolMessage):
        return outcome.value.model_copy(update={"name": outcome.tool})  # some providers match answers by name
    return outcome.value


def _message(id: str | None, outcome: Outcome[Any]) -> ToolMessage:
    return ToolMessage(
        outcome.explanation.model, name=outcome.tool, tool_call_id=id, status="error", artifact=outcome.to_dict()
    )


def _find_dangling(messages: Iterable[AnyMessage]) -> dict[str, str]:
    """The calls that nobody has answered: their ids, and the tools."""
    dangling: dict[str, str] = {}
    for message in messages:
        dangling |= _asked(message)
        if isinstance(message, ToolMessage):
            dangling.pop(message.tool_call_id, None)
    return dangling


def _asked(message: AnyMessage) -> dict[str, str]:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return {call["id"]: call["name"] for call in calls if call["id"] is not None}


def _name(tool: BaseTool | dict[str, Any]) -> Any:
    return tool.name if isinstance(tool, BaseTool) else tool.get("name")


def _config() -> Any:
    try:
        return get_config()
    except RuntimeError:  # outside of a graph
        return {}


def _thread(config: Any) -> str | None:
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)
