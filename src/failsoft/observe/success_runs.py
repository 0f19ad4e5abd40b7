"""Many plain successes as one record: what a store keeps of calls that went well at once.

Rules
-----
- A run is a stretch of the event stream without a gap: ``CallSucceeded`` events of calls outside of turns, or of one
  turn, that say no more than which tool, when and how long.
- It is a sequence of the flat records that ``Event.to_dict()`` gives, so whoever knows nothing of runs reads it as
  those. ``pack`` makes bytes of it, ``unpack`` reads them back; every record comes back as it was.

Why: such an event is two numbers and a name. As JSON in a row of its own it costs ten times the call that it tells of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

Record = dict[str, Any]


class Run(Sequence[Record]):
    """Plain successes in columns. Times are seconds: ``offset`` makes them seconds since 1970."""

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
        self.first = first  # the number of its first event in the stream
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
        """When the last of its calls ended."""
        return iso(self.ended[-1] + self.offset)

    def _record(self, at: int) -> Record:
        tool, ended, seq = self.tools[at], self.ended[at], self.first + at
        return {
            "seq": seq,
            "event_type": "CallSucceeded",
            "turn_id": self.turn_id,
            "call_id": name_call(tool, self.calls[at], seq),
            "tool_id": tool,
            "timestamp": iso(ended + self.offset),
            "duration_ms": round((ended - self.began[at]) * 1000, 3),
            "attempts": 1,
        }


def name_call(tool: str | None, call_id: str | int | None, seq: int) -> str:
    """The id of a call that nobody has named is made when somebody asks for it."""
    if not call_id:
        return f"{tool}.{seq}"
    return call_id if isinstance(call_id, str) else f"{tool}-{call_id}"


def iso(timestamp: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    import datetime as dt  # not before there is an event to show

    text = dt.datetime.fromtimestamp(timestamp, dt.UTC).isoformat(timespec="milliseconds")
    return text[:-6] + "Z"  # for +00:00


def pack(run: Run) -> bytes:
    """The run as bytes: a line of JSON, then the times as doubles of this machine."""
    import json  # only who has a store pays for these
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
    """Back from ``pack``."""
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
