"""One simulated day: 86,400 seconds of 20 agents, their tools and their troubles, in virtual time, from one seed.

The same seed gives the same day, to the byte: ``Lived.digest`` is the SHA-256 of its whole event stream as JSON lines.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.soak.agents import Agent
from tests.soak.ledger import Ledger
from tests.soak.trouble import DAY, ShakyStore, Shift, draw
from tests.soak.world import SPECS, World

from failsoft import Runtime
from failsoft.runtime.conversation import thread_notes
from failsoft.runtime.execution.clock import Clock
from failsoft.runtime.persistence import cases, earlier_start, effect_ledger
from failsoft.runtime.persistence.store_reads import submit_blocking
from failsoft.testing import VirtualClock, virtual_time

# Soon after 1970 a float of seconds is exact to a fraction of a nanosecond: when a batch of events is stamped, which is
# the machine's business, cannot show in a timestamp's milliseconds.
START = datetime(1970, 1, 2, tzinfo=UTC)
HEALED = DAY - 1_200.0  # from here on nothing goes wrong any more
LAST_CALLS = DAY - 600.0  # longer after that than any circuit is open


@dataclass
class Lived:
    """A day, as it was."""

    seed: int
    ledger: Ledger
    digest: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)  # the stream, as it was written
    times: list[float] = field(default_factory=list)  # when each event was, by the virtual clock
    last: dict[str, tuple[list[str], str]] = field(default_factory=dict)  # by tool: its last calls, then its circuit
    stored: set[str] = field(default_factory=set)  # turns whose end the store has

    def figures(self) -> dict[str, int]:
        """How much has happened."""
        count = Counter(event["event_type"] for event in self.events)
        spent = sum("budget is spent" in event.get("no_retry", "") for event in self.events)
        return {
            "calls": len(self.ledger.asked),
            "attempts": len(self.ledger.attempts),
            "effects": sum(map(len, self.ledger.effects.values())),
            "turns": len(self.ledger.turns),
            "events": len(self.events),
            "retries": sum(e["event_type"] == "ToolError" and e["decision"] == "retry" for e in self.events),
            "budget spent": spent,
            **{name: count[event_type] for name, event_type in _SHOWN.items()},
        }


_SHOWN = {
    "opened": "CircuitOpened",
    "closed again": "CircuitClosed",
    "refused": "CallRefused",
    "held": "CallHeld",
    "fallbacks": "FallbackUsed",
    "timeouts": "ToolTimeout",
    "orphans": "AttemptAbandoned",
    "loop blocked": "LoopBlocked",
    "cancelled": "CallCancelled",
    "skipped": "CallSkipped",
    "left behind": "CallLeft",
    "late": "LateResult",
    "partial": "PartialUsed",
    "defaults": "DefaultUsed",
    "loops prevented": "LoopPrevented",
    "offers taken": "OfferTaken",
    "escalated": "Escalated",
}


def live(
    seed: int,
    *,
    agents: int = 20,
    spells: int = 8,
    declared: Mapping[str, Mapping[str, Any]] | None = None,
    path: Path | None = None,
) -> Lived:
    """Live through the day of a seed; its trace stays in ``path`` if one is given."""
    with TemporaryDirectory() as folder, virtual_time(start=START) as clock:
        place = path or Path(folder) / "trace.jsonl"
        place.unlink(missing_ok=True)
        with (
            patch.object(thread_notes, "ask_store", _ask_at_once),
            patch.object(cases, "ask_store", _ask_at_once),
            patch.object(effect_ledger, "submit", _submit_at_once),
            patch.object(earlier_start, "submit", _submit_at_once),
        ):
            return clock.run(_live(clock, seed, agents, spells, declared or {}, place))


async def _ask_at_once(ask: Callable[[], Any], _otherwise: Any) -> Any:
    """Ask a store where it is asked: how long a thread takes is not in the seed."""
    return ask()


async def _submit_at_once(start: Callable[[Callable[[], None]], Any], patience: float) -> Any:
    """Wait for the ledger's thread where it is asked, for the same reason."""
    return submit_blocking(start, patience)


class Inline(ThreadPoolExecutor):
    """Runs jobs at once: the speed of a thread depends on the machine and not on the seed."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class ShiftingWall:
    """A wall clock that is set now and then."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.wrong = 0.0

    def __call__(self) -> float:
        return self._clock.wall() + self.wrong


def read_trace(path: Path, wrong: list[tuple[int, float]]) -> tuple[str, list[dict[str, Any]], list[float]]:
    """A trace file: its digest, its records, and when each was by the virtual clock.

    ``wrong``: from which number on the wall clock was wrong, and by how much.
    """
    data = path.read_bytes()
    events = [json.loads(line) for line in data.splitlines()]
    changes = iter([*wrong, (len(events) + 1, 0.0)])
    times, now, (ends, after) = [], 0.0, next(changes)
    for number, event in enumerate(events, 1):
        while number >= ends:
            now, (ends, after) = after, next(changes)
        times.append(datetime.fromisoformat(event["timestamp"]).timestamp() - START.timestamp() - now)
    return hashlib.sha256(data).hexdigest(), events, times


async def _live(
    clock: VirtualClock,
    seed: int,
    agents: int,
    spells: int,
    declared: Mapping[str, Mapping[str, Any]],
    path: Path,
) -> Lived:
    asyncio.get_running_loop().set_default_executor(Inline())
    trouble = draw(seed, {name: spec.outages for name, spec in SPECS.items()}, spells)
    wall = ShiftingWall(clock)
    store = ShakyStore(wall)
    world = World(seed, clock, trouble)
    lived = Lived(seed, world.ledger)
    wrong: list[tuple[int, float]] = []
    rt = Runtime(store=store, trace=path, clock=Clock(clock.time, wall, clock.sleep), random=random.Random(seed))
    assert rt._engine.books.writer is not None
    rt._engine.books.writer._waiters = Inline()
    assert rt._engine.books.ledger is not None
    rt._engine.books.ledger._start = lambda: False  # type: ignore[method-assign]  # then it records where it is asked
    world.register(rt, declared)

    def set_wall(seconds: float) -> None:
        so_far = rt.events()  # these are stamped by the old time
        wrong.append((so_far[-1].seq + 1 if so_far else 1, seconds))
        wall.wrong = seconds

    async with rt:
        shifts = [_shift(clock, trouble.store, store.become), _shift(clock, trouble.wall, set_wall)]
        beside = [asyncio.ensure_future(shift) for shift in shifts]
        await asyncio.gather(*(Agent(number, seed, rt, world).live(trouble) for number in range(agents)))
        await asyncio.gather(*beside)
        await _until(clock, HEALED)
        store.become("works")
        world.healed = True
        await _until(clock, LAST_CALLS)
        await _last_calls(rt, world, lived)
        await _until(clock, DAY)
        await rt.flush()
    lived.digest, lived.events, lived.times = read_trace(path, wrong)
    lived.stored = {
        event["turn_id"] for _, event in store.read(limit=10**9) if event["event_type"] == "TurnEnded"
    }  # fmt: skip
    return lived


async def _last_calls(rt: Runtime, world: World, lived: Lived) -> None:
    """All tools are well, and have been left alone for long: now they must all be usable."""
    for tool in SPECS:
        if tool == "stuck":
            continue
        statuses = []
        for _ in range(2):  # no tool wants more successes than that
            asked = world.ledger.ask(tool, "plain", world.now())
            asked.told.append(await rt.call(tool, {"token": asked.token}))
            statuses += [outcome.status for outcome in asked.told]
        lived.last[tool] = statuses, rt.health(tool).state


async def _shift(clock: VirtualClock, shifts: tuple[Shift, ...], do: Callable[[Any], None]) -> None:
    for shift in shifts:
        await _until(clock, shift.at)
        do(shift.value)


async def _until(clock: VirtualClock, when: float) -> None:
    await asyncio.sleep(max(0.0, when - clock.time()))
