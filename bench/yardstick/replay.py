"""One run: an executor makes the gold calls of a task, in virtual time, with faults on the wire."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from bench.yardstick.benchmarks.base import Answer, GoldCall, Task, in_turn
from bench.yardstick.injector import Injector, Wire
from failsoft.testing import virtual_time

Report = Literal["succeeded", "failed", "unknown"]
Tool = Callable[..., Awaitable[Any]]


class Executor(Protocol):
    """Something that makes tool calls: the thing that is measured."""

    name: str

    async def run(self, session: Session) -> None:
        """Make the calls of ``session`` in their order, until all are made or it gives up."""
        ...


class Session:
    """The calls of one run as an executor sees them. It begins a call, makes attempts, and reports how it ended."""

    def __init__(self, task: Task, wire: Wire, writes: frozenset[str]) -> None:
        self.task = task
        self.calls: Sequence[GoldCall] = task.calls
        self.writes = writes
        self.answers: list[Answer] = []
        self.reports: list[Report] = []
        self.reads = 0  # made by executors beyond the gold calls, to find out about a write
        self._wire = wire
        self._turn = 0

    def begin(self, call: GoldCall) -> None:
        self._end_turns(call.turn)
        self.answers.append(Answer(call))

    def end(self, report: Report, value: Any = None) -> None:
        """Report how the current call ended. ``value`` counts for calls that succeeded."""
        self.reports.append(report)
        answer = self.answers[-1]
        answer.arrived, answer.value = report == "succeeded", value

    def function(self, tool: str) -> Tool:
        """Return a tool as a function, named and described as the benchmark does."""

        async def call(**arguments: Any) -> Any:
            return await self._wire.attempt(self.answers[-1], tool, arguments)

        call.__name__ = call.__qualname__ = tool
        call.__doc__ = self.task.descriptions.get(tool, "")
        return call

    @functools.cached_property
    def functions(self) -> dict[str, Tool]:
        """The tools of this task's calls."""
        return {tool: self.function(tool) for tool in dict.fromkeys(call.tool for call in self.calls)}

    async def attempt(self, call: GoldCall) -> Any:
        return await self.functions[call.tool](**call.arguments)

    def look(self, tool: str, arguments: Mapping[str, Any]) -> Tool:
        """Return a read of the benchmark that is not a gold call; it meets faults like any other."""
        self.reads += 1
        extra = Answer(GoldCall(f"{self.answers[-1].call.id}#{self.reads}", tool, arguments, self._turn))

        async def attempt() -> Any:
            return await self._wire.attempt(extra, tool, arguments)

        return attempt

    def finish(self) -> None:
        self._end_turns(self.task.turns)

    def _end_turns(self, until: int) -> None:
        while self._turn < until:
            self._wire.world.end_turn(self._turn, in_turn(self.answers, self._turn))
            self._turn += 1


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    task: str
    seed: int
    goal: bool
    ceiling: bool  # the injector allows the goal without a repeat on suspicion and without a verify
    twice: tuple[str, ...]  # ids and tools of writes that were performed more than once
    silent: bool  # the goal was missed, and every call was reported as a success
    false_alarm: bool  # the goal was reached, and a call was reported as failed or unknown
    calls: int
    attempts: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def replay(executor: Executor, task: Task, injector: Injector, writes: frozenset[str]) -> Run:
    """Run one task once."""
    world = task.start(writes)
    with virtual_time() as clock:
        wire = Wire(world, injector)
        session = Session(task, wire, writes)
        asyncio.run(executor.run(session))
        seconds = clock.time()
        session.finish()
    goal = world.reached()
    complete = len(session.reports) == len(task.calls) and all(one == "succeeded" for one in session.reports)
    return Run(
        task=task.id,
        seed=injector.seed,
        goal=goal,
        ceiling=injector.allows(task.calls, writes),
        twice=tuple(
            f"{one.call.id} {one.call.tool}"
            for one in session.answers
            if one.call.tool in writes and len(one.performed) > 1
        ),
        silent=not goal and complete,
        false_alarm=goal and not complete,
        calls=len(session.answers),
        attempts=wire.attempts,
        seconds=seconds,
    )
