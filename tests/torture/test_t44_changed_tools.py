"""T44: an adapter ran its own copy of a tool, as it was before. Here what a framework is told later holds as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import Tool
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset
from tests.adapters.pydantic_ai_driver import Script, talk, texts

from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Agent, Failsoft
from failsoft.testing import Ask

# --- pydantic-ai ------------------------------------------------------------------------------------------------------------

OUTPUT: Any = [str, DeferredToolRequests]
AGENTS: dict[str, Callable[[Tool[Any]], Any]] = {
    "capability": lambda tool: pydantic_ai.Agent(
        "test", output_type=OUTPUT, tools=[tool], capabilities=[Failsoft(Runtime())]
    ),
    "agent": lambda tool: Agent("test", output_type=OUTPUT, tools=[tool]),
    "both": lambda tool: Agent("test", output_type=OUTPUT, tools=[tool], capabilities=[Failsoft(Runtime())]),
    "toolset": lambda tool: Agent("test", output_type=OUTPUT, toolsets=[FunctionToolset([tool])]),
}
EVERY = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS.keys())
Make = Callable[[Tool[Any]], Any]


def paying() -> tuple[Tool[Any], list[int]]:
    paid: list[int] = []

    async def pay() -> str:
        paid.append(1)
        return "paid"

    return Tool(pay), paid


def ask(agent: Any) -> Any:
    return asyncio.run(agent.run("go", model=Script([[Ask("pay", {})]]).model)).output


@EVERY
def test_t44_pydantic_ai_asks_for_approval_that_is_required_later(make: Make) -> None:
    tool, paid = paying()
    agent = make(tool)
    assert (ask(agent), paid) == ("done", [1])
    tool.requires_approval = True
    assert isinstance(ask(agent), DeferredToolRequests)
    assert paid == [1]
    tool.requires_approval = False
    assert (ask(agent), paid) == ("done", [1, 1])


@EVERY
def test_t44_pydantic_ai_does_not_offer_what_was_taken_away_later(make: Make) -> None:
    tool, paid = paying()
    agent = make(tool)
    tool.prepare = lambda *_: None  # type: ignore[assignment]
    script = talk(agent, "pay")
    assert (script.offered[0], paid) == ([], [])
    assert "nknown tool" in texts(script)[0]


@EVERY
def test_t44_pydantic_ai_runs_the_function_that_the_tool_has_now(make: Make) -> None:
    tool, paid = paying()
    agent = make(tool)

    async def refuse() -> str:
        return "not today"

    tool.function_schema = Tool(refuse).function_schema
    assert texts(talk(agent, "pay")) == ["not today"]
    assert paid == []
