"""The injector: draws a fault for each call, and sits between an executor and the tools of a world.

A fault is drawn from the seed and the call's id alone: every executor meets the same faults.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.yardstick.benchmarks.base import Answer, GoldCall, World
from bench.yardstick.faults import FAULTS, LATENCY, FaultKind, damage


@dataclass(frozen=True)
class Injector:
    """Draws faults: ``level`` is the share of calls that meet one, ``mix`` the weights of the kinds."""

    seed: int
    level: float
    mix: Mapping[str, float]

    def fault(self, call_id: str) -> FaultKind | None:
        digest = hashlib.sha256(f"{self.seed}:{call_id}".encode()).digest()
        faulty, which = (int.from_bytes(digest[at : at + 8], "big") / 2**64 for at in (0, 8))
        if faulty >= self.level:
            return None
        place = which * sum(self.mix.values())
        for name, weight in self.mix.items():
            place -= weight
            if place < 0:
                return FAULTS[name]
        return FAULTS[[name for name, weight in self.mix.items() if weight][-1]]

    def allows(self, calls: Iterable[GoldCall], writes: frozenset[str]) -> bool:
        """True if no write meets a fault before its effect that only a repeat or a verify can mend."""
        faults = (self.fault(call.id) for call in calls if call.tool in writes)
        return not any(fault is not None and fault.needs_repeat_or_verify for fault in faults)


@dataclass
class Wire:
    """Carries the attempts of one run to its world, with the faults that the injector draws."""

    world: World
    injector: Injector
    attempts: int = 0
    _met: dict[str, int] = field(default_factory=dict)

    async def attempt(self, answer: Answer, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run one attempt of a call. ``answer`` collects what the service did."""
        call = answer.call
        self.attempts += 1
        number = self._met[call.id] = self._met.get(call.id, 0) + 1
        fault = self.injector.fault(call.id)
        if fault is None or (fault.attempts is not None and number > fault.attempts):
            await asyncio.sleep(LATENCY)
            answer.returned = self._perform(answer, tool, arguments)
            return answer.returned
        if fault.error is None:
            await asyncio.sleep(fault.seconds)
            answer.returned = damage(self._perform(answer, tool, arguments))
            return answer.returned
        if fault.acts:
            await asyncio.sleep(LATENCY)
            self._perform_unseen(answer, tool, arguments)
        await asyncio.sleep(fault.seconds)
        raise fault.error()

    def _perform(self, answer: Answer, tool: str, arguments: Mapping[str, Any]) -> Any:
        try:
            value = self.world.perform(tool, arguments)
        except Exception as error:
            answer.performed.append(error)
            raise
        answer.performed.append(value)
        return value

    def _perform_unseen(self, answer: Answer, tool: str, arguments: Mapping[str, Any]) -> None:
        try:
            self._perform(answer, tool, arguments)
        except Exception:  # the tool's own error is lost with its answer
            return
