"""LangChain: error handlers that the user has set keep their meaning, and a graph's run is one turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tool_node
from pydantic import BaseModel
from tests.adapters.test_langchain import agent, model, told

from failsoft import CallFailed, Runtime
from failsoft.adapters.langchain import FailsoftMiddleware, private
from failsoft.analysis.why import explain_turn

try:
    from langchain.agents.middleware import ToolErrorMiddleware
except ImportError:  # an older version
    ToolErrorMiddleware = None  # type: ignore[assignment, misc]

QUICK = {"max_attempts": 3, "initial_delay": "1ms", "max_delay": "2ms"}
READS = {"tools": {"search": {"read_only": True, "retry": QUICK}}}
ASKS = {"messages": [HumanMessage("go")]}


class Search:
    """A tool that raises, and counts how often."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.runs = 0

    @property
    def tool(self) -> StructuredTool:
        def search(city: str = "Paris") -> str:
            """Search."""
            self.runs += 1
            raise self.error

        return StructuredTool.from_function(search)


def play(run: Any, *, awaits: bool, config: Any = None) -> Any:
    return asyncio.run(run.ainvoke(ASKS, config)) if awaits else run.invoke(ASKS, config)


def graph(rt: Runtime | None, node: dict[str, Any], *tools: Any, args: Any = None) -> Any:
    """A graph of one's own with a bare ToolNode."""
    guards = {}
    if rt is not None:
        middleware = FailsoftMiddleware(rt)
        guards = {"wrap_tool_call": middleware.wrap_tool_call, "awrap_tool_call": middleware.awrap_tool_call}
    plays = model([("search", args or {})])
    made = StateGraph(MessagesState)
    made.add_node("model", lambda state: {"messages": [plays.invoke(state["messages"])]})
    made.add_node("tools", ToolNode(tools, **guards, **node))
    made.add_edge(START, "model")
    made.add_edge("model", "tools")
    made.add_edge("tools", END)
    return made.compile()


def says(error: Exception) -> str:
    return f"handled {type(error).__name__}"


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize(
    ("flag", "content"),
    [
        ("Sorry.", "Sorry."),
        (says, "handled ConnectionError"),
        (True, "Error: ConnectionError('503 Service Unavailable')\n Please fix your mistakes."),
        (ConnectionError, "Error: ConnectionError('503 Service Unavailable')\n Please fix your mistakes."),
    ],
)
def test_a_tool_nodes_own_handler_has_the_last_word(flag: Any, content: str, awaits: bool) -> None:
    search = Search(ConnectionError("503 Service Unavailable"))
    [bare] = told(play(graph(None, {"handle_tool_errors": flag}, search.tool), awaits=awaits))
    assert (bare.content, search.runs) == (content, 1)
    [message] = told(play(graph(Runtime(READS), {"handle_tool_errors": flag}, search.tool), awaits=awaits))
    assert (message.content, message.status, search.runs) == (content, "error", 1 + 3)
    assert message.artifact["fault"]["code"] == "UNAVAILABLE"


def only_keys(error: KeyError) -> str:
    return f"handled {error.args[0]}"


class Keys:
    def say(self, error: KeyError) -> str:
        return f"handled {error.args[0]}"


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize(
    "flag", [only_keys, Keys().say, KeyError, (KeyError, IndexError)], ids=["function", "method", "class", "tuple"]
)
def test_a_tool_nodes_handler_does_not_speak_for_other_errors(flag: Any, awaits: bool) -> None:
    """LangGraph itself passes them to it as soon as a tool is wrapped: a function for KeyError would get any error."""
    for error, handled in ((KeyError("city"), True), (ConnectionError("503 Service Unavailable"), False)):
        search = Search(error)
        [message] = told(play(graph(Runtime(), {"handle_tool_errors": flag}, search.tool), awaits=awaits))
        assert (message.status, message.content.startswith("search failed: ")) == ("error", not handled)
        assert ("city" in message.content) is handled


class Place(BaseModel):
    city: str


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize("flag", [KeyError, False], ids=["other errors", "none"])
@pytest.mark.parametrize("inside", [False, True], ids=["of the call", "inside the tool"])
def test_bad_arguments_that_no_handler_takes_are_told_from_a_bug(flag: Any, inside: bool, awaits: bool) -> None:
    """LangGraph raises the same error for both, and it is no answer that could be read."""

    def search(city: str) -> str:
        """Search."""
        return Place.model_validate({"town": city}).city

    rt = Runtime()
    tools = [StructuredTool.from_function(search)]
    run = graph(rt, {"handle_tool_errors": flag}, *tools, args={"city": "Rome"} if inside else {"town": "Rome"})
    if flag is False:
        with pytest.raises(tool_node.ToolInvocationError):
            play(run, awaits=awaits)
    else:
        [message] = told(play(run, awaits=awaits))
        fault = message.artifact["fault"]
        assert (fault["category"], fault["effect"]) == (
            ("internal_contract_bug", "unknown") if inside else ("tool_validation", "none")
        )


@pytest.mark.parametrize("awaits", [True, False])
def test_a_tool_node_that_handles_no_errors_raises_the_tools_own(awaits: bool) -> None:
    search = Search(ConnectionError("503 Service Unavailable"))
    with pytest.raises(ConnectionError) as raised:
        play(graph(Runtime(READS), {"handle_tool_errors": False}, search.tool), awaits=awaits)
    assert raised.value is search.error
    assert search.runs == 3


def test_a_refusal_that_has_no_error_of_the_tools_is_raised_as_failsofts() -> None:
    rt, search = (
        Runtime({"tools": {"search": {"retry": {"max_attempts": 1}, "breaker": {"failure_threshold": 1}}}}),
        None,
    )
    search = Search(ConnectionError("503 Service Unavailable"))
    for kind in (ConnectionError, CallFailed):
        with pytest.raises(kind):
            play(graph(rt, {"handle_tool_errors": False}, search.tool), awaits=True)
    assert search.runs == 1


@pytest.mark.parametrize("awaits", [True, False])
def test_an_unset_handler_leaves_it_to_failsoft(awaits: bool) -> None:
    search = Search(ConnectionError("503 Service Unavailable"))
    [message] = told(play(graph(Runtime(READS), {}, search.tool), awaits=awaits))
    assert message.content.startswith("search failed: UNAVAILABLE")


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize(
    ("flag", "content"),
    [(True, "no such city"), ("Sorry.", "Sorry."), (lambda error: f"handled {error}", "handled no such city")],
)
def test_a_tools_own_handler_has_the_last_word(flag: Any, content: str, awaits: bool) -> None:
    search = Search(ToolException("no such city")).tool
    search.handle_tool_error = flag
    [message] = told(play(agent(Runtime(), [search], [("search", {})]), awaits=awaits))
    assert (message.content, message.status, message.name) == (content, "error", "search")
    assert message.artifact["status"] == "failed"


def test_a_tools_own_handler_does_not_speak_for_other_errors() -> None:
    search = Search(ValueError("no such city")).tool
    search.handle_tool_error = "Sorry."
    [message] = told(play(agent(Runtime(), [search], [("search", {})]), awaits=True))
    assert message.content.startswith("search failed")


def test_an_error_message_returned_by_the_tool_is_phrased_by_failsoft() -> None:
    @tool
    def search() -> Any:
        """Search."""
        return ToolMessage("no such city", tool_call_id="c0-0", status="error")

    [message] = told(play(agent(Runtime(), [search], [("search", {})]), awaits=True))
    assert message.content.startswith("search failed")


# --- ToolErrorMiddleware ---------------------------------------------------------------------------------------------------


needs_it = pytest.mark.skipif(ToolErrorMiddleware is None, reason="this version has no ToolErrorMiddleware")


def only_values(error: Exception, _: Any) -> str | None:
    return f"handled {error}" if isinstance(error, ValueError) else None


@needs_it
@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_tool_error_middleware_sees_the_tools_own_error(outside: bool, awaits: bool) -> None:
    rt, search = Runtime(), Search(ValueError("no such city"))
    both: list[AgentMiddleware[Any, Any, Any]] = [ToolErrorMiddleware(only_values), FailsoftMiddleware(rt)]
    run = create_agent(model([("search", {})]), [search.tool], middleware=both if outside else both[::-1])
    [message] = told(play(run, awaits=awaits))
    assert (message.content, message.status) == ("handled no such city", "error")
    assert rt.metrics("search")["error_count"] == 1


@needs_it
@pytest.mark.parametrize("awaits", [True, False])
def test_errors_that_tool_error_middleware_does_not_handle_end_the_run(awaits: bool) -> None:
    search = Search(KeyError("city"))
    both = [ToolErrorMiddleware(only_values), FailsoftMiddleware(Runtime())]
    run = create_agent(model([("search", {})]), [search.tool], middleware=both)
    with pytest.raises(KeyError) as raised:
        play(run, awaits=awaits)
    assert raised.value is search.error


@needs_it
@pytest.mark.parametrize("awaits", [True, False])
def test_bad_arguments_do_not_reach_tool_error_middleware(awaits: bool) -> None:
    search = Search(AssertionError("not reached"))
    both = [ToolErrorMiddleware(only_values), FailsoftMiddleware(Runtime())]
    run = create_agent(model([("search", {"city": 3})]), [search.tool], middleware=both)
    [message] = told(play(run, awaits=awaits))
    assert message.artifact["fault"]["rule"] == "bad_arguments"


@needs_it
@pytest.mark.parametrize("awaits", [True, False])
def test_middleware_for_other_tools_is_not_asked(awaits: bool) -> None:
    search = Search(KeyError("city"))
    both = [ToolErrorMiddleware(only_values, tools=["other"]), FailsoftMiddleware(Runtime())]
    run = create_agent(model([("search", {})]), [search.tool], middleware=both)
    [message] = told(play(run, awaits=awaits))
    assert message.content.startswith("search failed")


@needs_it
@pytest.mark.parametrize("awaits", [True, False])
def test_a_guarded_functions_error_reaches_tool_error_middleware(awaits: bool) -> None:
    rt = Runtime()

    @rt.tool
    def search() -> str:
        """Search."""
        raise ValueError("no such city")

    seen = []
    both = [ToolErrorMiddleware(lambda error, _: seen.append(error) or "handled"), FailsoftMiddleware(rt)]
    run = create_agent(model([("search", {})]), [StructuredTool.from_function(search)], middleware=both)
    [message] = told(play(run, awaits=awaits))
    assert message.content == "handled"
    assert isinstance(seen[0], CallFailed)


# --- turns -------------------------------------------------------------------------------------------------------------------


@tool
def fine(city: str = "Paris") -> str:
    """Search."""
    return f"found {city}"


def turns(rt: Runtime) -> list[Any]:
    ids = dict.fromkeys(event.turn_id for event in rt.events())
    return [
        explain_turn(str(id), [event.to_dict() for event in rt.events() if event.turn_id == id]) for id in ids if id
    ]


@pytest.mark.parametrize("awaits", [True, False])
def test_a_run_is_a_turn(awaits: bool) -> None:
    rt = Runtime()

    @tool
    def search() -> str:
        """Search."""
        raise ValueError("no such city")

    run = agent(rt, [fine, search], [("fine", {}), ("search", {})], [("fine", {"city": "Rome"})])
    play(run, awaits=awaits, config={"configurable": {"thread_id": "chat-1"}})
    [turn] = turns(rt)
    assert (turn.ended, turn.thread) == (True, "chat-1")
    rows = sorted((row.id, row.tool, row.status) for row in turn.waterfall.rows)
    assert rows == [
        ("c0-0", "fine", "succeeded"), ("c0-1", "search", "failed"), ("c1-0", "fine", "succeeded"),
    ]  # fmt: skip
    assert [event.event_type for event in rt.events()].count("TurnEnded") == 1


def test_a_run_without_calls_is_a_turn_too() -> None:
    rt = Runtime()
    play(agent(rt, [fine]), awaits=True)
    [turn] = turns(rt)
    assert (turn.ended, turn.waterfall.rows) == (True, ())


@pytest.mark.parametrize("awaits", [True, False])
def test_a_stream_is_a_turn(awaits: bool) -> None:
    rt = Runtime()
    run = agent(rt, [fine], [("fine", {})])

    async def stream() -> None:
        async for _ in run.astream(ASKS, stream_mode="updates"):
            pass

    if awaits:
        asyncio.run(stream())
    else:
        for _ in run.stream(ASKS, stream_mode="updates"):
            pass
    [turn] = turns(rt)
    assert (turn.ended, [row.tool for row in turn.waterfall.rows]) == (True, ["fine"])


def test_runs_side_by_side_are_turns_of_their_own() -> None:
    rt = Runtime()

    async def go() -> None:
        await asyncio.gather(*(agent(rt, [fine], [("fine", {})], [("fine", {})]).ainvoke(ASKS) for _ in range(5)))

    asyncio.run(go())
    assert [(turn.ended, len(turn.waterfall.rows)) for turn in turns(rt)] == [(True, 2)] * 5


def test_an_agent_inside_a_tool_is_part_of_the_call() -> None:
    rt = Runtime()
    inner = agent(rt, [fine], [("fine", {})])

    @tool
    async def delegate() -> str:
        """Ask another agent."""
        return str((await inner.ainvoke(ASKS))["messages"][-1].content)

    play(agent(rt, [delegate], [("delegate", {})]), awaits=True)
    [turn] = turns(rt)
    assert [(row.tool, row.parent) for row in turn.waterfall.rows] == [("delegate", None), ("fine", "c0-0")]
    assert [row.id for row in turn.waterfall.rows] == ["c0-0", "c0-0/c0-0"]  # their models count alike


def test_agents_in_one_graph_share_its_turn() -> None:
    rt = Runtime()
    made = StateGraph(MessagesState)
    made.add_node("first", agent(rt, [fine], [("fine", {})]))
    made.add_node("second", agent(rt, [fine], [("fine", {"city": "Rome"})]))
    made.add_edge(START, "first")
    made.add_edge("first", "second")
    made.add_edge("second", END)
    play(made.compile(), awaits=True)
    [turn] = turns(rt)
    assert turn.ended


def test_a_run_that_breaks_off_is_a_turn_that_has_ended() -> None:
    rt = Runtime()

    class Broken(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            if len(state["messages"]) > 2:
                raise RuntimeError("the hook broke")

    run = create_agent(
        model([("fine", {})], [("fine", {})]), [fine], middleware=[Broken(), FailsoftMiddleware(rt)]
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="the hook broke"):
        play(run, awaits=False)
    [turn] = turns(rt)
    assert (turn.ended, [row.tool for row in turn.waterfall.rows]) == (True, ["fine"])


def test_a_bare_tool_node_runs_in_a_turn_too() -> None:
    rt = Runtime()
    play(graph(rt, {}, Search(ValueError("no such city")).tool), awaits=True)
    [turn] = turns(rt)
    assert (turn.ended, [row.tool for row in turn.waterfall.rows]) == (True, ["search"])


# --- names that are not public ------------------------------------------------------------------------------------------------


def test_the_private_names_we_use_exist() -> None:
    """A failure here means that a new version has changed them: see private.py."""
    assert callable(tool_node._default_handle_tool_errors)
    assert ToolNode([fine])._handle_tool_errors is tool_node._default_handle_tool_errors
    assert tool_node.TOOL_INVOCATION_ERROR_TEMPLATE.startswith(private.MISFIT)
    assert tool_node._infer_handled_types(only_keys) == (KeyError,)
    found = []

    class Look(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            found.append((private.find_run(request.runtime.config), handler.__code__.co_freevars))
            return handler(request)

    create_agent(model([("fine", {})]), [fine], middleware=[Look()]).invoke(ASKS)
    [(run, names)] = found
    assert callable(run.stack.callback)
    assert "self" in names


def test_without_the_private_names_calls_are_guarded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    middleware = "failsoft.adapters.langchain.middleware"
    monkeypatch.setattr(f"{middleware}.find_run", lambda _: None)
    monkeypatch.setattr(f"{middleware}.has_handler", lambda *_: False)
    monkeypatch.setattr(f"{middleware}.is_inside_handler", lambda *_: False)
    rt = Runtime()
    search = Search(ValueError("no such city"))
    [message] = told(play(agent(rt, [search.tool], [("search", {})]), awaits=True))
    assert message.content.startswith("search failed")
    assert turns(rt) == []


class Repeats(AgentMiddleware[Any, Any, Any]):
    """Runs a tool that fails three times, like ToolRetryMiddleware."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        for _ in range(2):
            try:
                return handler(request)
            except ConnectionError:
                pass
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        for _ in range(2):
            try:
                return await handler(request)
            except ConnectionError:
                pass
        return await handler(request)


@pytest.mark.parametrize("awaits", [True, False])
@pytest.mark.parametrize(("manifest", "runs"), [({}, 1), (READS, 3)], ids=["write", "read"])
def test_a_middleware_inside_the_guard_repeats_no_tool(
    manifest: Any, runs: int, awaits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    if runs == 1:
        manifest = {"tools": {"search": {"idempotent": False}}}
    made = create_agent(
        model([("search", {})]), [search.tool], middleware=[FailsoftMiddleware(Runtime(manifest)), Repeats()]
    )
    [message] = told(play(made, awaits=awaits))
    assert (search.runs, message.artifact["attempts"]) == (runs, runs)
    assert "put FailsoftMiddleware last" in caplog.text
