"""Manifest blocks for what protects a tool: retries, breaker, cooldown, fallbacks.

A fallback and a tool take the same blocks. Both may group these blocks under ``error_handling``; ``spread`` then moves
each part to its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from failsoft.config.layering import Layer
from failsoft.config.manifest.block import (
    Block,
    Conflict,
    Delay,
    DelayMs,
    Duration,
    DurationOrMs,
    ErrorCode,
    Flag,
    From,
    Milliseconds,
    Share,
    Text,
    Whole,
    as_written,
    spellings,
)
from failsoft.core.model.options import BreakerOptions, Count, Fallback, RetryOptions, RetryRule

ErrorCodes = tuple[ErrorCode, ...]


class RuleBlock(Block):
    """Retries for particular error codes."""

    max_attempts: Whole = Field(description="Attempts in all for these errors, the first one included.")
    handle_errors: ErrorCodes = Field(description="The error codes that this entry is about.")

    def make(self) -> RetryRule:
        return RetryRule(**self.given())


Rules = tuple[Annotated[RetryRule, From(RuleBlock, RetryRule)], ...]


class RetryBlock(Block):
    """When and how often a failed attempt is retried."""

    makes = RetryOptions
    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            (
                "retries",
                "max_retries",
                "tries",
                "max_tries",
                "times",
                "stop",
                "stop_after_attempt",
                "stop_max_attempt_number",
            ),
            "write max_attempts, which counts the first one too",
        ),
        **dict.fromkeys(("delay", "wait", "wait_fixed", "wait_initial", "base", "interval"), "write initial_delay"),
        **dict.fromkeys(("wait_max", "wait_exponential_max", "max_wait"), "write max_delay"),
        **dict.fromkeys(
            ("backoff", "wait_exponential", "wait_random_exponential", "wait_exponential_multiplier"),
            "write initial_delay, multiplier and max_delay",
        ),
        **dict.fromkeys(("wait_exp_base", "factor", "exp_base"), "write multiplier"),
        **dict.fromkeys(
            ("wait_jitter", "wait_exponential_jitter", "full_jitter"),
            "write jitter_percent",
        ),
        **dict.fromkeys(("max_time", "stop_after_delay", "total_timeout"), 'write max_total_time: "10s"'),
        **dict.fromkeys(
            ("reraise", "retry_error_callback"), "a failed call is an Outcome; outcome.unwrap() raises its failure"
        ),
        **dict.fromkeys(
            ("before_sleep", "before", "after", "on_retry"), "write rt.subscribe(fn), which gets every event"
        ),
        "timeout": "write max_total_time; the timeout of an attempt stands beside retry",
        **dict.fromkeys(
            (
                "retry_on",
                "retry_if",
                "giveup",
                "retry_exceptions",
                "on",
                "errors",
                "codes",
                "handle_errors",
                "handleErrors",
            ),
            'write rules: [{"max_attempts": 3, "handle_errors": ["UNAVAILABLE"]}]',
        ),
    }

    strategy: Literal["exponential_backoff"] = as_written("The only strategy.")
    max_attempts: Whole = as_written("Attempts in all, the first one included.")
    initial_delay: Delay = as_written("Delay before the first retry.")
    initial_delay_ms: DelayMs = as_written("Delay before the first retry, in milliseconds.")
    max_delay: Delay = as_written("Longest delay between two attempts.")
    max_delay_ms: DelayMs = as_written("Longest delay between two attempts, in milliseconds.")
    multiplier: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = as_written(
        "Factor from one delay to the next."
    )
    jitter_percent: Annotated[float, Field(strict=True, ge=0, le=100)] = as_written(
        "Random variation of each delay, in percent."
    )
    max_total_time: Delay = as_written("No retry starts later than this after the first failure.")
    max_total_time_ms: DelayMs = as_written("No retry starts later than this after the first failure, in milliseconds.")
    max_hint_wait: Delay = as_written("Longest total wait of a call that servers ask for (Retry-After).")
    max_hint_wait_ms: DelayMs = as_written("Longest total wait that servers ask for, in milliseconds.")
    rules: Rules = as_written(
        "Retries by error code: the first rule that lists the code applies; no rule, no retry; []: none."
    )
    budget: Flag = as_written(
        "Whether retries must be earned by successes and time, so that an outage is not made worse."
    )

    def make(self) -> Layer:
        layer = self.given(without=("strategy",))
        RetryOptions(**layer)
        return layer


class BreakerBlock(Block):
    """When the tool's circuit opens, and for how long."""

    makes = BreakerOptions
    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("reset_timeout", "recovery_timeout", "open_timeout", "reset_after", "open_for", "duration", "cooldown"),
            "write timeout, for how long the circuit stays open",
        ),
        **dict.fromkeys(
            ("fail_max", "max_failures", "failures"), "write failure_threshold, the failures that open the circuit"
        ),
        **dict.fromkeys(
            ("expected_exception", "exclude", "excluded_exceptions", "exceptions"),
            "write classification: an error that is permanent does not count",
        ),
        "enabled": "a circuit that never opens has a large failure_threshold",
        **dict.fromkeys(("min_consecutive_failures", "cooldown_duration"), "it belongs to cooldown, not to breaker"),
    }

    failure_threshold: Whole = as_written("Consecutive failures that open the circuit.")
    success_threshold: Whole = as_written("Consecutive successes that close it again.")
    timeout: Duration = as_written("How long the circuit stays open.")
    timeout_ms: Milliseconds = as_written("How long the circuit stays open, in milliseconds.")
    count: Count = as_written("What counts as a failure: each failed attempt, or a call that failed after its retries.")
    window: Whole = as_written("How many of the latest results failure_rate looks at.")
    failure_rate: Share = as_written("The share of failures in the window that opens the circuit as well.")
    min_calls: Whole = as_written("Results that the window must have before its rate counts.")

    def make(self) -> Layer:
        layer = self.given()
        BreakerOptions(**layer)
        return layer


class CooldownBlock(Block):
    """A breaker that counts calls after their retries."""

    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("failure_threshold", "threshold", "max_failures"), "write min_consecutive_failures"),
        **dict.fromkeys(("timeout", "duration"), "write cooldown_duration"),
    }

    min_consecutive_failures: Whole = as_written("Consecutive failed calls that open the circuit.")
    cooldown_duration: DurationOrMs = as_written("How long the circuit stays open; a bare number is milliseconds.")

    def make(self) -> Layer:
        # A cooldown counts calls, not attempts
        names = {"min_consecutive_failures": "failure_threshold", "cooldown_duration": "timeout"}
        return {"count": "calls", **{names[name]: value for name, value in self.given().items()}}


Retry = Annotated[Layer | RetryOptions, From(RetryBlock, RetryOptions)]
Breaker = Annotated[Layer | BreakerOptions, From(BreakerBlock, BreakerOptions)]
Cooldown = Annotated[Layer | BreakerOptions, From(CooldownBlock, BreakerOptions)]


class FallbackHandlingBlock(Block):
    """A fallback's own error handling."""

    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("breaker", "circuit_breaker", "circuitBreaker"),
            'write cooldown: {"min_consecutive_failures": 3, "cooldown_duration": "1m"}',
        ),
        **dict.fromkeys(
            ("retry", "retry_policy", "retryPolicy"),
            'write retries: [{"max_attempts": 3, "handle_errors": ["UNAVAILABLE"]}]',
        ),
    }

    retries: Rules = as_written("Retries by error code; []: none.")
    cooldown: Cooldown = as_written("When this fallback is left out, and for how long.")

    def make(self) -> Layer:
        return self.given()


class FallbackBlock(Block):
    """Another tool for the same job."""

    shorthand: ClassVar[dict[str, Any] | None] = {"type": "string", "description": "The id of the fallback tool."}

    tool: Text = Field(description="The id of the fallback tool.", validation_alias=spellings("tool", "node_id"))
    handle_errors: ErrorCodes = as_written("The error codes that it handles; empty: all.")
    cooldown: Cooldown = as_written("When this fallback is left out, and for how long.")
    retry: Retry = as_written("Its retries as a fallback.", "retry", "retry_policy")
    error_handling: Annotated[Layer, From(FallbackHandlingBlock)] = as_written("Retries and cooldown in one block.")

    @classmethod
    def expand(cls, value: Any) -> Any:
        return {"tool": value} if isinstance(value, str) else value

    def make(self) -> Fallback:
        given = spread(self.given(), cooldown="cooldown")
        for name, kind in (("cooldown", BreakerOptions), ("retry", RetryOptions)):
            if isinstance(given.get(name), Mapping):
                given[name] = kind(**given[name])
        return Fallback(**given)


Fallbacks = tuple[Annotated[Fallback, From(FallbackBlock, Fallback)], ...]


class HandlingBlock(FallbackHandlingBlock):
    """Three layers of protection: retries, fallbacks, cooldown."""

    cooldown: Cooldown = as_written("When the tool's circuit opens, and for how long.")
    fallbacks: Fallbacks = as_written("Fallback tools, in this order.")


def spread(given: dict[str, Any], *, cooldown: str) -> dict[str, Any]:
    """Move the parts of ``error_handling`` to their fields; ``cooldown`` names the field for its cooldown."""
    handling = given.pop("error_handling", {})
    for part, name in (("cooldown", cooldown), ("fallbacks", "fallbacks")):
        if part in handling:
            if name in given:
                raise Conflict(("error_handling", f"it has {part}, and {name} is given as well: keep one"))
            given[name] = handling[part]
    if "retries" in handling:
        retry = given.get("retry", {})
        if (retry.get("rules") if isinstance(retry, Mapping) else retry.rules) is not None:
            raise Conflict(("error_handling", "it has retries, and retry has rules: keep one"))
        rules = {"rules": handling["retries"]}
        given["retry"] = {**retry, **rules} if isinstance(retry, Mapping) else replace(retry, **rules)
    return given
