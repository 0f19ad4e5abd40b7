"""Manifest blocks that describe a tool.

Other established names are accepted too: ``retry_policy``, ``circuit_breaker``, ``timeout_ms``, ``errorHandling``,
``nodeId``, ``cooldown``. A tool's block makes a *layer* (``config.layering``). Editors show the descriptions, which
become part of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import repr as brief
from typing import Annotated, Any, ClassVar, NamedTuple, get_args

from pydantic import Field

from failsoft.config.layering import CALLS_COUNT, COMMON, Layer, assemble
from failsoft.config.manifest.block import (
    Block,
    Conflict,
    Delay,
    Duration,
    ErrorCode,
    Flag,
    From,
    Milliseconds,
    RateText,
    Read,
    Size,
    Text,
    Whole,
    as_written,
)
from failsoft.config.manifest.protection_blocks import (
    Breaker,
    Cooldown,
    Fallbacks,
    HandlingBlock,
    Retry,
    spread,
)
from failsoft.core.model.entrypoint import Command, Entrypoint, Function
from failsoft.core.model.failed_if import SCHEMA as FAILED_IF
from failsoft.core.model.failed_if import read_failed_if
from failsoft.core.model.fault import Category, Classification, Effect
from failsoft.core.model.options import (
    MOST_REPEATS,
    AcceptPartial,
    Isolation,
    Override,
    Requests,
    ToolOptions,
    Values,
    read_accept_partial,
)
from failsoft.core.model.verify_tool import SCHEMA as VERIFY
from failsoft.core.model.verify_tool import read_verify


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
            'write retry: {"max_attempts": 3}, which counts the first attempt too; a list by error code belongs to '
            'error_handling: {"retries": […]}',
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
        **dict.fromkeys(
            ("handle_tool_error", "handle_tool_errors", "handle_validation_error", "failure_error_function"),
            "leave it out: the model is told of every failed call",
        ),
        **dict.fromkeys(
            ("return_direct", "args_schema", "strict", "prepare", "requires_approval", "needs_approval"),
            "it belongs to the framework's own tool: give it there",
        ),
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
        **dict.fromkeys(("disabled", "disable", "active"), "write enabled: false"),
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
        return spread(layer, cooldown="breaker")


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
