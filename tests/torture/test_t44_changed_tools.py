"""T44: an adapter ran its own copy of a tool, as it was before. Here what a framework is told later holds as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pydantic_ai
import pytest
from agents import Agent as OpenAIAgent
from agents import (
    FunctionTool,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    tool_input_guardrail,
)
from agents.exceptions import ModelBehaviorError
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool, ToolException
from pydantic_ai import Tool
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset
from tests.adapters.pydantic_ai_driver import Script, talk, texts
from tests.adapters.test_langchain import agent as langchain_agent
from tests.adapters.test_langchain import told
from tests.adapters.test_openai_agents import QUIET, Scripted

from failsoft import Runtime
from failsoft.adapters.openai_agents import guard_agent
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
def test_t44_pydantic_ai_does_not_offer_a_tool_that_was_removed_later(make: Make) -> None:
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


# --- OpenAI Agents SDK ------------------------------------------------------------------------------------------------------


class Changes(RunHooks[Any]):
    """Changes something when the model has asked for a call, and before the call runs."""

    def __init__(self, change: Callable[[], Any]) -> None:
        self.change = change

    async def on_llm_end(self, *_: Any) -> None:
        self.change()


def openai_tool(says: str = "paid", **options: Any) -> tuple[FunctionTool, list[str]]:
    paid: list[str] = []

    async def pay() -> str:
        """Pay."""
        paid.append(says)
        return says

    return function_tool(pay, **options), paid


def openai_run(agent: Any, change: Callable[[], Any] = int) -> Any:
    return asyncio.run(Runner.run(agent, "go", hooks=Changes(change), run_config=QUIET))


def openai_agent(*tools: FunctionTool) -> Any:
    return guard_agent(OpenAIAgent[Any](name="a", model=Scripted([("pay", {})]), tools=[*tools]), Runtime())


@pytest.mark.parametrize("how", ["value", "function"])
def test_t44_openai_agents_asks_for_approval_that_is_needed_later(how: str) -> None:
    async def yes(*_: Any) -> bool:
        return True

    tool, paid = openai_tool()
    result = openai_run(openai_agent(tool), lambda: setattr(tool, "needs_approval", True if how == "value" else yes))
    assert (len(result.interruptions), paid) == (1, [])


def test_t44_openai_agents_does_not_run_what_was_disabled_meanwhile() -> None:
    tool, paid = openai_tool()
    with pytest.raises(ModelBehaviorError, match="currently disabled"):
        openai_run(openai_agent(tool), lambda: setattr(tool, "is_enabled", False))
    assert paid == []


def test_t44_openai_agents_runs_the_tool_that_the_sdk_chooses() -> None:
    (first, wrong), (second, right) = openai_tool("first"), openai_tool("second")
    openai_run(openai_agent(first, second))
    assert (wrong, right) == ([], ["second"])


def test_t44_openai_agents_runs_guardrails_that_come_later() -> None:
    @tool_input_guardrail
    def refuse(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not today")

    tool, paid = openai_tool()
    openai_run(openai_agent(tool), lambda: setattr(tool, "tool_input_guardrails", [refuse]))
    assert paid == []


# --- LangChain ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("awaits", [True, False])
def test_t44_langchain_runs_the_function_that_the_tool_has_now(awaits: bool) -> None:
    pay = StructuredTool.from_function(lambda: "paid", name="pay", description="Pay.")
    run = langchain_agent(Runtime(), [pay], [("pay", {})], [("pay", {})])
    question = {"messages": [HumanMessage("go")]}

    def later(*_: Any) -> str:
        pay.func = lambda: "not today"
        return "paid"

    pay.func = later
    messages = told(asyncio.run(run.ainvoke(question)) if awaits else run.invoke(question))
    assert [message.content for message in messages] == ["paid", "not today"]


def test_t44_langchain_agents_with_tools_of_one_name_run_their_own() -> None:
    rt, middleware = Runtime(), []
    for says in ("first", "second", "first"):
        pay = StructuredTool.from_function(lambda says=says: says, name="pay", description="Pay.")
        run = langchain_agent(rt, [pay], [("pay", {})])
        middleware.append(told(run.invoke({"messages": [HumanMessage("go")]}))[0].content)
    assert middleware == ["first", "second", "first"]


@pytest.mark.parametrize("awaits", [True, False])
def test_t44_langchain_uses_the_error_handler_that_the_tool_has_when_it_fails(awaits: bool) -> None:
    def fail() -> str:
        pay.handle_tool_error = "the bank is closed"
        raise ToolException("no answer")

    pay = StructuredTool.from_function(fail, name="pay", description="Pay.")
    run = langchain_agent(Runtime(), [pay], [("pay", {})])
    question = {"messages": [HumanMessage("go")]}
    (message,) = told(asyncio.run(run.ainvoke(question)) if awaits else run.invoke(question))
    assert message.content == "the bank is closed"
