"""The manifest as a file: its sections, and the blocks for turns and policies.

S-spec's examples have one tool, ``tool: {id: ...}``; ours have many, ``tools: {<id>: ...}``. A file has one of the two.
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
from failsoft.core.model.fault import Category, Classification, Effect
from failsoft.core.model.options import OnTimeout, TurnOptions
from failsoft.core.model.outcome import Strategy
from failsoft.core.resilience.circuit_breaker import State
from failsoft.core.resilience.policy import Policy, Then, When

Memory = Literal["advise", "act", "off"]
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"


def _language(value: str) -> str:
    if not re.search(LANGUAGE, value):
        raise ValueError(f'{value!r} is not a language: write "en", "de" or "pt-BR"')
    return value


Language = Annotated[Text, AfterValidator(_language), WithJsonSchema({"type": "string", "pattern": LANGUAGE})]


class TurnBlock(Block):
    """How long a turn may take, and what becomes of a call that is still running then."""

    makes = TurnOptions

    timeout: Duration | None = as_written("How long a turn may take; null: no limit.")
    timeout_ms: Milliseconds = as_written("How long a turn may take, in milliseconds.")
    on_timeout: OnTimeout = as_written("What becomes of a call that is still running then: left behind, or cancelled.")

    def make(self) -> TurnOptions:
        return TurnOptions(**self.given())


class WhenBlock(Block):
    """The conditions of a policy: all that are there must hold."""

    tool: Annotated[tuple[Text, ...], OneOrMore()] = as_written("Ids of tools; * and ? stand for other characters.")
    tags: Annotated[tuple[Text, ...], OneOrMore()] = as_written("The tool has one of these tags.")
    category: Annotated[tuple[Category, ...], OneOrMore()] = as_written("Whose move it is.")
    code: Annotated[tuple[ErrorCode, ...], OneOrMore()] = as_written("The error's code.")
    classification: Classification = as_written("Whether the same call may work later.")
    attempt: Whole = as_written("The failed attempt has this number or a higher one.")
    breaker: Annotated[tuple[State, ...], OneOrMore()] = as_written("The state of the tool's circuit.")
    turn_left: Duration = as_written("Less than this is left of the turn.")
    effect: Annotated[tuple[Effect, ...], OneOrMore()] = as_written("Whether the tool has acted.")

    def make(self) -> When:
        return When(**self.given())


class ThenBlock(Block):
    """What is to be done."""

    shorthand: ClassVar[dict[str, Any] | None] = {"enum": list(get_args(Strategy))}

    strategy: Strategy = as_written("What is to be done.")
    delay: Delay = as_written("Wait before the retry.")
    tool: Text = as_written("The alternative tool.")
    message: Text = as_written("What the user is told.")

    @classmethod
    def expand(cls, value: Any) -> Any:
        return Then(strategy=value) if isinstance(value, str) else value  # type: ignore[arg-type] # it looks itself

    def make(self) -> Then:
        return Then(**self.given())


class PolicyBlock(Block):
    """One rule of the policy book: the first that matches decides."""

    name: Text = Field(description="What the policy is called where it is given as a reason.")
    when: Annotated[When, From(WhenBlock, When)] = as_written("The conditions; none: always.")
    then: Annotated[Then, From(ThenBlock, Then)] = Field(description="What is to be done.")
    even_if_effect_unknown: Flag = as_written("Retry even what may have happened already.")

    def make(self) -> Policy:
        return Policy(**self.given())


Policies = tuple[Annotated[Policy, From(PolicyBlock, Policy)], ...]


class BookBlock(Block):
    """A policy book on its own."""

    policies: Policies = Field(description="The policies, the most important one first.")

    def make(self) -> tuple[Policy, ...]:
        return self.policies


class ManifestBlock(Block):
    """A failsoft manifest."""

    written: ClassVar[dict[str, str]] = {
        "tools": '{"search": {"timeout": "10s"}}: each tool below its id',
        "defaults": '{"timeout": "10s"}',
        "turn": '{"timeout": "5m"}',
    }

    version: Version = as_written("The version of the manifest's form: 1.")
    defaults: Annotated[Layer, From(SharedBlock)] = as_written("What holds for every tool that says nothing else.")
    turn: Annotated[TurnOptions, From(TurnBlock, TurnOptions)] = as_written("How long a turn may take.")
    tools: dict[Text, Annotated[Tool, From(ToolBlock)]] = as_written("The tools, by id.")
    tool: Annotated[Tool, From(ToolBlock)] = as_written("The only tool, with its id; for several write tools.")
    policies: Policies = as_written("What is to be done about failures: the first policy that matches decides.")
    memory: Annotated[
        Memory,
        BeforeValidator(lambda value: "off" if value is False else value),  # unquoted, off is no text to some readers
        WithJsonSchema({"enum": [*get_args(Memory), False]}),
    ] = as_written("Whether what worked before is only quoted, acted upon, or not kept.")
    undeclared: Undeclared = as_written(
        "Which tools may be repeated that do not say whether they read or write: recognise (by name and description; "
        "when unsaid), as_specified (all), never_repeat (none that may have taken effect)."
    )
    language: Language = as_written("The language of explanations, where nobody asks for another; en when unsaid.")
    explanations: dict[Language, dict[Text, Text]] = as_written(
        "Texts of your own, by language and key: user.tool_transient, flight_search/user, turn.completed …"
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
                raise Conflict(("tool", "has no id: say id"))
            tools = {tool.layer["id"]: tool}
        return {**given, "tools": tools}
