"""pydantic-ai: toolsets of every kind, toolsets that are down, and fallbacks between tools."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import pydantic_ai
import pytest
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic_ai import DeferredToolRequests, DeferredToolResults, FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, WrapperToolset
from tests.adapters.pydantic_ai_driver import Script, agent_with, failing, talk, texts

from failsoft import Runtime, TurnReport
from failsoft.adapters.pydantic_ai import Agent
from failsoft.testing import Ask

DOWN = ConnectionRefusedError(111, "Connection refused")
RESET = ConnectionResetError("Connection reset by peer")

# --- sources of tools that are down -------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def dead_server(id: str = "travel", **options: Any) -> MCPToolset[Any]:
    return MCPToolset(f"http://127.0.0.1:{free_port()}/mcp", id=id, **options)


@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent], ids=["theirs", "ours"])
def test_a_dead_mcp_server_does_not_end_the_run(make: Any) -> None:
    search, _ = failing()
    reports: list[TurnReport] = []
    runtime = Runtime()
    agent = agent_with(runtime, search, make=make, toolsets=[dead_server()], on_report=reports.append)
    script = talk(agent, "search")
    assert texts(script) == ["3 flights"]
    assert script.offered[0] == ["search"]
    missing = "The tools of travel are missing in this run. toolset:travel failed: UNAVAILABLE"
    assert script.instructions[0].startswith(missing)
    failures = [outcome.tool for outcome in reports[0].outcomes.values() if outcome.status == "failed"]
    assert failures == ["toolset:travel"]


def test_a_dead_server_is_left_alone_once_its_circuit_is_open() -> None:
    runtime = Runtime({"tools": {"toolset:travel": {"breaker": {"failure_threshold": 1}}}})
    server = dead_server()
    entered = []
    enter = server.__class__.__aenter__

    class Counted(MCPToolset[Any]):
        async def __aenter__(self) -> Any:
            entered.append(1)
            return await enter(self)

    server.__class__ = Counted
    for _ in range(3):
        script = talk(agent_with(runtime, toolsets=[server]))
        assert "toolset:travel failed" in script.instructions[0]
    assert len(entered) == 1


def test_a_mistake_in_the_setup_still_ends_the_run() -> None:
    class Wrong(ExternalToolset[Any]):
        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            raise pydantic_ai.UserError("set up wrongly")

    with pytest.raises(pydantic_ai.UserError, match="set up wrongly"):
        talk(agent_with(Runtime(), toolsets=[Wrong([])]))


@pytest.mark.parametrize("where", ["for_run", "get_tools", "for_run_step", "get_instructions"])
def test_a_source_may_fail_at_any_point(where: str) -> None:
    async def refuse(*_: Any) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    source: ExternalToolset[Any] = ExternalToolset([], id="travel")
    setattr(source, where, refuse)
    runtime = Runtime()
    search, _ = failing()
    script = talk(agent_with(runtime, search, toolsets=[source]), "search")
    assert texts(script) == ["3 flights"]
    assert runtime.health("toolset:travel").failure_count > 0
    if where != "get_instructions":
        assert "toolset:travel failed: UNAVAILABLE" in script.instructions[0]


def test_a_source_that_works_again_is_trusted_again() -> None:
    failures = [1, 1]

    class Flaky(ExternalToolset[Any]):
        async def __aenter__(self) -> Any:
            if failures.pop(0) if failures else 0:
                raise ConnectionRefusedError(111, "Connection refused")
            return self

    runtime, reports = Runtime(), list[TurnReport]()
    agent = agent_with(runtime, toolsets=[Flaky([], id="travel")], on_report=reports.append)
    counts = []
    for _ in range(3):
        talk(agent)
        counts.append(runtime.health("toolset:travel").failure_count)
    assert counts == [1, 2, 0]
    assert [len(report.outcomes) for report in reports] == [1, 1, 0]


DYING_SERVER = """
import os, sys
from fastmcp import FastMCP

server = FastMCP("travel")
server.tool(lambda: "3 flights", name="flights")
server.tool(lambda: os._exit(1), name="hotels")
server.run(transport="http", port=int(sys.argv[1]), show_banner=False, log_level="critical")
"""


def test_a_server_that_dies_in_the_middle_does_not_end_the_run() -> None:
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", DYING_SERVER, str(port)]) as server:
        for _ in range(300):
            with socket.socket() as door:
                if door.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        toolset = MCPToolset[Any](f"http://127.0.0.1:{port}/mcp", id="travel", cache_tools=False)
        search, _ = failing()
        runtime = Runtime({"tools": {"hotels": {"timeout": "2s"}}})  # older clients do not notice that it has gone
        script = talk(agent_with(runtime, search, toolsets=[toolset]), "flights", "hotels", "search")
        assert server.wait() == 1
    flights, hotels, found = texts(script)
    assert (flights, found) == ("3 flights", "3 flights")
    assert "(tool_transient, 1 attempt). It may already have taken effect" in hotels
    assert script.offered[0] == ["search", "flights", "hotels"]
    assert script.offered[-1] == ["search"]


@pytest.mark.parametrize("where", ["__aenter__", "get_tools"])
def test_a_source_has_the_time_that_the_manifest_gives_it(where: str) -> None:
    async def hang(*_: Any) -> Any:
        await asyncio.sleep(60)

    source = type("Hanging", (ExternalToolset,), {where: hang})([], id="travel")
    search, _ = failing()
    runtime = Runtime({"tools": {"toolset:travel": {"timeout": "50ms"}}})
    script = talk(agent_with(runtime, search, toolsets=[source]), "search")
    assert texts(script) == ["3 flights"]
    assert "toolset:travel failed: DEADLINE_EXCEEDED" in script.instructions[0]
    assert "No answer within 50ms" in script.instructions[0]


def test_a_source_that_cannot_be_left_leaves_the_run_its_result() -> None:
    class Dying(ExternalToolset[Any]):
        async def __aexit__(self, *_: object) -> None:
            raise ConnectionResetError("Connection reset by peer")

    search, _ = failing()
    runtime = Runtime()
    assert texts(talk(agent_with(runtime, search, toolsets=[Dying([], id="travel")]), "search")) == ["3 flights"]
    assert runtime.health("toolset:travel").failure_count == 1


def test_a_source_that_lists_no_tools_is_cut_off_although_it_can_be_entered() -> None:
    asked: list[int] = []

    class Silent(ExternalToolset[Any]):
        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            asked.append(1)
            raise DOWN

    agent = agent_with(Runtime(), toolsets=[Silent([], id="travel")])
    for _ in range(7):
        talk(agent)
    assert len(asked) == 5


def test_a_source_that_is_another_one_in_each_step_may_come_back() -> None:
    failures = [DOWN]

    @dataclass
    class Stepping(WrapperToolset[Any]):
        async def for_run_step(self, ctx: RunContext[Any]) -> Any:
            return Stepping(self.wrapped)

        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            if failures:
                raise failures.pop()
            return await super().get_tools(ctx)

        def visit_and_replace(self, visitor: Any) -> Any:
            return visitor(self)

        def apply(self, visitor: Any) -> None:
            visitor(self)

    search, _ = failing()
    late, _ = failing("late")
    source = Stepping(FunctionToolset[Any]([Tool(late, name="late")]))
    assert talk(agent_with(Runtime(), search, toolsets=[source]), "search").offered == [["search"], ["search", "late"]]


def travel(**hints: bool) -> tuple[FastMCP[Any], list[int]]:
    """An MCP server whose tool fails once."""
    server: FastMCP[Any] = FastMCP("travel")
    attempts: list[int] = []

    @server.tool(annotations=hints)
    def flights() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise ToolError("Connection reset by peer")
        return "3 flights"

    return server, attempts


@pytest.mark.parametrize(
    ("hints", "trusted", "expected"),
    [
        ({"readOnlyHint": True}, {"travel"}, 2),
        ({"idempotentHint": True}, {"travel"}, 2),
        ({"readOnlyHint": True}, set(), 1),
        ({}, {"travel"}, 1),
    ],
)
def test_hints_of_trusted_servers_count(hints: dict[str, bool], trusted: set[str], expected: int) -> None:
    server, attempts = travel(**hints)
    rt = Runtime()
    agent = agent_with(rt, toolsets=[MCPToolset(server, id="travel")], trusted=trusted)
    (text,) = texts(talk(agent, "flights"))
    assert len(attempts) == expected
    assert rt.tools["flights"].effect_source == ("hinted" if expected == 2 else "unknown")
    assert rt.tools["flights"].schema["type"] == "object"
    if expected == 2:
        assert text == "3 flights"
    else:
        assert text.startswith("flights failed: UNAVAILABLE (tool_transient, 1 attempt)")
        assert "Connection reset by peer" in text


def test_a_model_retry_raised_by_the_users_hook_does_not_count_as_a_failure() -> None:
    server, attempts = travel()

    async def hook(ctx: Any, call: Any, name: str, arguments: dict[str, Any]) -> Any:
        raise ModelRetry("which one?")

    runtime = Runtime()
    agent = agent_with(runtime, toolsets=[MCPToolset(server, id="travel", process_tool_call=hook)])
    assert texts(talk(agent, "flights")) == ["which one?"]
    assert (attempts, runtime.health("flights").failure_count) == ([], 0)


# --- whatever stands around a toolset -----------------------------------------------------------------------------------------

AROUND = {
    "as it is": lambda toolset: toolset,
    "prefixed": lambda toolset: toolset.prefixed("paris"),
    "renamed": lambda toolset: toolset.renamed({"paris_flights": "flights"}),
    "filtered": lambda toolset: toolset.filtered(lambda ctx, tool: True),
    "combined and prefixed": lambda toolset: CombinedToolset([toolset]).prefixed("paris"),
    "made for the run": lambda toolset: lambda ctx: toolset,
    "made for the run, prefixed": lambda toolset: lambda ctx: toolset.prefixed("paris"),
}
around = pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)


def offered(agent: Any) -> str:
    """The name under which its only tool is offered."""
    ((name,),) = talk(agent).offered
    return name


@around
def test_a_servers_error_is_judged(around: Any) -> None:
    server, attempts = travel()
    runtime = Runtime()
    agent = agent_with(runtime, toolsets=[around(MCPToolset(server, id="travel"))])
    name = offered(agent)
    (text,) = texts(talk(agent, name))
    assert text.startswith(f"{name} failed: UNAVAILABLE (tool_transient, 1 attempt). It may already have taken effect")
    assert (len(attempts), runtime.health(name).failure_count) == (1, 1)


@pytest.mark.parametrize("graceful", [True, False])
@pytest.mark.parametrize(("hints", "expected"), [({}, 1), ({"readOnlyHint": True}, 2)])
def test_a_servers_error_reported_as_failed_is_classified_and_stays_failed(
    hints: dict[str, bool], expected: int, graceful: bool
) -> None:
    server, attempts = travel(**hints)
    runtime, source = Runtime(), MCPToolset(server, id="travel", tool_error_behavior="failed")
    agent = agent_with(runtime, toolsets=[source], trusted={"travel"}, graceful=graceful)
    script = talk(agent, "flights")
    (text,) = texts(script)
    assert len(attempts) == expected
    if expected == 1:
        assert text.startswith("flights failed: UNAVAILABLE (tool_transient, 1 attempt). It may already have taken")
        (answer,) = script.messages[2].parts
        assert (answer.part_kind, answer.outcome) == ("tool-return", "failed")
        assert runtime.health("flights").failure_count == 1


def test_a_hook_of_the_users_own_may_call_a_tool_failed() -> None:
    server, attempts = travel()

    async def hook(ctx: Any, call: Any, name: str, arguments: dict[str, Any]) -> Any:
        raise ToolFailed("not today")

    runtime = Runtime()
    agent = agent_with(runtime, toolsets=[MCPToolset(server, id="travel", process_tool_call=hook)])
    assert texts(talk(agent, "flights")) == ["not today"]
    assert (attempts, runtime.health("flights").failure_count) == ([], 0)


@around
def test_hints_of_a_trusted_server_count_under_any_name(around: Any) -> None:
    server, attempts = travel(readOnlyHint=True)
    agent = agent_with(Runtime(), toolsets=[around(MCPToolset(server, id="travel"))], trusted={"travel"})
    assert texts(talk(agent, offered(agent))) == ["3 flights"]
    assert len(attempts) == 2


@around
def test_a_guarded_function_goes_through_the_runtime_once_under_any_name(around: Any) -> None:
    runtime, attempts = Runtime(), list[int]()

    @runtime.tool(read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"})
    def flights() -> str:
        attempts.append(1)
        raise RESET

    agent = agent_with(runtime, toolsets=[around(FunctionToolset([flights]))])
    (text,) = texts(talk(agent, offered(agent)))
    assert text.startswith("flights failed: UNAVAILABLE (tool_transient, 2 attempts)")
    assert len(attempts) == 2


class Logged(WrapperToolset[Any]):
    """A wrapper as users write them: no dataclass, with an ``__init__`` of its own."""

    def __init__(self, log: list[str], wrapped: AbstractToolset[Any]) -> None:
        super().__init__(wrapped)
        self.log = log

    async def call_tool(self, name: str, *args: Any) -> Any:
        self.log.append(name)
        return await super().call_tool(name, *args)


def test_a_wrapper_of_the_users_own_stays_around_its_source() -> None:
    log: list[str] = []
    server, _ = travel(readOnlyHint=True)
    toolsets = [Logged(log, MCPToolset(server, id="travel")), Logged(log, dead_server("hotels"))]
    script = talk(agent_with(Runtime(), toolsets=toolsets, trusted={"travel"}), "flights")
    assert texts(script) == ["3 flights"]
    assert log == ["flights", "flights"]
    assert "The tools of hotels are missing in this run" in script.instructions[0]


class Retrying(WrapperToolset[Any]):
    """A wrapper as users write them: three tries."""

    async def call_tool(self, name: str, *args: Any) -> Any:
        for _ in range(2):
            try:
                return await super().call_tool(name, *args)
            except Exception:
                continue
        return await super().call_tool(name, *args)


RETRIED: dict[str, Any] = {
    "declared": {"idempotent": False},
    "recognised": {"id": "pay_invoice"},
    "neither": {"id": "frobnicate"},
    "idempotent": {"idempotent": True},
    "read": {"id": "get_invoice"},
}


@pytest.mark.parametrize("where", ["function", "prefixed", "combined", "server"])
@pytest.mark.parametrize("declared", RETRIED)
def test_a_wrapper_of_the_users_own_does_not_repeat_what_is_not_safe_to_repeat(declared: str, where: str) -> None:
    runtime, runs = Runtime(), []
    options = {"id": "pay", **RETRIED[declared]}
    name = options.pop("id")

    async def act() -> str:
        runs.append(name)
        raise RESET

    if where == "server":
        server: FastMCP[Any] = FastMCP("bank")
        server.tool(act, name=name)
        leaf: AbstractToolset[Any] = MCPToolset(server, id="bank")
    else:
        leaf = FunctionToolset([Tool(act, name=name)])
    around: AbstractToolset[Any] = Retrying(leaf)
    around = around.prefixed("my") if where == "prefixed" else around
    tool = f"my_{name}" if where == "prefixed" else name
    runtime.declare(tool, retry={"max_attempts": 1}, **options)
    toolsets = [CombinedToolset([around])] if where == "combined" else [around]
    (text,) = texts(talk(agent_with(runtime, toolsets=toolsets), tool))
    assert len(runs) == (3 if declared in ("idempotent", "read") else 1)
    assert "failed" in text


@dataclass
class Source(AbstractToolset[Any]):
    """A source without a name, or with one that it shares."""

    down: bool
    id: str | None = None
    entered: int = 0

    async def __aenter__(self) -> Any:
        self.entered += 1
        if self.down:
            raise DOWN
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, Any]:
        return {}

    async def call_tool(self, *args: Any) -> Any: ...


@pytest.mark.parametrize("id", [None, "localhost"])
def test_sources_of_one_name_have_a_breaker_each(id: str | None) -> None:
    dead, alive = Source(True, id), Source(False, id)
    name = f"toolset:{id or 'Source'}"
    runtime = Runtime({"defaults": {"breaker": {"failure_threshold": 2}}})
    agent = agent_with(runtime, toolsets=[dead, alive])
    for _ in range(4):
        talk(agent)
    assert (dead.entered, alive.entered) == (2, 4)
    assert (runtime.health(name).state, runtime.health(f"{name}-2").state) == ("open", "closed")


# --- a tool as the fallback of another ------------------------------------------------------------------------------------------


def broken(*fallbacks: str, **options: Any) -> Tool[Any]:
    """A tool that is down, and has others for that."""

    def pay(when: date) -> str:
        raise DOWN

    return Tool(pay, metadata={"failsoft": {"fallbacks": fallbacks, "retry": {"max_attempts": 1}}}, **options)


def ask(agent: Any, **arguments: Any) -> Script:
    script = Script([[Ask("pay", arguments)]])
    asyncio.run(agent.run("go", model=script.model))
    return script


DUE = "2026-11-16"
NOBODY_RAN = "pay failed: UNAVAILABLE (tool_transient, 1 attempt). It had no effect."


def test_tools_that_need_approval_or_run_externally_are_not_used_as_fallbacks() -> None:
    ran: list[date] = []
    backup = Tool(ran.append, name="backup", requires_approval=True)
    elsewhere = ExternalToolset[Any]([pydantic_ai.ToolDefinition(name="elsewhere")])
    agent = agent_with(
        Runtime(), broken("backup", "elsewhere"), backup, toolsets=[elsewhere], output_type=[str, DeferredToolRequests]
    )
    (text,) = texts(ask(agent, when=DUE))
    assert text.startswith(NOBODY_RAN)
    assert ran == []


@pytest.mark.parametrize("approved", [False, True])
def test_approval_of_a_tool_does_not_cover_its_fallback(approved: bool) -> None:
    ran: list[date] = []

    def backup(when: date) -> None:
        ran.append(when)

    toolset = FunctionToolset[Any]([backup]).approval_required()
    pay = broken("backup", requires_approval=approved)
    agent = agent_with(Runtime(), pay, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    script = Script([[Ask("pay", {"when": DUE})]])
    result = asyncio.run(agent.run("go", model=script.model))
    if approved:
        (asked,) = result.output.approvals
        yes = DeferredToolResults(approvals={asked.tool_call_id: True})
        history = result.all_messages()
        asyncio.run(agent.run(message_history=history, deferred_tool_results=yes, model=script.model))
    (text,) = texts(script)
    assert text.startswith("pay failed: UNAVAILABLE (tool_transient, 2 attempts). It had no effect.")
    assert ran == []


def test_only_currently_offered_tools_are_used_as_fallbacks() -> None:
    ran: list[str] = []

    def for_admins(when: date) -> None:
        ran.append("for_admins")

    async def at_first_only(ctx: RunContext[Any], tool: Any) -> Any:
        return tool if ctx.run_step < 2 else None

    search, _ = failing()
    agent = agent_with(Runtime(), search, broken("for_admins"), Tool(for_admins, prepare=at_first_only))
    script = Script([[Ask("search", {})], [Ask("pay", {"when": DUE})]])
    asyncio.run(agent.run("go", model=script.model))
    assert texts(script)[1].startswith(NOBODY_RAN)
    assert ran == []


def test_a_fallback_that_belongs_to_another_agent_is_not_used() -> None:
    runtime = Runtime()
    search, _ = failing()
    talk(agent_with(runtime, search))
    (text,) = texts(ask(agent_with(runtime, broken("search")), when=DUE))
    assert text.startswith(NOBODY_RAN)


def test_a_fallback_receives_arguments_of_its_own_types() -> None:
    seen: list[Any] = []

    def by_text(when: str) -> str:
        seen.append(when)
        raise DOWN

    def by_date(when: date) -> str:
        seen.append(when)
        return "paid"

    runtime = Runtime({"tools": {"by_text": {"fallbacks": [{"tool": "by_date"}], "retry": {"max_attempts": 1}}}})
    agent = agent_with(runtime, broken("by_text"), by_text, by_date)
    assert texts(ask(agent, when=DUE)) == ["paid"]
    assert seen == [DUE, date(2026, 11, 16)]


def test_a_fallback_that_takes_other_arguments_is_not_run() -> None:
    def backup(amount: int) -> str:
        raise AssertionError("it ran")

    (text,) = texts(ask(agent_with(Runtime(), broken("backup"), backup), when=DUE))
    assert text.startswith("pay failed: UNAVAILABLE (tool_transient, 1 attempt). It had no effect.")
