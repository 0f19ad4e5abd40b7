"""The services that turns and agent runs need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.runtime.fastpath.ports import FastServices
from failsoft.runtime.ports import EventLog, Time

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.runtime.tools.tool import Tool


class Labels(Protocol):
    """How people call the tools."""

    @property
    def labels(self) -> dict[str, str]: ...
    def find_labels(self, tools: Iterable[str]) -> dict[str, Any]: ...


class ToolIndex(Protocol):
    """The tools, by id and by guarded function."""

    @property
    def index(self) -> dict[Any, Tool]: ...
    def find(self, tool: str | Callable[..., Any]) -> Tool | str: ...
    def unknown(self, call_id: str | int, name: str, fault: Fault) -> Outcome[Any]: ...


class TurnEnd(Protocol):
    """Services for the end of a turn."""

    @property
    def writer(self) -> StoreWriter | None: ...
    def compose_turn_message(self, report: TurnReport) -> str: ...
    def notify_escalation(self, outcome: Outcome[Any]) -> None: ...
    def abandon_task(self, task: asyncio.Task[None]) -> None: ...
    def refuse_if_closed(self) -> None: ...


class RunServices(Time, EventLog, Labels, Protocol):
    """Services for an agent run."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    @property
    def ledger(self) -> EffectLedger | None: ...


class TurnServices(FastServices, Labels, ToolIndex, TurnEnd, Protocol):
    """Services for a turn: run its calls, and end it."""
