"""Labels: which tools of a benchmark write, and which tasks can be judged when a read is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.yardstick.benchmarks.base import Answer, Benchmark, Task, in_turn


@dataclass(frozen=True)
class Labels:
    """``writes`` are the tools with an effect; ``tasks`` the usable ones, ``left_out`` the others with the reason."""

    writes: frozenset[str]
    tasks: Sequence[Task]
    left_out: dict[str, str]


def find_labels(benchmark: Benchmark, only: Sequence[str] = ()) -> Labels:
    """A tool writes if one of its gold calls changes the state, in any task."""
    tasks = benchmark.tasks()
    writes = set(benchmark.simulated_writes)
    for task in tasks:
        writes |= _writes(task)
    labels = frozenset(writes)
    left_out: dict[str, str] = {}
    for task in tasks:
        if reason := _reason_to_leave_out(task, labels):
            left_out[task.id] = reason
    kept = [task for task in tasks if task.id not in left_out and (not only or task.id in only)]
    return Labels(labels, kept, left_out)


def _writes(task: Task) -> set[str]:
    world = task.start(frozenset())
    found: set[str] = set()
    before = world.fingerprint()
    for call in task.calls:
        try:
            world.perform(call.tool, call.arguments)
        except Exception:  # a gold call whose answer is an error
            continue
        finally:
            after = world.fingerprint()
            if after != before:
                found.add(call.tool)
            before = after
    return found


def _reason_to_leave_out(task: Task, writes: frozenset[str]) -> str | None:
    """Replay the gold calls with every read made twice: the check must pass, and both answers must agree."""
    world = task.start(writes)
    answers: list[Answer] = []
    turn = 0
    for call in task.calls:
        while turn < call.turn:
            world.end_turn(turn, in_turn(answers, turn))
            turn += 1
        answer = Answer(call)
        for _ in range(1 if call.tool in writes else 2):
            try:
                answer.value, answer.arrived = world.perform(call.tool, call.arguments), True
            except Exception as error:
                return f"a gold call raises {type(error).__name__}"
            answer.performed.append(answer.value)
        answers.append(answer)
        if any(repr(value) != repr(answer.value) for value in answer.performed):
            return "a read gives another answer when it is repeated"
    while turn < task.turns:
        world.end_turn(turn, in_turn(answers, turn))
        turn += 1
    return None if world.reached() else "its own check fails without faults"
