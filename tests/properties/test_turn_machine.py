"""The turn machine on arbitrary turns: plans and single calls, failures, the deadline or a cancellation at any moment.

The driver here is a plain loop that knows nothing but the commands. An independent reading of R9 (``expect``) says
afterwards, from the whole history, what must have become of every call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.turn.turn_by_id import Cancel, Command, Leave, RecordLate, Skip, Start, TurnById, said

from failsoft.core.turn.machine import Node

Choose = Callable[[int, int], int]  # a whole number between two, both included


class History:
    """One turn, driven to its end by choices."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.machine = TurnById()
        self.calls: dict[str, Node] = {}
        self.taken: list[str] = []  # and not entered yet
        self.running: list[str] = []
        self.left: list[str] = []
        self.ends: dict[str, str] = {}
        self.started: dict[str, Mapping[str, Any]] = {}
        self.skips: dict[str, Skip] = {}
        self.late: list[str] = []
        self.log: list[object] = []
        self.over = ""
        self.met: set[str] = set()

    def play(self) -> None:
        for _ in range(self.choose(1, 12)):
            self.step()
        while self.taken or self.running or self.left:
            if self.taken:
                self.enter()
            else:
                self.finish()

    def step(self) -> None:
        action = self.choose(0, 19)
        if action == 0:
            self.over = self.over or "expired"
            self.perform(self.machine.expire())
        elif action == 1:
            self.over = "cancelled"
            self.perform(self.machine.cancel())
        elif action < 5 and self.taken:
            self.enter()
        elif action < 9 and (self.running or self.left):
            self.finish()
        elif self.over != "cancelled":
            self.add()

    def add(self) -> None:
        new = [f"c{len(self.calls) + number}" for number in range(self.choose(1, 6))]
        alone = len(new) == 1
        order = new if alone else sorted(new, key=lambda _: self.choose(0, 99))  # a plan may name later calls
        ranks = {id: rank for rank, id in enumerate([*self.calls, *order])}
        calls = [self.make(id, [other for other in ranks if ranks[other] < ranks[id]]) for id in new]
        self.calls.update((call.id, call) for call in calls)
        if alone and self.machine.machine.no_failure_yet and self.choose(0, 1):
            self.machine.machine.enqueue(calls[0])
            self.taken += new
            self.perform([])
            return
        commands = said(self.machine.machine.add(calls[0])) if alone else self.machine.add_all(calls)
        self.perform(commands)

    def enter(self) -> None:
        call = self.calls[self.taken.pop(0)]
        self.machine.activate(call.id)
        self.perform([Start(call.id, {})] if call.state == "running" else [])
        self.met.add(f"entered {call.state}")

    def make(self, id: str, earlier: list[str]) -> Node:
        needs = {
            earlier[self.choose(0, len(earlier) - 1)]: ["x", "y", "z"][self.choose(0, 2) : self.choose(0, 3)]
            for _ in range(self.choose(0, 3) if earlier else 0)
        }
        required = (None, True, False)[self.choose(0, 2)]
        return Node(id, needs, required, {name: f"default {name}" for name in "xyz" if self.choose(0, 1)})

    def finish(self) -> None:
        number = self.choose(0, len(self.running) + len(self.left) - 1)
        id = (self.running + self.left)[number]
        status = ("succeeded", "succeeded", "failed", "cancelled")[self.choose(0, 3)]
        if id in self.left:
            self.left.remove(id)
            commands = self.machine.finish(id, status)  # type: ignore[arg-type]  # one of the four
            assert list(commands) == ([] if status == "cancelled" else [RecordLate(id)])
            self.late.append(id)
            return
        self.running.remove(id)
        self.end(id, status)
        if status != "succeeded" and self.taken:
            self.met.add("taken at the first failure")
            self.taken = []  # the machine says what becomes of them
        self.perform(self.machine.finish(id, status))  # type: ignore[arg-type]  # one of the four

    def end(self, id: str, status: str) -> None:
        assert id not in self.ends, "a call ends once"
        self.ends[id] = status
        self.log.append((id, status))

    def perform(self, commands: Any) -> None:
        for command in commands:
            self.log.append(command)
            self.one(command)
        assert list(self.machine.statuses) == list(self.calls), "the order of submission is kept"
        for id, state in self.machine.statuses.items():
            open_state = "new" if id in self.taken else "running" if id in self.running else "waiting"
            assert state == self.ends.get(id, open_state)

    def one(self, command: Command) -> None:
        match command:
            case Start(id, substitutes):
                assert not self.over, "nothing starts after the end"
                assert id not in self.started, "a call starts once"
                assert id not in self.ends
                assert all(need in self.ends for need in self.calls[id].needs), "dependencies have ended"
                self.started[id] = substitutes
                self.running.append(id)
            case Skip(id):
                assert id not in self.started
                if id in self.taken:
                    self.taken.remove(id)
                self.skips[id] = command
                self.end(id, "skipped")
            case Leave(id):
                assert self.over == "expired"
                if id in self.taken:  # it would have begun the moment after
                    self.met.add("taken at the deadline")
                    self.taken.remove(id)
                    self.started[id] = self.calls[id].substitutes or {}
                else:
                    self.running.remove(id)
                self.left.append(id)
                self.end(id, "timed_out")
            case Cancel(id, started):
                assert started == (id in self.running)
                if started:
                    self.running.remove(id)
                    self.left.append(id)
                elif id in self.taken:
                    self.taken.remove(id)
                self.end(id, "cancelled")
            case _:
                raise AssertionError(command)


def expect(history: History) -> None:
    """Everything that must hold of a turn that has been driven to its end."""
    calls, ends = history.calls, history.ends
    assert set(ends) == set(calls), "outcomes = calls"
    assert set(history.started).isdisjoint(history.skips)
    for id, substitutes in history.started.items():
        bad = [need for need in calls[id].needs if ends[need] != "succeeded"]
        arguments = {argument for need in bad for argument in calls[id].fills[need]}
        assert dict(substitutes) == {name: f"default {name}" for name in arguments}
        if bad:
            assert calls[id].required is not False
            assert all(calls[id].fills[need] for need in bad), "a plain order cannot be substituted"
            assert arguments <= set(calls[id].defaults)
    for id, skip in history.skips.items():
        if skip.root is None:
            assert history.over
            assert skip.because is None
            assert not skip.escalate
            continue
        assert skip.because is not None
        assert skip.because in calls[id].needs
        assert ends[skip.because] != "succeeded"
        assert skip.root in history.started, "the root really ran"
        assert ends[skip.root] in ("failed", "timed_out", "cancelled")
        assert skip.root == (history.skips[skip.because].root if skip.because in history.skips else skip.because)
        arguments = set(calls[id].fills[skip.because])
        if ends[skip.root] == "timed_out":
            assert not skip.escalate, "the deadline does not escalate"
        else:
            assert calls[id].required is False or not (arguments and arguments <= set(calls[id].defaults))
            assert skip.escalate == (calls[id].required is True)
    if not history.over:
        for id, call in calls.items():
            if all(ends[need] == "succeeded" for need in call.needs):
                assert id in history.started, "who misses nothing runs"
    assert set(history.late) <= {id for id, end in ends.items() if end in ("timed_out", "cancelled")}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_turn_ends_as_it_must(data: st.DataObject) -> None:
    history = History(lambda low, high: data.draw(st.integers(low, high)))
    history.play()
    expect(history)


@pytest.mark.parametrize("block", range(10))
def test_seeded_turns_end_as_they_must_and_always_the_same_way(block: int) -> None:
    for seed in range(block * 1000, block * 1000 + 1000):
        history = History(random.Random(seed).randint)
        history.play()
        expect(history)
        if seed % 10 == 0:
            again = History(random.Random(seed).randint)
            again.play()
            assert again.log == history.log


def test_the_seeded_turns_meet_every_case() -> None:
    met: set[str] = set()
    for seed in range(2000):
        history = History(random.Random(seed).randint)
        history.play()
        met |= {f"end {end}" for end in history.ends.values()}
        met |= {f"skip escalate={skip.escalate} root={skip.root is not None}" for skip in history.skips.values()}
        met |= {"substituted" for substitutes in history.started.values() if substitutes}
        met |= {"late" for _ in history.late}
        met |= history.met
        met |= {"long chain" for skip in history.skips.values() if skip.because != skip.root}
    assert met == {
        "end succeeded",
        "end failed",
        "end cancelled",
        "end timed_out",
        "end skipped",
        "skip escalate=True root=True",
        "skip escalate=False root=True",
        "skip escalate=False root=False",
        "substituted",
        "late",
        "long chain",
        "entered running",
        "entered waiting",
        "taken at the first failure",
        "taken at the deadline",
    }
