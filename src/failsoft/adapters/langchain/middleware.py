"""The middleware that handles every tool call and every model request.

The async hooks are plain functions because LangChain traces every coroutine function with two hops through a thread
pool, even with tracing off. That costs more than everything else here. LangChain also inspects a hook's signature in
every call, so the hooks carry a precomputed one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from functools import partial, update_wrapper
from operator import attrgetter, is_
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
from langchain_core.messages import AnyMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config

from failsoft.adapters.langchain.attempt import Attempt, Execute, Runners, attempt, attempt_blocking, guarded_function
from failsoft.adapters.langchain.messages import find_unanswered, keep_message, to_message, translate
from failsoft.adapters.langchain.private import at_end_of, find_run, has_handler, is_inside_handler
from failsoft.adapters.langchain.repeated import note_raised, refuse_repeated
from failsoft.adapters.langchain.watching import Copies
from failsoft.core.model.builtin_faults import BAD_ARGUMENTS
from failsoft.core.model.outcome import Outcome
from failsoft.errors import CallFailed
from failsoft.integration.api import AgentRun, Runtime, refuse_odd_flag, without_frames
from failsoft.integration.executor import use_daemon_threads
from failsoft.integration.framework_tool import (
    AskedFor,
    Metadata,
    asked_for,
    declare_from_metadata,
    require_runtime,
    tools_to_hide,
)
from failsoft.integration.unanswered import explain_dangling, explain_unanswered_async

KEY = "failsoft"  # key of failsoft's options in a tool's metadata
ANY = ("any", "required", True)  # choices that name no tool

Dangling = dict[tuple[int, str], str]  # unanswered calls: (index of the asking message, call id) -> tool name

_NAME = attrgetter("name")
_HOOKS = ("awrap_tool_call", "wrap_tool_call", "awrap_model_call", "wrap_model_call")
_OWN = frozenset((*_HOOKS, "_declared", "_copies"))


class FailsoftMiddleware(AgentMiddleware[Any, Any, Any]):
    """Run all tools of an agent through a runtime."""

    def __init__(self, runtime: Runtime, *, graceful: bool = True) -> None:
        """With ``graceful=False``, failures are raised for your own error handlers, which come earlier in the list."""
        super().__init__()
        require_runtime(runtime, "FailsoftMiddleware(rt)")
        refuse_odd_flag("graceful", graceful)
        self.runtime = runtime
        self.graceful = graceful
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the state that each middleware makes for itself, so that it can be copied and pickled."""
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._declared: dict[str, BaseTool] = {}  # the latest tool of each name
        self._copies: Copies = {}
        for hook in _HOOKS:
            setattr(self, hook, _with_signature(getattr(self, hook)))

    # --- tools -------------------------------------------------------------------------------------------------------

    def awrap_tool_call(self, request: ToolCallRequest, handler: Execute) -> Coroutine[Any, Any, Any]:
        return self._run(request, handler)

    async def _run(self, request: ToolCallRequest, handler: Execute) -> Any:
        tool, call = request.tool, request.tool_call
        if tool is None:  # invented by the model, or known to inner middleware only
            return await handler(request)
        refuse_repeated(request)
        if (guarded := guarded_function(tool)) is not None:
            try:
                with self._asked_for(guarded, request) as asked:
                    answer = await handler(request)
                return answer if asked.valueless is None else translate(call["id"], asked.valueless)
            except CallFailed as failed:
                return self._answer_guarded(request, handler, failed)
        use_daemon_threads(self.runtime)
        runners, config = self._runners(attempt, request, tool, handler), request.runtime.config
        thread, turn = thread_of(config), self._turn(config)
        outcome = await self.runtime.run(
            call["name"], call["args"], runners, turn=turn, thread=thread, id=call["id"] or ""
        )
        for watch in (*runners.watches, *runners.readings):
            await watch.report_cancellation(call["id"])
        return self._answer(runners, outcome)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        tool, call = request.tool, request.tool_call
        if tool is None or getattr(tool, "func", tool) is None:  # async-only: LangChain raises its own error
            return handler(request)
        refuse_repeated(request)
        if (guarded := guarded_function(tool)) is not None:
            try:
                with self._asked_for(guarded, request) as asked:
                    answer = handler(request)
                return answer if asked.valueless is None else translate(call["id"], asked.valueless)
            except CallFailed as failed:
                return self._answer_guarded(request, handler, failed)
        runners, config = self._runners(attempt_blocking, request, tool, handler), request.runtime.config
        thread, turn = thread_of(config), self._turn(config)
        outcome = self.runtime.run_sync(
            call["name"], call["args"], runners, turn=turn, thread=thread, id=call["id"] or ""
        )
        return self._answer(runners, outcome)

    def _asked_for(self, guarded: Any, request: ToolCallRequest) -> AbstractContextManager[AskedFor]:
        """Mark the call of a guarded function as requested by the model."""
        config = request.runtime.config
        return asked_for(
            guarded, id=request.tool_call["id"], thread=thread_of(config), turn=partial(self._turn, config)
        )

    def _turn(self, config: Any) -> AgentRun | None:
        """Return the turn of the graph's run."""
        run = find_run(config)
        if run is None:
            return None
        return self.runtime.agent_run(run, thread=thread_of(config), at_end=partial(at_end_of, run))

    def _runners(self, attempt: Attempt, request: ToolCallRequest, tool: BaseTool, execute: Execute) -> Runners:
        """Collect runners for all tools of the agent: any of them may be a fallback."""
        name = request.tool_call["name"]
        others = getattr(request.runtime, "tools", None) or ()  # older versions do not list the other tools
        declared = self._declared.get
        if declared(name) is not tool or not all(map(is_, map(declared, map(_NAME, others)), others)):
            self._declare({each.name: each for each in others} | {name: tool})
        return Runners(attempt, request, execute, tool, others, self._copies, [], [])

    def _declare(self, tools: dict[str, BaseTool]) -> None:
        for name, tool in tools.items():
            if self._declared.get(name) is not tool:
                about = Metadata(tool.description, partial(_schema, tool))
                declare_from_metadata(self.runtime, name, (tool.metadata or {}).get(KEY) or {}, about)
                self._declared[name] = tool

    def _answer(self, runners: Runners, outcome: Outcome[Any]) -> Any:
        """Translate the outcome to a message, or let the user's error handler answer a failure."""
        request = runners.request
        errors = [watch.forget_errors() for watch in runners.watches]
        for watch in runners.readings:
            watch.forget_errors()
        if outcome.status == "succeeded":
            return translate(request.tool_call["id"], outcome)
        said = runners.watches[-1].said if errors else None
        if said is None:
            error = (errors and errors.pop()) or CallFailed(outcome)
            refused = outcome.fault is not None and outcome.fault.rule == BAD_ARGUMENTS  # the tool was not executed
            if has_handler(runners.execute, error) or (not refused and self._raises(request, runners.execute, error)):
                note_raised(request, error)
                raise error
        without_frames(outcome)
        id = request.tool_call["id"]
        return to_message(id, outcome) if said is None else keep_message(said, outcome)

    def _answer_guarded(self, request: ToolCallRequest, execute: Execute, failed: CallFailed) -> Any:
        """Answer the failure of a function that goes through a runtime itself."""
        if self._raises(request, execute, failed):
            note_raised(request, failed)
            raise failed
        return to_message(request.tool_call["id"], failed.outcome)

    def _raises(self, request: ToolCallRequest, execute: Execute, error: Exception) -> bool:
        """True if the user has said that failures are raised, or has middleware around this one that answers them."""
        return not self.graceful or is_inside_handler(execute, self, request.tool_call["name"], error)

    # --- the model ---------------------------------------------------------------------------------------------------

    def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Coroutine[Any, Any, Any]:
        dangling = find_unanswered(request.messages)
        if dangling:
            return self._close_and_call(request, dangling, handler)
        answer: Coroutine[Any, Any, Any] = handler(self._prepare(request))
        return answer

    async def _close_and_call(self, request: ModelRequest[Any], dangling: Dangling, handler: Callable[..., Any]) -> Any:
        outcomes = await explain_unanswered_async(
            self.runtime, _unanswered(dangling), thread=thread_of(current_config())
        )
        return await handler(self._prepare(request, (dangling, outcomes)))

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        dangling = find_unanswered(request.messages)
        if not dangling:
            return handler(self._prepare(request))
        outcomes = explain_dangling(self.runtime, _unanswered(dangling), thread=thread_of(current_config()))
        return handler(self._prepare(request, (dangling, outcomes)))

    def _prepare(
        self, request: ModelRequest[Any], closed: tuple[Dangling, list[Outcome[Any]]] | None = None
    ) -> ModelRequest[Any]:
        config = current_config()
        thread = thread_of(config)
        self._turn(config)  # starts the turn at the first request, not at the first call
        changes: dict[str, Any] = {}
        if self.runtime.threads[thread or ""].unavailable:
            changes["tools"] = self._offer(request, thread)
        if closed is not None:
            changes["messages"] = _close(request.messages, *closed)
        return request.override(**changes) if changes else request

    def _offer(self, request: ModelRequest[Any], thread: str | None) -> list[Any]:
        names = [name_of(tool) for tool in request.tools]
        forced = name_of(request.tool_choice)
        hidden = tools_to_hide(self.runtime, thread, {*self._declared, *names}, names if forced in ANY else [forced])
        return [tool for name, tool in zip(names, request.tools, strict=True) if name not in hidden]


def _with_signature(hook: Callable[..., Any]) -> Callable[..., Any]:
    call = update_wrapper(partial(hook), hook)
    call.__signature__ = inspect.signature(hook)  # type: ignore[attr-defined]  # partials accept it
    del call.__wrapped__  # otherwise inspect.signature follows it first
    return call


def name_of(tool: BaseTool | dict[str, Any] | str | None) -> Any:
    """Return a tool's name; for a tool choice, the chosen tool or the mode."""
    if isinstance(tool, dict):
        return tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type")
    return tool.name if isinstance(tool, BaseTool) else tool


def current_config() -> Any:
    try:
        return get_config()
    except RuntimeError:  # outside a graph
        return {}


def thread_of(config: Any) -> str | None:
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def _schema(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON Schema of the tool's arguments."""
    wanted: Any = tool.tool_call_schema
    schema: Mapping[str, Any] = wanted if isinstance(wanted, Mapping) else wanted.model_json_schema()
    return schema


def _unanswered(dangling: Dangling) -> list[tuple[str, str]]:
    return [(id, tool) for (_, id), tool in dangling.items()]


def _close(messages: list[AnyMessage], dangling: Dangling, outcomes: list[Outcome[Any]]) -> list[AnyMessage]:
    """Insert an answer to every unanswered call, right after the message that asked for it."""
    answers = [(place, to_message(id, outcome)) for (place, id), outcome in zip(dangling, outcomes, strict=True)]
    closed = list(messages)
    for place, answer in reversed(answers):
        closed.insert(place + 1, answer)
    return closed
