"""OpenAI Agents SDK: the run goes on, guardrails and approvals still hold, MCP servers may die."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import runpy
import sys
import time
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    ModelSettings,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolOutputText,
    Usage,
    WebSearchTool,
    function_tool,
    tool_input_guardrail,
)
from agents.exceptions import (
    AgentsException,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    MCPToolCancellationError,
    ModelBehaviorError,
    ModelRefusalError,
    ModelTimeoutError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    ToolTimeoutError,
    UserError,
)
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel
from tests.adapters.story import SCENES, Story, tell, transcript

from failsoft import Runtime, partial
from failsoft.adapters.openai_agents import guard_agent
from failsoft.adapters.openai_agents.guard import _GROUPS, Guard
from failsoft.adapters.openai_agents.servers import guard_server
from failsoft.errors import FailsoftError
from failsoft.testing import Seen, adapter_checks, check_adapter
from failsoft.testing.check_adapter import Steps, Tools


class Scripted(Model):
    """Makes these calls step by step, then finishes; keeps its inputs."""

    def __init__(self, *steps: Sequence[tuple[str, Any]]) -> None:
        self.steps = list(steps)
        self.played = 0
        self.offered: list[list[str]] = []
        self.prompts: list[str | None] = []

    async def get_response(self, system_instructions: Any, *_: Any, tools: Any = (), **__: Any) -> Any:
        self.prompts.append(system_instructions)
        self.offered.append([tool.name for tool in tools])
        number, self.played = self.played, self.played + 1
        if number >= len(self.steps):
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
            return ModelResponse(output=[said], usage=Usage(), response_id=None)
        calls: list[Any] = [
            ResponseFunctionToolCall(
                name=name,
                arguments=args if isinstance(args, str) else json.dumps(args),
                call_id=f"c{number}-{place}",
                type="function_call",
            )
            for place, (name, args) in enumerate(self.steps[number])
        ]
        return ModelResponse(output=calls, usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **_: Any) -> Any:
        said = await self.get_response(*args[:1], tools=args[3])
        response = Response(
            id="r", created_at=0, model="m", object="response", output=said.output, tool_choice="auto", tools=[],
            parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


QUIET = RunConfig(tracing_disabled=True)


def answers(result: Any) -> dict[str, Any]:
    """The answers the model received, by call id."""
    items = [item.raw_item for item in result.new_items if item.type == "tool_call_output_item"]
    return {item["call_id"]: item["output"] for item in items}


def text(output: Any) -> str:
    if isinstance(output, list):
        return "".join(part["text"] for part in output)
    return str(output)


async def arun(rt: Runtime | None, tools: Sequence[Any], *steps: Any, **options: Any) -> Any:
    config = options.pop("config", QUIET)
    model = options.pop("model", None) or Scripted(*steps)
    agent: Agent[Any] = Agent(name="agent", model=model, tools=list(tools), **options)
    return await Runner.run(agent if rt is None else guard_agent(agent, rt), "go", run_config=config)


def ask(rt: Runtime, tool: Any, arguments: Any = None, **options: Any) -> str:
    """Run an agent with one call and return the answer the model received."""
    tools = tool if isinstance(tool, list) else [tool]
    result = asyncio.run(arun(rt, tools, [(tools[0].name, arguments or {})], **options))
    return text(answers(result)["c0-0"])


class Place(BaseModel):
    city: str


# --- the suite that all adapters pass ------------------------------------------------------------------------------------


class Driver:
    control_flow = (
        UserError("wrong use"),
        MaxTurnsExceeded("10 turns"),
        ModelRefusalError("no"),
        ModelTimeoutError(5),
        MCPToolCancellationError("cancelled"),
        InputGuardrailTripwireTriggered(SimpleNamespace(guardrail=None)),  # type: ignore[arg-type]
        OutputGuardrailTripwireTriggered(SimpleNamespace(guardrail=None)),  # type: ignore[arg-type]
        ToolInputGuardrailTripwireTriggered(None, None),  # type: ignore[arg-type]
        ToolOutputGuardrailTripwireTriggered(None, None),  # type: ignore[arg-type]
        ExceptionGroup("in a task group", [MaxTurnsExceeded("10 turns")]),
    )
    failure: ClassVar[dict[str, Any]] = {}

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> list[list[Seen]]:
        given = [function_tool(each, name_override=name, **self.failure) for name, each in tools.items()]
        result = await arun(runtime, given, *([(call.tool, dict(call.args)) for call in step] for step in steps))
        heard = answers(result)
        return [
            [Seen(call.tool, text(heard[f"c{number}-{place}"])) for place, call in enumerate(step)]
            for number, step in enumerate(steps)
        ]


class Strict(Driver):
    """Tools without a failure function: their exceptions end the run."""

    failure: ClassVar[dict[str, Any]] = {"failure_error_function": None}


@pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
def test_adapter(check: Any) -> None:
    check_adapter(Driver(), check)


GOOD = {"a_value_arrives", "a_safe_retry_happens", "a_harmless_retry_happens", "control_flow_passes"}


@pytest.mark.parametrize(
    "check", [check for check in adapter_checks() if check.__name__ in GOOD], ids=lambda check: check.__name__
)
def test_adapter_without_failure_functions(check: Any) -> None:
    check_adapter(Strict(), check)


# --- MCP servers -----------------------------------------------------------------------------------------------------------


class Server(MCPServer):
    """An MCP server that plays one step per request: an exception, or a text."""

    def __init__(self, *steps: Any, listed: Any = None, is_error: bool = False) -> None:
        super().__init__()
        self.steps, self.listed, self.is_error = list(steps), listed, is_error
        self.calls = self.listings = 0

    @property
    def name(self) -> str:
        return "docs"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> Any:
        from mcp.types import Tool

        self.listings += 1
        if self.listed is not None:
            raise self.listed
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return [Tool.model_validate({"name": "search_docs", "description": "Search.", "inputSchema": schema})]

    async def call_tool(self, *_: Any, **__: Any) -> Any:
        from mcp.types import CallToolResult, TextContent

        step = self.steps[min(self.calls, len(self.steps) - 1)]
        self.calls += 1
        if isinstance(step, Exception):
            raise step
        return CallToolResult(content=[TextContent(type="text", text=step)], is_error=self.is_error)

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, *_: Any, **__: Any) -> Any: ...


def search(rt: Runtime, server: Server, **options: Any) -> Any:
    return asyncio.run(arun(rt, [], [("search_docs", {"query": "refunds"})], mcp_servers=[server], **options))


QUICK = {"max_attempts": 3, "initial_delay": "1ms", "max_delay": "2ms"}


def test_mcp_tools_are_guarded() -> None:
    rt = Runtime({"tools": {"search_docs": {"read_only": True, "retry": QUICK}}})
    server = Server(ConnectionResetError("reset"), "found it")
    assert text(answers(search(rt, server))["c0-0"]) == "found it"
    assert server.calls == 2, rt.events()


@pytest.mark.parametrize(
    ("step", "is_error", "says"),
    [
        ("503 Service Unavailable", True, "UNAVAILABLE (tool_transient"),
        (UserError("Failed to call tool 'search_docs' on MCP server 'docs': Connection lost."), False, "UNAVAILABLE"),
        (ConnectionRefusedError(111, "Connection refused"), False, "UNAVAILABLE (tool_transient"),
    ],
)
def test_error_results_of_mcp_servers_are_classified(step: Any, is_error: bool, says: str) -> None:
    rt = Runtime({"tools": {"search_docs": {"retry": {"max_attempts": 1}}}})
    told = text(answers(search(rt, Server(step, is_error=is_error)))["c0-0"])
    assert told.startswith("search_docs failed: ")
    assert says in told
    assert rt.health("search_docs").failure_count == 1


def test_a_dead_mcp_server_does_not_end_the_run() -> None:
    rt = Runtime({"tools": {"mcp:docs": {"retry": QUICK, "breaker": {"failure_threshold": 3}}}})
    server, model = (
        Server(listed=UserError("Failed to list tools from MCP server 'docs': Connection lost.")),
        Scripted(),
    )
    result = asyncio.run(arun(rt, [], model=model, mcp_servers=[server], instructions="Be kind."))
    assert (result.final_output, server.listings) == ("done", 3)
    assert model.offered == [[]]
    (prompt,) = model.prompts
    assert prompt is not None
    assert prompt.startswith("Be kind.\n\nSome tools are missing in this run.\n\nmcp:docs failed: UNAVAILABLE")
    asyncio.run(arun(rt, [], model=Scripted(), mcp_servers=[server]))
    assert server.listings == 3  # the circuit is open: no run waits for the server again


@pytest.mark.parametrize("later", ["cloned", "set"])
def test_a_server_that_comes_later_may_be_dead_too(later: str) -> None:
    guarded = guard_agent(Agent[Any](name="a", model=Scripted()), Runtime({"tools": {"mcp:docs": {"retry": QUICK}}}))
    servers: Any = [Server(listed=ConnectionRefusedError("refused"))]
    if later == "cloned":
        guarded = guarded.clone(mcp_servers=servers)
    else:
        guarded.mcp_servers = servers
    assert asyncio.run(Runner.run(guarded, "go", run_config=QUIET)).final_output == "done"


def test_servers_of_one_name_have_a_breaker_each() -> None:
    """One that is dead does not take its namesake along."""
    rt = Runtime({"tools": {"mcp:docs": {"retry": QUICK, "breaker": {"failure_threshold": 1}}}})
    dead, alive = Server(listed=ConnectionRefusedError("refused")), Server("found it")
    for _ in range(2):
        result = asyncio.run(arun(rt, [], [("search_docs", {"query": "x"})], mcp_servers=[dead, alive]))
        assert text(answers(result)["c0-0"]) == "found it"
    assert rt.health("mcp:docs").state == "open"


def test_a_guarded_server_is_the_server_for_everything_else() -> None:
    server = Server("x")
    guarded: Any = guard_server(server, Guard(Runtime(), None, True))
    assert isinstance(guarded, MCPServer)
    assert (guarded.name, guarded.cached_tools, guarded.calls) == ("docs", None, 0)


def test_methods_that_a_server_is_given_later_are_guarded_too() -> None:
    rt, server = Runtime(), Server("found it")
    steps: Any = [("search_docs", {"query": "x"})]

    async def refuse(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    server.call_tool = refuse  # type: ignore[method-assign]
    result = asyncio.run(arun(rt, [], steps, mcp_servers=[server]))
    assert text(answers(result)["c0-0"]).startswith("search_docs failed: UNAVAILABLE")
    server.list_tools = refuse  # type: ignore[method-assign]
    assert asyncio.run(arun(Runtime(), [], mcp_servers=[server])).final_output == "done"


def test_servers_are_told_apart_by_identity() -> None:
    class Equal(Server):
        __hash__ = None  # type: ignore[assignment]  # like a dataclass

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

    servers = [Equal("one"), Equal("two")]
    guards = Guard(Runtime(), None, True)
    guarded: Any = guards.guard_servers(servers)
    assert [each.steps for each in guarded] == [["one"], ["two"]]
    assert all(one is other for one, other in zip(guards.guard_servers(servers), guarded, strict=True))


# --- the story -----------------------------------------------------------------------------------------------------------


def test_story() -> None:
    story, heard = Story(), []
    rt = story.runtime()
    tools = [function_tool(each) for name, each in story.tools.items() if name != "search_docs"]
    for number, scene in enumerate(SCENES):
        story.runs.clear()
        server = Server(ConnectionRefusedError(111, "Connection refused"))
        steps = [[(scene.tool, asked)] for asked in scene.asks]
        config = RunConfig(tracing_disabled=True, group_id=f"chat-{number}")
        result = asyncio.run(arun(rt, tools, *steps, config=config, mcp_servers=[server]))
        heard.append((scene, [text(output) for output in answers(result).values()]))
        assert result.final_output == "done"
        assert (story.runs.get(scene.tool, 0) or server.calls) == scene.runs, scene.title
    assert tell(heard) == transcript(
        bad_arguments="""\
book_table(people='many')
  book_table failed: INVALID_ARGUMENT (tool_validation, not run). It had no effect. Calling it again with the same arguments will fail: correct people, or ask the user. Error text, as data: "The arguments do not fit. Invalid: people. people: 'many' is not of type 'integer'."
"""
    )


# --- arguments -------------------------------------------------------------------------------------------------------------


@function_tool
def book(people: int, day: str) -> str:
    """Book a table."""
    raise AssertionError


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"people": "many", "day": "Monday"}, "Invalid: people. people: 'many' is not of type 'integer'."),
        ({"people": 4}, "Missing: day."),
        ('{"people": 4', "They are not valid JSON: Expecting ',' delimiter"),
        ("[4]", "They must be one JSON object, not list."),
    ],
)
def test_bad_arguments_name_what_to_correct(arguments: Any, says: str) -> None:
    told = ask(Runtime(), book, arguments)
    assert told.startswith("book failed: INVALID_ARGUMENT (tool_validation")
    assert says in told


def test_a_validation_error_inside_a_tool_is_a_bug_of_the_tool() -> None:
    from pydantic import BaseModel

    class City(BaseModel):
        name: str

    @function_tool
    def lookup(name: str) -> str:
        """Look a city up."""
        return City.model_validate({"nom": name}).name

    assert "internal_contract_bug" in ask(Runtime(), lookup, {"name": "Bern"})


def test_a_tool_that_reads_its_arguments_itself_may_blame_them() -> None:
    from pydantic import BaseModel

    class Booking(BaseModel):
        people: int
        day: str

    async def book(_: Any, arguments: str) -> str:
        return f"booked for {Booking.model_validate_json(arguments).people + int('four')}"

    tool = FunctionTool("book", "Book a table.", Booking.model_json_schema(), book)
    told = ask(Runtime(), tool, {"people": "many"})
    assert told.startswith("book failed: INVALID_ARGUMENT (tool_validation")
    assert "Missing: day. Invalid: people." in told


def test_a_validation_error_of_other_data_is_a_bug_of_the_tool() -> None:
    from pydantic import BaseModel, TypeAdapter

    class Booking(BaseModel):
        people: int

    async def book(_: Any, arguments: str) -> str:
        Booking.model_validate_json(arguments)
        return str(TypeAdapter(int).validate_python("no number"))

    tool = FunctionTool("book", "Book a table.", Booking.model_json_schema(), book)
    assert "internal_contract_bug" in ask(Runtime(), tool, {"people": 4})


@pytest.mark.parametrize("declared", [{"output_type": Place}, {"output_json_schema": Place.model_json_schema()}])
def test_a_failed_call_of_a_tool_with_a_typed_value_does_not_end_the_run(declared: Any) -> None:
    @function_tool(**declared)
    async def locate() -> Any:
        """Find a place."""
        raise ConnectionResetError("reset")

    assert ask(Runtime(), locate).startswith("locate failed: UNAVAILABLE")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["a"], "['a']\nlookup succeeded in part."),
        (ToolOutputText(text="a"), "alookup succeeded in part."),
        ([ToolOutputText(text="a"), ToolOutputText(text="b")], "ablookup succeeded in part."),
    ],
)
def test_a_partial_value_comes_with_what_it_lacks(value: Any, told: str) -> None:
    @function_tool
    async def lookup() -> Any:
        """Look something up."""
        return partial(value, missing=["c"])

    rt = Runtime({"tools": {"lookup": {"accept_partial": True}}})
    assert ask(rt, lookup).startswith(told)


def test_a_value_of_another_type_than_declared_is_the_tools_own_fault() -> None:
    """The SDK's words are "Please try again", after the tool has run."""

    @function_tool(output_type=Place)
    async def book() -> Any:
        """Book a place."""
        return {"town": "Bern"}

    told = ask(Runtime(), book)
    assert told.startswith(
        "book failed: INTERNAL (internal_contract_bug, 1 attempt). It may already have taken effect."
    )


# --- time --------------------------------------------------------------------------------------------------------------------


def test_a_blocking_tool_may_have_a_timeout() -> None:
    @function_tool
    def hang() -> str:
        """Hang."""
        time.sleep(0.5)
        return "late"

    async def main() -> float:
        began = time.monotonic()
        result = await arun(Runtime({"tools": {"hang": {"timeout": "50ms"}}}), [hang], [("hang", {})])
        assert "Tool timeout after 50ms" in text(answers(result)["c0-0"])
        return time.monotonic() - began

    assert asyncio.run(main()) < 0.45


def test_the_sdks_timeout_becomes_the_tools() -> None:
    tries = []

    @function_tool(timeout=0.05, timeout_behavior="raise_exception")
    async def hang() -> str:
        """Hang."""
        tries.append(1)
        await asyncio.sleep(20)
        return "late"

    with pytest.raises(ToolTimeoutError):
        ask(Runtime(), hang)
    hang.timeout_behavior = "error_as_result"
    told = ask(Runtime(), hang)
    assert "hang failed: DEADLINE_EXCEEDED (tool_transient, 1 attempt). It may already have taken effect" in told
    assert "Tool timeout after 50ms" in told
    assert hang.timeout_seconds == 0.05  # the agent's own tool is as it was


def test_a_timeout_of_a_tool_inside_is_a_failure() -> None:
    @function_tool
    async def inner() -> str:
        """Call something of the SDK's."""
        raise ToolTimeoutError("other", 5)

    assert ask(Runtime(), inner).startswith("inner failed: DEADLINE_EXCEEDED")


# --- guardrails and approvals ---------------------------------------------------------------------------------------------------


def test_guardrails_still_hold() -> None:
    ran = []

    @tool_input_guardrail
    def refuse(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.raise_exception()

    @function_tool(tool_input_guardrails=[refuse])
    def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    with pytest.raises(ToolInputGuardrailTripwireTriggered):
        ask(Runtime(), pay)
    assert not ran


@pytest.mark.parametrize(("amount", "asked"), [(4, False), (400, True), ("4", True)])
def test_approvals_see_what_will_run(amount: Any, asked: bool) -> None:
    async def policy(_: Any, arguments: dict[str, Any], __: str) -> bool:
        return int(arguments["amount"]) > 100

    @function_tool(needs_approval=policy)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    for rt in (None, Runtime()):  # as without failsoft: arguments that validation changes are for a person
        result = asyncio.run(arun(rt, [pay], [("pay", {"amount": amount})]))
        assert bool(result.interruptions) is asked


def test_tools_with_approval_or_guardrails_are_not_used_as_fallbacks() -> None:
    """The approval or the guardrail of the called tool does not cover its fallback."""
    ran: list[str] = []

    def make(name: str, **options: Any) -> FunctionTool:
        async def run() -> str:
            """Look something up."""
            ran.append(name)
            return "found"

        return function_tool(run, name_override=name, **options)

    @function_tool
    async def lookup() -> str:
        """Look something up."""
        raise ConnectionRefusedError("refused")

    @tool_input_guardrail
    def look(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow()

    watched = [make("approved", needs_approval=True), make("watched", tool_input_guardrails=[look])]
    fallbacks = ["approved", "watched", "free"]
    rt = Runtime({"tools": {"lookup": {"fallbacks": fallbacks, "retry": {"max_attempts": 1}}}})
    assert ask(rt, [lookup, *watched, make("free")]) == "found"
    assert ran == ["free"]


# --- what is known of tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declare", "attempts"),
    [
        (lambda rt: None, 1),  # nothing says that repeating is safe
        (lambda rt: rt.declare("oracle", read_only=True, retry=QUICK), 3),
        (lambda rt: rt.add(lambda: None, id="oracle", idempotent=True, retry=QUICK), 3),
    ],
)
def test_repeated_only_if_declared(declare: Any, attempts: int) -> None:
    rt, tries = Runtime(), []
    declare(rt)

    @function_tool
    async def oracle() -> str:
        """Who knows?"""
        tries.append(1)
        raise TimeoutError("the answer was lost")

    ask(rt, oracle)
    assert len(tries) == attempts


@pytest.mark.parametrize(("name", "said", "attempts"), [("oracle", "Searches.", 3), ("pay", "Searches.", 1)])
def test_repeated_if_recognised_as_a_read(name: str, said: str, attempts: int) -> None:
    rt, tries = Runtime({"defaults": {"retry": QUICK}}), []

    @function_tool(name_override=name, description_override=said)
    async def run() -> str:
        tries.append(1)
        raise TimeoutError("the answer was lost")

    ask(rt, run)
    assert len(tries) == attempts
    assert rt.tools[name].effect_source == "recognised"
    assert rt.tools[name].description == said
    assert rt.tools[name].schema["type"] == "object"


def test_a_guarded_function_is_guarded_once() -> None:
    rt, tries = Runtime(), []

    @function_tool
    @rt.tool(read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"})
    async def lookup() -> str:
        """Look something up."""
        tries.append(1)
        raise ConnectionError("503 Service Unavailable")

    assert ask(rt, lookup).startswith("lookup failed: UNAVAILABLE (tool_transient, 2 attempts)")
    assert (len(tries), rt.health("lookup").failure_count) == (2, 2)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guarded_function_of_which_nothing_is_known_counts_as_a_write_in_an_agent(is_async: bool) -> None:
    rt, tries = Runtime(), []

    def oracle() -> str:
        """Ask."""
        tries.append(1)
        raise ConnectionResetError("connection reset by peer")

    async def later() -> str:
        """Ask."""
        return oracle()

    said = ask(rt, function_tool(rt.add(later if is_async else oracle)))
    assert "may already have taken effect" in said
    assert len(tries) == 1


def test_tools_made_by_hand() -> None:
    async def invoke(context: Any, arguments: str) -> Any:
        raise ConnectionError(f"503 Service Unavailable: {arguments}")

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = FunctionTool(name="raw", description="x", params_json_schema=schema, on_invoke_tool=invoke)
    rt = Runtime({"tools": {"raw": {"retry": {"max_attempts": 1}}}})
    assert ask(rt, tool).startswith("raw failed: UNAVAILABLE")


def test_the_sdk_need_not_inspect_a_guarded_tool_in_every_call() -> None:
    agent = guard_agent(Agent[Any](name="a", tools=[function_tool(lambda: "x", name_override="x")]), Runtime())
    invoker: Any = cast("FunctionTool", agent.tools[0]).on_invoke_tool
    assert signature(invoker) is invoker.__signature__
    assert signature(invoker).parameters["context"].annotation == ToolContext[Any]  # not a text to evaluate


def test_tools_that_are_not_functions_are_left_unchanged() -> None:
    web, agent = WebSearchTool(), Agent[Any](name="a", tools=[WebSearchTool()])
    agent.tools = [web]
    (offered,) = asyncio.run(guard_agent(agent, Runtime()).get_all_tools(SimpleNamespace()))  # type: ignore[arg-type]
    assert offered is web


# --- agents --------------------------------------------------------------------------------------------------------------------


class Special(Agent[Any]):
    """A user-defined subclass of Agent."""


def test_the_agent_itself_is_not_touched() -> None:
    agent = Special(name="a", instructions="Be kind.", tools=[book])
    guarded = guard_agent(agent, Runtime())
    assert isinstance(guarded, Special)
    assert type(agent) is Special
    assert (guarded.name, guarded.instructions, guarded.tools) == ("a", "Be kind.", [book])
    assert type(guarded.clone(name="b")) is type(guarded)  # clones of it are guarded too
    with pytest.raises(FailsoftError, match="'a' is already guarded"):
        guard_agent(guarded, Runtime())


def test_tools_are_guarded_once_per_list() -> None:
    guarded = guard_agent(Agent[Any](name="a", tools=[book]), Runtime())
    context: Any = SimpleNamespace()
    first, second = (asyncio.run(guarded.get_all_tools(context)) for _ in range(2))
    assert first[0] is second[0]
    assert first[0] is not book


def test_a_missing_tool_is_not_offered_again() -> None:
    @function_tool
    def lookup() -> str:
        """Look something up."""
        raise NotImplementedError("501 Not Implemented: tool not found: lookup")

    model = Scripted([("lookup", {})])
    agent: Agent[Any] = Agent(name="a", model=model, tools=[lookup, book])
    guarded = guard_agent(agent, Runtime(), thread=lambda context: context.context)
    asyncio.run(Runner.run(guarded, "go", context="chat-1", run_config=QUIET))
    assert model.offered == [["lookup", "book"], ["book"]]


def test_a_missing_tool_is_not_offered_again_in_its_group_although_nothing_is_traced() -> None:
    @function_tool
    def lookup() -> str:
        """Look something up."""
        raise NotImplementedError("501 Not Implemented: tool not found: lookup")

    rt = Runtime()
    for group, expected in (("chat-1", ["book"]), ("chat-2", ["lookup", "book"])):
        model = Scripted([("lookup" if group == "chat-1" else "book", {})])
        guarded = guard_agent(Agent[Any](name="a", model=model, tools=[lookup, book]), rt)
        asyncio.run(Runner.run(guarded, "go", run_config=RunConfig(group_id=group, tracing_disabled=True)))
        assert model.offered == [["lookup", "book"], expected]


@pytest.mark.parametrize(("watched", "stays"), [(False, True), (True, False)])
def test_a_missing_tool_stays_offered_while_it_has_a_usable_fallback(watched: bool, stays: bool) -> None:
    @function_tool
    def lookup() -> str:
        """Look something up."""
        raise NotImplementedError("501 Not Implemented: tool not found: lookup")

    @function_tool(needs_approval=watched)
    def cached() -> str:
        """Look it up in a cache."""
        return "instead"

    model = Scripted([("lookup", {})], [("lookup", {})])
    agent: Agent[Any] = Agent(name="a", model=model, tools=[lookup, cached])
    guarded = guard_agent(
        agent, Runtime({"tools": {"lookup": {"read_only": True, "fallbacks": ["cached"]}}}), thread=lambda _: "chat-1"
    )
    if not stays:
        with pytest.raises(ModelBehaviorError):  # as the SDK answers to a call of what is not offered
            asyncio.run(Runner.run(guarded, "go", run_config=QUIET))
        assert model.offered == [["lookup", "cached"], ["cached"]]
        return
    result = asyncio.run(Runner.run(guarded, "go", run_config=QUIET))
    assert (model.offered, list(answers(result).values())) == ([["lookup", "cached"]] * 3, ["instead"] * 2)


@pytest.mark.parametrize("choice", ["lookup", "required"])
def test_the_tool_that_the_model_is_made_to_call_stays_offered(choice: str) -> None:
    """Providers refuse a request that names a tool which is not there."""

    @function_tool
    def lookup() -> str:
        """Look something up."""
        raise NotImplementedError("501 Not Implemented: tool not found: lookup")

    tools = [lookup, book] if choice == "lookup" else [lookup]
    model, settings = Scripted([("lookup", {})]), ModelSettings(tool_choice=choice)
    agent: Agent[Any] = Agent(name="a", model=model, tools=tools, model_settings=settings)
    guarded = guard_agent(agent, Runtime(), thread=lambda _: "chat-1")
    for _ in range(2):
        asyncio.run(Runner.run(guarded, "go", run_config=QUIET))
    assert model.offered == [[tool.name for tool in tools]] * 3


def test_two_tools_of_one_name_have_a_timeout_each() -> None:
    def make(seconds: float) -> FunctionTool:
        async def lookup() -> str:
            """Look something up."""
            await asyncio.sleep(0.05)
            return "found"

        return function_tool(lookup, timeout=seconds)

    rt = Runtime({"defaults": {"retry": {"max_attempts": 1}}})
    for _ in range(2):
        assert "Tool timeout after 10ms" in ask(rt, make(0.01))
        assert ask(rt, make(5)) == "found"
    by_hand = Runtime()
    by_hand.declare("lookup", timeout="20s")
    assert ask(by_hand, make(0.01)) == ask(by_hand, make(60)) == "found"
    in_a_file = Runtime({"tools": {"lookup": {"timeout": "20s"}}})
    assert ask(in_a_file, make(60)) == ask(in_a_file, make(0.01)) == "found"


@pytest.mark.parametrize(
    ("agent", "runtime", "options", "says"),
    [
        (Agent(name="a"), "failsoft.yaml", {}, "'failsoft.yaml' is not a Runtime: write guard_agent(agent, rt)"),
        (Runtime(), Agent(name="a"), {}, "is not a Runtime: write guard_agent(agent, rt)"),
        ([Agent(name="a")], Runtime(), {}, "is not an Agent"),
        (Agent(name="a"), Runtime(), {"thread": "chat-42"}, "thread='chat-42': expected a function"),
    ],
)
def test_mistakes_are_reported_at_once(agent: Any, runtime: Any, options: Any, says: str) -> None:
    with pytest.raises(FailsoftError, match=re.escape(says)):
        guard_agent(agent, runtime, **options)


def test_runs_that_are_over_are_forgotten() -> None:
    before = set(_GROUPS.known)
    assert ask(Runtime(), book, {"people": 2, "day": "Monday"})
    gc.collect()
    assert set(_GROUPS.known) <= before


class BreaksOff(Scripted):
    """After its first step its provider is gone, every time."""

    async def get_response(self, *args: Any, **options: Any) -> Any:
        if self.played % 2:
            self.played = 0
            raise ConnectionRefusedError("refused")
        return await super().get_response(*args, **options)

    async def stream_response(self, *args: Any, **options: Any) -> Any:
        raise ConnectionRefusedError("refused")
        yield


def in_a_function(sub: Agent[Any]) -> FunctionTool:
    async def clerk(input: str) -> str:  # noqa: A002 - as the SDK calls it
        """Pays."""
        return str((await Runner.run(sub, input, run_config=QUIET)).final_output)

    return function_tool(clerk)


def in_a_stream(sub: Agent[Any]) -> FunctionTool:
    async def clerk(input: str) -> str:  # noqa: A002 - as the SDK calls it
        """Pays."""
        await Runner.run(sub.clone(model=Scripted([("pay", {})])), input, run_config=QUIET)
        async for _ in Runner.run_streamed(sub, input, run_config=QUIET).stream_events():
            pass
        return "never"

    return function_tool(clerk)


@pytest.mark.parametrize("make", [lambda sub: sub.as_tool("clerk", "Pays."), in_a_function, in_a_stream])
def test_an_agent_that_breaks_off_is_not_run_again(make: Any) -> None:
    """The error describes only its own request: tools of the sub-agent may have acted before it."""
    paid = []

    @function_tool
    def pay() -> str:
        """Pay."""
        paid.append(1)
        return "paid"

    sub: Agent[Any] = Agent(name="clerk", model=BreaksOff([("pay", {})]), tools=[pay])
    told = ask(Runtime(), make(sub), {"input": "pay"})
    assert told.startswith("clerk failed: UNAVAILABLE (tool_transient, 1 attempt). It may already have taken effect")
    assert len(paid) == 1


@pytest.mark.parametrize("make", [lambda sub: sub.as_tool("clerk", "Pays."), in_a_function])
def test_an_unknown_tool_called_by_an_inner_agent_is_not_an_argument_error(make: Any) -> None:
    sub: Agent[Any] = Agent(name="clerk", model=Scripted([("made_up", {})]))
    told = ask(Runtime(), make(sub), {"input": "pay"})
    assert told.startswith("clerk failed: UNKNOWN (tool_transient, 1 attempt). It may already have taken effect")


# --- the rest --------------------------------------------------------------------------------------------------------------------


def test_plain_sdk_errors_are_failures() -> None:
    @function_tool
    def lookup() -> str:
        """Look something up."""
        raise AgentsException("503 Service Unavailable")

    rt = Runtime({"tools": {"lookup": {"retry": {"max_attempts": 1}}}})
    assert ask(rt, lookup).startswith("lookup failed: UNAVAILABLE")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents.tool_context", None)
    for name in [name for name in sys.modules if name.startswith("failsoft.adapters.openai_agents")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"install failsoft\[openai-agents\]"):
        import failsoft.adapters.openai_agents  # noqa: F401


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "openai_agents_agent.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Sunny in Paris" in printed
    assert "pay failed: DEADLINE_EXCEEDED" in printed


def test_a_function_that_blames_the_model_itself_has_run() -> None:
    @function_tool
    def pay() -> str:
        """Pay."""
        raise ModelBehaviorError("Invalid JSON in the receipt")

    told = ask(Runtime(), pay)
    assert "1 attempt" in told
    assert "may already have taken effect" in told


@pytest.mark.parametrize("arguments", ["{", "[]", {"amount": "a lot"}, {}])
def test_arguments_that_the_sdk_refuses_never_reach_the_function(arguments: Any) -> None:
    @function_tool
    def pay(amount: int) -> str:
        """Pay."""
        raise AssertionError(amount)

    assert "not run). It had no effect." in ask(Runtime(), pay, arguments)


def test_a_disabled_tool_is_not_offered() -> None:
    @function_tool
    def lookup() -> str:
        """Look something up."""
        return "found"

    rt = Runtime()
    rt.disable("lookup", "maintenance")
    model = Scripted([("book", {})])
    agent: Agent[Any] = Agent(name="a", model=model, tools=[lookup, book])
    asyncio.run(Runner.run(guard_agent(agent, rt), "go", run_config=QUIET))
    assert model.offered[0] == ["book"]
