"""With every framework there is one execute_tool span per call, made by the framework or by failsoft, and no orphan."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from agents import Agent, RunConfig, Runner, function_tool, set_trace_processors
from fastmcp import Client, FastMCP
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from mcp.server import MCPServer
from opentelemetry import trace
from opentelemetry.context import attach, detach
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from tests.adapters.pydantic_ai_driver import Script
from tests.adapters.test_langchain import agent as langchain_agent
from tests.adapters.test_openai_agents import Scripted
from tests.otel.collected import Collected, attributes, events

from failsoft import Runtime
from failsoft.adapters.openai_agents import guard_agent
from failsoft.adapters.plain import run_tool_calls, run_tool_calls_sync
from failsoft.adapters.pydantic_ai import Failsoft
from failsoft.testing import Ask

READ = {"read_only": True, "retry": {"max_attempts": 3, "initial_delay": "1ms"}}
RETRIED = {"tools": {"search": READ, "hotels": READ}}


def current_name() -> str:
    return str(getattr(trace.get_current_span(), "name", "-"))


class Flaky:
    """Fails once, then returns the name of the span that it sees."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("503 Service Unavailable")
        return current_name()


EVERYTHING = Collected()  # one for all tests: mcp keeps the first global provider that it meets


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Collected:
    """Spans of everything, since the provider is the global one."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", EVERYTHING.provider)
    EVERYTHING.exporter.clear()
    return EVERYTHING


@pytest.fixture
def rt(collected: Collected) -> Runtime:
    return Runtime(RETRIED, instruments=[collected.instrument()])


# --- pydantic-ai ----------------------------------------------------------------------------------------------------------


def pydantic_agent(rt: Runtime, *tools: Any, instrumented: Any = None) -> Script:
    capabilities: list[Any] = [Failsoft(rt)]
    if instrumented is not None:
        capabilities.append(Instrumentation(InstrumentationSettings(**instrumented)))
    script = Script([[Ask(tool.__name__, {}) for tool in tools]])
    agent = PydanticAgent(script.model, tools=tools, capabilities=capabilities)
    asyncio.run(agent.run("go"))
    return script


@pytest.mark.filterwarnings("ignore:Instrumentation format versions")
@pytest.mark.parametrize("version", [None, 2, 3, 5])
@pytest.mark.parametrize("kind", ["async", "blocking", "guarded"])
def test_pydantic_ai(collected: Collected, rt: Runtime, version: int | None, kind: str) -> None:
    flaky = Flaky()

    async def search() -> str:
        return flaky()

    def search_blocking() -> str:
        return flaky()

    search_blocking.__name__ = "search"
    tool: Any = rt.tool(search) if kind == "guarded" else search if kind == "async" else search_blocking
    script = pydantic_agent(rt, tool, instrumented=None if version is None else {"version": version})
    assert [seen.text for seen in script.seen[0]] == ["attempt search"]
    name = "running tool" if version == 2 else "execute_tool search"
    spans = collected.spans(name)
    assert len(spans) == 1
    assert len([span for span in collected.spans() if span.name.startswith("execute_tool")]) == (version != 2)
    told = attributes(spans[0])
    assert told["failsoft.attempts"] == 2
    assert told["failsoft.outcome"] == "succeeded"
    assert told["gen_ai.tool.call.id"] == "call-0-0"
    assert events(spans[0]) == ["failsoft.retry_succeeded"]
    tree = collected.tree()
    assert tree.count(f"{name} > attempt search") == 2
    assert [line for line in tree if line.endswith("> failsoft.turn")] == ["- > failsoft.turn"]


def test_pydantic_ai_calls_that_run_side_by_side_each_use_their_own_span(collected: Collected, rt: Runtime) -> None:
    async def search() -> str:
        await asyncio.sleep(0.001)
        return current_name()

    async def hotels() -> str:
        await asyncio.sleep(0.001)
        return current_name()

    pydantic_agent(rt, search, hotels, instrumented={})
    assert collected.executed() == {"execute_tool search": 1, "execute_tool hotels": 1}
    tree = collected.tree()
    assert tree.count("execute_tool search > attempt search") == 1
    assert tree.count("execute_tool hotels > attempt hotels") == 1


def test_a_failure_in_pydantic_ai_keeps_the_status_of_its_span(collected: Collected, rt: Runtime) -> None:
    async def search() -> str:
        raise ValueError("Invalid airport code")

    pydantic_agent(rt, search, instrumented={})
    span = collected.one("execute_tool search")
    assert attributes(span)["failsoft.error.code"] == "INVALID_ARGUMENT"
    assert attributes(span)["error.type"] == "INVALID_ARGUMENT"  # pydantic-ai sets none
    assert attributes(collected.one("attempt search"))["error.type"] == "INVALID_ARGUMENT"
    assert events(span).count("gen_ai.execute_tool.exception") == 0


def test_a_tool_inside_a_framework_tool_gets_a_span_of_its_own(collected: Collected, rt: Runtime) -> None:
    async def hotels() -> str:
        return current_name()

    guarded = rt.tool(hotels)

    async def search() -> str:
        return str([await guarded(), await guarded()])

    pydantic_agent(rt, search, instrumented={})
    assert collected.executed() == {"execute_tool search": 1, "execute_tool hotels": 2}
    assert collected.tree().count("attempt search > execute_tool hotels") == 2


def test_a_plain_function_that_calls_a_guarded_one_twice_has_one_span_for_each_call(collected: Collected) -> None:
    rt = Runtime(instruments=[collected.instrument()])

    @rt.tool(read_only=True)
    async def search() -> str:
        return current_name()

    async def play() -> None:
        with collected.tracer.start_as_current_span(
            "execute_tool search", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
        ):
            await search()
            await search()

    asyncio.run(play())
    assert collected.tree() == [
        "- > execute_tool search",
        "execute_tool search > attempt search",
        "execute_tool search > execute_tool search",
        "execute_tool search > attempt search",
    ]


# --- marks of other instrumentations ----------------------------------------------------------------------------------------

MARKED: dict[str, tuple[str, dict[str, Any]]] = {
    "GenAI": ("execute_tool search", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}),
    "GenAI, by name": ("execute_tool search", {"gen_ai.operation.name": "execute_tool"}),
    "GenAI, by id": ("tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "mine"}),
    "OpenInference": ("search", {"openinference.span.kind": "TOOL", "tool.name": "search"}),
    "Traceloop": ("search.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "search"}),
    "LangSmith": ("search", {"langsmith.span.kind": "tool", "langsmith.trace.name": "search"}),
    "MCP": ("tools/call search", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}),
    "MCP, mounted": ("tools/call air_search", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "air_search"}),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "no mark": ("search", {"tool.name": "search"}),
    "another tool": ("execute_tool plan", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "plan"}),
    "the end of another name": (
        "tools/call research",
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "research"},
    ),
    "another operation": ("chat search", {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "search"}),
}


@pytest.mark.parametrize("mark", MARKED)
@pytest.mark.parametrize("blocking", [False, True])
def test_a_span_that_others_made_for_the_call_is_used(collected: Collected, mark: str, blocking: bool) -> None:
    rt = Runtime(instruments=[collected.instrument()])
    rt.add(current_name, id="search", read_only=True)
    name, marks = MARKED[mark]
    with collected.tracer.start_as_current_span(name, attributes=marks):
        outcome = rt.call_sync("search", id="mine") if blocking else asyncio.run(rt.call("search", id="mine"))  # type: ignore[arg-type]
    assert outcome.value == "attempt search"
    assert collected.tree() == [f"- > {name}", f"{name} > attempt search"]
    told = attributes(collected.one(name))
    assert told["failsoft.call.id"] == "mine"
    assert told["gen_ai.tool.call.id"] == "mine"
    assert told["failsoft.outcome"] == "succeeded"


def test_the_error_type_that_a_framework_has_set_is_kept(collected: Collected) -> None:
    def search() -> None:
        framework.set_attribute("error.type", "ToolError")
        raise ValueError("Invalid airport code")

    rt = Runtime(instruments=[collected.instrument()])
    rt.add(search, read_only=True)
    name, marks = MARKED["GenAI"]
    with collected.tracer.start_as_current_span(name, attributes=marks) as framework:
        rt.call_sync("search")
    told = attributes(collected.one(name))
    assert told["error.type"] == "ToolError"
    assert told["failsoft.error.code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("other", OTHERS)
def test_a_span_of_something_else_is_only_the_parent(collected: Collected, other: str) -> None:
    rt = Runtime(instruments=[collected.instrument()])
    rt.add(current_name, id="search", read_only=True)
    name, marks = OTHERS[other]
    with collected.tracer.start_as_current_span(name, attributes=marks):
        rt.call_sync("search")
    assert collected.tree() == [
        f"- > {name}",
        f"{name} > execute_tool search",
        "execute_tool search > attempt search",
    ]
    assert "failsoft.call.id" not in attributes(collected.one(name))


# --- LangChain --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async", "blocking", "guarded"])
def test_langchain(collected: Collected, rt: Runtime, kind: str) -> None:
    flaky = Flaky()

    async def search() -> str:
        """Search flights."""
        return flaky()

    def search_blocking() -> str:
        """Search flights."""
        return flaky()

    if kind == "blocking":
        tool = StructuredTool.from_function(search_blocking, name="search")
    else:
        tool = StructuredTool.from_function(coroutine=rt.tool(search) if kind == "guarded" else search, name="search")
    run = langchain_agent(rt, [tool], [("search", {}), ("search", {})])
    message = {"messages": [HumanMessage("go")]}
    result = run.invoke(message) if kind == "blocking" else asyncio.run(run.ainvoke(message))
    assert [message.content for message in result["messages"] if message.type == "tool"] == ["attempt search"] * 2
    assert collected.executed() == {"execute_tool search": 2}
    tree = collected.tree()
    assert tree.count("- > failsoft.turn") == 1
    assert tree.count("failsoft.turn > execute_tool search") == 2
    assert tree.count("execute_tool search > attempt search") == 3
    ids = {attributes(span)["gen_ai.tool.call.id"] for span in collected.spans("execute_tool search")}
    assert ids == {"c0-0", "c0-1"}


class Tracing(BaseCallbackHandler):
    """An instrumentation of LangChain: a span for each tool that is invoked, current while it runs."""

    run_inline = True

    def __init__(self, collected: Collected) -> None:
        self.tracer = collected.tracer
        self.open: dict[UUID, tuple[Any, Any]] = {}

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **_: Any) -> None:
        marks = {"openinference.span.kind": "TOOL", "tool.name": serialized["name"]}
        span = self.tracer.start_span(serialized["name"], attributes=marks)
        self.open[run_id] = span, attach(trace.set_span_in_context(span))

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        span, token = self.open.pop(run_id)
        detach(token)
        span.end()

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self.on_tool_end(None, run_id=run_id)


def test_a_guarded_function_uses_the_span_of_langchains_instrumentation(collected: Collected) -> None:
    rt = Runtime(RETRIED, instruments=[collected.instrument()])
    flaky = Flaky()

    @rt.tool
    async def search() -> str:
        """Search flights."""
        return flaky()

    tool = StructuredTool.from_function(coroutine=search)
    config: Any = {"callbacks": [Tracing(collected)]}
    assert asyncio.run(tool.ainvoke({}, config)) == "attempt search"
    assert collected.tree() == ["- > search", "search > attempt search", "search > attempt search"]
    assert attributes(collected.one("search"))["failsoft.attempts"] == 2


def test_spans_that_langchains_instrumentation_makes_per_attempt_are_children_of_the_attempts(
    collected: Collected, rt: Runtime
) -> None:
    flaky = Flaky()

    def search() -> str:
        """Search flights."""
        return flaky()

    run = langchain_agent(rt, [StructuredTool.from_function(search)], [("search", {})])
    run.invoke({"messages": [HumanMessage("go")]}, {"callbacks": [Tracing(collected)]})
    assert collected.tree() == [
        "- > failsoft.turn",
        "failsoft.turn > execute_tool search",
        "execute_tool search > attempt search",
        "attempt search > search",
        "execute_tool search > attempt search",
        "attempt search > search",
    ]


def test_langchains_instrumentation_is_recognised_and_makes_the_only_execute_tool_spans(
    collected: Collected, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Traceloop(Tracing):
        """Names its spans as Traceloop's instrumentation does."""

        def on_tool_start(self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **_: Any) -> None:
            marks = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": serialized["name"]}
            span = self.tracer.start_span(f"execute_tool {serialized['name']}", attributes=marks)
            self.open[run_id] = span, attach(trace.set_span_in_context(span))

    monkeypatch.setattr(Traceloop, "__module__", "opentelemetry.instrumentation.langchain.callback_handler")

    async def search() -> str:
        """Search flights."""
        return current_name()

    tool = StructuredTool.from_function(coroutine=search, name="search")
    run = langchain_agent(rt, [tool], [("search", {})])
    asyncio.run(run.ainvoke({"messages": [HumanMessage("go")]}, {"callbacks": [Traceloop(collected)]}))
    assert collected.executed() == {"execute_tool search": 1}
    assert collected.tree() == [
        "- > failsoft.turn",
        "failsoft.turn > failsoft.call search",
        "failsoft.call search > attempt search",
        "attempt search > execute_tool search",
    ]


def test_the_span_that_openinference_keeps_is_used(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = collected.tracer.start_span("search")
    monkeypatch.setitem(
        sys.modules, "openinference.instrumentation.langchain", SimpleNamespace(get_current_span=lambda: kept)
    )
    rt = Runtime(instruments=[collected.instrument()])
    rt.add(current_name, id="search", read_only=True)
    rt.add(current_name, id="hotels", read_only=True)
    assert rt.call_sync("search").value == "attempt search"
    rt.call_sync("search")
    rt.call_sync("hotels")
    kept.end()
    assert collected.tree() == [
        "- > search",
        "search > attempt search",
        "- > execute_tool search",
        "execute_tool search > attempt search",
        "- > execute_tool hotels",
        "execute_tool hotels > attempt hotels",
    ]


# --- OpenAI Agents SDK --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tracing", [False, True])
@pytest.mark.parametrize("kind", ["async", "blocking", "guarded"])
def test_openai_agents(collected: Collected, rt: Runtime, kind: str, tracing: bool) -> None:
    set_trace_processors([])
    flaky = Flaky()

    async def search() -> str:
        return flaky()

    def search_blocking() -> str:
        return flaky()

    search_blocking.__name__ = "search"
    tool = function_tool(rt.tool(search) if kind == "guarded" else search if kind == "async" else search_blocking)
    model = Scripted([("search", {}), ("search", {})])
    agent: Any = guard_agent(Agent(name="agent", model=model, tools=[tool]), rt)

    async def play() -> None:
        with collected.tracer.start_as_current_span("request"):
            await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=not tracing))

    asyncio.run(play())
    assert collected.executed() == {"execute_tool search": 2}
    tree = collected.tree()
    assert tree.count("request > failsoft.turn") == 1
    assert tree.count("failsoft.turn > execute_tool search") == 2
    assert tree.count("execute_tool search > attempt search") == 3


# --- plain loop ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocking", [False, True])
def test_plain_loop(collected: Collected, rt: Runtime, blocking: bool) -> None:
    flaky = Flaky()

    @rt.tool
    async def search() -> str:
        return flaky()

    def asked(id: str, name: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps({})}}

    calls = [asked("a", "search"), asked("b", "search"), asked("c", "invented")]
    with collected.tracer.start_as_current_span("request"):
        answers = run_tool_calls_sync(rt, calls) if blocking else asyncio.run(run_tool_calls(rt, calls))  # type: ignore[arg-type]
    assert [answer["content"] for answer in answers[:2]] == ["attempt search"] * 2
    tree = collected.tree()
    assert tree.count("request > failsoft.turn") == 1
    assert tree.count("failsoft.turn > execute_tool search") == 2
    assert tree.count("failsoft.turn > execute_tool _unknown") == 1
    assert tree.count("execute_tool search > attempt search") == 3


# --- MCP ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mounted", [False, True])
def test_a_tool_of_a_fastmcp_server_uses_the_span_of_the_server(
    collected: Collected, rt: Runtime, mounted: bool
) -> None:
    flaky = Flaky()

    @rt.tool
    async def search() -> str:
        return flaky()

    server: Any = FastMCP("air")
    server.tool(search)
    name = "search"
    if mounted:
        outer: Any = FastMCP("travel")
        outer.mount(server, namespace="air")
        server, name = outer, "air_search"

    async def play() -> Any:
        async with Client(server) as client:
            return await client.call_tool(name, {})

    assert "attempt search" in str(asyncio.run(play()).content)
    assert [span.name for span in collected.spans() if span.name.startswith("execute_tool")] == []
    attempts = collected.spans("attempt search")
    assert len(attempts) == 2
    by_id = {span.context.span_id: span for span in collected.spans()}
    (parent,) = {span.parent.span_id for span in attempts if span.parent is not None}
    assert attributes(by_id[parent])["failsoft.attempts"] == 2
    assert attributes(by_id[parent])["mcp.method.name"] == "tools/call"
    collected.tree()


def test_a_tool_of_an_mcp_server_uses_the_span_of_the_server(collected: Collected, rt: Runtime) -> None:
    flaky = Flaky()

    @rt.tool
    async def search() -> str:
        return flaky()

    server = MCPServer("air")
    server.tool()(search)

    async def play() -> Any:
        async with Client(server) as client:
            return await client.call_tool("search", {})

    assert "attempt search" in str(asyncio.run(play()).content)
    assert [span.name for span in collected.spans() if span.name.startswith("execute_tool")] == []
    (parent,) = {span.parent.span_id for span in collected.spans("attempt search") if span.parent is not None}
    by_id = {span.context.span_id: span for span in collected.spans()}
    assert attributes(by_id[parent])["failsoft.attempts"] == 2
    assert by_id[parent].name == "tools/call search"
    collected.tree()
