"""What can be set about a tool: frozen values, checked where they are made, every default written once.

Rules
-----
- Times are seconds once made, whatever was written ("30s", a timedelta); a bare number is refused (R17).
- A wrong value raises ``ValueError``: the field, what is wrong, what would be right. The public edge turns that into a
  ``ManifestError`` with its place.
- ``config.manifest`` reads mappings with the documents' names (``retry_policy``, ``timeout_ms``, camelCase), and
  ``config.layering`` makes one ``ToolOptions`` of what was said in several places.

The ``__init__`` that only type checkers see says what may be written; the fields say what is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, Literal, TypeVar, dataclass_transform

from failsoft.core.model.durations import Seconds
from failsoft.core.model.fault import Category, Classification, Code, Effect
from failsoft.core.model.validation import (
    byte_size,
    code,
    codes,
    duration,
    fill,
    flag,
    import_path,
    number,
    one_of,
    refuse,
    several,
    texts,
    whole,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from failsoft.core.model.durations import Duration

Count = Literal["attempts", "calls"]
Kind = Literal["thread", "process"]
Values = Literal["pickle", "json"]
OnTimeout = Literal["leave", "cancel"]
Requests = Literal["one", "many"]
AcceptPartial = bool | Literal["after_retries"]
T = TypeVar("T")


class Options:
    """What a dataclass would write for each of these anew whenever failsoft is imported."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        """A field is written once: then it is frozen."""
        if hasattr(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in zip(self.__slots__, self._values(), strict=True))
        return f"{type(self).__name__}({said})"


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(made: type[T]) -> type[T]:
    return dataclass(kw_only=True, slots=True, eq=False, repr=False)(made)


@options
class RetryRule(Options):
    """S-layers' ``retries`` entry: these codes, so many attempts in all (R18)."""

    max_attempts: int
    handle_errors: tuple[Code, ...]

    def __post_init__(self) -> None:
        whole("max_attempts", self.max_attempts, least=1)
        fill(self, "handle_errors", codes("handle_errors", self.handle_errors))
        if not self.handle_errors:
            raise ValueError("handle_errors: the list is empty: say which errors are repeated, like [UNAVAILABLE]")


@options
class RetryOptions(Options):
    """When and how often a failed attempt is repeated (S-spec 2.1)."""

    max_attempts: int = 5  # in all, the first one included (S-spec 2.1)
    initial_delay: float = Seconds(0.1)  # before the first retry (S-spec 2.1)
    max_delay: float = Seconds(0.8)  # the longest wait (S-spec 2.2)
    multiplier: float = 2.0  # each wait is so much longer (S-spec 2.2)
    jitter_percent: float = 10.0  # each wait varies by so much (S-spec 2.1)
    max_total_time: float = Seconds(2.0)  # from the first failure to the start of the last retry (S-spec 2.1, R4)
    max_hint_wait: float = Seconds(20.0)  # all waits of a call that a server asks for (Retry-After), added up
    rules: tuple[RetryRule, ...] | None = None  # retries by error code: no match, no retry; None: by classification
    budget: bool = True  # retries must be earned; without it they are limited by max_attempts alone (R25)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            max_attempts: int = ...,
            initial_delay: Duration = ...,
            max_delay: Duration = ...,
            multiplier: float = ...,
            jitter_percent: float = ...,
            max_total_time: Duration = ...,
            max_hint_wait: Duration = ...,
            rules: Iterable[RetryRule] | None = ...,
            budget: bool = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        whole("max_attempts", self.max_attempts, least=1)
        for name in ("initial_delay", "max_delay", "max_total_time", "max_hint_wait"):
            duration(self, name, zero=True)
        number("multiplier", self.multiplier, least=1)
        number("jitter_percent", self.jitter_percent, least=0, most=100)
        if self.rules is not None:
            fill(self, "rules", several("rules", self.rules, RetryRule))
        flag("budget", self.budget)


@options
class BreakerOptions(Options):
    """When a tool is cut off, and for how long (S-spec 3.2)."""

    failure_threshold: int = 5  # consecutive transient failures that open the circuit (S-spec 3.2)
    success_threshold: int = 1  # successful probes that close it (R1: three texts against one)
    timeout: float = Seconds(30.0)  # how long the circuit stays open (S-spec 3.2)
    count: Count = "attempts"  # what counts: every attempt, or a whole call after its retries (R3)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            failure_threshold: int = ...,
            success_threshold: int = ...,
            timeout: Duration = ...,
            count: Count = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        whole("failure_threshold", self.failure_threshold, least=1)
        whole("success_threshold", self.success_threshold, least=1)
        duration(self, "timeout")
        one_of("count", self.count, Count)


@options
class Fallback(Options):
    """Another tool for the same job; no ``handle_errors`` catches all (R15)."""

    tool: str  # the id of the tool that stands in
    handle_errors: tuple[Code, ...] = ()  # the errors that it takes; none: all (R15)
    cooldown: BreakerOptions | None = None  # when it is left out as this tool's fallback (R19)
    retry: RetryOptions | None = None  # its own retries as a fallback

    def __post_init__(self) -> None:
        word("tool", self.tool)
        fill(self, "handle_errors", codes("handle_errors", self.handle_errors))


@options
class Override(Options):
    """A tool's own word on its errors: the first that matches decides (R13). At least one condition must be given."""

    http_status: int | None = None  # if the error has this status
    code: Code | str | None = None  # a status code, or the text of a provider's own error code
    exception: str | None = None  # a (qualified) class name, matched over the MRO
    pattern: str | None = None  # a regular expression, searched in the sanitised text
    matches: Callable[[BaseException | str], bool] | None = None  # a function that says whether it applies; Python only
    as_: Classification | None = None  # then it is transient, or permanent
    category: Category | None = None  # then it is this one's move
    to_code: Code | None = None  # then it has this code
    effect: Effect | None = None  # then the tool has acted so

    def __post_init__(self) -> None:
        conditions = (self.http_status, self.code, self.exception, self.pattern, self.matches)
        if all(condition is None for condition in conditions):
            raise ValueError("say when it applies: http_status, code, exception or pattern")
        if self.as_ is None and self.category is None and self.to_code is None and self.effect is None:
            raise ValueError("say what it means: as, category, to_code or effect")
        if self.http_status is not None:
            whole("http_status", self.http_status, least=100, most=599)
        for name, text in (("code", self.code), ("exception", self.exception), ("pattern", self.pattern)):
            if text is not None:
                word(name, text)
        if not (self.matches is None or callable(self.matches)):
            refuse("matches", self.matches, "is not a function of the error")
        _refuse_odd_pattern(self.pattern)
        for name, said, words in (
            ("as", self.as_, Classification),
            ("category", self.category, Category),
            ("effect", self.effect, Effect),
        ):
            if said is not None:
                one_of(name, said, words)
        if self.to_code is not None:
            fill(self, "to_code", code("to_code", self.to_code))
        if self.as_ and self.category and (self.as_ == "transient") != (self.category == "tool_transient"):
            raise ValueError(
                f"category: {self.category} cannot be {self.as_}: transient and tool_transient go together"
            )


def _refuse_odd_pattern(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as wrong:
        refuse("pattern", pattern, f"is not a regular expression: {wrong}")


@options
class Isolation(Options):
    """Where a sync tool runs, and when its worker process is replaced (R8)."""

    kind: Kind = "thread"
    max_calls: int | None = None  # calls that one worker process serves
    max_memory: int | None = None  # bytes that it may hold
    context: tuple[str, ...] = ()  # contextvars that reach the worker, as "module:variable"
    values: Values = "pickle"  # how results and errors come back; json: nothing that a worker sends is unpickled

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            kind: Kind = ...,
            max_calls: int | None = ...,
            max_memory: int | str | None = ...,
            context: Iterable[str] = ...,
            values: Values = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        one_of("isolation", self.kind, Kind)
        one_of("values", self.values, Values)
        fill(self, "context", texts("context", self.context, like='["app.request:tenant"]'))
        if self.max_calls is not None:
            whole("max_calls", self.max_calls, least=1)
        if self.max_memory is not None:
            byte_size(self, "max_memory", least=16_000_000)  # less than a bare interpreter needs
        for path in self.context:
            import_path("context", path)
        if self.kind == "thread" and (
            self.max_calls is not None or self.max_memory is not None or self.context or self.values != "pickle"
        ):
            raise ValueError('isolation: max_calls, max_memory, context and values belong to kind "process"')


@options
class ToolOptions(Options):
    """Everything that can be said about one tool."""

    id: str
    label: str = ""  # how people call it; the id with spaces when unsaid
    tags: tuple[str, ...] = ()
    timeout: float | None = Seconds(30.0, "30s")  # S-spec 4.1; None: no deadline, a sync tool runs inline
    retry: RetryOptions = field(default_factory=RetryOptions)
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    fallbacks: tuple[Fallback, ...] = ()
    classification: tuple[Override | Callable[[Any], Any], ...] = ()  # a function: see core.classify.overrides
    enabled: bool = True  # False: it is not run, and not offered to models
    required: bool | None = None  # R9: true, false or unsaid
    defaults: Mapping[str, Any] = field(default_factory=dict)
    idempotent: bool | None = None  # R11: true, false or undeclared
    read_only: bool = False
    idempotency_key: str | None = None  # the parameter that receives the key
    requests: Requests = "one"  # "many": a refusal says nothing about the requests before it
    isolation: Isolation = field(default_factory=Isolation)
    concurrency: int | None = None  # attempts at a time; None: no limit
    queue: int = 100  # how many may wait for a slot
    output: Any = None  # a type or a JSON Schema that the value must fit
    check_types: bool = True  # whether the types of arguments are checked in calls by name
    accept_partial: AcceptPartial = "after_retries"  # True: at once; False: never, the part is in Outcome.partial

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            id: str,
            label: str = ...,
            tags: Iterable[str] = ...,
            timeout: Duration | None = ...,
            retry: RetryOptions = ...,
            breaker: BreakerOptions = ...,
            fallbacks: Iterable[Fallback | str] = ...,
            classification: Iterable[Override | Callable[[Any], Any]] = ...,
            enabled: bool = ...,
            required: bool | None = ...,
            defaults: Mapping[str, Any] = ...,
            idempotent: bool | None = ...,
            read_only: bool = ...,
            idempotency_key: str | None = ...,
            requests: Requests = ...,
            isolation: Isolation | Kind = ...,
            concurrency: int | None = ...,
            queue: int = ...,
            output: Any = ...,
            check_types: bool = ...,
            accept_partial: AcceptPartial = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        word("id", self.id)
        fill(self, "label", self.label or self.id.replace("_", " "))
        word("label", self.label)
        fill(self, "tags", texts("tags", self.tags, like='["travel", "search"]'))
        if self.timeout is not None:
            duration(self, "timeout")
        no_retries = '{"max_attempts": 1} turns retries off'
        several(
            "retry",
            [self.retry],
            RetryOptions,
            like=f'its options as a mapping, like {{"max_attempts": 3}}; {no_retries}',
        )
        several(
            "breaker", [self.breaker], BreakerOptions, like='its options as a mapping, like {"failure_threshold": 5}'
        )
        listed = several("fallbacks", self.fallbacks, object)
        named = (Fallback(tool=one) if isinstance(one, str) else one for one in listed)
        fill(self, "fallbacks", several("fallbacks", named, Fallback, like="a tool's id"))
        fill(self, "classification", several("classification", self.classification, object))
        for one in self.classification:
            if not (isinstance(one, Override) or callable(one)):
                refuse("classification", one, "is neither an Override nor a function that classifies")
        if not (isinstance(self.defaults, Mapping) and all(isinstance(name, str) for name in self.defaults)):
            refuse("defaults", self.defaults, "is not a mapping from arguments to values")
        fill(self, "defaults", dict(self.defaults))
        isolation: object = self.isolation
        if isinstance(isolation, str):
            fill(self, "isolation", Isolation(kind=isolation))  # type: ignore[arg-type]  # checked there
        several("isolation", [self.isolation], Isolation, like='"thread" or "process"')
        for name in ("required", "idempotent"):
            if getattr(self, name) is not None:
                flag(name, getattr(self, name))
        flag("read_only", self.read_only)
        flag("enabled", self.enabled)
        flag("check_types", self.check_types)
        try:
            read_accept_partial(self.accept_partial)
        except ValueError as wrong:
            raise ValueError(f"accept_partial: {wrong}") from None
        if self.idempotency_key is not None:
            word("idempotency_key", self.idempotency_key)
        one_of("requests", self.requests, Requests)
        if self.concurrency is not None:
            whole("concurrency", self.concurrency, least=1)
        whole("queue", self.queue, least=0)
        if self.read_only and self.idempotent is False:
            raise ValueError("idempotent: a read-only tool is idempotent; drop one of the two")

    @property
    def safe_to_repeat(self) -> bool | None:
        """True, False, or None when nobody has said (R11). An idempotency key makes a tool idempotent."""
        if self.read_only or self.idempotent or self.idempotency_key is not None:
            return True
        return self.idempotent


def read_accept_partial(value: object) -> AcceptPartial:
    """One of the three things that can be said about partial results."""
    if value is True or value is False or value == "after_retries":
        return value
    raise ValueError(f"{brief(value)} is not one of true, false, after_retries")


@options
class TurnOptions(Options):
    """How long a turn may take, and what becomes of a call that is still running then (R7)."""

    timeout: float | None = Seconds(300.0, "5m")  # S-spec 4.2; None: no deadline
    on_timeout: OnTimeout = "leave"  # R7

    if TYPE_CHECKING:

        def __init__(self, *, timeout: Duration | None = ..., on_timeout: OnTimeout = ...) -> None: ...

    def __post_init__(self) -> None:
        if self.timeout is not None:
            duration(self, "timeout")
        one_of("on_timeout", self.on_timeout, OnTimeout)
