"""Manifest blocks that describe a tool.

Other established names are accepted too: ``retry_policy``, ``circuit_breaker``, ``timeout_ms``, ``errorHandling``,
``nodeId``, ``cooldown``. A tool's block makes a *layer* (``config.layering``). Editors show the descriptions, which
become part of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from reprlib import repr as brief
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import Field

from failsoft.config.layering import CALLS_COUNT, COMMON, Layer, assemble
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
    RateText,
    Read,
    Share,
    Size,
    Text,
    Whole,
    as_written,
    spellings,
)
from failsoft.core.model.entrypoint import Command, Entrypoint, Function
from failsoft.core.model.failed_if import SCHEMA as FAILED_IF
from failsoft.core.model.failed_if import read_failed_if
from failsoft.core.model.fault import Category, Classification, Effect
from failsoft.core.model.options import (
    MOST_REPEATS,
    AcceptPartial,
    BreakerOptions,
    Count,
    Fallback,
    Isolation,
    Override,
    Requests,
    RetryOptions,
    RetryRule,
    ToolOptions,
    Values,
    read_accept_partial,
)
from failsoft.core.model.verify_tool import SCHEMA as VERIFY
from failsoft.core.model.verify_tool import read_verify

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
            ("retries", "max_retries", "tries", "times"), "write max_attempts, which counts the first one too"
        ),
        **dict.fromkeys(("delay", "wait"), "write initial_delay"),
        "backoff": "write initial_delay, multiplier and max_delay",
        "timeout": "write max_total_time; the timeout of an attempt stands beside retry",
        **dict.fromkeys(
            ("retry_on", "on", "errors", "codes", "handle_errors", "handleErrors"),
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
        given = _spread(self.given(), cooldown="cooldown")
        for name, kind in (("cooldown", BreakerOptions), ("retry", RetryOptions)):
            if isinstance(given.get(name), Mapping):
                given[name] = kind(**given[name])
        return Fallback(**given)


Fallbacks = tuple[Annotated[Fallback, From(FallbackBlock, Fallback)], ...]


class HandlingBlock(FallbackHandlingBlock):
    """Three layers of protection: retries, fallbacks, cooldown."""

    cooldown: Cooldown = as_written("When the tool's circuit opens, and for how long.")
    fallbacks: Fallbacks = as_written("Fallback tools, in this order.")


class OverrideBlock(Block):
    """A tool's own classification of an error. The first match decides."""

    http_status: Annotated[int, Field(strict=True, ge=100, le=599)] = as_written("Condition: the error's HTTP status.")
    code: Text = as_written("Condition: the error's code, or the provider's own code.")
    exception: Text = as_written("Condition: the exception's class name, with or without the module.")
    pattern: Text = as_written("Condition: a regular expression found in the error's text.")
    as_: Classification = as_written("Result: transient or permanent.")
    category: Category = as_written("Result: who must act.")
    to_code: ErrorCode = as_written("Result: the error's code.")
    effect: Effect = as_written("Result: whether the tool has acted.")

    def make(self) -> Override:
        return Override(**self.given())


class ProcessBlock(Block):
    """A worker process that is killed at the deadline."""

    max_calls: Whole = as_written("Calls that one worker serves before it is replaced.")
    max_memory: Size = as_written("Memory that a worker may hold before it is replaced.")
    context: tuple[Text, ...] = as_written('Context variables copied to the worker, as "module:variable".')
    values: Values = as_written("Format of results: pickle, or json for tools that you do not trust.")

    def make(self) -> Isolation:
        return Isolation(kind="process", **self.given())


class IsolationBlock(Block):
    """The place where a sync tool runs."""

    shorthand: ClassVar[dict[str, Any] | None] = {
        "anyOf": [
            {"enum": ["thread", "process"]},
            {
                "type": "object",
                "description": "A worker process; the same as {process: {values: …}}.",
                "properties": {"values": {"enum": list(get_args(Values))}},
                "required": ["values"],
                "additionalProperties": False,
            },
        ]
    }

    process: Annotated[Isolation, From(ProcessBlock)] = Field(
        description="In a worker process, killed at the deadline."
    )

    @classmethod
    def expand(cls, value: Any) -> Any:
        if isinstance(value, str):
            return Isolation(kind=value)  # type: ignore[arg-type] # Isolation validates it
        return {"process": value} if isinstance(value, Mapping) and value.keys() == {"values"} else value

    def make(self) -> Isolation:
        return self.process


class SharedBlock(Block):
    """Options that may apply to all tools."""

    makes = ToolOptions
    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("retries", "max_retries", "max_attempts", "attempts", "tries"),
            'write retry: {"max_attempts": 3}, which counts the first attempt too',
        ),
        **dict.fromkeys(("backoff", "delay", "initial_delay"), 'write retry: {"initial_delay": "200ms"}'),
        "max_total_time": 'write retry: {"max_total_time": "10s"}',
        **dict.fromkeys(
            ("retry_on", "retry_if", "handle_errors", "handleErrors"),
            'write retry: {"rules": [{"max_attempts": 3, "handle_errors": ["UNAVAILABLE"]}]}',
        ),
        **dict.fromkeys(("reset_timeout", "recovery_timeout"), 'write breaker: {"timeout": "30s"}'),
        **dict.fromkeys(
            ("failure_threshold", "threshold", "max_failures"),
            'write breaker: {"failure_threshold": 5, "timeout": "30s"}',
        ),
        **dict.fromkeys(("on_error", "on_failure", "error_handler"), "write a policy, or Runtime(error_handler=…)"),
        **dict.fromkeys(("overrides", "errors", "classify"), "write classification, a list of overrides"),
        "description": "a tool's description is the docstring of its function",
        **dict.fromkeys(("args", "arguments", "parameters"), "a tool's parameters are those of its function"),
        "name": "write id for the tool's name, label for how people call it",
        **dict.fromkeys(("process", "thread"), 'write isolation: "process" or "thread"'),
        **dict.fromkeys(("rate_limit", "ratelimit", "throttle", "rps", "rpm"), 'write rate: "100/1m"'),
        **dict.fromkeys(
            ("max_calls", "max_calls_per_tool"),
            "it limits a turn: write rt.turn(max_calls=50), or turn: {max_calls: 50} in the manifest",
        ),
        **dict.fromkeys(("window", "failure_rate", "min_calls"), 'write breaker: {"window": 20, "failure_rate": 0.5}'),
        **dict.fromkeys(("poll", "repeatable"), "write polling: true"),
        **dict.fromkeys(
            ("is_error", "error_if", "fails_if", "success_if", "ok_if"),
            'write failed_if: {"ok": false, "message": "error"}',
        ),
        **dict.fromkeys(("progress_timeout", "stall_timeout", "heartbeat"), 'write idle_timeout: "30s"'),
        **dict.fromkeys(("verified", "verifier", "check"), "write verify"),
    }
    of_one_tool: ClassVar[str] = "is an option of one tool: write it below tools, at the tool that it is for"
    later: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("verify", "verify_delay", "verify_timeout", "verify_key", "polling", "max_repeats", "idle_timeout"),
            of_one_tool,
        ),
        **dict.fromkeys(("fallbacks", "read_only", "idempotency_key", "requests", "output", "tags"), of_one_tool),
    }
    written: ClassVar[dict[str, str]] = {
        "retry": '{"max_attempts": 3}',
        "breaker": '{"failure_threshold": 5, "timeout": "30s"}',
        "cooldown": '{"min_consecutive_failures": 3, "cooldown_duration": "1m"}',
        "isolation": '{"process": {"max_calls": 100}}',
        "defaults": '{"city": "Paris"}',
        "error_handling": '{"retries": […], "fallbacks": […]}',
        "entrypoint": '{"function": "package.module:name"}',
    }

    timeout: Duration | None = as_written("How long an attempt may take; null: no limit.")
    timeout_ms: Milliseconds = as_written("How long an attempt may take, in milliseconds.")
    retry: Retry = as_written("When and how often a failed attempt is retried.", "retry", "retry_policy")
    breaker: Breaker = as_written("When the tool's circuit opens, and for how long.", "breaker", "circuit_breaker")
    cooldown: Cooldown = as_written("A breaker that counts calls after their retries.")
    classification: tuple[Annotated[Override | Callable[[Any], Any], From(OverrideBlock, Override, Callable)], ...] = (
        as_written("The meaning of particular errors: the first match decides.")
    )
    idempotent: Flag | None = as_written("Whether running it twice has the same effect as running it once.")
    isolation: Annotated[Isolation, From(IsolationBlock, Isolation)] = as_written("Where a sync tool runs.")
    concurrency: Whole | None = as_written("Attempts at a time; null: no limit.")
    queue: Annotated[int, Field(strict=True, ge=0)] = as_written("Calls that may wait for a slot.")
    rate: RateText | None = as_written("How often it may run, per tenant, like 100/1m; retries count. null: no limit.")
    check_types: Flag = as_written("Whether calls by name check the types of arguments before the tool runs.")
    accept_partial: Annotated[AcceptPartial, Read(read_accept_partial, {"enum": [True, False, "after_retries"]})] = (
        as_written(
            "Whether a partial result is accepted: true at once, after_retries if retries return no more, false never."
        )
    )
    failed_if: Annotated[Any, Read(read_failed_if, FAILED_IF)] = as_written(
        "The returned values that are failures: fields and their values; message names the field with the error text."
    )

    def make(self) -> Layer:
        layer = self.layer()
        assemble({"id": "any"}, layer)
        return layer

    def layer(self) -> dict[str, Any]:
        self.refuse_both(("cooldown", "breaker"))
        layer = self.given()
        if "cooldown" in layer:
            layer["breaker"], layer[COMMON] = layer.pop("cooldown"), True
        return layer


class OptionsBlock(SharedBlock):
    """The options of one tool, in a file or in Python."""

    later: ClassVar[dict[str, str]] = {}

    id: Text = as_written("The tool's id.")
    label: Text = as_written("The tool's name for people; default: the id with spaces.")
    tags: tuple[Text, ...] = as_written("Words that policies can refer to.")
    fallbacks: Fallbacks = as_written("Fallback tools, in this order.")
    error_handling: Annotated[Layer, From(HandlingBlock)] = as_written("Retries, fallbacks and cooldown in one block.")
    enabled: Flag = as_written("Whether the tool may be used; false: it is not run, and not offered to models.")
    required: Flag | None = as_written("What a failed dependency means: true escalates, false skips.")
    defaults: dict[Text, Any] = as_written("Values that replace a failed dependency's, by argument.")
    read_only: Flag = as_written("Whether it changes nothing; it is then repeated freely.")
    idempotency_key: Text | None = as_written("The parameter that receives an idempotency key.")
    requests: Requests = as_written(
        "Whether it makes one request or many; after many, an error never means that nothing happened."
    )
    idle_timeout: Duration | None = as_written(
        "How long an attempt may go without a call of failsoft.progress; null: as long as its timeout."
    )
    output: Any = as_written("The JSON Schema that the value must match.")
    polling: Flag = as_written("Whether repeating the same call is expected, as for a tool that waits for something.")
    max_repeats: Annotated[int, Field(strict=True, ge=1, le=MOST_REPEATS)] | None = as_written(
        "Identical calls with an unchanged result, in a thread and a minute, after which the next is refused; null: no limit."
    )
    verify: Annotated[Any, Read(read_verify, VERIFY)] = as_written(
        "A tool that reads back what became of a write whose effect is unknown; in code also a function."
    )
    verify_delay: Delay = as_written("How long after the attempt verify is asked.")
    verify_timeout: Duration = as_written("How long verify may take.")
    verify_key: Text | None = as_written("The parameter that receives a key which only verify uses.")

    def layer(self) -> dict[str, Any]:
        layer = super().layer()
        handling = layer.get("error_handling")
        if handling is not None and "breaker" not in layer:
            layer[COMMON if "cooldown" in handling else CALLS_COUNT] = True
        return _spread(layer, cooldown="breaker")


class Tool(NamedTuple):
    """A tool in a manifest: its options as a layer, and its entry point."""

    layer: Layer
    entrypoint: Entrypoint | None


class EntrypointBlock(Block):
    """The tool's entry point: a function or a command."""

    later: ClassVar[dict[str, str]] = dict.fromkeys(("http", "mcp"), "is not supported yet: write function or command")
    instead: ClassVar[dict[str, str]] = dict.fromkeys(("path", "module"), 'write function: "package.module:name"')

    function: Text = as_written('A Python function, as "package.module:name".')
    command: tuple[Annotated[str, Field(strict=True)], ...] = as_written(
        "A program and its arguments; it reads and writes JSON. No shell is used."
    )
    env: tuple[Text, ...] = as_written("Names of the environment variables that the command receives.")
    exit_codes: dict[int, ErrorCode] = as_written("Meanings of the command's exit codes, added to the built-in ones.")
    max_output: Size = as_written("The largest output of the command.")

    @classmethod
    def expand(cls, value: Any) -> Any:
        if isinstance(value, str):
            module, _, name = value.replace(":", ".").rpartition(".")
            like = f"{module}:{name}" if module else f"package.module:{name}"
            raise ValueError(  # noqa: TRY004 - pydantic turns only ValueErrors into problems
                f'{brief(value)} is not a mapping: write {{"function": "{like}"}}'
            )
        return value

    def make(self) -> Entrypoint:
        given = self.given()
        if ("function" in given) == ("command" in given):
            raise ValueError("write either function or command")
        if "command" in given:
            return Command(argv=given.pop("command"), **given)
        if len(given) > 1:
            raise Conflict(
                *(
                    (name, "belongs to a command, and this is a function: drop it")
                    for name in given
                    if name != "function"
                )
            )
        return Function(path=given["function"])


class ToolBlock(OptionsBlock):
    """A tool in a manifest."""

    entrypoint: Annotated[Entrypoint, From(EntrypointBlock)] = as_written("The tool's entry point.")
    output: dict[str, Any] = as_written("The JSON Schema that the value must match.")

    def make(self) -> Tool:  # type: ignore[override] # a file also has an entry point
        layer = self.layer()
        entrypoint = layer.pop("entrypoint", None)
        assemble({"id": "any"}, layer)
        return Tool(layer, entrypoint)


def _spread(given: dict[str, Any], *, cooldown: str) -> dict[str, Any]:
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
