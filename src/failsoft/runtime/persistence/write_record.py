"""The parts of a write that the effect ledger uses, and its record on the way into the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from failsoft.core.model.ledger_entry import LedgerAnswer
from failsoft.runtime.persistence.ledger_records import KEPT_FOR, RecordedCall
from failsoft.runtime.persistence.store_reads import nothing

Answer = Literal["kept", "begun", "unknown"] | LedgerAnswer  # of the store, to a call that wants to begin
End = Literal["happened", "none", "unknown"]  # how a recorded call has ended


class Writer(Protocol):
    """The parts of a tool that the ledger uses."""

    id: str

    @property
    def is_write(self) -> bool: ...


class WriteTurn(Protocol):
    """The turn of a write."""

    id: str

    @property
    def over(self) -> bool: ...


class Write(RecordedCall, Protocol):
    """A call that is recorded before it starts."""

    write_record: WriteRecord | None
    begun_record: dict[str, Any] | None

    @property
    def tool(self) -> Writer: ...
    @property
    def turn(self) -> WriteTurn | None: ...
    def sent_key(self, new_key: Callable[[], str]) -> str | None: ...


class Places:
    """A set of places, of which the oldest are dropped when there are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[str, None] = {}

    def __contains__(self, place: str) -> bool:
        return place in self._places

    def add(self, place: str) -> None:
        """Add a place."""
        self._places[place] = None
        if len(self._places) > self._most:
            self._places.pop(next(iter(self._places)), None)

    def discard(self, place: str) -> bool:
        """Remove a place; True if it was there."""
        return self._places.pop(place, False) is None


class WriteRecord:
    """A record on its way into the store, and the store's answer."""

    __slots__ = (
        "answer", "earlier", "end", "found", "is_replay", "only_replaces", "place", "replaces", "value", "wake",
    )  # fmt: skip

    def __init__(self, place: str, value: dict[str, Any]) -> None:
        self.place = place
        self.value = value
        self.answer: Answer | None = None  # None: the store has not answered yet
        self.found: dict[str, Any] = {}  # the record that was there before
        self.earlier: dict[str, Any] | None = None  # an earlier start, found although the store confirms nothing
        self.replaces: dict[str, Any] | None = (
            None  # an earlier record of the same write that need not prevent this one
        )
        self.only_replaces = False  # it is not kept if that record is gone: another call has dealt with it
        self.is_replay = False  # the same write was begun before, and had not been made then
        self.end: End | None = None  # its call has ended or was refused: the record itself is no longer needed
        self.wake: Callable[[], None] = nothing  # called when there is an answer


class Change:
    """An atomic change of the store's records on its way into the store."""

    __slots__ = ("changes", "otherwise", "ttl", "wake")

    def __init__(self, changes: Mapping[str, tuple[Any, Any]], *, ttl: float = KEPT_FOR) -> None:
        self.changes = changes
        self.ttl = ttl  # seconds for which the new values are kept
        self.otherwise: Callable[[], None] = nothing  # called if the store does not answer
        self.wake: Callable[[], None] = nothing  # called when the store has answered
