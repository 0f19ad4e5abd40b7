"""Options of tools and turns: frozen values, validated when they are made, each default written once.

Rules
-----
- Times become seconds, whatever was written ("30s", a timedelta). A bare number is refused.
- A wrong value raises ``ValueError`` with the field, what is wrong, and what would be right. The public API turns it
  into a ``ManifestError`` with the position in the file.
- ``config.manifest`` reads mappings with all accepted names (``retry_policy``, ``timeout_ms``, camelCase);
  ``config.layering`` merges the layers into one ``ToolOptions``.

The ``__init__`` for type checkers shows the types that users may write; the fields have the types after validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, Literal

from failsoft.core.model.durations import Seconds
from failsoft.core.model.durations import text as say
from failsoft.core.model.failed_if import read_failed_if
from failsoft.core.model.frozen_options import Options, fresh, options
from failsoft.core.model.override import Override, require_classifier
from failsoft.core.model.rates import Rate, read_rate
from failsoft.core.model.resilience_options import (
    LARGEST_WINDOW,
    BreakerOptions,
    Count,
    Fallback,
    RetryOptions,
    RetryRule,
)
from failsoft.core.model.validation import (
    byte_size,
    duration,
    fill,
    flag,
    import_path,
    one_of,
    refuse,
    several,
    texts,
    whole,
    word,
)
from failsoft.core.model.verify_tool import read_verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from failsoft.core.model.durations import Duration
    from failsoft.core.model.failed_if import FailedIf
    from failsoft.core.model.verify_tool import VerifyTool

__all__ = [
    "LARGEST_WINDOW",
    "MOST_REPEATS",
    "AcceptPartial",
    "BreakerOptions",
    "Count",
    "Fallback",
    "Isolation",
    "IsolationKind",
    "OnTimeout",
    "Options",
    "Override",
    "Requests",
    "RetryOptions",
    "RetryRule",
    "ToolOptions",
    "TurnOptions",
    "Values",
    "options",
    "read_accept_partial",
]

MOST_REPEATS = 100  # the largest ``max_repeats``

IsolationKind = Literal["thread", "process"]
Values = Literal["pickle", "json"]
OnTimeout = Literal["leave", "cancel"]
Requests = Literal["one", "many"]
AcceptPartial = bool | Literal["after_retries"]


@options
class Isolation(Options):
    """The place where a sync tool runs, and when its worker process is replaced."""

    kind: IsolationKind = "thread"
    max_calls: int | None = None  # calls that one worker process serves
    max_memory: int | None = None  # bytes that one worker process may hold
    context: tuple[str, ...] = ()  # contextvars copied to the worker, as "module:variable"
    values: Values = "pickle"  # format of results and errors; json: nothing that a worker sends is unpickled

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            kind: IsolationKind = ...,
            max_calls: int | None = ...,
            max_memory: int | str | None = ...,
            context: Iterable[str] = ...,
            values: Values = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        one_of("isolation", self.kind, IsolationKind)
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


QUEUE = 100


@options
class ToolOptions(Options):
    """All options of one tool."""

    id: str
    label: str = ""  # the tool's name for people; default: the id with spaces
    tags: tuple[str, ...] = ()
    timeout: float | None = Seconds(30.0, "30s")  # None: no deadline, a sync tool runs inline
    idle_timeout: float | None = None  # how long an attempt may go without progress; None: as long as its timeout
    retry: RetryOptions = fresh(RetryOptions)
    breaker: BreakerOptions = fresh(BreakerOptions)
    fallbacks: tuple[Fallback, ...] = ()
    classification: tuple[Override | Callable[[Any], Any], ...] = ()  # a function: see core.classify.overrides
    enabled: bool = True  # False: it is not run, and not offered to models
    required: bool | None = None  # None: not declared
    defaults: Mapping[str, Any] = fresh(dict)
    idempotent: bool | None = None  # None: not declared
    read_only: bool = False
    idempotency_key: str | None = None  # the parameter that receives the key
    requests: Requests = "one"  # "many": a refused request says nothing about the requests before it
    isolation: Isolation = fresh(Isolation)
    concurrency: int | None = None  # attempts at a time; None: no limit
    queue: int = QUEUE  # calls that may wait for a slot
    rate: Rate | None = None  # attempts per time and tenant, like "100/1m"; None: no limit
    output: Any = None  # a type or a JSON Schema that the value must match
    check_types: bool = True  # whether calls by name check the types of their arguments
    accept_partial: AcceptPartial = "after_retries"  # True: at once; False: never, the part is in Outcome.partial
    verify: Any = None  # a function, or a VerifyTool: finds out what became of a write whose effect is unknown
    verify_delay: float = Seconds(1.0, "1s")  # from the end of the attempt until it is verified
    verify_timeout: float = Seconds(10.0, "10s")  # how long verify may take
    verify_key: str | None = None  # the parameter that receives a key which only verify uses
    polling: bool = False  # True: repeating the same call is expected
    max_repeats: int | None = None  # identical calls with an unchanged result in a thread; None: no limit
    failed_if: Any = None  # a function, or a FailurePattern: the values that are failures

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            id: str,
            label: str = ...,
            tags: Iterable[str] = ...,
            timeout: Duration | None = ...,
            idle_timeout: Duration | None = ...,
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
            isolation: Isolation | IsolationKind = ...,
            concurrency: int | None = ...,
            queue: int = ...,
            rate: Rate | str | None = ...,
            output: Any = ...,
            check_types: bool = ...,
            accept_partial: AcceptPartial = ...,
            verify: Callable[..., Any] | Mapping[str, Any] | VerifyTool | None = ...,
            verify_delay: Duration = ...,
            verify_timeout: Duration = ...,
            verify_key: str | None = ...,
            polling: bool = ...,
            max_repeats: int | None = ...,
            failed_if: FailedIf | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        word("id", self.id)
        fill(self, "label", self.label or self.id.replace("_", " "))
        word("label", self.label)
        fill(self, "tags", texts("tags", self.tags, like='["travel", "search"]'))
        if self.timeout is not None:
            duration(self, "timeout")
        _check_idle(self)
        no_retries = '{"max_attempts": 1} turns retries off'
        several(
            "retry",
            [self.retry],
            RetryOptions,
            like=f'a mapping such as {{"max_attempts": 3}} ({no_retries})',
        )
        several("breaker", [self.breaker], BreakerOptions, like='a mapping such as {"failure_threshold": 5}')
        listed = several("fallbacks", self.fallbacks, object)
        named = (Fallback(tool=one) if isinstance(one, str) else one for one in listed)
        fill(self, "fallbacks", several("fallbacks", named, Fallback, like="a tool's id"))
        fill(self, "classification", several("classification", self.classification, object))
        for one in self.classification:
            if not isinstance(one, Override):
                require_classifier("classification", one, "is neither an Override nor a function that classifies")
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
        _check_repeats(self)
        _read_field(self, "accept_partial", read_accept_partial)
        _read_field(self, "failed_if", read_failed_if)
        if self.idempotency_key is not None:
            word("idempotency_key", self.idempotency_key)
        one_of("requests", self.requests, Requests)
        if self.concurrency is not None:
            whole("concurrency", self.concurrency, least=1)
        whole("queue", self.queue, least=0)
        fill(self, "rate", _checked_rate(self.rate))
        if self.read_only and self.idempotent is False:
            raise ValueError("idempotent: a read-only tool is idempotent; drop one of the two")
        self._check_verify()

    def _check_verify(self) -> None:
        duration(self, "verify_delay", zero=True)
        duration(self, "verify_timeout")
        if self.verify_key is not None:
            word("verify_key", self.verify_key)
        _read_field(self, "verify", read_verify)
        if self.verify is None:
            return
        if self.idempotency_key is not None:
            raise ValueError(
                "verify: with an idempotency_key the tool is repeated, so verify is never asked: name a key that the "
                "service does not honour with verify_key, or drop one of the two"
            )
        if self.read_only or self.idempotent:
            declared = "read_only" if self.read_only else "idempotent"
            raise ValueError(
                f"verify: a tool that is {declared} is repeated, so verify is never asked: drop one of the two"
            )

    @property
    def safe_to_repeat(self) -> bool | None:
        """True, False, or None if nothing is declared. A key makes a tool idempotent, ``verify`` makes it a write."""
        if self.read_only or self.idempotent or self.idempotency_key is not None:
            return True
        return False if self.verify is not None else self.idempotent

    @property
    def key_parameter(self) -> str | None:
        """The parameter that receives a key, for the service or only for ``verify``."""
        return self.verify_key if self.idempotency_key is None else self.idempotency_key


def _check_idle(options: ToolOptions) -> None:
    if options.idle_timeout is None:
        return
    duration(options, "idle_timeout")
    if options.timeout is not None and options.idle_timeout > options.timeout:
        raise ValueError(
            f"idle_timeout: {say(options.idle_timeout)} is longer than the timeout of {say(options.timeout)}, which ends every "
            "attempt first: raise timeout, or shorten idle_timeout"
        )


def _check_repeats(options: ToolOptions) -> None:
    flag("polling", options.polling)
    if options.max_repeats is not None:
        whole("max_repeats", options.max_repeats, least=1, most=MOST_REPEATS)
        if options.polling:
            raise ValueError("max_repeats: a polling tool may repeat a call; drop one of the two")


def _read_field(options: ToolOptions, name: str, read: Callable[[Any], Any]) -> None:
    """Replace a field's value by the result of ``read``."""
    try:
        fill(options, name, read(getattr(options, name)))
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def _checked_rate(value: object) -> Rate | None:
    try:
        return None if value is None else read_rate(value)
    except ValueError as wrong:
        raise ValueError(f"rate: {wrong}") from None


def read_accept_partial(value: object) -> AcceptPartial:
    """Read a value of ``accept_partial``."""
    if value is True or value is False or value == "after_retries":
        return value
    raise ValueError(f"{brief(value)} is not one of true, false, after_retries")


@options
class TurnOptions(Options):
    """How long a turn may take, what happens to a call that is still running then, and how many calls it may make."""

    timeout: float | None = Seconds(300.0, "5m")  # None: no deadline
    on_timeout: OnTimeout = "leave"  # "leave": the call is abandoned; "cancel": it is cancelled
    max_calls: int | None = None  # calls of the turn; None: no limit
    max_calls_per_tool: int | None = None  # calls of any one tool

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            timeout: Duration | None = ...,
            on_timeout: OnTimeout = ...,
            max_calls: int | None = ...,
            max_calls_per_tool: int | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.timeout is not None:
            duration(self, "timeout")
        one_of("on_timeout", self.on_timeout, OnTimeout)
        for name in ("max_calls", "max_calls_per_tool"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=1)
