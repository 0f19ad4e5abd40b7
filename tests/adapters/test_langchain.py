"""LangChain: the agent goes on, the graph's own exceptions pass, threads are LangGraph's."""

from __future__ import annotations

import asyncio
import copy
import pickle
import runpy
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, wrap_model_call
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from langgraph import errors
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt, GraphRecursionError, NodeInterrupt, ParentCommand
from langgraph.types import Command, Interrupt, interrupt
from pydantic import BaseModel, ValidationError
from tests.adapters.story import SCENES, Story, tell, transcript
from tests.fakes import records

from failsoft import FailsoftError, ManifestError, Runtime, partial
from failsoft.adapters.langchain import FailsoftMiddleware
from failsoft.testing import Seen, adapter_checks, check_adapter
from failsoft.testing.check_adapter import Steps, Tools


class Model(GenericFakeChatModel):
    """Plays its messages and keeps the requests it received."""

    asked: list[Any]
    offered: list[list[str]]

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Model:
        self.offered.append([each.name for each in tools])
        return self

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *args, **kwargs)


def model(*steps: Sequence[tuple[str, dict[str, Any]]]) -> Model:
    """Asks for these calls, step by step, then says that it is done."""

    def messages() -> Iterator[AIMessage]:
        for number, step in enumerate(steps):
            calls = [
                {"name": name, "args": args, "id": f"c{number}-{place}"} for place, (name, args) in enumerate(step)
            ]
            yield AIMessage("", tool_calls=calls)
        while True:
            yield AIMessage("done")

    return Model(messages=messages(), asked=[], offered=[])


def agent(rt: Runtime | None, tools: Sequence[Any], *steps: Any, **options: Any) -> Any:
    middleware = [] if rt is None else [FailsoftMiddleware(rt)]
    return create_agent(options.pop("model", None) or model(*steps), tools, middleware=middleware, **options)


def told(result: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def ask(rt: Runtime, given: Any, *calls: tuple[str, dict[str, Any]], **options: Any) -> ToolMessage:
    """Run an agent with one call and return the model's answer message."""
    tools = given if isinstance(given, list) else [given]
    run = agent(rt, tools, calls or [(tools[0].name, {})], **options)
    (message,) = told(run.invoke({"messages": [HumanMessage("go")]}))
    return message


# --- the suite that all adapters pass ------------------------------------------------------------------------------------


class Paused(Exception):
    """The run has ended with an interrupt."""


def newer() -> Iterator[BaseException]:
    """Control flow that not every version has."""
    if hasattr(errors, "GraphDrained"):
        yield errors.GraphDrained()
    if hasattr(errors, "UnknownInterruptError"):
        yield errors.UnknownInterruptError("which one?", reason="ambiguous")
    if hasattr(errors, "_mark_invalid_resume"):
        yield refused_resume()


def refused_resume() -> ValidationError:
    class Answer(BaseModel):
        yes: bool

    with pytest.raises(ValidationError) as caught:
        Answer.model_validate({})
    errors._mark_invalid_resume(caught.value)
    return caught.value


def node_interrupt() -> NodeInterrupt:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NodeInterrupt("sure?", id="2")


class Driver:
    control_flow = (
        GraphInterrupt([Interrupt("sure?", id="1")]),
        node_interrupt(),
        ParentCommand(Command(goto="elsewhere")),
        GraphRecursionError("25 steps"),
        ExceptionGroup("in a task group", [GraphInterrupt([Interrupt("sure?", id="3")])]),
        *newer(),
    )

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> list[list[Seen]]:
        given = [self.give(name, each) for name, each in tools.items()]
        run = agent(runtime, given, *([(call.tool, dict(call.args)) for call in step] for step in steps))
        result = await self.play(run, {"messages": [HumanMessage("go")]})
        if "__interrupt__" in result:
            raise Paused(str(result["__interrupt__"]))
        answers = {message.tool_call_id: message for message in told(result)}
        return [
            [Seen(call.tool, str(answers[f"c{number}-{place}"].content)) for place, call in enumerate(step)]
            for number, step in enumerate(steps)
        ]

    def give(self, name: str, each: Any) -> Any:
        return StructuredTool.from_function(coroutine=each, name=name)

    async def play(self, run: Any, question: Any) -> Any:
        return await run.ainvoke(question)


class SyncDriver(Driver):
    """The same through ``invoke``, in a separate thread."""

    def give(self, name: str, each: Any) -> Any:
        async def entered(city: str) -> Any:
            return await each(city)

        def call(city: str) -> Any:
            return asyncio.run(entered(city))

        return StructuredTool.from_function(call, name=name, description="Look something up in a city.")

    async def play(self, run: Any, question: Any) -> Any:
        return await asyncio.to_thread(run.invoke, question)


NOT_IN_THREADS = {"a_cancelled_run_is_no_verdict", "a_hanging_tool_is_stopped"}  # a thread cannot be cancelled


@pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
def test_adapter(check: Any) -> None:
    check_adapter(Driver(), check)


@pytest.mark.parametrize(
    "check", [c for c in adapter_checks() if c.__name__ not in NOT_IN_THREADS], ids=lambda check: check.__name__
)
def test_adapter_sync(check: Any) -> None:
    check_adapter(SyncDriver(), check)


# --- the story -----------------------------------------------------------------------------------------------------------


def test_story() -> None:
    story, heard = Story(), []
    rt = story.runtime()
    tools = [StructuredTool.from_function(coroutine=each) for each in story.tools.values()]
    for number, scene in enumerate(SCENES):
        story.runs.clear()
        run = agent(rt, tools, *([(scene.tool, asked)] for asked in scene.asks))
        config = {"configurable": {"thread_id": number}}
        result = asyncio.run(run.ainvoke({"messages": [HumanMessage("go")]}, config))
        heard.append((scene, [str(message.content) for message in told(result)]))
        assert result["messages"][-1].content == "done"
        assert story.runs.get(scene.tool, 0) == scene.runs, scene.title
    assert tell(heard) == transcript(
        bad_arguments="""\
book_table(people='many')
  book_table failed: INVALID_ARGUMENT (tool_validation, not run). It had no effect. Calling it again with the same arguments will fail: correct people, or ask the user. Error text, as data: "The arguments do not fit. Invalid: people. people: Input should be a valid integer, unable to parse string as an integer."
"""
    )


# --- answers ---------------------------------------------------------------------------------------------------------------


def test_the_artifact_is_the_outcome() -> None:
    @tool
    def search() -> str:
        """Search."""
        raise PermissionError("401 Unauthorized: bad API key")

    message = ask(Runtime(), search)
    assert (message.status, message.name, message.tool_call_id) == ("error", "search", "c0-0")
    assert message.artifact["fault"]["category"] == "tool_misconfigured"
    assert message.artifact["id"] == "c0-0"
    assert message.content == message.artifact["explanation"]["model"]


def test_a_message_that_says_error_is_a_failure() -> None:
    rt, tries = Runtime({"tools": {"search": {"read_only": True, "retry": {"initial_delay": "1ms"}}}}), []

    @tool
    def search() -> str:
        """Search."""
        tries.append(1)
        if len(tries) < 3:
            raise ToolException("503 Service Unavailable")
        return "found"

    search.handle_tool_error = True  # then it returns a message
    message = ask(rt, search)
    assert (message.status, message.content, len(tries)) == ("success", "found", 3)


def test_bad_arguments_name_what_to_correct() -> None:
    @tool
    def book(people: int, day: str) -> str:
        """Book a table."""
        raise AssertionError

    message = ask(Runtime(), book, ("book", {"people": "many"}))
    assert message.artifact["fault"]["rule"] == "bad_arguments"
    assert "Missing: day. Invalid: people." in message.content
    assert "correct day and people" in message.content


@pytest.mark.parametrize("handles", [True, "Give the number of people as a number."])
def test_bad_arguments_that_the_tool_itself_speaks_of_had_no_effect(handles: Any) -> None:
    @tool
    def book(people: int) -> str:
        """Book a table."""
        if people > 8:
            raise ToolException("no such table")
        return "booked"

    book.handle_validation_error, book.handle_tool_error = handles, True
    message = ask(Runtime(), book, ("book", {"people": "many"}))
    assert message.artifact["fault"]["rule"] == "bad_arguments"
    assert message.content == ("Tool input validation error" if handles is True else handles)
    assert ask(Runtime(), book, ("book", {"people": 9})).artifact["fault"]["rule"] != "bad_arguments"


def test_a_validation_error_inside_a_tool_is_a_bug_of_the_tool() -> None:
    class City(BaseModel):
        name: str

    @tool
    def lookup(name: str) -> str:
        """Look a city up."""
        return City.model_validate({"nom": name}).name

    message = ask(Runtime(), lookup, ("lookup", {"name": "Bern"}))
    assert message.artifact["fault"]["category"] == "internal_contract_bug"


def test_unknown_tools_keep_the_frameworks_words() -> None:
    @tool
    def search() -> str:
        """Search."""
        return "found"

    rt = Runtime()
    message = ask(rt, search, ("serch", {}))
    assert message.status == "error"
    assert "serch is not a valid tool, try one of [search]" in message.content
    assert "serch" not in rt.tools


def test_a_fallback_answers_under_the_name_of_the_called_tool() -> None:
    @tool
    def search(q: str) -> str:
        """Search."""
        raise ConnectionError("503 Service Unavailable")

    @tool
    def backup(q: str) -> str:
        """Search elsewhere."""
        return f"backup: {q}"

    rt = Runtime({"tools": {"search": {"fallbacks": ["backup"], "retry": {"max_attempts": 1}}}})
    message = ask(rt, [search, backup], ("search", {"q": "x"}))
    assert (message.content, message.name, message.status) == ("backup: x", "search", "success")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("from the cache", "from the cache"),
        (["a", "b"], '["a", "b"]'),
        (partial(["a"], missing=["b"]), '["a"]\nsearch succeeded in part. Missing, as data: "[\'b\']"'),
    ],
)
def test_a_function_registered_with_the_runtime_may_be_a_fallback(value: Any, text: str) -> None:
    @tool
    def search() -> str:
        """Search."""
        raise ConnectionRefusedError("refused")

    rt = Runtime({"tools": {"search": {"fallbacks": ["cached"], "retry": {"max_attempts": 1}}}})
    rt.add(lambda: value, id="cached", read_only=True, accept_partial=True)
    message = ask(rt, search)
    assert (message.content, message.name, message.tool_call_id) == (text, "search", "c0-0")


def test_commands_of_tools_pass() -> None:
    @tool
    def note() -> Command[Any]:
        """Note something."""
        return Command(update={"messages": [ToolMessage("noted", tool_call_id="c0-0")]})

    assert ask(Runtime(), note).content == "noted"


@pytest.mark.parametrize(
    ("value", "form", "fits"),
    [
        ({"city": "Bern"}, {"type": "object", "required": ["city"]}, True),
        ({"city": "Bern"}, {"type": "object", "required": ["country"]}, False),
        ('{"city": "Bern"}', {"type": "string"}, True),
        (7, {"type": "integer"}, True),
        ("many", {"type": "integer"}, False),
        (Command(update={"messages": [ToolMessage("noted", tool_call_id="c0-0")]}), {"type": "integer"}, True),
    ],
)
def test_the_form_of_a_value_is_checked_not_that_of_its_message(value: Any, form: Any, fits: bool) -> None:
    run = StructuredTool.from_function(lambda: value, name="locate", description="Locate.")
    message = ask(Runtime({"tools": {"locate": {"output": form}}}), run)
    assert message.status == ("success" if fits else "error")


class Place(BaseModel):
    city: str


class Locate(BaseTool):
    """A tool of the user's own making: no schema, and parameters that only LangChain fills in."""

    name: str = "locate"
    description: str = "Locate."
    value: Any = None

    def _run(self, config: RunnableConfig, run_manager: Any = None) -> Any:
        assert config["configurable"]["thread_id"] == "t"
        assert run_manager is not None
        return self.value


class LocateLater(Locate):
    async def _arun(self, config: RunnableConfig, run_manager: Any = None) -> Any:
        return self._run(config, run_manager)


def locate(kind: str, value: Any) -> BaseTool:
    async def later() -> Any:
        return value

    if kind == "function":
        return StructuredTool.from_function(lambda: value, name="locate", description="Locate.")
    if kind == "coroutine":
        return StructuredTool.from_function(coroutine=later, name="locate", description="Locate.")
    if kind == "artifact":
        form: Any = {"response_format": "content_and_artifact"}
        return StructuredTool.from_function(lambda: ("found", value), name="locate", description="Locate.", **form)
    return (Locate if kind == "class" else LocateLater)(value=value)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("kind", ["function", "coroutine", "artifact", "class", "class of coroutines"])
@pytest.mark.parametrize(("value", "fits"), [(Place(city="Bern"), True), ({"town": "Bern"}, False), (7, False)])
def test_a_model_is_declared_and_a_model_is_returned(value: Any, fits: bool, kind: str, way: str) -> None:
    if (kind, way) == ("coroutine", "invoke"):
        return  # LangChain refuses that
    rt = Runtime()
    rt.declare("locate", output=Place)
    run = agent(rt, [locate(kind, value)], [("locate", {})])
    question, config = {"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}}
    result = run.invoke(question, config) if way == "invoke" else asyncio.run(run.ainvoke(question, config))
    (message,) = told(result)
    assert message.status == ("success" if fits else "error")
    assert fits or message.artifact["fault"]["category"] == "internal_contract_bug"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (["a"], '["a"]\nsearch succeeded in part. Missing, as data: "[\'b\']"'),
        ("a", "a\nsearch succeeded in part. Missing, as data: \"['b']\""),
        (
            [{"type": "text", "text": "a"}],
            [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "search succeeded in part. Missing, as data: \"['b']\""},
            ],
        ),
    ],
)
def test_a_partial_value_comes_with_what_it_lacks(value: Any, content: Any) -> None:
    search = StructuredTool.from_function(lambda: partial(value, missing=["b"]), name="search", description="Search.")
    message = ask(Runtime({"tools": {"search": {"accept_partial": True}}}), search)
    assert (message.content, message.status, message.name) == (content, "success", "search")


def test_a_partial_value_is_retried() -> None:
    tries: list[int] = []

    @tool
    def search() -> str:
        """Search."""
        tries.append(1)
        return "all" if len(tries) == 2 else partial("a", missing=["b"])

    rt = Runtime({"tools": {"search": {"read_only": True, "retry": {"initial_delay": "1ms"}}}})
    assert (ask(rt, search).content, len(tries)) == ("all", 2)


def test_cached_properties_of_a_tool_are_computed_once() -> None:
    worked: list[int] = []

    class Costly(StructuredTool):
        @cached_property
        def costly(self) -> int:
            worked.append(1)
            return 7

        def _parse_input(self, *args: Any, **kwargs: Any) -> Any:
            assert self.costly == 7
            return super()._parse_input(*args, **kwargs)

    costly = Costly.from_function(lambda city: city, name="look", description="Look.", args_schema=Place)
    run = agent(Runtime(), [costly], *[[("look", {"city": "Bern"})]] * 3)
    assert [message.content for message in told(run.invoke({"messages": [HumanMessage("go")]}))] == ["Bern"] * 3
    assert worked == [1]


def test_annotations_that_cannot_be_resolved_are_tolerated() -> None:
    class Nothing(BaseModel):
        """No arguments."""

    class Odd(Locate):
        args_schema: Any = Nothing

        def _run(self, clock: Clock | None = None) -> Any:  # type: ignore[override]  # noqa: F821
            return "found"

    assert ask(Runtime(), Odd()).content == "found"


def test_a_tools_own_invoke_method_is_used() -> None:
    class Counted(Locate):
        calls: int = 0

        def invoke(self, *args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return super().invoke(*args, **kwargs)

    counted = Counted(value="found")
    run = agent(Runtime(), [counted], [("locate", {})], [("locate", {})])
    run.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert counted.calls == 2


class Tracer(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.runs: dict[Any, list[str]] = {}

    async def on_tool_start(self, *_: Any, run_id: Any, **__: Any) -> None:
        self.runs[run_id] = ["start"]

    async def on_tool_end(self, *_: Any, run_id: Any, **__: Any) -> None:
        self.runs[run_id].append("end")

    async def on_tool_error(self, error: BaseException, *, run_id: Any, **__: Any) -> None:
        self.runs[run_id].append(type(error).__name__)


def test_a_tool_that_timed_out_ends_in_the_tracer() -> None:
    @tool
    async def look() -> str:
        """Look."""
        await asyncio.sleep(30)
        return "late"

    @tool
    async def cached() -> str:
        """Look into the cache."""
        return "cached"

    look.metadata = {"failsoft": {"read_only": True, "timeout": "20ms", "fallbacks": ["cached"],
                                  "retry": {"max_attempts": 2, "initial_delay": "1ms"}}}  # fmt: skip
    rt, tracer = Runtime(), Tracer()
    run = agent(rt, [look, cached], [("look", {})])
    result = asyncio.run(run.ainvoke({"messages": [HumanMessage("go")]}, {"callbacks": [tracer]}))
    assert told(result)[0].content == "cached"
    assert list(tracer.runs.values()) == [["start", "TimeoutError"], ["start", "TimeoutError"], ["start", "end"]]
    assert "AttemptAbandoned" not in [record["event_type"] for record in records(rt)]


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "on its own"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_agent_that_breaks_off_is_not_run_again(way: str, guarded: bool) -> None:
    """Its model was refused a connection, which has no effect: but one of its tools had paid by then."""
    paid: list[int] = []

    class BreaksOff(Model):
        def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
            if isinstance(messages[-1], ToolMessage):
                raise ConnectionRefusedError("refused")
            return super()._generate(messages, *args, **kwargs)

    @tool
    def pay() -> str:
        """Pay."""
        paid.append(1)
        return "paid"

    rt = Runtime()
    asks = (AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "p"}]) for _ in range(9))
    inner = agent(rt if guarded else None, [pay], model=BreaksOff(messages=asks, asked=[], offered=[]))
    question = {"messages": [HumanMessage("pay")]}
    clerk = StructuredTool.from_function(
        lambda: inner.invoke(question), lambda: inner.ainvoke(question), name="clerk", description="Pays."
    )
    run = agent(rt, [clerk], [("clerk", {})])
    result = run.invoke(question) if way == "invoke" else asyncio.run(run.ainvoke(question))
    assert "clerk failed: UNAVAILABLE (tool_transient, 1 attempt). It may already have" in told(result)[0].text
    assert len(paid) == 1


# --- what is known of tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "manifest", "attempts"),
    [
        (None, {}, 1),  # nothing says that repeating is safe
        ({"failsoft": {"read_only": True, "retry": {"max_attempts": 2, "initial_delay": "1ms"}}}, {}, 2),
        (None, {"idempotent": True, "retry": {"max_attempts": 2, "initial_delay": "1ms"}}, 2),
        ({"readOnlyHint": True}, {}, 1),  # anybody can hint
    ],
)
def test_repeated_only_if_declared(metadata: Any, manifest: Any, attempts: int) -> None:
    tries = []

    @tool
    def oracle() -> str:
        """Who knows?"""
        tries.append(1)
        raise TimeoutError("the answer was lost")

    oracle.metadata = metadata
    ask(Runtime({"tools": {"oracle": manifest}}), oracle)
    assert len(tries) == attempts


@pytest.mark.parametrize(("name", "said", "attempts"), [("oracle", "Searches.", 5), ("pay", "Searches.", 1)])
def test_repeated_if_recognised_as_a_read(name: str, said: str, attempts: int) -> None:
    tries = []

    def run() -> str:
        tries.append(1)
        raise TimeoutError("the answer was lost")

    rt = Runtime({"defaults": {"retry": {"initial_delay": "1ms"}}})
    ask(rt, StructuredTool.from_function(run, name=name, description=said))
    assert len(tries) == attempts
    assert rt.tools[name].effect_source == "recognised"
    assert rt.tools[name].description == said
    assert rt.tools[name].schema["type"] == "object"


def test_declared_by_a_registered_tool_or_by_hand() -> None:
    for declare in (
        lambda rt, options: rt.add(lambda: None, id="search", **options),
        lambda rt, options: rt.declare("search", **options),
    ):
        rt, tries = Runtime(), []
        declare(rt, {"read_only": True, "retry": {"max_attempts": 2, "initial_delay": "1ms"}})

        @tool
        def search() -> str:
            """Search."""
            tries.append(1)  # noqa: B023
            raise TimeoutError("the answer was lost")

        ask(rt, search)
        assert len(tries) == 2


def test_two_tools_of_one_name_must_agree() -> None:
    def make(metadata: Any) -> Any:
        return StructuredTool.from_function(lambda: "found", name="search", description="Search.", metadata=metadata)

    rt = Runtime()
    ask(rt, make({"failsoft": {"read_only": True}}))
    with pytest.raises(ManifestError, match="search: declared as"):
        ask(rt, make(None))
    shared = FailsoftMiddleware(Runtime())
    first, second = (
        create_agent(model([("search", {})]), [make(metadata)], middleware=[shared])
        for metadata in ({"failsoft": {"read_only": True}}, None)
    )
    question: Any = {"messages": [HumanMessage("go")]}
    assert told(first.invoke(question))[0].content == "found"
    with pytest.raises(ManifestError, match="search: declared as"):
        second.invoke(question)


@pytest.mark.parametrize("metadata", [True, "read_only", ["read_only"]])
def test_metadata_that_are_not_options_are_rejected_with_advice(metadata: Any) -> None:
    @tool
    def search() -> str:
        """Search."""
        return "found"

    search.metadata = {"failsoft": metadata}
    with pytest.raises(ManifestError, match=r'search: its metadata say .*: write options, as in {"read_only": True}'):
        ask(Runtime(), search)


@pytest.mark.parametrize("given", ["failsoft.yaml", Runtime, None])
def test_an_argument_that_is_not_a_runtime_is_rejected_at_once(given: Any) -> None:
    with pytest.raises(FailsoftError, match=r"is not a Runtime: write FailsoftMiddleware\(rt\)"):
        FailsoftMiddleware(given)


def test_a_guarded_function_is_guarded_once() -> None:
    rt, tries = Runtime(), []

    @tool
    @rt.tool(read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"})
    def search() -> str:
        """Search."""
        tries.append(1)
        raise ConnectionError("503 Service Unavailable")

    message = ask(rt, search)
    assert message.content.startswith("search failed: UNAVAILABLE (tool_transient, 2 attempts)")
    assert (len(tries), rt.health("search").failure_count) == (2, 2)


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

    given = tool("oracle")(rt.add(later if is_async else oracle, id="oracle"))
    run, asked = agent(rt, [given], [("oracle", {})]), {"messages": [HumanMessage("go")]}
    (message,) = told(asyncio.run(run.ainvoke(asked)) if is_async else run.invoke(asked))
    said = str(message.content)
    assert "may already have taken effect" in said
    assert len(tries) == 1


# --- blocking ------------------------------------------------------------------------------------------------------------------


def test_a_blocking_tool_times_out_at_its_deadline() -> None:
    @tool
    def hang() -> str:
        """Hang."""
        time.sleep(0.5)
        return "late"

    began = time.monotonic()
    message = ask(Runtime({"tools": {"hang": {"timeout": "50ms"}}}), hang)
    assert "Tool timeout after 50ms" in message.content
    assert time.monotonic() - began < 0.45


def test_a_tool_that_can_only_be_awaited_is_the_programmers_mistake_under_invoke() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "found"

    rt, here = Runtime(), {"configurable": {"thread_id": "chat"}}
    with pytest.raises(NotImplementedError, match="sync invocation"):
        agent(rt, [look], [("look", {})]).invoke({"messages": [HumanMessage("go")]}, here)
    run = agent(rt, [look], [("look", {})]).ainvoke({"messages": [HumanMessage("go")]}, here)
    assert [message.content for message in told(asyncio.run(run))] == ["found"]


def test_invoke_inside_an_event_loop() -> None:
    @tool
    def search() -> str:
        """Search."""
        raise ValueError("Invalid airport code: XYZ")

    async def main() -> ToolMessage:
        return ask(Runtime(), search)  # blocks the loop, as LangChain does

    assert asyncio.run(main()).content.startswith("search failed: INVALID_ARGUMENT")


# --- interrupts and threads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_interrupt_for_human_input_can_be_resumed(way: str) -> None:
    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}: {interrupt('sure?')}"

    rt = Runtime({"tools": {"pay": {"breaker": {"failure_threshold": 1}}}})
    run = agent(rt, [pay], [("pay", {"amount": 4})], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}

    def play(given: Any) -> Any:
        return run.invoke(given, config) if way == "invoke" else asyncio.run(run.ainvoke(given, config))

    assert [each.value for each in play({"messages": [HumanMessage("go")]})["__interrupt__"]] == ["sure?"]
    assert rt.health("pay").failure_count == 0
    assert told(play(Command(resume="yes")))[0].content == "paid 4: yes"


def test_dangling_calls_are_closed() -> None:
    rt = Runtime()

    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    playing = model()
    run = agent(rt, [pay, look], model=playing, checkpointer=saver)
    calls = [{"name": "look", "args": {}, "id": "a"}, {"name": "pay", "args": {}, "id": "b"}]
    crashed = [HumanMessage("go"), AIMessage("", tool_calls=calls), ToolMessage("seen", tool_call_id="a")]
    result = run.invoke({"messages": [*crashed, HumanMessage("and now?")]}, config)
    shown = [(type(message).__name__, message.text) for message in playing.asked[0]]
    assert shown == [
        ("HumanMessage", "go"),
        ("AIMessage", ""),
        ("ToolMessage", "pay was cancelled. It may already have taken effect: check before calling again. "
         "Call it again only if it is still wanted."),
        ("ToolMessage", "seen"),
        ("HumanMessage", "and now?"),
    ]  # fmt: skip
    assert result["messages"][-1].content == "done"


def test_only_dangling_calls_are_closed_even_if_ids_are_reused() -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    calls = [{"name": "pay", "args": {}, "id": "call_0"}]
    first = [HumanMessage("go"), AIMessage("", tool_calls=calls), ToolMessage("paid", tool_call_id="call_0")]
    playing = model()
    agent(Runtime(), [pay], model=playing).invoke(
        {"messages": [*first, HumanMessage("again"), AIMessage("", tool_calls=calls), HumanMessage("and now?")]}
    )
    shown = [message.text[:17] for message in playing.asked[0]]
    assert shown == ["go", "", "paid", "again", "", "pay was cancelled", "and now?"]


@pytest.mark.parametrize(
    "choice", ["search", {"type": "tool", "name": "search"}, {"function": {"name": "search"}}, "any", {"type": "any"}]
)
def test_the_tool_that_the_model_is_made_to_call_stays_offered(choice: Any) -> None:
    """Providers refuse a request that names a tool which is not there."""

    @wrap_model_call
    def force(request: Any, handler: Any) -> Any:
        return handler(request.override(tool_choice=choice))

    @tool
    def search() -> str:
        """Search."""
        raise NotImplementedError("501 Not Implemented: tool not found: search")

    playing = model([("search", {})])
    run = create_agent(playing, [search], middleware=[force, FailsoftMiddleware(Runtime())])
    run.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert playing.offered == [["search"], ["search"]]


@pytest.mark.parametrize("how", ["disable", "manifest"])
def test_a_disabled_tool_is_not_offered(how: str) -> None:
    @tool
    def search() -> str:
        """Search."""
        return "found"

    @tool
    def other() -> str:
        """Something else."""
        return "fine"

    rt = Runtime({"tools": {"search": {"enabled": False}}} if how == "manifest" else None)
    if how == "disable":
        rt.disable("search", "maintenance")
    playing = model([("search", {})], [("other", {})])
    result = agent(rt, [search, other], model=playing).invoke({"messages": [HumanMessage("go")]})
    assert told(result)[0].artifact["fault"]["rule"] == "tool_disabled"
    assert playing.offered[0] == ["other"]
    rt.enable("search")
    playing = model([("other", {})])
    agent(rt, [search, other], model=playing).invoke({"messages": [HumanMessage("go")]})
    assert playing.offered[0] == ["search", "other"]


def test_a_missing_tool_is_not_offered_again() -> None:
    @tool
    def search() -> str:
        """Search."""
        raise NotImplementedError("501 Not Implemented: tool not found: search")

    @tool
    def other() -> str:
        """Something else."""
        return "fine"

    rt = Runtime()
    playing = model([("search", {})])
    run = agent(rt, [search, other], model=playing)
    result = run.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert told(result)[0].artifact["fault"]["category"] == "tool_unavailable"
    assert playing.offered == [["search", "other"], ["other"]]


@pytest.mark.parametrize("backup", ["other", "elsewhere"])  # the latter belongs to another agent
def test_a_missing_tool_stays_offered_while_it_has_a_usable_fallback(backup: str) -> None:
    @tool
    def search() -> str:
        """Search."""
        raise NotImplementedError("501 Not Implemented: tool not found: search")

    @tool
    def other() -> str:
        """Something else."""
        return "instead"

    rt = Runtime({"tools": {"search": {"fallbacks": [backup]}}})
    rt.declare("elsewhere")
    playing = model([("search", {})], [("search", {})])
    run = agent(rt, [search, other], model=playing)
    result = run.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert playing.offered[2] == (["search", "other"] if backup == "other" else ["other"])
    assert (told(result)[1].content == "instead") is (backup == "other")


# --- the rest --------------------------------------------------------------------------------------------------------------------


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    for name in [name for name in sys.modules if name.startswith("failsoft.adapters.langchain")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"install failsoft\[langchain\]"):
        import failsoft.adapters.langchain  # noqa: F401


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "langchain_agent.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Sunny in Paris" in printed
    assert "pay failed: DEADLINE_EXCEEDED" in printed


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_the_middleware_can_be_copied_and_pickled(duplicate: Any) -> None:
    original = FailsoftMiddleware(Runtime())
    greet = StructuredTool.from_function(lambda: "hello", name="greet", description="Greet.")
    for middleware in (original, duplicate(original)):  # a copy is made of one that was used
        run = create_agent(model([("greet", {})]), [greet], middleware=[middleware])
        assert told(run.invoke({"messages": [HumanMessage("go")]}))[0].content == "hello"
    other = duplicate(original)
    assert other.runtime is original.runtime
    other.runtime = Runtime()
    create_agent(model([("greet", {})]), [greet], middleware=[other]).invoke({"messages": [HumanMessage("go")]})
    assert "greet" in other.runtime.tools


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_tool_that_is_changed_between_two_calls_runs_as_it_is_now(way: str) -> None:
    def search() -> tuple[str, str]:
        """Search."""
        return "found", "kept"

    found = StructuredTool.from_function(search)

    class Changes(AgentMiddleware[Any, Any, Any]):
        """After the first call."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            if any(isinstance(message, ToolMessage) for message in request.messages):
                found.response_format = "content_and_artifact"
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await self.wrap_model_call(request, handler)

    run = create_agent(
        model([("search", {})], [("search", {})]), [found], middleware=[Changes(), FailsoftMiddleware(Runtime())]
    )
    given: Any = {"messages": [HumanMessage("go")]}
    result = run.invoke(given) if way == "invoke" else asyncio.run(run.ainvoke(given))
    assert [message.content for message in told(result)] == ['["found", "kept"]', "found"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_parts_of_calls_side_by_side_are_kept_apart(way: str) -> None:
    @tool
    def search(city: str) -> Any:
        """Search."""
        time.sleep(0.02 if city == "Bern" else 0)
        return partial(city, missing=[f"rest of {city}"]) if city != "Chur" else city

    rt = Runtime()
    rt.declare("search", accept_partial=True, read_only=True)
    cities = ["Bern", "Chur", "Basel"]
    run = agent(rt, [search], [("search", {"city": city}) for city in cities])
    given = {"messages": [HumanMessage("go")]}
    result = run.invoke(given) if way == "invoke" else asyncio.run(run.ainvoke(given))
    first, whole, last = (message.content for message in told(result))
    assert (first.split("\n")[0], whole, last.split("\n")[0]) == ("Bern", "Chur", "Basel")
    assert ("rest of Bern" in first, "rest of Basel" in last) == (True, True)
