"""Seeded turns over tools that fail in every way, with slots, breakers, fallbacks and another Error Handler.

What an outcome says of its attempts is what was run, whatever became of the call; after the end of a turn nothing begins;
and when the tools are well again, every circuit closes and every slot is free.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.fakes import virtual

from failsoft import Decision, ErrorReport, Runtime, partial

TOOLS = ("a", "b", "c", "d")


class Whims:
    """An Error Handler that is slow, wrong or silent at times."""

    def __init__(self, random: Random) -> None:
        self.random = random

    async def handle(self, report: ErrorReport) -> Decision:
        await asyncio.sleep(self.random.uniform(0, 2.5))
        if self.random.random() < 0.2:
            raise RuntimeError("no idea")
        tool = self.random.choice(TOOLS)
        strategies: list[Any] = ["retry", "alternative_tool", "partial_success", "escalate", "fail_gracefully"]
        strategy = self.random.choice(strategies)
        return Decision(strategy, "on a whim", tool=tool if strategy == "alternative_tool" else None)


class World:
    """Four tools, and how often each call was run."""

    def __init__(self, random: Random, *, whims: bool) -> None:
        self.random = random
        self.runs: Counter[Any] = Counter()
        self.well = False
        self.rt = Runtime(error_handler=Whims(random) if whims else None)
        for number, name in enumerate(TOOLS):
            options: dict[str, Any] = {
                "idempotent": random.choice([None, True, False]),
                "timeout": random.choice(["600ms", "2s"]),
                "retry": {"max_attempts": random.randint(1, 4), "initial_delay": "300ms"},
                "breaker": {
                    "failure_threshold": random.randint(1, 4),
                    "timeout": "3s",
                    "count": random.choice(["attempts", "calls"]),
                },
                "fallbacks": TOOLS[:number] if random.random() < 0.6 else [],
            }
            if random.random() < 0.6:
                options |= {"concurrency": random.randint(1, 2), "queue": random.randint(0, 6)}
            self.rt.add(self.run, id=name, **options)

    async def run(self, who: Any, needs: Any = None) -> Any:
        self.runs[who] += 1
        if self.well:
            return who
        await asyncio.sleep(self.random.random())
        match self.random.randrange(10):
            case 0 | 1 | 2:
                raise ConnectionResetError("Connection reset by peer")
            case 3:
                raise ConnectionRefusedError("Connection refused")
            case 4:
                raise ValueError("Invalid input")
            case 5:
                return partial(who, missing=["the rest"])
            case 6:
                await asyncio.sleep(60)
        return who

    async def heal(self) -> None:
        """Every tool serves again, and by itself."""
        await asyncio.sleep(400)
        self.well = True
        for name in TOOLS:
            outcomes = [await self.rt.call(name, {"who": (name, number)}) for number in range(2)]
            assert [outcome.via for outcome in outcomes] == [name] * 2
            assert self.rt.health(name).state == "closed"


@pytest.mark.parametrize("whims", [False, True], ids=["built-in", "whims"])
@pytest.mark.parametrize("seed", range(12))
@virtual
async def test_turns_report_what_was_run_and_begin_nothing_after_their_end(seed: int, whims: bool) -> None:
    random = Random(seed)
    world = World(random, whims=whims)
    for number in range(5):
        turn = world.rt.turn(
            timeout=random.choice(["700ms", "1500ms", "4s"]), on_timeout=random.choice(["leave", "cancel"])
        )
        try:
            async with turn:
                handles: list[Any] = []
                for call in range(random.randint(4, 14)):
                    needs = random.choice(handles) if handles and random.random() < 0.3 else None
                    arguments = {"who": (number, f"{call}"), "needs": needs}
                    handles.append(turn.call(random.choice(TOOLS), arguments, id=f"{call}"))
                if random.random() < 0.3:
                    raise KeyError("the body's own")
        except KeyError:
            pass
        runs = dict(world.runs)
        for id, outcome in turn.report.outcomes.items():
            assert outcome.attempts == runs.get((number, id), 0), f"turn {number}, call {id}: {outcome}"
        await asyncio.sleep(random.choice([0, 0.5, 100]))
        assert dict(world.runs) == runs, f"turn {number}"
    await world.heal()


@pytest.mark.parametrize("whims", [False, True], ids=["built-in", "whims"])
@pytest.mark.parametrize("seed", range(12))
@virtual
async def test_cancelling_callers_at_any_time_does_not_affect_other_calls(seed: int, whims: bool) -> None:
    random = Random(seed)
    world = World(random, whims=whims)
    tasks: list[asyncio.Task[Any]] = []
    for number in range(60):
        tasks.append(asyncio.create_task(world.rt.call(random.choice(TOOLS), {"who": number}, id=f"{number}")))
        if random.random() < 0.5:
            await asyncio.sleep(random.uniform(0, 0.6))
        if random.random() < 0.3:
            random.choice(tasks).cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError):
            assert not isinstance(outcome, BaseException)
            assert outcome.attempts == world.runs[int(outcome.id)], str(outcome)
    await world.heal()
