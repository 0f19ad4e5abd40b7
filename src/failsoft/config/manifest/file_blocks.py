"""The sections of a manifest file, and the blocks for turns and policies.

A file has one tool (``tool: {id: ...}``) or several (``tools: {<id>: ...}``), not both.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from failsoft.config.layering import Layer
from failsoft.config.manifest.block import (
    Block,
    Conflict,
    Delay,
    Duration,
    ErrorCode,
    Flag,
    From,
    Milliseconds,
    OneOrMore,
    Text,
    Version,
    Whole,
    as_written,
)
from failsoft.config.manifest.tool_blocks import SharedBlock, Tool, ToolBlock
from failsoft.core.effects.tool_effect import Undeclared
from failsoft.core.model.decision import Strategy
from failsoft.core.model.fault import Category, Classification, Effect
from failsoft.core.model.options import OnTimeout, TurnOptions
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.core.resilience.policy import Policy, Then, When

Memory = Literal["advise", "act", "off"]
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"


def _language(value: str) -> str:
    if not re.search(LANGUAGE, value):
        raise ValueError(f'{value!r} is not a language: write "en", "de" or "pt-BR"')
    return value


Language = Annotated[Text, AfterValidator(_language), WithJsonSchema({"type": "string", "pattern": LANGUAGE})]


class TurnBlock(Block):
    """How long a turn may take, what happens to a call that is still running then, and how many calls it may make."""

    makes = TurnOptions

    timeout: Duration | None = as_written("How long a turn may take; null: no limit.")
    timeout_ms: Milliseconds = as_written("How long a turn may take, in milliseconds.")
    on_timeout: OnTimeout = as_written("Whether a call that is still running then is abandoned (leave) or cancelled.")
    max_calls: Whole = as_written("How many calls a turn may make; retries and fallbacks do not count.")
    max_calls_per_tool: Whole = as_written("How many calls of any one tool a turn may make.")

    def make(self) -> TurnOptions:
        return TurnOptions(**self.given())


class WhenBlock(Block):
    """The conditions of a policy. All of them must hold."""

    tool: Annotated[tuple[Text, ...], OneOrMore()] = as_written("Ids of tools; * and ? are wildcards.")
    tags: Annotated[tuple[Text, ...], OneOrMore()] = as_written("The tool has one of these tags.")
    category: Annotated[tuple[Category, ...], OneOrMore()] = as_written("Who must act.")
    code: Annotated[tuple[ErrorCode, ...], OneOrMore()] = as_written("The error's code.")
    classification: Classification = as_written("Whether the same call may work later.")
    attempt: Whole = as_written("The number of the failed attempt is at least this.")
    breaker: Annotated[tuple[CircuitState, ...], OneOrMore()] = as_written("The state of the tool's circuit.")
    turn_left: Duration = as_written("Less than this is left of the turn.")
    effect: Annotated[tuple[Effect, ...], OneOrMore()] = as_written("Whether the tool has acted.")

    def make(self) -> When:
        return When(**self.given())


class ThenBlock(Block):
    """The action that a policy takes after a failure."""

    shorthand: ClassVar[dict[str, Any] | None] = {"enum": list(get_args(Strategy))}

    strategy: Strategy = as_written("What to do.")
    delay: Delay = as_written("Delay before the retry.")
    tool: Text = as_written("The alternative tool.")
    message: Text = as_written("The text for the user.")

    @classmethod
    def expand(cls, value: Any) -> Any:
        return Then(strategy=value) if isinstance(value, str) else value  # type: ignore[arg-type] # Then validates it

    def make(self) -> Then:
        return Then(**self.given())


class PolicyBlock(Block):
    """One policy. The first that matches decides."""

    name: Text = Field(description="The policy's name, given as the reason for its decisions.")
    when: Annotated[When, From(WhenBlock, When)] = as_written("The conditions; none: always.")
    then: Annotated[Then, From(ThenBlock, Then)] = Field(description="What to do.")
    even_if_effect_unknown: Flag = as_written("Retry even if the call may have taken effect.")

    def make(self) -> Policy:
        return Policy(**self.given())


Policies = tuple[Annotated[Policy, From(PolicyBlock, Policy)], ...]


class BookBlock(Block):
    """A list of policies without a manifest."""

    policies: Policies = Field(description="The policies, the most important one first.")

    def make(self) -> tuple[Policy, ...]:
        return self.policies


class ManifestBlock(Block):
    """A failsoft manifest."""

    instead: ClassVar[dict[str, str]] = {
        **{name: f"write turn: {{{name}: 50}}" for name in ("max_calls", "max_calls_per_tool")},
        **{
            name: f"it is not part of a manifest: write Runtime({name}=…) in code"
            for name in ("store", "error_handler", "report_to", "instruments", "trace")
        },
        **dict.fromkeys(("timeout", "retry", "breaker", "rate"), "write it below defaults, or at a tool below tools"),
    }
    written: ClassVar[dict[str, str]] = {
        "tools": '{"search": {"timeout": "10s"}}: each tool below its id',
        "defaults": '{"timeout": "10s"}',
        "turn": '{"timeout": "5m"}',
    }

    version: Version = as_written("The version of the manifest's format: 1.")
    defaults: Annotated[Layer, From(SharedBlock)] = as_written("Options of every tool that does not set them itself.")
    turn: Annotated[TurnOptions, From(TurnBlock, TurnOptions)] = as_written("How long a turn may take.")
    tools: dict[Text, Annotated[Tool, From(ToolBlock)]] = as_written("The tools, by id.")
    tool: Annotated[Tool, From(ToolBlock)] = as_written("The only tool, with its id; for several write tools.")
    policies: Policies = as_written("What to do about failures: the first policy that matches decides.")
    memory: Annotated[
        Memory,
        BeforeValidator(lambda value: "off" if value is False else value),  # some readers take off for false
        WithJsonSchema({"enum": [*get_args(Memory), False]}),
    ] = as_written("Whether earlier recoveries are only quoted (advise), acted upon (act), or not kept (off).")
    undeclared: Undeclared = as_written(
        "Which tools without declared effects may be repeated: recognise (by name and description; the default), "
        "as_specified (all), never_repeat (none that may have taken effect)."
    )
    language: Language = as_written("The language of explanations, unless a caller asks for another; default: en.")
    explanations: dict[Language, dict[Text, Text]] = as_written(
        "Your own texts, by language and key: user.tool_transient, flight_search/user, turn.completed …"
    )

    def make(self) -> dict[str, Any]:
        self.refuse_both(("tool", "tools"))
        given = self.given()
        tools: dict[str, Tool] = given.pop("tools", {})
        wrong = [(id, tool.layer["id"]) for id, tool in tools.items() if tool.layer.get("id", id) != id]
        if wrong:
            raise Conflict(
                *(("tools", f"{id} has the id {other}: drop the id, or use it as the key") for id, other in wrong)
            )
        if "tool" in given:
            tool = given.pop("tool")
            if "id" not in tool.layer:
                raise Conflict(("tool", "has no id: write one"))
            tools = {tool.layer["id"]: tool}
        return {**given, "tools": tools}
