"""What the yardstick needs of a benchmark: tasks with gold calls, a world that they change, and the benchmark's check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class GoldCall:
    """One call of the gold solution. ``id`` is unique in its benchmark."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    turn: int


@dataclass
class Answer:
    """The answer to one gold call: what the service said, and what arrived."""

    call: GoldCall
    performed: list[Any] = field(default_factory=list)  # the service's answer, once per execution
    returned: Any = None  # what the last attempt without an error gave to the executor
    arrived: bool = False  # the executor reported success and passed a value on
    value: Any = None  # that value


class World(Protocol):
    """The state that the calls of one run read and change."""

    def perform(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool of the benchmark. Its exceptions are answers too, and go on."""
        ...

    def fingerprint(self) -> str:
        """Return a text that is different after a call with an effect."""
        ...

    def end_turn(self, turn: int, answers: Sequence[Answer]) -> None:
        """Note that a turn of the task is over; ``answers`` are those to its calls."""
        ...

    def reached(self) -> bool:
        """Ask the benchmark's own check whether the task is done."""
        ...


class Task(Protocol):
    """One task of a benchmark."""

    @property
    def id(self) -> str: ...
    @property
    def calls(self) -> Sequence[GoldCall]: ...
    @property
    def turns(self) -> int: ...
    @property
    def descriptions(self) -> Mapping[str, str]:
        """The tools as the benchmark describes them to a model."""
        ...

    def start(self, writes: frozenset[str]) -> World:
        """Make a fresh world. ``writes`` names the tools that have an effect."""
        ...


class Benchmark(Protocol):
    """A benchmark as installed."""

    name: str
    version: str
    home: str
    simulated_writes: frozenset[str]  # writes of which the benchmark's state shows nothing

    def tasks(self) -> Sequence[Task]: ...


def in_turn(answers: Sequence[Answer], turn: int) -> list[Answer]:
    return [answer for answer in answers if answer.call.turn == turn]
