"""Raw records of the event stream: converted to events, to runs of plain successes and to flat records.

``observe.events`` describes the form of a raw record.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from types import FunctionType
from typing import Any

from failsoft.core.model.json_values import plain
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience.error_handler import ErrorReport, decision_fields
from failsoft.observe.events import Event
from failsoft.observe.success_runs import Run, success_fields

SHORTEST_RUN = 4
PLAIN = 6  # items of the record of a plain success; the record of an inner call has more

Raw = tuple[Any, float, Any, str | int | None, str | None, Any, *tuple[Any, ...]]
Batch = tuple[list[Raw], float, int]  # records, the clock's offset, the number of the first record
_WHEN, _CALL, _FIELDS = itemgetter(1), itemgetter(3), itemgetter(5)


def run_of(raws: list[Raw], offset: float, first: int, tools: list[str]) -> Run:
    """Make a run from records of plain successes, all of one turn or of none."""
    from array import array  # imported only if there is a store
    from struct import pack

    turn_id, size = raws[0][4], len(raws)
    times = array("d", pack(f"{2 * size}d", *map(_FIELDS, raws), *map(_WHEN, raws)))  # faster than array(list)
    return Run(first, offset, turn_id, tools, [*map(_CALL, raws)], times[:size], times[size:])


def make(raw: Raw, offset: float, seq: int) -> Event:
    """Convert a raw record to an event."""
    event_type, at, tool, call_id, turn_id, fields = raw[:6]
    if type(event_type) is tuple:
        event_type, _ = event_type
    tool_id = tool if tool is None or isinstance(tool, str) else tool.id
    if type(fields) is float:
        began, parent_id = raw[6:] or (fields, None)
        fields = success_fields(tool, 1, at - fields, at - began)
        if parent_id is not None:
            fields["parent_id"] = parent_id
    elif type(fields) is Outcome:
        fields = _refusal_fields(fields)
    elif type(fields) is FunctionType:
        fields = fields(raw)
    if isinstance(call_id, int):
        call_id = f"{tool_id}-{call_id}"
    return Event(seq, event_type, at + offset, tool_id, call_id, turn_id, fields)


def _refusal_fields(outcome: Outcome[Any]) -> dict[str, Any]:
    """The fields of a call that an open circuit refused at once."""
    fault, decision = outcome.fault, outcome.decision
    assert fault is not None
    assert decision is not None
    return decision_fields(
        ErrorReport(fault, outcome.tool, outcome.id, 0, 0, "open", None, "circuit open", ()), decision
    )


def cut(batch: Run | Batch) -> Iterator[Run | list[dict[str, Any]]]:
    """Split a batch into runs of plain successes and lists of the flat records between them."""
    if isinstance(batch, Run):
        yield batch
        return
    raws, offset, first = batch
    begin, size = 0, len(raws)
    others: list[dict[str, Any]] = []
    while begin < size:
        end = _run_end(raws, begin)
        if end - begin < SHORTEST_RUN:
            end = max(end, begin + 1)
            others += [plain(make(raws[at], offset, first + at).to_dict()) for at in range(begin, end)]
        else:
            if others:
                yield others
                others = []
            yield run_of(raws[begin:end], offset, first + begin, [raw[2] for raw in raws[begin:end]])
        begin = end
    if others:
        yield others


def _run_end(raws: list[Raw], begin: int) -> int:
    turn = raws[begin][4]
    for at in range(begin, len(raws)):
        raw = raws[at]
        if type(raw[5]) is not float or raw[4] != turn or len(raw) > PLAIN:
            return at
    return len(raws)
