"""``Runtime``: what a user holds. It registers tools, makes calls and turns, and shows what happened."""

from __future__ import annotations

import random as random_source
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, Self, TypeVar, Unpack, cast, overload

from failsoft.config.settings import (
    join_policies,
    read_time,
    refuse_odd_flag,
    refuse_odd_parts,
    require_callables,
    require_text_names,
    tool_options,
)
from failsoft.core.effects.tool_effect import Undeclared
from failsoft.core.model.durations import Duration
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.model.options import OnTimeout
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience.error_handler import Handler
from failsoft.errors import FailsoftError, ManifestError
from failsoft.observe.instrument import Instrument
from failsoft.runtime import agent_calls, lifecycle
from failsoft.runtime.adapter_calls import AdapterCalls
from failsoft.runtime.assembly import (
    add_memory,
    connect_handler,
    connect_reporter,
    connect_store,
    load_tools,
    open_store,
    read_settings,
    turn_options,
)
from failsoft.runtime.call import build as calling
from failsoft.runtime.call.allowance import allow_calls
from failsoft.runtime.call.build import as_coroutine, make_call
from failsoft.runtime.call.model import Phraser
from failsoft.runtime.call.user_text import Catalogue
from failsoft.runtime.call_options import CallKeywords
from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.execution.blocking_loop import is_on_loop, run_here
from failsoft.runtime.execution.clock import Clock
from failsoft.runtime.fastpath.refusal import refuse_by_name
from failsoft.runtime.reference import Reference
from failsoft.runtime.registry import make_tool, register, set_enabled
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.services import Services
from failsoft.runtime.tools.function_kind import unguarded
from failsoft.runtime.turn.agent_run import AgentRuns

if TYPE_CHECKING:
    from pathlib import Path

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.resilience.policy import Policy
    from failsoft.core.resilience.recovery_memory import Mode
    from failsoft.runtime.tool_keywords import ToolKeywords
    from failsoft.runtime.turn.turn import Turn
    from failsoft.stores.ports import BreakerStore, Store

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Arguments = Mapping[str, Any] | None

FLUSH_PATIENCE = 5.0  # seconds that ``flush`` waits for consumers
_scope = SCOPE.get


class Runtime(AdapterCalls):
    """Holds the tools and their health, makes calls and turns, and shows what happened.

    One for the whole application is usual; it serves any number of threads and event loops. ``async with Runtime() as
    rt`` closes it at the end.

    - ``manifest``: the options of tools and turns: the path of a YAML file, or a mapping with the same keys.
    - ``store``: where trace, recovery memory, circuits, retry offers and the records of writes are kept:
      ``"sqlite:///failsoft.db"``, or ``"memory:"``, which keeps nothing beyond the process.
    - ``store_required``: refuse a write that the store could not record before it starts; else it runs without a record.
    - ``record_arguments``: keep the arguments of writes in the effect ledger, without secrets, so that ``rt.ledger`` can
      verify them later.
    - ``breakers``: where circuits are shared with other processes, if not in the store: an address or a ``BreakerStore``.
      ``"memory:"``: they are not shared, and not kept.
    - ``trace``: a file to which every event is appended, as JSON lines.
    - ``policies``: rules of your own about failures; the manifest's come first.
    - ``memory``: ``"advise"``, ``"act"`` or ``"off"``: how the recovery memory is used.
    - ``error_handler``: another ``Handler`` in place of the built-in one, or the address of a daemon (``failsoft serve``).
    - ``report_to``: the address of a daemon that gets every event, in batches.
    - ``on_escalation``: called with the ``Outcome`` of every call that was escalated.
    - ``explain``: a function that phrases what the user is told.
    - ``undeclared``: how tools are treated that do not declare whether they read or write. ``"recognise"``: reads are
      recognised by name and description and repeated, writes are not. ``"as_specified"``: all are repeated.
      ``"never_repeat"``: none is repeated when it may have taken effect.
    - ``check_types``: False to give arguments to tools unchecked in calls by name; a tool's own ``check_types`` comes
      first.
    - ``instruments``: hooks around turns, calls and attempts; see ``Instrument``.
    - ``clock``, ``random``: for tests; see ``failsoft.testing``.
    """

    def __init__(
        self,
        manifest: str | Path | Mapping[str, Any] | None = None,
        *,
        store: str | Store = "memory:",
        store_required: bool = False,
        record_arguments: bool = False,
        breakers: str | BreakerStore | None = None,
        trace: str | Path | None = None,
        policies: Iterable[Policy | Mapping[str, Any]] | None = None,
        memory: Mode | None = None,
        error_handler: str | Handler | None = None,
        report_to: str | None = None,
        on_escalation: Callable[[Outcome[Any]], Any] | None = None,
        explain: Phraser | None = None,
        undeclared: Undeclared | None = None,
        check_types: bool | None = None,
        instruments: Iterable[Instrument] = (),
        clock: Clock | None = None,
        random: random_source.Random | None = None,
    ) -> None:
        self._connected = connect_handler(error_handler) if isinstance(error_handler, str) else None
        handler = self._connected if isinstance(error_handler, str) else error_handler
        require_callables(handler, on_escalation=on_escalation, explain=explain)
        refuse_odd_parts(clock, random, trace, store_required)
        refuse_odd_flag("record_arguments", record_arguments)
        self._random = source = random or random_source.Random()
        clock = clock or clocks.current()
        settings = read_settings(manifest, undeclared, check_types)
        kept = open_store(store, clock, required=store_required)
        self._owned = kept if isinstance(store, str) else None
        services = Services(
            clock,
            source,
            handler=handler,
            on_escalation=on_escalation,
            policies=join_policies(settings.policies, policies or ()),
            store=kept,
            store_required=store_required,
            record_arguments=record_arguments,
            phraser=explain,
            catalogue=Catalogue(settings.explanations, settings.language),
        )
        super().__init__(services, settings, add_memory(services, settings.memory if memory is None else memory))
        self._tool_index, self._numbers = services.toolbox.index, services.log.trace.numbers  # FAST: 0.6 % of rt.call
        connect_store(services, breakers)
        if type(instruments) is not tuple or instruments:
            from failsoft.runtime.instruments import add_instruments

            add_instruments(services, instruments)
        load_tools(services, settings)
        if trace is not None:
            from failsoft.observe.sinks.jsonl import write_to

            write_to(services.log.trace, trace)
        if report_to is not None:
            self.subscribe_batches(connect_reporter(report_to))
        self._runs = AgentRuns(services, self._new_turn_id, settings.turn)
        self._reference = Reference(self)  # for pickles
        lifecycle.begin(services)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise: frameworks call what they are given as a capability, a tool or a hook."""
        raise FailsoftError(
            "a Runtime cannot be called: decorate tools with @rt.tool, call them with rt.call(tool, {…}). In pydantic-ai, write "
            "capabilities=[Failsoft(rt)]"
        )

    # -- tools -------------------------------------------------------------------------------------------------------

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(
        self, fn: None = None, /, *, id: str | None = None, replace: bool = False, **options: Unpack[ToolKeywords]
    ) -> Callable[[F], F]: ...
    def tool(self, fn: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool: ``@rt.tool`` or ``@rt.tool(timeout="30s", read_only=True)``.

        The function can be called as before: it is guarded now, and raises ``CallFailed`` if the call fails in the end.
        ``id`` defaults to its name; the other options are those of a tool in the manifest. An id that belongs to
        another function is refused, unless ``replace=True`` is given.
        """
        if fn is not None:
            return self.add(fn, **options)
        return lambda function: self.add(function, **options)

    def add(self, fn: F, /, *, id: str | None = None, replace: bool = False, **options: Unpack[ToolKeywords]) -> F:
        """Register any callable as a tool and return its guarded form. The options are those of ``tool``."""
        options_ = tool_options(fn, id, options, self._settings)
        if not isinstance(replace, bool):
            raise ManifestError(f"{options_.id}: replace: {replace!r:.40} is neither true nor false")
        tool = make_tool(unguarded(fn), options_)
        return cast("F", register(self._engine, self._settings, tool, replace=replace))

    def disable(self, tool: str | Callable[..., Any], reason: str | None = "") -> None:
        """Refuse all calls of a tool from now on, with ``tool_unavailable``; adapters no longer offer it to models.

        Calls under way go on, but are not retried. A tool that is not registered yet is disabled when it is.
        """
        set_enabled(self._engine, tool, "" if reason is None else reason)  # None would enable it

    def enable(self, tool: str | Callable[..., Any]) -> None:
        """Accept calls of a disabled tool again, also if the manifest has ``enabled: false``."""
        set_enabled(self._engine, tool, None)

    # -- calls -------------------------------------------------------------------------------------------------------

    @overload
    def call(
        self, tool: Callable[..., Awaitable[T]], args: Arguments = None, /, **options: Unpack[CallKeywords]
    ) -> Coroutine[Any, Any, Outcome[T]]: ...
    @overload
    def call(
        self, tool: Callable[..., T], args: Arguments = None, /, **options: Unpack[CallKeywords]
    ) -> Coroutine[Any, Any, Outcome[T]]: ...
    @overload
    def call(
        self, tool: str, args: Arguments = None, /, **options: Unpack[CallKeywords]
    ) -> Coroutine[Any, Any, Outcome[Any]]: ...
    def call(
        self, tool: str | Callable[..., Any], args: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Coroutine[Any, Any, Outcome[Any]]:
        """Call a tool by name, as a model does, or by its function. Never raises for the tool's failure.

        ``args`` is one mapping from names to values. Options, all for this call: ``id`` names it, ``thread`` and
        ``tenant`` name its conversation and its customer, ``timeout`` and ``retry`` replace the tool's,
        ``idempotency_key`` is the key to send.
        """
        services = self._engine  # not a coroutine function itself: one coroutine less on the happy path
        try:
            found = self._tool_index.get(tool)
        except TypeError:  # an object without a hash
            found = None
        if found is None:
            return agent_calls.call_unknown_tool(services, tool, args, options.get("id"))
        if type(args) is not dict and args is not None and not isinstance(args, Mapping):
            return as_coroutine(calling.call_with_bad_arguments(services, found, args, options.get("id")))
        if not options and ((outer := _scope()) is None or type(outer) is list):
            ticket, by_name = found.closed_ticket, found.by_name
            if ticket is not None and by_name is not None:
                given = {} if args is None else args
                if found.argument_check is None or found.argument_check(given) is given:
                    return by_name(given, next(self._numbers), ticket)
            if found.cached_refusal is not None and outer is None:
                return refuse_by_name(services, found, args)
        return calling.run(services, make_call(services, found, args, **options))

    @overload
    def call_sync(
        self, tool: Callable[..., Awaitable[T]], args: Arguments = None, /, **options: Unpack[CallKeywords]
    ) -> Outcome[T]: ...
    @overload
    def call_sync(
        self, tool: Callable[..., T], args: Arguments = None, /, **options: Unpack[CallKeywords]
    ) -> Outcome[T]: ...
    @overload
    def call_sync(self, tool: str, args: Arguments = None, /, **options: Unpack[CallKeywords]) -> Outcome[Any]: ...
    def call_sync(
        self, tool: str | Callable[..., Any], args: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Outcome[Any]:
        """``call`` for code that has no event loop; refused where one is running."""
        if is_on_loop():
            raise FailsoftError("call_sync would block the running event loop: use `await rt.call(...)` here")
        services = self._engine
        found = services.toolbox.find(tool)
        if not found.is_known:
            return run_here(agent_calls.call_unknown_tool(services, found.id, args, options.get("id")))
        if not (args is None or isinstance(args, Mapping)):
            return calling.call_with_bad_arguments(services, found, args, options.get("id"))
        if found.kind in ("async", "async stream"):
            return run_here(self.call(tool, args, **options))
        return calling.run_blocking(services, make_call(services, found, args, **options))

    # -- turns -------------------------------------------------------------------------------------------------------

    def turn(
        self,
        *,
        timeout: Duration | None = None,
        thread: str | None = None,
        tenant: str | None = None,
        on_timeout: OnTimeout | None = None,
        max_calls: int | None = None,
        max_calls_per_tool: int | None = None,
        id: str | None = None,
    ) -> Turn:
        """Make a turn of calls that may depend on each other: ``async with rt.turn(timeout="5m") as turn``.

        ``timeout``, ``on_timeout``, ``max_calls`` and ``max_calls_per_tool`` default to the manifest's. ``thread`` and
        ``tenant`` hold for all calls; an empty text is none.
        """
        self._engine.runner.refuse_if_closed()
        require_text_names("turn", thread=thread, tenant=tenant, id=id)
        options = turn_options(self._settings.turn, timeout, on_timeout, max_calls, max_calls_per_tool)
        from failsoft.runtime.turn.turn import Turn

        return Turn(
            self._engine,
            id or self._new_turn_id(),
            timeout=options.timeout,
            cancels=options.on_timeout == "cancel",
            thread=thread or None,
            tenant=tenant or None,
            allowance=allow_calls(options),
        )

    def _new_turn_id(self) -> str:
        return f"turn-{self._random.getrandbits(48):012x}"

    async def run_plan(self, plan: Any) -> TurnReport:
        """Run a turn that is written down as data: a mapping, YAML or JSON text, or a file's path."""
        from failsoft.runtime.turn.plan_runner import run_plan

        return await run_plan(self.turn, self._engine.toolbox.tools, plan)

    # -- life --------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a reference: a copy of an object that holds a runtime holds the same runtime."""
        return self._reference.reduce()

    async def flush(self, patience: Duration | None = None) -> bool:
        """Wait until all consumers have received every event so far, and the store has saved all of it.

        True: everything so far outlives a crash of the process. False: that took too long, or something was lost, which is
        reported once.
        """
        self._memory.save()
        limit = FLUSH_PATIENCE if patience is None else read_time("flush: patience", patience)
        return await lifecycle.flush(self._engine, limit)

    async def close(self, grace: Duration | Literal[0] | None = 0) -> None:
        """End the calls that turns did not wait for, record them, and deliver the last events. A second call does nothing.

        ``grace`` is how long to wait for those calls first: 0, or a duration. A store that was given by its address is
        closed as well.
        """
        self._runs.end_all()
        seconds = 0.0 if grace is None or grace == 0 else read_time("close: grace", grace, zero=True)
        await lifecycle.close(self._engine, seconds)
        if self._owned is not None:
            owned = self._owned
            await lifecycle.in_another_thread(lambda _: owned.close(), 0.0)
        if self._connected is not None:
            self._connected.close()

    def __enter__(self) -> NoReturn:
        raise FailsoftError(
            "write `async with Runtime() as rt:`; where there is no event loop, `rt = Runtime()` is enough"
        )

    def __exit__(self, *_: object) -> None:
        """Exists only because `with` looks for it; never called."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


point_elsewhere(
    Runtime,
    {
        "wrap_tool_call awrap_tool_call wrap_model_call before_agent": "middleware=[FailsoftMiddleware(rt)]",
        "retry": 'rt.threads["…"].retry(tool)',
        "register add_tool register_tool wrap guard protect": "rt.add(fn), or @rt.tool before its def",
        "invoke ainvoke execute acall run_tool call_tool": "await rt.call(tool, arguments), or rt.call_sync",
        "shutdown stop aclose": "await rt.close()",
        "on add_listener on_event": "rt.subscribe(fn), which gets every event",
        "load from_file from_manifest from_yaml": "Runtime(manifest)",
        "remove unregister remove_tool": "rt.disable(tool, reason)",
        "report": "turn.report, after the async with block",
    },
)
