"""What really happened, written down by the fake world itself: nothing in here comes from failsoft's own books.

Every call that an agent submits has a *token*, which is one of its arguments. So each attempt that reaches a tool, and
each effect that it has, can be told to the call that caused it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Attempt:
    """One run of a tool's body."""

    tool: str
    token: str
    step: str  # what the tool was told to do
    started: float
    ended: float | None = None  # None: never
    result: str = "running"  # value, error, cancelled

    @property
    def is_clean(self) -> bool:
        """True if the error states that nothing was done."""
        return self.step in CLEAN and self.result == "error"


@dataclass
class Asked:
    """One submitted call and everything its caller received."""

    token: str
    tool: str
    how: str  # by name, plain, function, turn, adopted, plan, offer, loop, inner
    at: float
    call_id: str | None = None  # None: its caller never learns it
    turn_id: str | None = None
    told: list[Any] = field(default_factory=list)  # outcomes, values, exceptions; one is right
    parent: str | None = None  # the token of the call whose tool has made this one
    tokenless: bool = False  # its attempts cannot be told apart


@dataclass
class TurnSeen:
    """One turn: what was submitted, in order, and what its report says."""

    id: str
    submitted: list[str]
    reported: list[str] | None = None
    statuses: dict[str, str] = field(default_factory=dict)
    acknowledged: bool = False


CLEAN = frozenset({"refused", "busy", "rate", "invalid", "auth", "missing"})  # steps that end before anything is done


class Ledger:
    """All of it, of one day."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.effects: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)  # by token
        self.keys: defaultdict[str, set[str]] = defaultdict(set)  # idempotency keys, by token
        self.asked: dict[str, Asked] = {}
        self.turns: list[TurnSeen] = []

    def ask(self, tool: str, how: str, at: float, **more: Any) -> Asked:
        """A call is about to be submitted."""
        token = f"k{len(self.asked)}"
        asked = self.asked[token] = Asked(token, tool, how, at, **more)
        return asked

    def by_token(self) -> dict[str, list[Attempt]]:
        found: dict[str, list[Attempt]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.token, []).append(attempt)
        return found

    def by_tool(self) -> dict[str, list[Attempt]]:
        found: dict[str, list[Attempt]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.tool, []).append(attempt)
        return found
