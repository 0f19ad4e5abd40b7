"""A case: a function that observes a library and reports what it saw."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.peers.library import Library


class Seen(NamedTuple):
    """An observation: whether it is the fault, and what happened in words."""

    fault: bool
    words: str


class Case(NamedTuple):
    """One fault of the torture list, or one half of it."""

    name: str  # T1, or T1 threads
    fault: str  # the symptom of the fault
    needs: tuple[str, ...]  # required parts; "a|b" is either
    look: Callable[[Library], Any]
    at: int
    limit: float  # seconds; longer counts as a hang
    clock: bool  # install the settable wall clock before the library is loaded
    logs: bool  # logging is on

    @property
    def number(self) -> str:
        return self.name.split()[0]

    def lacks(self, library: Library) -> str | None:
        """Return the first missing part."""
        return next((part for part in self.needs if not library.has(part)), None)

    def run(self, library: Library) -> Seen:
        seen = self.look(library)
        return asyncio.run(seen) if inspect.iscoroutine(seen) else seen


CASES: dict[str, Case] = {}


def case(
    name: str, fault: str, *needs: str, limit: float = 30.0, clock: bool = False, logs: bool = False
) -> Callable[[Callable[[Library], Any]], Callable[[Library], Any]]:
    def register(look: Callable[[Library], Any]) -> Callable[[Library], Any]:
        CASES[name] = Case(name, fault, needs, look, len(CASES), limit, clock, logs)
        return look

    return register
