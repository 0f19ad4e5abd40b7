"""The policy book: ordered rules that decide about a failure before anything else does.

Rules
-----
- The first policy whose conditions all hold applies. A condition that is not given always holds.
- Several values of one condition mean any of them: ``code: [UNAVAILABLE, INTERNAL]``.
- ``tool`` accepts ``*`` and ``?``. ``attempt`` matches that attempt and later ones. ``turn_left`` matches if less time
  than this remains in the turn.
- A policy with a delay means a retry; a policy with a tool means that alternative. A policy with only a message changes
  what the user reads, and the Error Handler decides.
- A policy allows an unsafe retry only with ``even_if_effect_unknown``.
- If a policy cannot be followed (its tool is unavailable, there is no partial result, attempts are used up), the Error
  Handler decides and says so in the reason.

``match`` finds the policy that applies. ``covers`` and ``is_possible`` find policies that never apply, for
``failsoft check``. ``core.resilience.error_handler`` and ``core.resilience.retry`` carry policies out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from failsoft.core.model.decision import Strategy
from failsoft.core.model.durations import Seconds
from failsoft.core.model.fault import Category, Classification, Code, Effect
from failsoft.core.model.misspelt import find_meant
from failsoft.core.model.validation import codes, duration, fill, flag, one_of, several, texts, whole, word
from failsoft.core.resilience.circuit_breaker import CircuitState

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from failsoft.core.model.durations import Duration
    from failsoft.core.model.fault import Fault

T = TypeVar("T")
_PLACEHOLDER = re.compile(r"\{[A-Za-z_][\w.]{0,60}\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class When:
    """The conditions of a policy. Without conditions it always holds."""

    tool: tuple[str, ...] = ()  # patterns with * and ?
    tags: tuple[str, ...] = ()  # the tool has at least one of them
    category: tuple[Category, ...] = ()
    code: tuple[Code, ...] = ()
    classification: Classification | None = None
    attempt: int = 1  # this attempt or a later one
    breaker: tuple[CircuitState, ...] = ()
    turn_left: float | None = None  # seconds; holds if less remains
    effect: tuple[Effect, ...] = ()

    if TYPE_CHECKING:  # the accepted argument types; __post_init__ converts them to the field types

        def __init__(
            self,
            *,
            tool: str | Iterable[str] = ...,
            tags: str | Iterable[str] = ...,
            category: Category | Iterable[Category] = ...,
            code: Code | str | Iterable[Code | str] = ...,
            classification: Classification | None = ...,
            attempt: int = ...,
            breaker: CircuitState | Iterable[CircuitState] = ...,
            turn_left: Duration | None = ...,
            effect: Effect | Iterable[Effect] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("tool", "tags", "category", "code", "breaker", "effect"):
            value = getattr(self, name)
            fill(self, name, texts(name, [value] if isinstance(value, str) else value, like="a text or a list"))
        for glob in self.tool:
            if not glob or "[" in glob:
                raise ValueError(f"tool: {glob!r} is not a tool's id: the only wildcards are * and ?")
        fill(self, "code", codes("code", self.code))
        for name, words in (("category", Category), ("breaker", CircuitState), ("effect", Effect)):
            for value in getattr(self, name):
                one_of(name, value, words)
        if self.classification is not None:
            one_of("classification", self.classification, Classification)
        whole("attempt", self.attempt, least=1)
        if self.turn_left is not None:
            duration(self, "turn_left")

    def covers(self, other: When) -> bool:
        """True if this holds wherever ``other`` does. May return False when that cannot be determined."""
        return (
            _any_covers(self.tool, other.tool)
            and _all_among(self.tags, other.tags)
            and set(_categories(other)) <= set(_categories(self))
            and _all_among(self.code, other.code)
            and self.attempt <= other.attempt
            and _all_among(self.breaker, other.breaker)
            and (self.turn_left is None or (other.turn_left is not None and other.turn_left <= self.turn_left))
            and _all_among(self.effect, other.effect)
        )

    @property
    def is_possible(self) -> bool:
        """True if some failure satisfies the conditions. Transient errors always have the category tool_transient."""
        return bool(_categories(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Then:
    """The action of a policy. Without a strategy, tool or delay the Error Handler decides."""

    strategy: Strategy | None = None
    delay: float | None = None  # seconds before the retry
    tool: str | None = None  # the alternative tool
    message: str | None = None  # the text for the user

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            strategy: Strategy | None = ...,
            delay: Duration | None = ...,
            tool: str | None = ...,
            message: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.strategy is not None:
            one_of("strategy", self.strategy, Strategy)
        if self.delay is not None:
            duration(self, "delay", zero=True)
        for name in ("tool", "message"):
            if getattr(self, name) is not None:
                word(name, getattr(self, name))
        if self.tool is not None and self.delay is not None:
            raise ValueError("delay: an alternative is tried at once; drop delay or tool")
        if self.strategy is None:
            implied = "alternative_tool" if self.tool is not None else "retry" if self.delay is not None else None
            fill(self, "strategy", implied)
        if self.delay is not None and self.strategy != "retry":
            raise ValueError(f"delay: only a retry waits; drop it, or write strategy: retry instead of {self.strategy}")
        if self.tool is not None and self.strategy != "alternative_tool":
            raise ValueError(f"tool: drop it, or write strategy: alternative_tool instead of {self.strategy}")
        if self.strategy is None and self.message is None:
            raise ValueError(f"expected an action: {', '.join(get_args(Strategy))}, or a message")

    @property
    def placeholder(self) -> str:
        """The first ``{name}`` in the message, which users would see as it is; empty if there is none."""
        found = None if self.message is None else _PLACEHOLDER.search(self.message)
        return "" if found is None else found[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the action as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Then:
        """Restore an action from ``to_dict``; ``delay`` is in seconds. Unknown keys are ignored."""
        known = {name: data[name] for name in cls.__slots__ if data.get(name) is not None}
        if "delay" in known:
            known["delay"] = Seconds(known["delay"])
        return cls(**known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """One rule of the policy book."""

    name: str  # quoted in reasons
    when: When = When()
    then: Then
    even_if_effect_unknown: bool = False  # allows a retry that may repeat the effect
    place: str = ""  # file and line

    def __post_init__(self) -> None:
        word("name", self.name)
        several("when", [self.when], When)
        several("then", [self.then], Then)
        flag("even_if_effect_unknown", self.even_if_effect_unknown)
        if self.even_if_effect_unknown and self.then.strategy != "retry":
            raise ValueError("even_if_effect_unknown: only a retry repeats; drop it, or write then: retry")


def match(
    policies: Iterable[Policy],
    *,
    tool: str,
    tags: Iterable[str],
    fault: Fault,
    attempt: int,
    breaker: CircuitState,
    turn_left: float | None,
) -> Policy | None:
    """Return the first policy whose conditions all hold. ``attempt`` is 0 if the call was refused before it ran."""
    for policy in policies:
        when = policy.when
        if (
            (not when.code or fault.code in when.code)
            and (not when.category or fault.category in when.category)
            and (when.classification is None or fault.classification == when.classification)
            and (not when.effect or fault.effect in when.effect)
            and when.attempt <= max(attempt, 1)
            and (not when.breaker or breaker in when.breaker)
            and (when.turn_left is None or (turn_left is not None and turn_left < when.turn_left))
            and (not when.tags or any(tag in when.tags for tag in tags))
            and (not when.tool or any(fnmatchcase(tool, glob) for glob in when.tool))
        ):
            return policy
    return None


def repeated_names(policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return the names that more than one policy has, each once."""
    seen = Counter(policy.name for policy in policies)
    return tuple(name for name, times in seen.items() if times > 1)


def find_misspelt(policies: Iterable[Policy], tool: str, known: Container[str]) -> Iterator[tuple[Policy, str]]:
    """Find the policies that probably mean this tool, but name one that does not exist."""
    for policy in policies:
        for name in policy.when.tool:
            if name not in known and not {"*", "?"} & {*name} and find_meant(name, [tool]) is not None:
                yield policy, name


def _categories(when: When) -> tuple[str, ...]:
    """Return the categories that are compatible with the classification."""
    if when.classification is None:
        return when.category or get_args(Category)
    transient = when.classification == "transient"
    return tuple(one for one in when.category or get_args(Category) if (one == "tool_transient") == transient)


def _all_among(wide: tuple[T, ...], narrow: tuple[T, ...]) -> bool:
    return not wide or (bool(narrow) and set(narrow) <= set(wide))


def _any_covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    return not wide or (bool(narrow) and all(any(_glob_covers(one, other) for one in wide) for other in narrow))


def _glob_covers(wide: str, narrow: str) -> bool:
    """True if every name that matches ``narrow`` matches ``wide``. A ``*`` covers wildcards, a ``?`` does not."""
    if "?" in wide and ("*" in narrow or "?" in narrow):
        return wide == narrow
    return fnmatchcase(narrow, wide)
