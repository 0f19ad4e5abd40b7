"""LangChain: middleware around failsoft's that answers errors or repeats calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from tests.adapters.test_langchain import model, told
from tests.adapters.test_langchain_handlers import (
    ASKS,
    READS,
    Repeats,
    Search,
    ToolErrorMiddleware,
    needs_it,
    play,
)

from failsoft import CallFailed, FailsoftError, Runtime
from failsoft.adapters.langchain import FailsoftMiddleware

WAYS = pytest.mark.parametrize("awaits", [True, False])
WRITES = {"tools": {"search": {"idempotent": False}}}


class Answers(AgentMiddleware[Any, Any, Any]):
    """Answers errors, as LangChain's documentation shows."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:
            return ToolMessage(f"Tool error: {error!r}", tool_call_id=request.tool_call["id"], status="error")

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:
            return ToolMessage(f"Tool error: {error!r}", tool_call_id=request.tool_call["id"], status="error")


def made(search: Search, *middleware: Any, args: Any = None, **options: Any) -> Any:
    return create_agent(model([("search", args or {})]), [search.tool], middleware=middleware, **options)


# --- graceful=False --------------------------------------------------------------------------------------------------------------


@WAYS
def test_without_grace_a_handler_of_ones_own_answers_the_tools_own_error(awaits: bool) -> None:
    search = Search(ConnectionError("503 Service Unavailable"))
    [message] = told(play(made(search, Answers(), FailsoftMiddleware(Runtime(READS), graceful=False)), awaits=awaits))
    assert message.content == "Tool error: ConnectionError('503 Service Unavailable')"
    assert search.runs == 3


@WAYS
def test_without_grace_the_tools_own_error_ends_the_run(awaits: bool) -> None:
    search = Search(KeyError("city"))
    with pytest.raises(KeyError) as raised:
        play(made(search, FailsoftMiddleware(Runtime(), graceful=False)), awaits=awaits)
    assert raised.value is search.error


@WAYS
def test_without_grace_a_refusal_is_failsofts_error(awaits: bool) -> None:
    rt = Runtime()
    rt.declare("search")
    rt.disable("search", "closed today")
    with pytest.raises(CallFailed, match="closed today"):
        play(made(Search(KeyError()), FailsoftMiddleware(rt, graceful=False)), awaits=awaits)


@WAYS
def test_without_grace_a_guarded_functions_error_is_failsofts(awaits: bool) -> None:
    rt = Runtime()

    @rt.tool
    def search() -> str:
        """Search."""
        raise ValueError("no such city")

    tools = [StructuredTool.from_function(search)]
    run = create_agent(model([("search", {})]), tools, middleware=[Answers(), FailsoftMiddleware(rt, graceful=False)])
    [message] = told(play(run, awaits=awaits))
    assert message.content.startswith("Tool error: CallFailed(")


@WAYS
def test_without_grace_bad_arguments_are_still_answered(awaits: bool) -> None:
    """LangChain answers them itself."""
    search = Search(KeyError())
    [message] = told(play(made(search, FailsoftMiddleware(Runtime(), graceful=False), args={"city": 3}), awaits=awaits))
    assert message.artifact["fault"]["rule"] == "bad_arguments"


@pytest.mark.parametrize("odd", ["no", None, 1])
def test_a_graceful_that_is_not_a_flag_is_rejected(odd: Any) -> None:
    with pytest.raises(FailsoftError, match="graceful"):
        FailsoftMiddleware(Runtime(), graceful=odd)


# --- retries around the guard ------------------------------------------------------------------------------------------------------


def retry(**options: Any) -> ToolRetryMiddleware:
    return ToolRetryMiddleware(max_retries=2, initial_delay=0.001, jitter=False, **options)


@WAYS
@pytest.mark.parametrize(("manifest", "runs"), [(WRITES, 1), (READS, 3)], ids=["write", "read"])
def test_the_failure_function_of_tool_retry_middleware_has_the_last_word(
    manifest: Any, runs: int, awaits: bool
) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    around = retry(on_failure=lambda error: f"Sorry: {error}")
    [message] = told(play(made(search, around, FailsoftMiddleware(Runtime(manifest))), awaits=awaits))
    assert (message.content, message.status) == ("Sorry: connection reset by peer", "error")
    assert search.runs == runs


@WAYS
@pytest.mark.parametrize("retry_on", [(ConnectionError,), (KeyError,)], ids=["retried", "not retried"])
def test_tool_retry_middleware_that_raises_gets_the_tools_own_error(retry_on: Any, awaits: bool) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    around = retry(on_failure="error", retry_on=retry_on)
    with pytest.raises(ConnectionError) as raised:
        play(made(search, around, FailsoftMiddleware(Runtime(WRITES))), awaits=awaits)
    assert raised.value is search.error
    assert search.runs == 1


@WAYS
@pytest.mark.parametrize(
    "options",
    [
        {},  # continues, in LangChain's words
        {"on_failure": str, "retry_on": (KeyError,)},  # on_failure is not asked about other errors
        {"on_failure": str, "tools": ["other"]},
    ],
    ids=["default", "other errors", "other tools"],
)
def test_what_tool_retry_middleware_says_nothing_about_is_explained(options: Any, awaits: bool) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    [message] = told(play(made(search, retry(**options), FailsoftMiddleware(Runtime(WRITES))), awaits=awaits))
    assert message.content.startswith("search failed: UNAVAILABLE")
    assert search.runs == 1


@needs_it
@WAYS
def test_an_error_raised_for_a_handler_is_not_an_occasion_to_repeat_the_tool(
    awaits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Raised for ToolErrorMiddleware, it passes ToolRetryMiddleware, as LangChain recommends to compose them."""
    search = Search(ConnectionError("connection reset by peer"))
    handler = ToolErrorMiddleware(lambda error, _: f"handled {error}")
    around = [handler, retry(on_failure="error"), FailsoftMiddleware(Runtime(WRITES))]
    [message] = told(play(made(search, *around), awaits=awaits))
    assert (message.content, search.runs) == ("handled connection reset by peer", 1)
    assert "search is not run again" in caplog.text


@needs_it
def test_hooks_that_are_composed_by_hand_find_the_handler_too() -> None:
    search = Search(ConnectionError("connection reset by peer"))
    inner, outer = FailsoftMiddleware(Runtime(WRITES)), ToolErrorMiddleware(lambda error, _: f"handled {error}")

    def wrap(request: Any, execute: Any) -> Any:
        return outer.wrap_tool_call(request, lambda asked: inner.wrap_tool_call(asked, execute))

    node = ToolNode([search.tool], wrap_tool_call=wrap)
    run = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    call: Any = {"name": "search", "args": {}, "id": "c1"}
    [message] = told(run.invoke({"messages": [AIMessage("", tool_calls=[call])]}))
    assert (message.content, search.runs) == ("handled connection reset by peer", 1)


@needs_it
@WAYS
def test_a_handler_around_an_agent_is_not_one_inside_it(awaits: bool) -> None:
    """The agent inside has its own list of middleware."""
    search = Search(ConnectionError("connection reset by peer"))
    inside = made(search, FailsoftMiddleware(Runtime(WRITES)))
    seen: list[str] = []

    def ask() -> str:
        """Ask the other agent."""
        seen.extend(message.text for message in told(inside.invoke(ASKS)))
        return "done"

    async def ask_later() -> str:
        seen.extend(message.text for message in told(await inside.ainvoke(ASKS)))
        return "done"

    tools = [StructuredTool.from_function(ask, ask_later)]
    around = [ToolErrorMiddleware(lambda error, _: f"handled {error}"), FailsoftMiddleware(Runtime())]
    play(create_agent(model([("ask", {})]), tools, middleware=around), awaits=awaits)
    assert seen[0].startswith("search failed: UNAVAILABLE")


@WAYS
@pytest.mark.parametrize(("manifest", "runs"), [(WRITES, 1), (READS, 3)], ids=["write", "read"])
def test_a_middleware_of_ones_own_repeats_no_tool(manifest: Any, runs: int, awaits: bool) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    run = made(search, Answers(), Repeats(), FailsoftMiddleware(Runtime(manifest), graceful=False))
    [message] = told(play(run, awaits=awaits))
    assert (message.content, search.runs) == ("Tool error: ConnectionError('connection reset by peer')", runs)


class Corrects(AgentMiddleware[Any, Any, Any]):
    """Corrects the arguments of a call that has failed, and makes it again."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError:
            return await handler(request.override(tool_call={**request.tool_call, "args": {"city": "Rome"}}))


def test_a_call_with_other_arguments_is_another_call() -> None:
    asked: list[str] = []

    def search(city: str) -> str:
        """Search."""
        asked.append(city)
        if city != "Rome":
            raise ValueError("no such city")
        return "found"

    around = [Corrects(), FailsoftMiddleware(Runtime(), graceful=False)]
    run = create_agent(model([("search", {"city": "Rom"})]), [StructuredTool.from_function(search)], middleware=around)
    [message] = told(asyncio.run(run.ainvoke(ASKS)))
    assert (message.content, asked) == ("found", ["Rom", "Rome"])


@WAYS
def test_a_run_that_is_resumed_makes_its_call_again(awaits: bool) -> None:
    search = Search(ConnectionError("connection reset by peer"))
    rt = Runtime({"tools": {"search": {"read_only": True, "retry": {"max_attempts": 1}}}})
    run = made(search, FailsoftMiddleware(rt, graceful=False), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    for expected in (1, 2):
        with pytest.raises(ConnectionError):
            if expected == 1:
                play(run, awaits=awaits, config=config)
            elif awaits:
                asyncio.run(run.ainvoke(None, config))
            else:
                run.invoke(None, config)
        assert search.runs == expected
