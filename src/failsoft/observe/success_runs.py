"""Runs of plain successes: many events in one compact record.

Rules
-----
- A run is a gapless part of the event stream: ``CallSucceeded`` events, all outside turns or all of one turn, with no
  more data than tool, call id, time and duration. A call inside another call is not part of a run.
- A run is a sequence of the flat records that ``Event.to_dict()`` returns, so code that does not know runs can read it.
  ``pack`` and ``unpack`` convert it to bytes and back without loss.

Why: such an event is two numbers and a name. As JSON in its own row it costs ten times as much as the call itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

Record = dict[str, Any]


class Run(Sequence[Record]):
    """Plain successes in columns. Adding ``offset`` to a time gives seconds since 1970."""

    __slots__ = ("began", "calls", "ended", "first", "offset", "tools", "turn_id")

    def __init__(
        self,
        first: int,
        offset: float,
        turn_id: str | None,
        tools: Sequence[str],
        calls: Sequence[str | int | None],
        began: Sequence[float],
        ended: Sequence[float],
    ) -> None:
        self.first = first  # the number of its first event
        self.offset = offset
        self.turn_id = turn_id
        self.tools = tools
        self.calls = calls
        self.began = began
        self.ended = ended

    def __len__(self) -> int:
        return len(self.ended)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self._record(at) for at in range(*index.indices(len(self)))]
        return self._record(range(len(self))[index])

    def __iter__(self) -> Iterator[Record]:
        return map(self._record, range(len(self)))

    @property
    def timestamp(self) -> str:
        """When its last call ended."""
        return iso(self.ended[-1] + self.offset)

    def _record(self, at: int) -> Record:
        tool, ended, seq = self.tools[at], self.ended[at], self.first + at
        seconds = ended - self.began[at]
        return {
            "seq": seq,
            "event_type": "CallSucceeded",
            "turn_id": self.turn_id,
            "call_id": name_call(tool, self.calls[at], seq),
            "tool_id": tool,
            "timestamp": iso(ended + self.offset),
            **success_fields(tool, 1, seconds, seconds),
        }


def success_fields(primary: str, attempts: int, seconds: float, total: float) -> Record:
    """The fields of ``CallSucceeded``: ``seconds`` of the last attempt, ``total`` of the call."""
    return {
        "duration_ms": round(seconds * 1000, 3),
        "attempts": attempts,
        "total_ms": round(total * 1000, 3),
        "primary": primary,
    }


def name_call(tool: str | None, call_id: str | int | None, seq: int) -> str:
    """Return a call's id; generate one if it has none."""
    if not call_id:
        return f"{tool}.{seq}"
    return call_id if isinstance(call_id, str) else f"{tool}-{call_id}"


def iso(timestamp: float) -> str:
    """Format as ISO 8601 in UTC, to the millisecond."""
    import datetime as dt  # imported with the first event shown

    text = dt.datetime.fromtimestamp(timestamp, dt.UTC).isoformat(timespec="milliseconds")
    return text[:-6] + "Z"  # replaces +00:00


def pack(run: Run) -> bytes:
    """Encode a run: a line of JSON, then the times as native doubles."""
    import json  # imported only if there is a store
    from array import array

    tools: Any = [*run.tools]
    if tools.count(tools[0]) == len(tools):
        tools = tools[0]
    calls: Any = [*run.calls]
    number = calls[0]
    if not number and calls.count(number) == len(calls):
        calls = None
    elif isinstance(number, int) and calls == [*range(number, number + len(calls))]:
        calls = number
    head = {"first": run.first, "offset": run.offset, "turn": run.turn_id, "tools": tools, "calls": calls}
    return b"".join((json.dumps(head).encode(), b"\n", array("d", run.began), array("d", run.ended)))


def unpack(data: bytes) -> Run:
    """Decode a run from ``pack``."""
    import json
    from array import array

    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    times = array("d")
    times.frombytes(rest)
    size = len(times) // 2
    tools, calls = head["tools"], head["calls"]
    return Run(
        head["first"],
        head["offset"],
        head["turn"],
        tools if isinstance(tools, list) else [tools] * size,
        calls if isinstance(calls, list) else [None] * size if calls is None else range(calls, calls + size),
        times[:size],
        times[size:],
    )
