"""Snapshots of a runtime: ``rt.inspect()``, for daemons, dashboards and health checks.

Rules
-----
- A snapshot is plain data, and ``to_dict()`` can be written as JSON. It never changes.
- Taking one is cheap: every lock is held for one tool at a time, and nothing is read from the store. Description,
  schema and options of a tool are made once.
- A snapshot holds no secrets: texts are sanitised, defaults of arguments are named and not shown, and functions appear
  by their names only.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failsoft._version import __version__
from failsoft.core.model.json_values import plain
from failsoft.core.model.options import Options
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience.breaker_window import failure_rate
from failsoft.observe.success_runs import iso
from failsoft.runtime.call.running import RunningCall, list_running
from failsoft.runtime.tools.framework_tool import FrameworkFunction
from failsoft.runtime.tools.tool_info import schema_of

if TYPE_CHECKING:
    from failsoft.core.effects.recognition import ToolEffect
    from failsoft.core.effects.tool_effect import EffectSource
    from failsoft.core.model.options import ToolOptions
    from failsoft.core.resilience.circuit_breaker import CircuitState
    from failsoft.runtime.services import Services
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.tool import Tool

RunsIn = Literal["event loop", "worker thread", "caller", "process", "command", "framework"]

_MASK = "***"


class CircuitSnapshot(NamedTuple):
    """A circuit breaker; ``fallback_of`` is the tool that it belongs to if it is a fallback's own."""

    tool: str  # the id
    fallback_of: str | None  # the tool whose fallback it is
    state: CircuitState  # closed, open or half_open
    failure_count: int  # consecutive transient failures
    retry_after: float | None  # seconds until it admits a probe
    opened_by: str | None  # the code of the error that opened it
    failure_rate: float | None = None  # in the breaker's window; None: it has none, or it is empty


class ToolSnapshot(NamedTuple):
    """One tool: its description, its options, its current state."""

    id: str  # its name in calls
    label: str  # its name for people
    description: str  # in its author's words
    schema: dict[str, Any]  # JSON Schema of the arguments
    runs_in: RunsIn  # event loop, worker thread, caller (blocking, without a timeout), process, command or framework
    effect: ToolEffect  # read, write or neither
    effect_source: EffectSource  # declared, hinted, recognised or unknown
    effect_reason: str  # the reason for the effect
    safe_to_repeat: bool | None  # None: nothing says so
    options: dict[str, Any]  # the options in force; times in seconds
    available: bool  # False: disabled, not found or misconfigured
    unavailable_because: str | None  # why it cannot be used
    circuit: CircuitSnapshot  # its circuit breaker
    retry_budget: float  # 1.0 is full, 0.0 is empty
    rate_holds: int  # tenants or threads for which the service has asked not to be called
    running: int  # attempts that hold a slot; 0 without ``concurrency``
    waiting: int  # calls that wait for a slot
    metrics: dict[str, Any]  # as in ``rt.metrics(tool)``


class SubscriberSnapshot(NamedTuple):
    """A consumer of the event stream: a subscriber, a sink, the trace file, the store."""

    name: str  # the function or the class
    queued: int  # events that wait for it
    dropped: int  # events that it missed, because it was too slow
    failed: int  # batches in which it raised


class StoreSnapshot(NamedTuple):
    """The store, if there is one."""

    kind: str  # the name of its class
    required: bool  # as in ``store_required``
    lost: int  # records and events


class RuntimeSnapshot(NamedTuple):
    """A runtime at one moment."""

    at: str  # ISO time
    versions: dict[str, str]  # of failsoft and Python
    closed: bool  # whether ``rt.close()`` has been called
    tools: tuple[ToolSnapshot, ...]  # in the order of their registration
    running: tuple[RunningCall, ...]  # the calls in flight, as in ``rt.running()``
    circuits: tuple[CircuitSnapshot, ...]  # of all tools, and of fallbacks that have their own
    subscribers: tuple[SubscriberSnapshot, ...]  # everything that gets events
    store: StoreSnapshot | None  # None: nothing outlives the process
    abandoned_threads: int  # worker threads whose tool outlived its deadline
    processes: dict[str, int]  # of isolated tools; empty if none has been needed

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as data that ``json.dumps`` accepts."""
        made: dict[str, Any] = _as_data(self)
        return made


class _Fixed(NamedTuple):
    """The parts of a tool's snapshot that do not change."""

    description: str
    schema: dict[str, Any]
    options: dict[str, Any]


class Inspector:
    """Takes the snapshots of one runtime."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._fixed: dict[str, tuple[Tool, _Fixed]] = {}  # by tool id; the tool may have been replaced

    def snapshot(self) -> RuntimeSnapshot:
        """Look at everything once."""
        services = self._services
        tools = list(services.toolbox.tools.values())
        made = tuple(map(self._tool, tools))
        store = services.books.store
        return RuntimeSnapshot(
            at=iso(services.time.wall()),
            versions={"failsoft": __version__, "python": platform.python_version()},
            closed=services.runner.closed,
            tools=made,
            running=tuple(list_running(services.places)),
            circuits=(*(tool.circuit for tool in made), *self._fallback_circuits()),
            subscribers=tuple(
                SubscriberSnapshot(sanitise(each.name), each.queued, each.dropped, each.failed)
                for each in services.log.trace.deliveries()
            ),
            store=None
            if store is None
            else StoreSnapshot(getattr(store, "kind", ""), services.books.store_required, store.lost),
            abandoned_threads=services.places.thread_pool.abandoned,
            processes=services.places.worker_counts(),
        )

    def _tool(self, tool: Tool) -> ToolSnapshot:
        services, now = self._services, self._services.time.now()
        metrics = services.log.trace.metrics(tool.id).as_dict()
        with services.toolbox.lock:
            circuit = _circuit(tool.id, None, tool.health, now)
            budget = tool.health.budget_level(now, metrics["success_count"])
            holds = sum(until > now for until in tool.health.holds.values())
        fault, fixed = tool.unavailable_fault, self._fixed_of(tool)
        return ToolSnapshot(
            id=tool.id,
            label=tool.label,
            description=fixed.description,
            schema=fixed.schema,
            runs_in=_runs_in(tool),
            effect=tool.effect,
            effect_source=tool.effect_source,
            effect_reason=tool.effect_reason,
            safe_to_repeat=tool.safe_to_repeat,
            options=fixed.options,
            available=fault is None,
            unavailable_because=None if fault is None else fault.message,
            circuit=circuit,
            retry_budget=budget,
            rate_holds=holds,
            running=0 if tool.slots is None else tool.slots.taken,
            waiting=0 if tool.slots is None else tool.slots.waiting,
            metrics=metrics,
        )

    def _fixed_of(self, tool: Tool) -> _Fixed:
        found = self._fixed.get(tool.id)
        if found is None or found[0] is not tool:
            schema = _hide_defaults(plain(schema_of(tool)))
            found = tool, _Fixed(sanitise(tool.description), schema, _options(tool.options))
            self._fixed[tool.id] = found
        return found[1]

    def _fallback_circuits(self) -> list[CircuitSnapshot]:
        services, now = self._services, self._services.time.now()
        with services.toolbox.lock:
            return [
                _circuit(tool_id, primary_id, health, now)
                for (primary_id, tool_id), health in services.toolbox.fallback_health().items()
            ]


def _circuit(tool_id: str, fallback_of: str | None, health: ToolHealth, now: float) -> CircuitSnapshot:
    fault, state = health.opened_by, health.observe(now)
    code = None if fault is None or state == "closed" else fault.code.value
    rate = failure_rate(health.state.recent)
    return CircuitSnapshot(tool_id, fallback_of, state, health.state.failures, health.open_for(now), code, rate)


def _runs_in(tool: Tool) -> RunsIn:
    if tool.command is not None:
        return "command"
    if tool.target is not None:
        return "process"
    if isinstance(tool.fn, FrameworkFunction):
        return "framework"
    if tool.kind in ("async", "async stream"):
        return "event loop"
    return "caller" if math.isinf(tool.timeout) else "worker thread"


def _options(options: ToolOptions) -> dict[str, Any]:
    """The options in force; of argument defaults the names only."""
    shown: dict[str, Any] = _as_data(options)
    return {**shown, "defaults": sorted(options.defaults)}


def _as_data(value: Any) -> Any:
    """Convert a snapshot or an option to JSON data."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None  # a plain float: durations are a subclass
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, Options):
        return {name: _as_data(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _as_data(getattr(value, name)) for name in value._fields}
    if isinstance(value, Mapping):
        return {str(key): _as_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_data(item) for item in value]
    return getattr(value, "__qualname__", type(value).__qualname__)  # a function or a type


def _hide_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """Mask the defaults of arguments whose name or value says that they are secret."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _hide_default(name, field) for name, field in properties.items()}}


def _hide_default(name: str, field: Any) -> Any:
    default = field.get("default") if isinstance(field, dict) else None
    if not isinstance(default, str) or default in sanitise(f'{name}="{default}"'):
        return field
    return {**field, "default": _MASK}
