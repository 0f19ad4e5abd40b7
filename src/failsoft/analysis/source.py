"""Sources of recorded events: trace files, stores and running runtimes behind one protocol.

Rules
-----
- A source returns flat records (``Event.to_dict()``) that were checked, so readers need not validate them.
- Every event has a position, a number that grows. ``read(after=position)`` continues where an earlier read ended, also
  after the file was replaced.
- Sources do no I/O of their own. They are given functions that read bytes, a store, or a runtime.
- A source that cannot be read raises ``SourceError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from failsoft.analysis.record_check import Record, find_mistake, parse_line
from failsoft.core.model.errors import FailsoftError
from failsoft.core.model.json_values import plain

__all__ = ["EventFilter", "FileSource", "LiveSource", "SourceError", "StoreSource", "TraceSource"]

T = TypeVar("T")

EVERYTHING = 100_000_000  # events

Problem = Literal["store file", "not json", "not an event", "unreadable"]
Positioned = tuple[int, Record]


class SourceError(FailsoftError):
    """A source of events that cannot be read; ``problem`` is the kind of problem."""

    def __init__(self, message: str, problem: Problem) -> None:
        super().__init__(message)
        self.problem = problem


class EventFilter(NamedTuple):
    """The events that a reader wants; None in a field means all."""

    turn_id: str | None = None
    call_id: str | None = None
    tool_id: str | None = None
    event_types: frozenset[str] | None = None

    def matches(self, record: Record) -> bool:
        """True if the reader wants this event."""
        ids = (("turn_id", self.turn_id), ("call_id", self.call_id), ("tool_id", self.tool_id))
        if any(wanted is not None and record.get(name) != wanted for name, wanted in ids):
            return False
        return self.event_types is None or record.get("event_type") in self.event_types


ALL = EventFilter()


class TraceSource(Protocol):
    """Recorded events that can be read by turn, from a position on, and while they are written."""

    @property
    def name(self) -> str:
        """The source in a message: a path, or "this runtime"."""

    def turns(self, limit: int = 100) -> list[str]:
        """Return the ids of the turns with the latest events, latest first."""

    def events(self, turn_id: str) -> list[Record]:
        """Return all events of one turn, oldest first."""

    def read(self, *, after: int = 0, limit: int = EVERYTHING, only: EventFilter = ALL) -> list[Positioned]:
        """Return up to ``limit`` wanted events after a position, oldest first, each with its position."""

    def tail(self, limit: int, only: EventFilter = ALL) -> list[Positioned]:
        """Return the latest wanted events, oldest first, each with its position."""

    def families(self) -> list[Record]:
        """Return the recovery memory; empty where the source has none."""


class _Readable:
    """The methods of a source that follow from ``read``."""

    def read(self, *, after: int = 0, limit: int = EVERYTHING, only: EventFilter = ALL) -> list[Positioned]:
        raise NotImplementedError

    def turns(self, limit: int = 100) -> list[str]:
        ids = (event["turn_id"] for _, event in reversed(self.read()) if event.get("turn_id"))
        return list(dict.fromkeys(ids))[:limit]

    def events(self, turn_id: str) -> list[Record]:
        return [event for _, event in self.read(only=EventFilter(turn_id))]

    def tail(self, limit: int, only: EventFilter = ALL) -> list[Positioned]:
        return self.read(only=only)[-limit:] if limit else []

    def families(self) -> list[Record]:
        return []


class FileSource(_Readable):
    """A trace file: one event a line, as JSON.

    ``read_from(offset)`` returns the bytes from an offset to the end, or None if the file is shorter: it was replaced.
    A source without it has ``data`` only. A line that is not complete yet is read later.
    """

    def __init__(self, name: str, data: bytes, read_from: Callable[[int], bytes | None] | None = None) -> None:
        self.name = name
        self._read_from = read_from
        self._kept: list[Record] = []
        self._dropped = 0  # events of files that were replaced
        self._start_over()
        self._add(data)

    def _start_over(self) -> None:
        self._dropped += len(self._kept)
        self._kept = []
        self._offset = self._lines = 0
        self._in_line = False  # whether the last line was read without its line feed

    def read(self, *, after: int = 0, limit: int = EVERYTHING, only: EventFilter = ALL) -> list[Positioned]:
        self._refresh()
        first = max(0, after - self._dropped)
        positioned = enumerate(self._kept[first:], self._dropped + first + 1)
        return [(at, event) for at, event in positioned if only.matches(event)][:limit]

    def _refresh(self) -> None:
        if self._read_from is None:
            return
        more = self._read_from(self._offset)
        if more is None:
            self._start_over()
            more = self._read_from(0) or b""
        self._add(more)

    def _add(self, data: bytes) -> None:
        if self._offset == 0 and data.startswith(b"SQLite format 3\0"):
            raise SourceError(f"{self.name} is a store, not a trace file", "store file")
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._offset += len(line) + 1
            self._lines += not self._in_line
            self._in_line = False
            self._keep(line)
        if rest.strip() and not _is_json(rest) and self._offset == 0 and not rest.lstrip().startswith(b"{"):
            raise SourceError(f"{self.name}:1: this line is not JSON", "not json")  # no event that is being written
        if rest.strip() and _is_json(rest):
            self._offset += len(rest)
            self._lines += 1
            self._in_line = True
            self._keep(rest)

    def _keep(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            event = parse_line(line.decode("utf-8", "replace"))
        except ValueError:
            raise SourceError(f"{self.name}:{self._lines}: this line is not JSON", "not json") from None
        wrong = find_mistake(event)
        if wrong:
            raise SourceError(f"{self.name}:{self._lines}: this line is not an event: {wrong}", "not an event")
        self._kept.append(event)


class ReadableStore(Protocol):
    """The methods of a store that a source needs."""

    def read(
        self, *, after: int = 0, limit: int = 1000, turn_id: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]: ...
    def turns(self, limit: int = 100) -> list[str]: ...
    def find(self, kind: Literal["memory"], scope: str = "") -> list[tuple[str, Any]]: ...


class StoreSource(_Readable):
    """The events of a store. ``trouble`` returns why the latest read failed; empty if it did not."""

    def __init__(self, name: str, store: ReadableStore, trouble: Callable[[], str] = str) -> None:
        self.name = name
        self._store = store
        self._trouble = trouble

    def turns(self, limit: int = 100) -> list[str]:
        return self._unless_failed(self._store.turns(limit))

    def read(self, *, after: int = 0, limit: int = EVERYTHING, only: EventFilter = ALL) -> list[Positioned]:
        plain = only._replace(turn_id=None) == ALL  # the store itself can filter by turn
        found = self._store.read(after=after, limit=limit if plain else EVERYTHING, turn_id=only.turn_id)
        checked = self._check(self._unless_failed(found))
        return checked if plain else [each for each in checked if only.matches(each[1])][:limit]

    def families(self) -> list[Record]:
        return [value for _, value in self._unless_failed(self._store.find("memory"))]

    def _unless_failed(self, value: T) -> T:
        if trouble := self._trouble():
            raise SourceError(f"{self.name} cannot be read as a store: {trouble}", "unreadable")
        return value

    def _check(self, events: Iterable[Positioned]) -> list[Positioned]:
        kept = [*events]
        for position, event in kept:
            wrong = find_mistake(event)
            if wrong:
                raise SourceError(f"{self.name}: record {position} is not an event: {wrong}", "not an event")
        return kept


class FlatEvent(Protocol):
    """An event of a running runtime."""

    @property
    def seq(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...


class Families(Protocol):
    """The recovery memory of a running runtime."""

    def families(self) -> list[dict[str, Any]]: ...


class Live(Protocol):
    """The part of a runtime that a source needs."""

    @property
    def memory(self) -> Families: ...
    def events(self) -> Sequence[FlatEvent]: ...


class LiveSource(_Readable):
    """The latest events of a running runtime, as many as it holds in memory. Positions are the events' ``seq``."""

    def __init__(self, runtime: Live, name: str = "this runtime") -> None:
        self.name = name
        self._runtime = runtime

    def read(self, *, after: int = 0, limit: int = EVERYTHING, only: EventFilter = ALL) -> list[Positioned]:
        flat = ((event.seq, plain(event.to_dict())) for event in self._runtime.events() if event.seq > after)
        return [each for each in flat if only.matches(each[1])][:limit]

    def families(self) -> list[Record]:
        return [*self._runtime.memory.families()]


def _is_json(line: bytes) -> bool:
    """False while the writer is writing the line, or if it was cut off."""
    try:
        parse_line(line.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True
