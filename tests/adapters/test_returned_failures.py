"""Failures that tools return, and calls that make no progress, in all adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import RunConfig, function_tool
from fastmcp import FastMCP
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from mcp.types import CallToolResult, TextContent
from pydantic_ai import Agent, ToolReturn
from pydantic_ai.mcp import MCPToolset
from tests.adapters.pydantic_ai_driver import Script
from tests.adapters.test_langchain import agent as langchain_agent
from tests.adapters.test_langchain import told
from tests.adapters.test_openai_agents import Server, answers, arun, text

from failsoft import NothingDone, Outcome, Runtime
from failsoft.adapters.plain import run_tool_calls
from failsoft.adapters.pydantic_ai import Failsoft
from failsoft.testing import Ask

Asked = Callable[..., list[str]]  # (runtime, function, number of calls) -> what the model has read


def plain(rt: Runtime, search: Any, calls: int = 1) -> list[str]:
    async def run() -> list[str]:
        if "search" not in rt.tools:
            rt.add(search, id="search")
        call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        return [(await run_tool_calls(rt, [call], thread="chat"))[0]["content"] for _ in range(calls)]

    return asyncio.run(run())


def langchain(rt: Runtime, search: Any, calls: int = 1) -> list[str]:
    tool = StructuredTool.from_function(coroutine=search, name="search", description="Search.")
    run = langchain_agent(rt, [tool], *[[("search", {})]] * calls)
    result = asyncio.run(run.ainvoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "chat"}}))
    return [str(message.content) for message in told(result)]


def openai_agents(rt: Runtime, search: Any, calls: int = 1) -> list[str]:
    config = RunConfig(tracing_disabled=True, group_id="chat")
    tool = function_tool(search, name_override="search")
    result = asyncio.run(arun(rt, [tool], *[[("search", {})]] * calls, config=config))
    return [text(one) for one in answers(result).values()]


def pydantic_ai(rt: Runtime, search: Any, calls: int = 1) -> list[str]:
    script = Script([[Ask("search", {})]] * calls)
    agent = Agent(tools=[search], capabilities=[Failsoft(rt)])
    asyncio.run(agent.run("go", model=script.model))
    return ["\n".join(str(getattr(part, "content", "")) for part in message.parts) for message in script.messages[2::2]]


ADAPTERS = [plain, langchain, openai_agents, pydantic_ai]


def returns(value: Any) -> Any:
    async def search() -> Any:
        """Search."""
        return value

    return search


def declared(**options: Any) -> Runtime:
    return Runtime({"tools": {"search": {"idempotent": False, **options}}})


@pytest.mark.parametrize("ask", ADAPTERS)
@pytest.mark.parametrize("value", [{"ok": False, "error": "no stock"}, '{"ok": false, "error": "no stock"}'])
def test_a_pattern_is_matched_against_the_tools_own_value(ask: Asked, value: Any) -> None:
    rt = declared(failed_if={"ok": False, "message": "error"})
    (said,) = ask(rt, returns(value))
    assert said.startswith("search failed: ")
    assert '"no stock"' in said


@pytest.mark.parametrize("ask", ADAPTERS)
def test_a_value_whose_flag_says_success_passes_unchanged(ask: Asked) -> None:
    rt = declared(failed_if={"ok": False, "message": "error", "text": "Error"})
    (said,) = ask(rt, returns({"ok": True, "error": "Error 503"}))
    assert "failed" not in said
    assert "Error 503" in said


@pytest.mark.parametrize("ask", ADAPTERS)
def test_a_function_gets_the_tools_own_value(ask: Asked) -> None:
    seen: list[Any] = []
    rt = Runtime()

    def failed_if(value: Any) -> str | None:
        seen.append(value)
        return "empty"

    rt.declare("search", idempotent=False, failed_if=failed_if) if ask is not plain else rt.add(
        returns([]), id="search", idempotent=False, failed_if=failed_if
    )
    (said,) = ask(rt, returns([]))
    assert seen == [[]]
    assert said.startswith("search failed: ")


@pytest.mark.parametrize("ask", ADAPTERS)
@pytest.mark.parametrize(
    "value",
    [
        ValueError("no stock"),
        NothingDone("no stock"),
        Outcome("1", "inner", "failed"),
        CallToolResult(content=[TextContent(type="text", text="no stock")], is_error=True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_failures_by_their_type_are_recognised(ask: Asked, value: Any) -> None:
    (said,) = ask(declared(), returns(value))
    assert said.startswith("search failed")


@pytest.mark.parametrize("ask", ADAPTERS)
def test_a_successful_outcome_gives_its_value(ask: Asked) -> None:
    (said,) = ask(declared(), returns(Outcome("1", "inner", "succeeded", "room 12")))
    assert said == "room 12"


@pytest.mark.parametrize("status", ["error", "success"])
def test_the_status_of_a_langchain_message_decides(status: Any) -> None:
    (said,) = langchain(declared(), returns(ToolMessage("Error 503", tool_call_id="c0-0", status=status)))
    assert said.startswith("search failed") is (status == "error")


@pytest.mark.parametrize("is_error", [True, False])
def test_the_flag_of_an_mcp_server_decides(is_error: bool) -> None:
    rt = Runtime({"tools": {"search_docs": {"retry": {"max_attempts": 1}}}})
    steps = [("search_docs", {"query": "x"})]
    server = Server("503 Service Unavailable", is_error=is_error)
    (said,) = answers(asyncio.run(arun(rt, [], steps, mcp_servers=[server]))).values()
    assert text(said).startswith("search_docs failed") is is_error


@pytest.mark.parametrize("fails", [True, False])
def test_the_flag_of_an_mcp_server_decides_in_pydantic_ai(fails: bool) -> None:
    server = FastMCP("travel")

    @server.tool
    def search() -> str:
        if fails:
            raise ValueError("all is well")
        return "Error 503"

    rt = declared(retry={"max_attempts": 1})
    script = Script([[Ask("search", {})]])
    agent = Agent(toolsets=[MCPToolset(server, id="travel")], capabilities=[Failsoft(rt)])
    asyncio.run(agent.run("go", model=script.model))
    ((said,),) = script.seen
    assert said.text.startswith("search failed") is fails
    assert ("all is well" if fails else "Error 503") in said.text


# --- no progress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ADAPTERS)
def test_the_model_gets_one_line_with_the_fifth_identical_result(ask: Asked) -> None:
    rt = declared()
    said = ask(rt, returns("room 12"), 6)
    line = "search has now returned the same result to the same call 5 times"
    assert said[:4] == ["room 12"] * 4
    for one in said[4:]:
        value, told_ = one.split("\n")
        assert value == "room 12"
        assert told_.startswith(line)
    assert [event.event_type for event in rt.events()].count("NoProgress") == 1


@pytest.mark.parametrize("ask", ADAPTERS)
def test_max_repeats_refuses_in_every_adapter(ask: Asked) -> None:
    ran: list[int] = []

    async def search() -> str:
        """Search."""
        ran.append(1)
        return "room 12"

    said = ask(declared(max_repeats=2), search, 4)
    assert said[:2] == ["room 12"] * 2
    assert all(one.startswith("search failed: FAILED_PRECONDITION") for one in said[2:])
    assert len(ran) == 2


@pytest.mark.parametrize("ask", ADAPTERS)
def test_polling_tools_get_no_line(ask: Asked) -> None:
    assert ask(declared(polling=True), returns("room 12"), 6) == ["room 12"] * 6


def test_a_typed_value_stays_as_it_is_in_pydantic_ai() -> None:
    said = pydantic_ai(declared(), returns(ToolReturn({"room": 12}, metadata={"from": "cache"})), 5)
    assert said[4].splitlines()[0] == said[0] == "{'room': 12}"


@pytest.mark.parametrize(
    ("more", "failed"),
    [({}, True), ({"goto": "elsewhere"}, False), ({"update": {"seen": 1}}, False)],
    ids=["only messages", "goes elsewhere", "changes the state"],
)
def test_a_command_of_langgraph_fails_if_all_it_does_is_to_report_an_error(more: dict[str, Any], failed: bool) -> None:
    message = ToolMessage("503 Service Unavailable", tool_call_id="c", status="error")
    update = {"messages": [message], **more.get("update", {})}
    made = Command(**{**more, "update": update})  # type: ignore[var-annotated]

    async def run() -> Outcome[Any]:
        rt = Runtime()
        rt.add(lambda: made, id="search", read_only=True, retry={"max_attempts": 1})
        return await rt.call("search", {})

    outcome = asyncio.run(run())
    assert (outcome.status == "failed") is failed
    assert outcome.value is (None if failed else made)
    if outcome.fault is not None:
        assert (outcome.fault.code.name, outcome.fault.message) == ("UNAVAILABLE", "503 Service Unavailable")
