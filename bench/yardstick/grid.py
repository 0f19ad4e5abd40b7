"""Shapes of turns under faults, in the manner of ToolMaze: graph shape × explicit or implicit × transient or permanent.

Every turn has seven calls, and one of them meets the fault: each of the seven in its turn. A call returns a text made of
its own name and of what it got, so the last value shows whether everything that it depends on was right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import mean
from typing import Any

from bench.yardstick.faults import LATENCY
from failsoft import Runtime
from failsoft.testing import HttpError, virtual_time

NAMES = "abcdefg"
SHAPES: dict[str, dict[str, str]] = {  # each call with the calls that it needs
    "chain": dict(zip(NAMES, ["", *NAMES], strict=False)),
    "fan-out": {name: "" if name == "a" else "a" for name in NAMES},
    "fan-in": {name: "abcdef" if name == "g" else "" for name in NAMES},
    "diamond": {"a": "", **dict.fromkeys("bcdef", "a"), "g": "bcdef"},
    "two branches": {"a": "", "b": "a", "c": "b", "d": "", "e": "d", "f": "e", "g": "cf"},
}
EXPLICIT, IMPLICIT = "explicit", "implicit"
TRANSIENT, PERMANENT = "transient", "permanent"
FAILED = {"ok": False, "error": "503 Service Unavailable"}
PATTERN = {"ok": False, "message": "error"}  # `failed_if` for it
ATTEMPTS = 3

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


def expected(shape: Mapping[str, str]) -> dict[str, str]:
    """Return the right value of every call."""
    values: dict[str, str] = {}
    for name, needs in shape.items():
        values[name] = f"{name}({','.join(values[one] for one in needs)})"
    return values


@dataclass
class Service:
    """The tools of one turn. One of them is faulty; each has a spare with the same answer."""

    faulty: str
    visible: str
    lasting: str
    met: int = 0

    async def answer(self, name: str, given: Mapping[str, Any]) -> Any:
        await asyncio.sleep(LATENCY)
        if name == self.faulty and (self.lasting == PERMANENT or not self.met):
            self.met += 1
            if self.visible == EXPLICIT:
                raise HttpError(503 if self.lasting == TRANSIENT else 403)
            return FAILED
        return f"{name}({','.join(str(value) for value in given.values())})"

    async def spare(self, name: str, given: Mapping[str, Any]) -> Any:
        await asyncio.sleep(LATENCY)
        return f"{name}({','.join(str(value) for value in given.values())})"


@dataclass(frozen=True)
class Ended:
    """A turn that has ended: values of the calls that were reported as successes, and what was reported as failed."""

    values: Mapping[str, Any]
    failed: Sequence[str]


async def unprotected(shape: Mapping[str, str], service: Service) -> Ended:
    """Run the turn with a TaskGroup: the first failure cancels the rest."""
    tasks: dict[str, asyncio.Task[Any]] = {}

    async def call(name: str, needs: str) -> Any:
        return await service.answer(name, {one: await tasks[one] for one in needs})

    try:
        async with asyncio.TaskGroup() as group:
            for name, needs in shape.items():
                tasks[name] = group.create_task(call(name, needs))
    except ExceptionGroup:
        done = {name: task.result() for name, task in tasks.items() if not (task.cancelled() or task.exception())}
        return Ended(done, [name for name in shape if name not in done])
    return Ended({name: task.result() for name, task in tasks.items()}, [])


async def naive(shape: Mapping[str, str], service: Service) -> Ended:
    """Run the turn with plain asyncio: tasks for the calls, a retry for each, and `gather`."""
    tasks: dict[str, asyncio.Task[Any]] = {}

    async def call(name: str, needs: str) -> Any:
        given = {one: await tasks[one] for one in needs}
        for _ in range(ATTEMPTS - 1):
            try:
                return await service.answer(name, given)
            except Exception:
                continue
        return await service.answer(name, given)

    for name, needs in shape.items():
        tasks[name] = asyncio.create_task(call(name, needs))
    ends = dict(zip(tasks, await asyncio.gather(*tasks.values(), return_exceptions=True), strict=True))
    failed = [name for name, end in ends.items() if isinstance(end, BaseException)]
    return Ended({name: end for name, end in ends.items() if name not in failed}, failed)


def guarded(*, spares: bool = False, **options: Any) -> Callable[[Mapping[str, str], Service], Awaitable[Ended]]:
    """Run the turn with failsoft; ``spares`` gives each tool a fallback."""

    async def run(shape: Mapping[str, str], service: Service) -> Ended:
        def tool(answer: Call, name: str) -> Any:
            async def look_up(**given: Any) -> Any:
                return await answer(name, given)

            return look_up

        async with Runtime() as runtime:
            for name in shape:
                fallback: dict[str, Any] = {"fallbacks": [f"spare_{name}"]} if spares else {}
                runtime.add(tool(service.answer, name), id=name, read_only=True, **fallback, **options)
                runtime.add(tool(service.spare, name), id=f"spare_{name}", read_only=True)
            async with runtime.turn() as turn:
                handles: dict[str, Any] = {}
                for name, needs in shape.items():
                    handles[name] = turn.call(name, {one: handles[one] for one in needs}, id=name)
        outcomes = turn.report.outcomes
        values = {name: outcomes[name].value for name in shape if outcomes[name].status == "succeeded"}
        return Ended(values, [name for name in shape if name not in values])

    return run


EXECUTORS: dict[str, Callable[[Mapping[str, str], Service], Awaitable[Ended]]] = {
    "asyncio.TaskGroup": unprotected,
    "asyncio, naive retry": naive,
    "failsoft": guarded(),
    "failsoft, failed_if": guarded(failed_if=PATTERN),
    "failsoft, failed_if, fallbacks": guarded(failed_if=PATTERN, spares=True),
}


@dataclass(frozen=True)
class Cell:
    """One field of the grid, in % over the seven turns."""

    executor: str
    shape: str
    visible: str
    lasting: str
    goal: float  # turns in which every call has the right value
    right: float  # calls with the right value
    silent: float  # turns with a wrong value and no report of a failure

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_grid() -> list[Cell]:
    fields = product(EXECUTORS, SHAPES, (EXPLICIT, IMPLICIT), (TRANSIENT, PERMANENT))
    return [run_cell(*field) for field in fields]


def run_cell(executor: str, shape: str, visible: str, lasting: str) -> Cell:
    wanted = expected(SHAPES[shape])
    ended = []
    for faulty in SHAPES[shape]:
        with virtual_time() as clock:
            ended.append(clock.run(_run(executor, shape, Service(faulty, visible, lasting))))
    right = [[end.values.get(name) == value for name, value in wanted.items()] for end in ended]
    silent = [not (all(calls) or end.failed) for calls, end in zip(right, ended, strict=True)]
    return Cell(
        executor,
        shape,
        visible,
        lasting,
        goal=100 * mean(map(all, right)),
        right=100 * mean(mean(calls) for calls in right),
        silent=100 * mean(silent),
    )


async def _run(executor: str, shape: str, service: Service) -> Ended:
    return await EXECUTORS[executor](SHAPES[shape], service)
