"""The services that turns and agent runs need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.runtime.call.ports import CallBooks, CallPlaces, Texts

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.runtime.call.ports import CallObservers, Judgement, Runner
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.runtime.ports import Time
    from failsoft.runtime.tools.tool import Tool


# --- by concern -------------------------------------------------------------------------------------------------------


class Labels(Protocol):
    """The labels of tools."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    @property
    def labels(self) -> dict[str, str]: ...
    def find_labels(self, tools: Iterable[str]) -> dict[str, Any]: ...


class TurnTools(Labels, Protocol):
    """The tools, by id and by guarded function."""

    @property
    def tools(self) -> dict[str, Tool]: ...
    @property
    def index(self) -> dict[Any, Tool]: ...
    def find(self, tool: str | Callable[..., Any]) -> Tool: ...


class TurnTexts(Texts, Protocol):
    """Texts about calls and about the turn."""

    def compose_turn_message(self, report: TurnReport) -> str: ...


class TurnBooks(CallBooks, Protocol):
    """The books, and the writer that acknowledges a turn."""

    @property
    def writer(self) -> StoreWriter | None: ...


class TurnPlaces(CallPlaces, Protocol):
    """The places where tools run, and the tasks that a turn does not wait for."""

    def abandon_task(self, task: asyncio.Task[None]) -> None: ...


# --- bundles ----------------------------------------------------------------------------------------------------------


class RunServices(Protocol):
    """Services for an agent run."""

    @property
    def time(self) -> Time: ...
    @property
    def log(self) -> CallObservers: ...
    @property
    def toolbox(self) -> Labels: ...
    @property
    def books(self) -> CallBooks: ...


class TurnServices(Protocol):
    """Services for a turn: run its calls, and end it."""

    @property
    def time(self) -> Time: ...
    @property
    def log(self) -> CallObservers: ...
    @property
    def toolbox(self) -> TurnTools: ...
    @property
    def texts(self) -> TurnTexts: ...
    @property
    def judgement(self) -> Judgement: ...
    @property
    def books(self) -> TurnBooks: ...
    @property
    def places(self) -> TurnPlaces: ...
    @property
    def runner(self) -> Runner: ...
