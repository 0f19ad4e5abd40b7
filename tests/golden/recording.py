"""Record the events of every runtime that a scenario makes, in a form that is the same on every run.

Rules
-----
- A scenario is a function without arguments. Every ``Runtime`` made while it runs is recorded, with a random source of a
  fixed seed, so that jitter and generated ids are the same each time.
- Events are read when the scenario has ended: a subscriber would change when the stream is drained.
- Calls that are cancelled in the same moment, when a runtime or a loop ends, are sorted: their order is that of a set.
- Of a traceback the last line is kept: frames move with the source.
- Times are rounded to the millisecond, other floats to a millionth: when a batch of events is stamped must not show.
- After ``SHOWN`` events of a scenario the rest is a number and a digest, which keeps the files small.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from unittest.mock import patch

from failsoft import Runtime
from failsoft.core.model.json_values import plain
from failsoft.observe.events import CALL_CANCELLED, Event
from failsoft.observe.success_runs import iso

SEED = 20251105
SHOWN = 20  # events that are written out, unless a scenario says another number

Play = Callable[[], object]


class Scenario(NamedTuple):
    """A named story; ``play`` makes its runtimes, and returns events only if they are not in a runtime's memory."""

    name: str
    play: Play
    shown: int = SHOWN


def record(scenario: Scenario) -> list[str]:
    """Play a scenario; its events as lines of JSON, the first of which names it. Empty if it causes no event."""
    before = random.getstate()
    random.seed(SEED)
    try:
        with noting_runtimes() as made:
            given = scenario.play()
    finally:
        random.setstate(before)
    streams = [given] if isinstance(given, list) else [in_order(map(flat, rt.events())) for rt in made]
    return list(_write(scenario, [events for events in streams if events]))


@contextmanager
def noting_runtimes() -> Iterator[list[Runtime]]:
    """The runtimes made in the body, in order."""
    made: list[Runtime] = []
    original = Runtime.__init__

    @wraps(original)
    def init(self: Runtime, *args: Any, **options: Any) -> None:
        if options.get("random") is None:
            options["random"] = random.Random(SEED + len(made))
        original(self, *args, **options)
        made.append(self)

    with patch.object(Runtime, "__init__", init):
        yield made


def flat(event: Event) -> dict[str, Any]:
    """``Event.to_dict()`` as plain data, rounded."""
    told = rounded(plain(event.to_dict()))
    if "traceback" in told:
        told["traceback"] = told["traceback"].strip().rpartition("\n")[2]
    # iso() cuts digits off, so add a little: 0.0999999 is 100 ms
    told["timestamp"] = iso(round(event.timestamp, 3) + 1e-4)
    return told  # type: ignore[no-any-return]


def in_order(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, those of calls that are cancelled in the same moment sorted by their ids."""
    ordered: list[dict[str, Any]] = []
    for (event_type, _), group in groupby(events, itemgetter("event_type", "timestamp")):
        some = list(group)
        if event_type == CALL_CANCELLED:
            numbers = [event["seq"] for event in some]
            some.sort(key=lambda event: (str(event["turn_id"]), str(event["call_id"]), str(event["tool_id"])))
            some = [event | {"seq": seq} for event, seq in zip(some, numbers, strict=True)]
        ordered += some
    return ordered


def rounded(value: Any) -> Any:
    """Floats to a millionth; no addresses, line numbers and versions of other libraries in texts."""
    if isinstance(value, float):
        return round(value, 6) + 0.0
    if isinstance(value, str):
        for pattern, instead in _OF_THE_MACHINE:
            value = pattern.sub(instead, value)
        return value
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return value


_OF_THE_MACHINE = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r'File "[^"]*?([^"/]+)", line \d+'), r"\1, line N"),
    (re.compile(r"(errors\.pydantic\.dev)/[\d.]+"), r"\1/…"),
)


def _write(scenario: Scenario, streams: Sequence[Sequence[dict[str, Any]]]) -> Iterator[str]:
    left, rest = scenario.shown, hashlib.sha256()
    for number, events in enumerate(streams, 1):
        lines = [_json(event) for event in events]
        if left > 0:
            yield _json({"scenario": scenario.name} | ({} if number == 1 else {"runtime": number}))
            yield from lines[:left]
        for line in lines[max(0, left) :]:
            rest.update(line.encode() + b"\n")
        left -= len(lines)
    if left < 0:
        yield _json({"more_events": -left, "sha256": rest.hexdigest()})


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
