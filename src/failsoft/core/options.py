"""What can be set about a tool: frozen values, checked where they are made, every default written once.

Times are seconds (float) once made, whatever the caller wrote ("30s", a timedelta); ``core.manifest`` turns mappings
with the documents' names (``retry_policy``, ``timeout_ms``, camelCase) into these. A wrong value raises ``ValueError``
with what would be right; the public edge turns that into a ``ManifestError`` with its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from failsoft.core.durations import Duration, seconds
from failsoft.core.fault import Category, Classification, Code, Effect

Count = Literal["attempts", "calls"]
Isolation = Literal["thread", "process"]


def _set(options: object, name: str, value: object) -> None:
    object.__setattr__(options, name, value)  # the one place where a frozen value is filled in


def _whole(name: str, value: int, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}: {value!r} is not a whole number of at least {least}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRule:
    """S-layers' ``retries`` entry: these codes, so many attempts in all (R18)."""

    max_attempts: int
    handle_errors: tuple[Code, ...]

    def __post_init__(self) -> None:
        _whole("max_attempts", self.max_attempts, least=1)
        _set(self, "handle_errors", tuple(Code(code) for code in self.handle_errors))


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryOptions:
    """When and how often a failed attempt is repeated (S-spec 2.1)."""

    max_attempts: int = 5  # S-spec 2.1
    initial_delay: Duration = 0.1  # S-spec 2.1
    max_delay: Duration = 0.8  # S-spec 2.2
    multiplier: float = 2.0  # S-spec 2.2
    jitter_percent: float = 10.0  # S-spec 2.1
    max_total_time: Duration = 2.0  # S-spec 2.1, measured as R4 says
    rules: tuple[RetryRule, ...] = ()  # S-layers: where there are any, no match means no retry (R18)

    def __post_init__(self) -> None:
        _whole("max_attempts", self.max_attempts, least=1)
        for name in ("initial_delay", "max_delay", "max_total_time"):
            _set(self, name, seconds(getattr(self, name), zero=True))
        if not (math.isfinite(self.multiplier) and self.multiplier >= 1):
            raise ValueError(f"multiplier: {self.multiplier!r} is not a finite number of at least 1")
        if not 0 <= self.jitter_percent <= 100:
            raise ValueError(f"jitter_percent: {self.jitter_percent!r} is not between 0 and 100")


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakerOptions:
    """When a tool is cut off, and for how long (S-spec 3.2)."""

    failure_threshold: int = 5  # S-spec 3.2
    success_threshold: int = 1  # R1: three texts against one
    timeout: Duration = 30.0  # S-spec 3.2: how long the circuit stays open
    count: Count = "attempts"  # R3

    def __post_init__(self) -> None:
        _whole("failure_threshold", self.failure_threshold, least=1)
        _whole("success_threshold", self.success_threshold, least=1)
        _set(self, "timeout", seconds(self.timeout))
        if self.count not in ("attempts", "calls"):
            raise ValueError(f"count: {self.count!r} is neither 'attempts' nor 'calls'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """Another tool for the same job; no ``handle_errors`` catches all (R15)."""

    tool: str
    handle_errors: tuple[Code, ...] = ()
    cooldown: BreakerOptions | None = None  # its health as this primary's fallback (R19)
    retry: RetryOptions | None = None  # S-layers: a fallback can have its own error handling

    def __post_init__(self) -> None:
        if not self.tool or not isinstance(self.tool, str):
            raise ValueError(f"tool: {self.tool!r} is not the id of a tool")
        _set(self, "handle_errors", tuple(Code(code) for code in self.handle_errors))


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """A tool's own word on its errors: the first that matches decides (R13). At least one condition must be given."""

    http_status: int | None = None
    code: Code | str | None = None  # a status code, or the text of a provider's own error code
    exception: str | None = None  # a (qualified) class name, matched over the MRO
    pattern: str | None = None  # a regular expression, searched in the sanitised text
    matches: Callable[[BaseException | str], bool] | None = None  # Python only
    as_: Classification | None = None
    category: Category | None = None
    to_code: Code | None = None
    effect: Effect | None = None

    def __post_init__(self) -> None:
        conditions = (self.http_status, self.code, self.exception, self.pattern, self.matches)
        if all(condition is None for condition in conditions):
            raise ValueError("say when it applies: http_status, code, exception or pattern")
        if self.as_ is None and self.category is None and self.to_code is None and self.effect is None:
            raise ValueError("say what it means: as, category, to_code or effect")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOptions:
    """Everything that can be said about one tool."""

    id: str
    label: str = ""  # how people call it; the id with spaces when unsaid
    tags: tuple[str, ...] = ()
    timeout: Duration | None = 30.0  # S-spec 4.1; None: no deadline, a sync tool runs inline
    retry: RetryOptions = field(default_factory=RetryOptions)
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    fallbacks: tuple[Fallback, ...] = ()
    classification: tuple[Override, ...] = ()
    required: bool | None = None  # R9: true, false or unsaid
    defaults: Mapping[str, Any] = field(default_factory=dict)
    idempotent: bool | None = None  # R11: true, false or undeclared
    read_only: bool = False
    idempotency_key: str | None = None  # the parameter that receives the key
    isolation: Isolation = "thread"
    concurrency: int | None = None  # attempts at a time; None: no limit
    queue: int = 100  # how many may wait for a slot
    output: Any = None  # a type or a JSON Schema that the value must fit
    accept_partial: bool = False

    def __post_init__(self) -> None:
        if not self.id or not isinstance(self.id, str):
            raise ValueError(f"id: {self.id!r} is not a name")
        _set(self, "label", self.label or self.id.replace("_", " "))
        if self.timeout is not None:
            _set(self, "timeout", seconds(self.timeout))
        _set(self, "tags", tuple(self.tags))
        _set(self, "fallbacks", tuple(Fallback(tool=f) if isinstance(f, str) else f for f in self.fallbacks))
        _set(self, "classification", tuple(self.classification))
        if self.isolation not in ("thread", "process"):
            raise ValueError(f"isolation: {self.isolation!r} is neither 'thread' nor 'process'")
        if self.concurrency is not None:
            _whole("concurrency", self.concurrency, least=1)
        _whole("queue", self.queue, least=0)
        if self.read_only and self.idempotent is False:
            raise ValueError("idempotent: a read-only tool is idempotent; drop one of the two")

    @property
    def safe_to_repeat(self) -> bool | None:
        """True, False, or None when nobody has said (R11). An idempotency key makes a tool idempotent."""
        if self.read_only or self.idempotent or self.idempotency_key is not None:
            return True
        return self.idempotent
