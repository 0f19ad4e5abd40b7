"""A world that fails as worlds do: 10,000 turns in virtual time against a real ``Runtime``.

What happens in a turn is drawn before anything runs, so every mode of the memory meets the very same world.

- ``blip``: fails once or twice, then works: retries cure it.
- ``routed``: the primary never serves this query; its fallback does.
- ``dead``: nobody serves it, ever.
- ``cured``: nobody serves it at first; from the middle on a retry cures it.
- One correlated outage: the primary fails for everybody, in the words of a blip; for its first third the fallback too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import NamedTuple

from failsoft import Runtime
from failsoft.core.resilience.recovery_memory import Mode
from failsoft.testing import virtual_time

TURNS = 10_000
GAP = 60.0  # seconds between turns, on average: ten thousand are a week
OUTAGE = range(7_000, 7_200)  # turns: some three hours
SHARES = {"fine": 0.40, "blip": 0.15, "routed": 0.15, "dead": 0.15, "cured": 0.15}
TEXTS = {
    "blip": "Service unavailable (503) at node-{n}.example.com",
    "routed": "Shard {n} of replica {hex} cannot be reached",
    "dead": "Upstream refused session {hex} after {n} ms",
    "cured": "Replica {n} lost its lease '{hex}'",
}


class Planned(NamedTuple):
    """One turn, before it happens."""

    number: int
    kind: str
    fails: int  # attempts of the primary that fail; 99: all
    fallback: bool  # whether the fallback serves it
    text: str
    pause: float

    @property
    def is_recoverable(self) -> bool:
        """By three attempts, or by the fallback."""
        return self.fails < 3 or self.fallback


class Lived(NamedTuple):
    """The outcome of a turn."""

    planned: Planned
    succeeded: bool
    attempts: int

    @property
    def wasted(self) -> int:
        """Failed attempts after the first: the first one cannot be avoided."""
        return max(0, self.attempts - 1 - self.succeeded)


def plan(seed: int, turns: int = TURNS) -> list[Planned]:
    source = random.Random(seed)
    return [*_plan(source, turns)]


def _plan(source: random.Random, turns: int) -> Iterator[Planned]:
    for number in range(turns):
        kind = source.choices([*SHARES], [*SHARES.values()])[0]
        outage = number in OUTAGE
        fails = {"fine": 0, "blip": source.choice((1, 2)), "routed": 99, "dead": 99, "cured": 1}[kind]
        fallback = kind in ("fine", "blip", "routed")
        if kind == "cured" and number < turns // 2:
            fails = 99
        text = TEXTS.get(kind, "")
        if outage:
            fails, text = 99, TEXTS["blip"]
            fallback = fallback and number >= OUTAGE.start + len(OUTAGE) // 3
        noise = {"n": source.randrange(1000), "hex": f"{source.getrandbits(32):08x}"}
        yield Planned(number, kind, fails, fallback, text.format(**noise), source.expovariate(1 / GAP))


def live(turns: list[Planned], mode: Mode) -> list[Lived]:
    """Live through the turns."""
    with virtual_time() as clock:
        return clock.run(_live(turns, mode))


async def _live(turns: list[Planned], mode: Mode) -> list[Lived]:
    tries = 0

    async def search(turn: Planned) -> str:
        nonlocal tries
        tries += 1
        if tries <= turn.fails:
            raise RuntimeError(turn.text)
        return "found"

    async def backup(turn: Planned) -> str:
        if not turn.fallback:
            raise RuntimeError(turn.text or "Service unavailable (503)")
        return "found elsewhere"

    rt = Runtime(memory=mode, random=random.Random(0))
    breaker = {"failure_threshold": 5, "count": "calls"}
    rt.add(search, read_only=True, retry={"max_attempts": 3}, breaker=breaker, fallbacks=["backup"])
    rt.add(backup, read_only=True, retry={"max_attempts": 1}, breaker={"failure_threshold": 1_000_000})
    lived = []
    for turn in turns:
        tries = 0
        async with rt.turn() as running:
            handle = running.call("search", {"turn": turn})
        outcome = await handle
        lived.append(Lived(turn, outcome.status == "succeeded", outcome.attempts))
        await asyncio.sleep(turn.pause)
    return lived
