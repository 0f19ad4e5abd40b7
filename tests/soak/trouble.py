"""What goes wrong on a simulated day, drawn from its seed before it begins: outages, a shaky store, a wall clock that jumps.

Rules
-----
- Agents work in a few busy spells; outages lie around those, so that they are noticed.
- All outages are over when the working day ends: what comes after shows whether everything has recovered.
- A store never raises for its own troubles (``stores.ports``). One that fails loses what it is given and finds nothing;
  one that hangs takes events only when it is back.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import Kind

DAY = 86_400.0
WORK = 84_000.0  # seconds: then the agents go home
SPELL = 240.0  # how long a busy spell lasts


class Outage(NamedTuple):
    """A time during which a tool mostly fails, always in the same way."""

    begin: float
    end: float
    step: str


class Shift(NamedTuple):
    """Something else changes: the mode of the store, or by how much the wall clock is wrong."""

    at: float
    value: Any


class Trouble(NamedTuple):
    """All the troubles of one day."""

    spells: tuple[float, ...]  # when the busy spells begin
    outages: Mapping[str, tuple[Outage, ...]]
    store: tuple[Shift, ...]
    wall: tuple[Shift, ...]


def draw(seed: int, tools: Mapping[str, Sequence[str]], spells: int) -> Trouble:
    """The troubles of a seed; ``tools`` has the ways in which each tool can be out of order."""
    source = random.Random(f"{seed}/trouble")
    begins = tuple(sorted(source.uniform(0, WORK - 2 * SPELL) for _ in range(spells)))
    outages = {}
    for tool, steps in tools.items():
        found = []
        for begin in begins:
            if steps and source.random() < 0.5:
                start = begin + source.uniform(-SPELL / 2, SPELL / 2)
                found.append(Outage(start, min(start + source.uniform(20, 1.2 * SPELL), WORK), source.choice(steps)))
        outages[tool] = tuple(found)
    store = [Shift(begin + source.uniform(0, SPELL), source.choice(MODES)) for begin in begins]
    store += [Shift(begin + source.uniform(0, SPELL), "works") for begin in begins]
    steps_of_clock = (-10_800.0, -3_600.0, -61.0, -1.5, 0.0, 0.25, 7.0, 3_600.0, 7_200.0)
    wall = [Shift(begin + source.uniform(0, SPELL), source.choice(steps_of_clock)) for begin in begins]
    wall.append(Shift(source.uniform(0, WORK), source.choice(steps_of_clock)))
    return Trouble(begins, outages, tuple(sorted(store)), tuple(sorted(wall)))


MODES = ("fails", "hangs", "fails", "hangs", "works")


class ShakyStore(MemoryStore):
    """A store that fails, hangs and comes back, by word of the test."""

    def __init__(self, wall: Callable[[], float]) -> None:
        super().__init__(wall=wall)
        self._ready = threading.Event()
        self._ready.set()
        self.mode = "works"
        self.lost = 0  # events

    def become(self, mode: str) -> None:
        self.mode = mode
        if mode == "hangs":
            self._ready.clear()
        else:
            self._ready.set()

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        if self.mode != "fails":
            super().put(kind, key, value, ttl=ttl)

    def delete(self, kind: Kind, key: str) -> None:
        if self.mode != "fails":
            super().delete(kind, key)

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        return [] if self.mode == "fails" else super().find(kind, scope)

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._ready.wait()
        if self.mode == "fails":
            self.lost += len(events)
            raise OSError("the disk is full")  # kept by nobody: the worst that a store can do
        super().append(events)

    def flush(self, timeout: float) -> bool:
        return self._ready.wait(timeout) and self.mode == "works"
