"""The turn machine as tests speak to it: calls by their ids, commands as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from failsoft.core.model.outcome import Status
from failsoft.core.turn import machine as core


@dataclass
class Start:
    id: str
    substitutes: Mapping[str, Any]


@dataclass
class Skip:
    id: str
    root: str | None
    because: str | None
    escalate: bool


@dataclass
class Leave:
    id: str


@dataclass
class Cancel:
    id: str
    started: bool


@dataclass
class RecordLate:
    id: str


Command = Start | Skip | Leave | Cancel | RecordLate


class TurnById:
    """A machine for calls that have nothing but their ids."""

    def __init__(self) -> None:
        self.machine: core.TurnMachine[core.Node] = core.TurnMachine()

    @property
    def statuses(self) -> dict[str, core.CallState]:
        return {id: call.state for id, call in self.machine.calls.items()}

    def add(self, *call: Any, **more: Any) -> list[Command]:
        return said(self.machine.add(core.Node(*call, **more)))

    def enqueue(self, *call: Any, **more: Any) -> None:
        self.machine.enqueue(core.Node(*call, **more))

    def activate(self, id: str) -> None:
        assert not self.machine.activate(self[id]), "while calls are only taken, nothing has failed"

    def add_all(self, calls: Sequence[core.Node]) -> list[Command]:
        return said(self.machine.add_all(calls))

    def finish(self, id: str, status: Status) -> list[Command]:
        return said(self.machine.finish(self[id], status))

    def succeed(self, id: str) -> list[str]:
        return [call.id for call in self.machine.succeed(self[id])]

    def expire(self) -> list[Command]:
        return said(self.machine.expire())

    def cancel(self) -> list[Command]:
        return said(self.machine.cancel())

    def __getitem__(self, id: str) -> core.Node:
        return self.machine.calls.get(id) or core.Node(id)


def said(commands: Sequence[core.Command[core.Node]]) -> list[Command]:
    return [_plain(command) for command in commands]


def _plain(command: core.Command[core.Node]) -> Command:
    id = command.call.id
    match command:
        case core.Start(call):
            return Start(id, dict(call.substitutes or {}))
        case core.Skip(_, root, because, escalate):
            return Skip(id, None if root is None else root.id, None if because is None else because.id, escalate)
        case core.Abandon():
            return Leave(id)
        case core.Cancel(_, started):
            return Cancel(id, started)
    return RecordLate(id)
