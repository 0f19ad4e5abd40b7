"""S6: a turn of 1,000 calls that depend on each other, × a scheduler written by hand that guards nothing.

Shapes: a chain; a fan (one, then 998 at once, then one that needs them all); a graph in which every call needs one to
three of the fifty before it. Building langgraph's graph is not counted.
"""

from __future__ import annotations

import asyncio
import operator
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from bench.harness import Peer, Plan, Table, add_instructions, compare

CALLS = 1000
TURNS = 10  # per peer in a round

Deps = list[tuple[int, ...]]


async def tool(i: int) -> int:
    return i


def chain(calls: int) -> Deps:
    return [(), *((number - 1,) for number in range(1, calls))]


def fan(calls: int) -> Deps:
    return [(), *[(0,)] * (calls - 2), tuple(range(1, calls - 1))]


def graph(calls: int) -> Deps:
    draw = random.Random(42)
    needs = (
        {draw.randrange(max(0, number - 50), number) for _ in range(draw.randint(1, 3))} for number in range(1, calls)
    )
    return [(), *(tuple(sorted(one)) for one in needs)]


def needed_by(deps: Deps) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in deps]
    for number, needs in enumerate(deps):
        for other in needs:
            found[other].append(number)
    return found


def by_hand(deps: Deps) -> Callable[..., Any]:
    """Count missing dependencies; a task per call."""
    followers, missing_first = needed_by(deps), [len(needs) for needs in deps]

    async def run(_: Any) -> list[Any]:
        loop = asyncio.get_running_loop()
        missing, results, left = missing_first[:], [None] * len(deps), len(deps)
        done, tasks = loop.create_future(), set()

        async def node(number: int) -> None:
            nonlocal left
            results[number] = await tool(number)
            left -= 1
            for follower in followers[number]:
                missing[follower] -= 1
                if not missing[follower]:
                    start(follower)
            if not left:
                done.set_result(None)

        def start(number: int) -> None:
            task = loop.create_task(node(number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        for number, count in enumerate(missing_first):
            if not count:
                start(number)
        await done
        return results

    return run


def failsoft_turn(deps: Deps) -> Callable[..., Any]:
    from failsoft import Runtime

    rt = Runtime()
    rt.add(tool, id="tool")

    async def run(_: Any) -> None:
        handles: list[Any] = []
        async with rt.turn() as turn:
            for number, needs in enumerate(deps):
                handles.append(turn.call("tool", {"i": number}, depends_on=[handles[one] for one in needs]))
        assert len(turn.report.results) == len(deps)

    return run


def task_and_gather(deps: Deps) -> Callable[..., Any]:
    """The most common form: a task per call, each awaiting its dependencies."""

    async def run(_: Any) -> None:
        tasks: list[asyncio.Task[int]] = []

        async def node(number: int) -> int:
            await asyncio.gather(*(tasks[one] for one in deps[number]))
            return await tool(number)

        tasks.extend(asyncio.ensure_future(node(number)) for number in range(len(deps)))
        await asyncio.gather(*tasks)

    return run


def sorter(deps: Deps) -> Callable[..., Any]:
    """The standard library's graphlib."""

    async def run(_: Any) -> None:
        order = TopologicalSorter(dict(enumerate(deps)))
        order.prepare()
        finished: asyncio.Queue[int] = asyncio.Queue()
        tasks = []

        async def node(number: int) -> None:
            await tool(number)
            finished.put_nowait(number)

        while order.is_active():
            tasks += [asyncio.ensure_future(node(number)) for number in order.get_ready()]
            order.done(await finished.get())

    return run


def langgraph(deps: Deps) -> Callable[..., Any]:
    from typing import Annotated, TypedDict

    from langgraph.graph import END, START, StateGraph

    State = TypedDict("State", {"done": Annotated[int, operator.add]})  # noqa: UP013 - names needed at run time
    built = StateGraph(State)

    def node(number: int) -> Callable[..., Any]:
        async def step(_: Any) -> dict[str, int]:
            await tool(number)
            return {"done": 1}

        return step

    for number, needs in enumerate(deps):
        built.add_node(f"n{number}", node(number))
        if len(needs) > 1:
            built.add_edge([f"n{one}" for one in needs], f"n{number}")
        else:
            built.add_edge(f"n{needs[0]}" if needs else START, f"n{number}")
    for number, followers in enumerate(needed_by(deps)):
        if not followers:
            built.add_edge(f"n{number}", END)
    app = built.compile()

    async def run(_: Any) -> None:
        answer = await app.ainvoke({"done": 0}, {"recursion_limit": len(deps) + 10})
        assert answer["done"] == len(deps)

    return run


SHAPES = {"chain": chain, "fan": fan, "graph": graph}
MAKERS = {
    "by hand, unguarded": by_hand,
    "failsoft turn": failsoft_turn,
    "task and gather, unguarded": task_and_gather,
    "graphlib, unguarded": sorter,
    "langgraph": langgraph,
}


def peers(shape: str, calls: int) -> list[Peer]:
    deps = SHAPES[shape](calls)
    return [Peer(f"{shape}: {name}", partial(make, deps), counted=name in COUNTED) for name, make in MAKERS.items()]


COUNTED = ("by hand, unguarded", "failsoft turn")
COUNTED_CALLS = 100
COUNTS = (10, 30)  # turns under valgrind, which is slow
PEERS = [peer for shape in SHAPES for peer in peers(shape, COUNTED_CALLS)]


def run(plan: Plan) -> list[Table]:
    calls = 20 if plan.tiny else CALLS
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for shape in SHAPES:
        who = peers(shape, calls)
        found, skipped = compare(who, replace(plan, batches=1 if plan.tiny else TURNS), divide=calls)
        if plan.instr:
            counted = [peer for peer in PEERS if peer.name.startswith(shape)]
            add_instructions(found, __name__, counted, divide=COUNTED_CALLS)
        rows += [{**row, "calls_per_s": 1e9 / row["ns"]} for row in found]
        missing |= skipped
    title = f"A turn of {calls:,} calls, × a scheduler by hand without any protection; per call"
    columns = ["peer", "ns", "calls_per_s", "ratio", "best", "instr", "instr_ratio"]
    return [Table("S6", title, columns, rows, missing)]
