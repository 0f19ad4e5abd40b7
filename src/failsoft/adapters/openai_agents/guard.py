"""The guard of an agent: runs calls of its tools and servers through the runtime, and formats the answers."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, cast
from weakref import ref

from agents import CustomTool, FunctionTool, RunContextWrapper, Tool, Usage
from agents.exceptions import ToolTimeoutError
from agents.run_config import ToolErrorFormatterArgs
from agents.tool_context import ToolContext
from agents.tracing import get_current_trace

from failsoft.adapters.openai_agents import private
from failsoft.adapters.openai_agents.attempt import (
    Attempts,
    format_success,
    format_text,
    invoke_bare,
    invoke_custom,
)
from failsoft.adapters.openai_agents.servers import GuardedServer, guard_server
from failsoft.adapters.openai_agents.tools import AnyGuardedTool, GuardedCustomTool, GuardedTool, guard_tool, timeout_of
from failsoft.core.model.builtin_faults import is_own_timeout
from failsoft.core.model.fault import Fault
from failsoft.core.model.outcome import Outcome
from failsoft.errors import CallFailed
from failsoft.integration.api import AgentRun, Runtime, sanitise
from failsoft.integration.arguments import read_arguments
from failsoft.integration.executor import use_daemon_threads
from failsoft.integration.framework_tool import (
    LazyRunners,
    Metadata,
    Runner,
    asked_for,
    changed_timeout,
    declare_from_metadata,
    tools_to_hide,
)

log = logging.getLogger("failsoft")

_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}}  # the arguments of a custom tool

Thread = Callable[[RunContextWrapper[Any]], str | None]


class _PerObject:
    """Values remembered per object, until it is freed. Objects are compared by identity and need no hash."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[ref[Any], Any]] = {}

    def get(self, owner: Any) -> Any:
        found = self.known.get(id(owner))
        return None if found is None else found[1]

    def put(self, owner: Any, value: Any) -> None:
        key = id(owner)
        self.known[key] = ref(owner, lambda _: self.known.pop(key, None)), value


class _PerRun(_PerObject):
    """Values remembered per run. All contexts of a run share one usage object, which identifies the run."""

    def get(self, owner: Any) -> Any:
        return super().get(getattr(owner, "usage", None))

    def put(self, owner: Any, value: Any) -> None:
        usage: Usage | None = getattr(owner, "usage", None)
        if usage is not None:
            super().put(usage, value)


_GROUPS = _PerRun()


def group_of(context: RunContextWrapper[Any]) -> str | None:
    """Return the conversation's id from ``RunConfig(group_id=...)``.

    Only tools see the run config. Elsewhere the id comes from the trace or, without tracing, from an earlier tool call
    of the run.
    """
    config = getattr(context, "run_config", None)
    if config is not None:
        if _GROUPS.get(context) is None:
            _GROUPS.put(context, config.group_id)
        return cast("str | None", config.group_id)
    found: str | None = getattr(get_current_trace(), "group_id", None)
    return cast("str | None", _GROUPS.get(context)) if found is None else found


class CustomToolError(Exception):
    """A failed call of a custom tool, explained for the model."""


class Guard:
    """The guard of one agent and its clones."""

    def __init__(self, runtime: Runtime, thread: Thread | None, graceful: bool) -> None:
        self.runtime = runtime
        self.graceful = graceful
        self.proxy_classes: dict[tuple[type, type], type] = {}  # generated classes of proxies
        self.has_run = False  # True once an agent with this guard has run
        self._thread = thread
        self._servers = _PerObject()  # the guarded proxies of servers
        self._offered = _PerRun()  # tool id -> tool: the candidates for fallbacks

    def __reduce__(self) -> tuple[Any, ...]:
        return Guard, (self.runtime, self._thread, self.graceful)

    def __deepcopy__(self, _: Any) -> Guard:
        return self

    def thread(self, context: RunContextWrapper[Any]) -> str | None:
        return (self._thread or group_of)(context)

    # --- what an agent offers ------------------------------------------------------------------------------------------

    def guard_tools(self, tools: list[Tool]) -> list[Tool]:
        """Guard the tools of a list, in place."""
        for place, tool in enumerate(tools):
            if isinstance(tool, FunctionTool | CustomTool) and not self.is_guarded_here(tool):
                tools[place] = guard_tool(tool, self)
        return tools

    def is_guarded_here(self, tool: Any) -> bool:
        return isinstance(tool, AnyGuardedTool) and tool._guard is self

    def guard_servers(self, servers: list[Any]) -> list[Any]:
        """Return the guarded proxies of MCP servers.

        Servers of the same name are numbered: each has its own
        breaker.
        """
        seen = Counter[str]()
        guarded: list[GuardedServer] = []
        for server in servers:
            seen[server.name] += 1
            known = self._servers.get(server)
            if known is None:
                known = guard_server(server, self, seen[server.name])
                self._servers.put(server, known)
            guarded.append(known)
        return guarded

    def offer(self, tools: list[Tool], context: RunContextWrapper[Any], forced: Any) -> list[Tool]:
        """Return the tools available in this conversation, plus any that ``tool_choice`` requires."""
        thread = self.thread(context)
        self.turn(context, thread)
        tools = self.guard_tools([*tools])
        functions = {tool.qualified_name: tool for tool in tools if isinstance(tool, FunctionTool)}
        self._offered.put(context, functions)
        for name, tool in functions.items():
            if name not in self.runtime.tools:
                about = Metadata(tool.description, tool.params_json_schema)
                declare_from_metadata(self.runtime, name, _sdk_options(tool), about)
        for custom in tools:
            if isinstance(custom, CustomTool) and custom.name not in self.runtime.tools:
                declare_from_metadata(self.runtime, custom.name, {}, Metadata(custom.description, _TEXT))
        if self.runtime.threads[thread or ""].unavailable:
            choice = [_id(tool) for tool in tools if forced in ("required", tool.name)]
            offered = [name for name, tool in functions.items() if not needs_consent(tool)]
            hidden = tools_to_hide(self.runtime, thread, offered, choice)
            tools = [tool for tool in tools if _id(tool) not in hidden]
        return tools

    def turn(self, context: RunContextWrapper[Any], thread: str | None) -> AgentRun | None:
        """Return the run's turn. With a custom runner, the turn ends when the run's usage object is freed."""
        run = private.current_run()
        if run is not None:
            return self.runtime.agent_run(run, thread=thread, at_end=run.at_end.append)
        usage = getattr(context, "usage", None)
        return None if usage is None else self.runtime.agent_run(usage, thread=thread)

    # --- a call --------------------------------------------------------------------------------------------------------

    async def invoke(self, tool: GuardedTool, bare: Any, context: ToolContext[Any], text: str) -> Any:
        """Run a call of a guarded tool."""
        made = cast("FunctionTool", tool)
        use_daemon_threads(self.runtime)
        try:
            function = private.function_of(bare)
            if hasattr(function, "__failsoft__"):  # the function itself goes through a runtime
                thread = self.thread(context)
                turn = partial(self.turn, context, thread)
                with asked_for(function, id=context.tool_call_id, thread=thread, turn=turn) as asked:
                    value = await invoke_bare(bare, context, text)
                return value if asked.valueless is None else format_success(asked.valueless)
            outcome, error = await self._run(made, bare, context, text)
        except CallFailed as failed:
            outcome, error = failed.outcome, failed
        except Exception as control:
            return await private.fail(made, bare, context, text, control)
        if outcome.status == "succeeded":
            return format_success(outcome)
        return await self._explain(made, bare, context, text, outcome, error=error)

    async def invoke_custom(self, tool: GuardedCustomTool, bare: Any, context: ToolContext[Any], text: str) -> Any:
        """Run a call of a guarded custom tool. The SDK shows the model the text of what this raises."""
        name, thread = cast("CustomTool", tool).name, self.thread(context)
        use_daemon_threads(self.runtime)
        error: Exception

        async def attempt(arguments: dict[str, Any]) -> Any:
            return await invoke_custom(bare, context, arguments["input"])

        try:
            if hasattr(bare, "__failsoft__"):  # the function itself goes through a runtime
                turn = partial(self.turn, context, thread)
                with asked_for(bare, id=context.tool_call_id, thread=thread, turn=turn) as asked:
                    value = await invoke_custom(bare, context, text)
                return value if asked.valueless is None else format_text(asked.valueless)
            outcome = await self.runtime.run(
                name,
                {"input": text},
                {name: attempt},
                turn=self.turn(context, thread),
                thread=thread,
                id=context.tool_call_id,
            )
        except CallFailed as failed:
            outcome, error = failed.outcome, failed
        else:
            if outcome.status == "succeeded":
                return format_text(outcome)
            error = _as_error(outcome)
            if isinstance(error.__cause__, Exception):
                error = error.__cause__
        if self.graceful:
            raise CustomToolError(outcome.explanation.model) from error
        raise error

    async def _run(
        self, tool: FunctionTool, bare: Any, context: ToolContext[Any], text: str
    ) -> tuple[Outcome[Any], Exception | None]:
        name, thread = tool.qualified_name, self.thread(context)
        given = read_arguments(text)
        if isinstance(given, Fault):
            given = {"arguments": text}  # the tool will reject them
        offered: Mapping[str, FunctionTool] = self._offered.get(context) or {}

        def make_attempts() -> Attempts:
            return Attempts(name, context, text, given)

        def runner(attempts: Attempts, other: str) -> Runner | None:
            if other == name:
                return partial(attempts.run, tool, bare)
            found = offered.get(other)
            if found is None or found.is_enabled is False or needs_consent(found):
                return None
            return partial(attempts.run, found, vars(found)["on_invoke_tool"])

        attempts = make_attempts()
        runners = LazyRunners(partial(runner, attempts), lambda: LazyRunners(partial(runner, make_attempts())))
        options: dict[str, Any] = {}
        if (limit := changed_timeout(self.runtime, name, _sdk_options(tool))) is not None:
            options["timeout"] = limit
        outcome = await self.runtime.run(
            name, given, runners, turn=self.turn(context, thread), thread=thread,
            id=context.tool_call_id, **options,
        )  # fmt: skip
        return outcome, attempts.error

    async def _explain(
        self,
        tool: FunctionTool,
        bare: Any,
        context: ToolContext[Any],
        text: str,
        outcome: Outcome[Any],
        *,
        error: Exception | None,
    ) -> Any:
        """Return the text that the model reads about a failure. The user's own settings come first."""
        timed_out = error is None and outcome.fault is not None and is_own_timeout(outcome.fault.rule)
        limit = timeout_of(tool)
        if timed_out and (tool.timeout_behavior == "raise_exception" or tool.timeout_error_function is not None):
            late = ToolTimeoutError(tool.name, limit or 0.0)
            if tool.timeout_behavior == "raise_exception":
                raise late from _as_error(outcome)
            return await _await_if_needed(cast("Any", tool.timeout_error_function)(context, late))
        error = error or _as_error(outcome)
        if private.has_failure_function(tool, context) and not (timed_out and limit is not None):
            return await private.fail(tool, bare, context, text, error)
        if not self.graceful:
            raise error
        private.mark_as_failure_text(context)
        private.note_handled(tool, bare, context, text, error)
        text_for_model = outcome.explanation.model
        return (
            text_for_model
            if timed_out or not private.uses_default(tool)
            else await _formatted(context, error, text_for_model)
        )


def _as_error(outcome: Outcome[Any]) -> Exception:
    failed = CallFailed(outcome)
    failed.__cause__ = None if outcome.fault is None else outcome.fault.cause
    return failed


async def _formatted(context: ToolContext[Any], error: Exception, text_for_model: str) -> str:
    """Apply ``RunConfig(tool_error_formatter=...)`` to the text."""
    formatter = getattr(context.run_config, "tool_error_formatter", None)
    if formatter is None:
        return text_for_model
    asked = ToolErrorFormatterArgs(
        kind="tool_exception",
        tool_type="function",
        tool_name=context.qualified_tool_name,
        call_id=context.tool_call_id,
        default_message=text_for_model,
        run_context=context,
        error=error,
    )
    try:
        formatted = await _await_if_needed(formatter(asked))
    except Exception as failed:
        log.warning("tool_error_formatter failed; using failsoft's explanation: %s", sanitise(failed))
        return _without_error_text(text_for_model)
    if formatted is None:
        return text_for_model
    return formatted if isinstance(formatted, str) else _without_error_text(text_for_model)


def _without_error_text(text_for_model: str) -> str:
    """Return the explanation without the error's text, which the user's formatter may have been meant to hide."""
    return text_for_model.partition(" Error text, as data: ")[0]


async def _await_if_needed(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def needs_consent(tool: FunctionTool) -> bool:
    """True if calls need approval or guardrails: an approval for one tool does not cover another."""
    return bool(tool.needs_approval or tool.tool_input_guardrails or tool.tool_output_guardrails)


def _sdk_options(tool: FunctionTool) -> dict[str, Any]:
    """Return the options that the SDK knows about a tool."""
    seconds = timeout_of(tool)
    return {"timeout": timedelta(seconds=seconds)} if seconds else {}


def _id(tool: Tool) -> str | None:
    if isinstance(tool, FunctionTool):
        return tool.qualified_name
    return tool.name if isinstance(tool, CustomTool) else None
