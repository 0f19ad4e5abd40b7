"""The part of a ``Runtime`` that shows what it knows and does: health, metrics, calls in flight, events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from failsoft.config.settings import (
    Settings,
    read_time,
    refuse_odd_flag,
    require_callables,
    require_capacity,
    require_sink,
)
from failsoft.core.model.durations import Duration
from failsoft.core.model.named import Named
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.predicate import predicate
from failsoft.observe.delivery import CAPACITY
from failsoft.observe.events import EVENTS_DROPPED, Event
from failsoft.observe.instrument import Instrument
from failsoft.runtime.call.running import RunningCall, list_running
from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
from failsoft.runtime.services import Services
from failsoft.runtime.tools.health import HealthView

if TYPE_CHECKING:
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.resilience.policy import Policy
    from failsoft.observe.subscriptions import EventSink
    from failsoft.runtime.execution.processes.pool import Counts
    from failsoft.runtime.inspect import Inspector, RuntimeSnapshot
    from failsoft.runtime.ledger import Ledger
    from failsoft.runtime.samples import Sample, SampleReader
    from failsoft.runtime.threads import Threads
    from failsoft.runtime.tools.tool_info import ToolIds

VIRTUAL_PATIENCE = 5.0  # real seconds that a call in virtual time waits for a subscriber
DEFAULT_INTERVAL = "500ms"  # interval between batches for a sink


class NamedMetrics(Named[Any]):
    """The metrics of a tool, by name."""

    what = "metric"

    def __getattr__(self, name: str) -> NoReturn:
        hint = f": write metrics[{name!r}]" if name in self else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)


class RuntimeView:
    """Shows the tools, conversations, metrics and events of a runtime, and its calls in flight."""

    def __init__(self, services: Services, settings: Settings, memory: RecoveryMemory) -> None:
        self._engine = services
        self._settings = settings
        self._memory = memory
        self._threads: Threads | None = None
        self._inspector: Inspector | None = None
        self._ledger: Ledger | None = None
        self._sample_reader: SampleReader | None = None

    def health(self, tool_id: str | Callable[..., Any], *, fallback_of: str | None = None) -> HealthView:
        """A tool's circuit at this moment; with ``fallback_of`` the one that it has as the fallback of that tool.

        ``.state`` is ``closed``, ``open`` or ``half_open``; ``.failure_count`` counts consecutive transient failures;
        ``.available`` is False for a tool that is disabled or missing; ``.retry_after`` is the time in seconds until a
        probe is admitted; ``.failure_rate`` is the share of failures in the breaker's window, if it has one.
        """
        services = self._engine
        found = services.toolbox.find(tool_id)
        health = None if fallback_of is None else services.toolbox.health_as_fallback(found.id, fallback_of)
        if not found.is_known:
            services.toolbox.warn_of_typo(found.id)
            return HealthView("closed", 0, available=False)
        return services.toolbox.health_view(found, health)

    @predicate
    def running(self) -> list[RunningCall]:
        """The calls in flight, the oldest first: tool, call id, turn, since when, attempt, and what each waits for."""
        return list_running(self._engine.places)

    def inspect(self) -> RuntimeSnapshot:
        """Everything at this moment as plain data: tools with schema, options, health and metrics, calls in flight, circuits …

        ``.to_dict()`` can be written as JSON. It holds no secrets, and is cheap enough to be asked every second.
        """
        if self._inspector is None:
            from failsoft.runtime.inspect import Inspector

            self._inspector = Inspector(self._engine)
        return self._inspector.snapshot()

    def metrics(self, tool_id: str | Callable[..., Any]) -> dict[str, Any]:
        """A tool's metrics since the runtime was made, by name.

        For an unknown tool all are 0, and one warning is logged.
        """
        services = self._engine
        found = services.toolbox.find(tool_id)
        if not (found.is_known or found.id in self._settings.tools or services.log.trace.has_metrics(found.id)):
            services.toolbox.warn_of_typo(found.id, always=True)
        return NamedMetrics(services.log.trace.metrics(found.id).as_dict())

    def samples(self) -> list[Sample]:
        """All metrics of all tools with their labels, for an exporter: as the [series](metrics.md#series) of Prometheus.

        The number of samples is bounded, however many names and callers there are.
        """
        if self._sample_reader is None:
            from failsoft.runtime.samples import SampleReader

            self._sample_reader = SampleReader(self._engine)
        return self._sample_reader.read()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policy book: the manifest's policies, then those given here."""
        return self._engine.judgement.policies

    @property
    def memory(self) -> RecoveryMemory:
        """The recovery memory: ``rt.memory.families()`` shows what has helped against which errors."""
        return self._memory

    @property
    def ledger(self) -> Ledger:
        """The effect ledger: ``rt.ledger.unknown()`` lists writes whose effect is unknown."""
        if self._ledger is None:
            from failsoft.runtime.ledger import Ledger

            self._ledger = Ledger(self._engine)
        return self._ledger

    @property
    def threads(self) -> Threads:
        """Conversations: ``rt.threads["chat-42"]``, or ``rt.threads("chat-42", tenant="acme")``."""
        if self._threads is None:
            from failsoft.runtime.threads import Threads

            self._threads = Threads(self._engine)
        return self._threads

    def explain(self, outcome: Outcome[Any], language: str | None = None) -> Explanation:
        """An outcome's three texts, in another language that the manifest has words for."""
        if not isinstance(outcome, Outcome):
            raise TypeError(f"explain: give the Outcome of a call, not {type(outcome).__name__}")
        return self._engine.texts.explain(outcome, language)

    def subscribe(
        self, fn: Callable[[Event], None], *, inline: bool = False, capacity: int = CAPACITY
    ) -> Callable[[], None]:
        """Call ``fn`` with every event from now on. Return a function that ends the subscription.

        ``fn`` runs on its own OS thread, and calls do not wait for it. If it cannot keep up, about ``capacity`` events
        are queued and the oldest are dropped; the event ``EventsDropped`` and the log report that. With ``inline=True``
        every call waits until ``fn`` has had its events, unless ``fn`` takes longer than 50 ms; in virtual time that is
        always so.
        """
        self._engine.runner.refuse_if_closed()
        require_callables(subscribe=fn)
        refuse_odd_flag("subscribe: inline", inline)
        require_capacity("subscribe", capacity)
        virtual = self._engine.time.clock is not clocks.SYSTEM
        patience = VIRTUAL_PATIENCE if virtual else None
        from failsoft.observe.subscriptions import subscribe

        return subscribe(
            self._engine.log.trace, fn, inline=inline or virtual, patience=patience, capacity=capacity,
            on_drop=self._report_dropped,
        )  # fmt: skip

    def subscribe_batches(
        self, sink: EventSink, *, every: Duration = DEFAULT_INTERVAL, capacity: int = CAPACITY
    ) -> Callable[[], None]:
        """Write all events from now on to ``sink`` in batches. Return a function that ends this and closes the sink.

        ``sink.write(batch)`` gets a sequence of events, on an OS thread of its own: at the interval ``every``, sooner
        if there are many, on ``flush`` and on ``close``, which also calls ``sink.close()``. This is cheaper than
        ``subscribe``. About ``capacity`` events wait for a slow sink; then the oldest are dropped.
        """
        self._engine.runner.refuse_if_closed()
        require_sink(sink)
        require_capacity("subscribe_batches", capacity)
        from failsoft.observe.subscriptions import add_sink

        return add_sink(
            self._engine.log.trace, sink, name=f"sink {type(sink).__qualname__!r}",
            every=read_time("subscribe_batches: every", every), capacity=capacity, on_drop=self._report_dropped,
        )  # fmt: skip

    def _report_dropped(self, consumer: str, dropped: int) -> None:
        fields = {"message": f"{consumer} is too slow and missed events", "consumer": consumer, "dropped": dropped}
        self._engine.log.record_event(EVENTS_DROPPED, None, None, None, fields)

    def instrument(self, instrument: Instrument) -> Callable[[], None]:
        """Surround turns, calls and attempts with an ``Instrument`` from now on. Return a function that removes it.

        Tools leave the fast path meanwhile.
        """
        self._engine.runner.refuse_if_closed()
        from failsoft.runtime.instruments import add_instrument

        return add_instrument(self._engine, instrument)

    def events(self) -> list[Event]:
        """The latest events, oldest first: as many as the ring in memory holds."""
        return self._engine.log.trace.events()

    @property
    def workers(self) -> Counts:
        """The processes of tools with ``isolation: process`` and of commands: alive, kills, respawns …"""
        return self._engine.places.workers.counts

    @property
    def tools(self) -> ToolIds:
        """The ids of all tools; ``rt.tools["pay"]`` describes one."""
        from failsoft.runtime.tools.tool_info import ToolIds

        return ToolIds(self._engine.toolbox.tools)
