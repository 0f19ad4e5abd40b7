"""Options of the protections around a tool: retries, circuit breaker, fallbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from failsoft.core.model.durations import Seconds
from failsoft.core.model.fault import Code
from failsoft.core.model.frozen_options import Options, options
from failsoft.core.model.validation import codes, duration, fill, flag, number, one_of, refuse, several, whole, word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from failsoft.core.model.durations import Duration

Count = Literal["attempts", "calls"]
LARGEST_WINDOW = 1000  # results that a breaker remembers


@options
class RetryRule(Options):
    """One entry of ``retries``: these codes, at most this many attempts."""

    max_attempts: int
    handle_errors: tuple[Code, ...]

    def __post_init__(self) -> None:
        whole("max_attempts", self.max_attempts, least=1)
        fill(self, "handle_errors", codes("handle_errors", self.handle_errors))
        if not self.handle_errors:
            raise ValueError("handle_errors: the list is empty: name the errors to retry, like [UNAVAILABLE]")


@options
class RetryOptions(Options):
    """When and how often a failed attempt is retried."""

    max_attempts: int = 5  # all attempts, the first one included
    initial_delay: float = Seconds(0.1)  # before the first retry
    max_delay: float = Seconds(0.8)  # the longest delay
    multiplier: float = 2.0  # factor from one delay to the next
    jitter_percent: float = 10.0  # random variation of each delay
    max_total_time: float = Seconds(2.0)  # from the first failure to the start of the last retry
    max_hint_wait: float = Seconds(20.0)  # all waits of a call that a server asks for (Retry-After), added up
    rules: tuple[RetryRule, ...] | None = None  # retries by error code: no match, no retry; None: by classification
    budget: bool = True  # successes must earn the retries; False: only max_attempts limits them

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
    """When a circuit opens, and for how long."""

    failure_threshold: int = 5  # consecutive transient failures that open the circuit
    success_threshold: int = 1  # successful probes that close it
    timeout: float = Seconds(30.0)  # how long the circuit stays open
    count: Count = "attempts"  # what counts as a failure: each failed attempt, or a call that failed after its retries
    window: int | None = None  # the latest results that failure_rate looks at; None: only consecutive failures count
    failure_rate: float | None = None  # the share of failures in the window that opens the circuit; None: 0.5
    min_calls: int | None = None  # results that the window must have before its rate counts; None: 10

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            failure_threshold: int = ...,
            success_threshold: int = ...,
            timeout: Duration = ...,
            count: Count = ...,
            window: int | None = ...,
            failure_rate: float | None = ...,
            min_calls: int | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        whole("failure_threshold", self.failure_threshold, least=1)
        whole("success_threshold", self.success_threshold, least=1)
        duration(self, "timeout")
        one_of("count", self.count, Count)
        if self.window is not None:
            whole("window", self.window, least=2, most=LARGEST_WINDOW)
        for name in ("failure_rate", "min_calls"):
            if getattr(self, name) is not None and self.window is None:
                raise ValueError(
                    f'{name}: needs a window: write {{"window": 20, "{name}": {getattr(self, name)!r:.20}}}'
                )
        if self.failure_rate is not None:
            number("failure_rate", self.failure_rate, least=0, most=1)
            if not self.failure_rate:
                refuse("failure_rate", self.failure_rate, "would open the circuit at once: write a share such as 0.5")
        if self.min_calls is not None:
            whole("min_calls", self.min_calls, least=1, most=self.window or 0)

    @property
    def opening_rate(self) -> float:
        """The share of failures in the window that opens the circuit."""
        return 0.5 if self.failure_rate is None else self.failure_rate

    @property
    def needed_calls(self) -> int:
        """The results that the window must have before its rate counts."""
        return min(10, self.window or 0) if self.min_calls is None else self.min_calls


@options
class Fallback(Options):
    """Another tool for the same job. Without ``handle_errors`` it handles every error."""

    tool: str  # the id of the fallback tool
    handle_errors: tuple[Code, ...] = ()  # the errors that it handles; empty: all
    cooldown: BreakerOptions | None = None  # when this fallback is left out for a while
    retry: RetryOptions | None = None  # its retries as a fallback

    def __post_init__(self) -> None:
        word("tool", self.tool)
        fill(self, "handle_errors", codes("handle_errors", self.handle_errors))
