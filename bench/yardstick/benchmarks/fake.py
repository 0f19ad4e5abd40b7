"""A tiny benchmark that needs nothing installed: a till, a notebook and a thermometer. For tests and a first look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.yardstick.benchmarks.base import Answer, GoldCall, World

DESCRIPTIONS = {
    "pay_bill": "Pay a bill from the account.",
    "add_note": "Add a note to the notebook.",
    "get_balance": "Get the balance of the account.",
    "read_notes": "Read all notes.",
    "frobnicate": "Frobnicates the notebook.",  # neither its name nor its description says what it does
}

SCRIPTS: dict[str, list[list[tuple[str, dict[str, Any]]]]] = {
    "pay": [[("get_balance", {}), ("pay_bill", {"amount": 30})], [("get_balance", {})]],
    "note": [[("add_note", {"text": "milk"}), ("add_note", {"text": "bread"}), ("read_notes", {})]],
    "look": [[("get_balance", {}), ("read_notes", {})]],
    "odd": [[("frobnicate", {"text": "eggs"}), ("read_notes", {})]],
}


class Till:
    """The fake world: a balance and a list of notes."""

    def __init__(self, expected: Mapping[str, Any] | None, writes: frozenset[str]) -> None:
        self.balance = 100
        self.notes: list[str] = []
        self._expected = expected
        self._writes = writes
        self._read_all = True

    def perform(self, tool: str, arguments: Mapping[str, Any]) -> str:
        return json.dumps(self._perform(tool, arguments))

    def _perform(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        if tool == "pay_bill":
            self.balance -= arguments["amount"]
            return {"paid": arguments["amount"]}
        if tool in ("add_note", "frobnicate"):
            self.notes.append(arguments["text"])
            return {"notes": len(self.notes)}
        return list(self.notes) if tool == "read_notes" else {"balance": self.balance}

    def state(self) -> dict[str, Any]:
        return {"balance": self.balance, "notes": list(self.notes)}

    def fingerprint(self) -> str:
        return repr(self.state())

    def end_turn(self, turn: int, answers: Sequence[Answer]) -> None:  # noqa: ARG002 - the state is checked at the end
        for answer in answers:
            if answer.call.tool not in self._writes and not (answer.arrived and answer.value in answer.performed):
                self._read_all = False

    def reached(self) -> bool:
        return self._read_all and (self._expected is None or self.state() == self._expected)


@dataclass(frozen=True)
class FakeTask:
    """One script over the till."""

    id: str
    calls: Sequence[GoldCall]
    turns: int
    descriptions: Mapping[str, str] = field(default_factory=lambda: DESCRIPTIONS)

    def start(self, writes: frozenset[str]) -> World:
        gold = Till(None, writes)
        for call in self.calls:
            gold.perform(call.tool, call.arguments)
        return Till(gold.state(), writes)


class Fake:
    """The fake benchmark."""

    name = "fake"
    version = "1"
    home = ""
    simulated_writes: frozenset[str] = frozenset()

    def tasks(self) -> list[FakeTask]:
        found = []
        for name, turns in SCRIPTS.items():
            flat = [(turn, tool, arguments) for turn, calls in enumerate(turns) for tool, arguments in calls]
            calls = [
                GoldCall(f"{name}/{number}", tool, arguments, turn)
                for number, (turn, tool, arguments) in enumerate(flat)
            ]
            found.append(FakeTask(name, calls, len(turns)))
        return found
