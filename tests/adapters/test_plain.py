"""Plain loops: three wire formats, answers in order, and the model's text when a call fails."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import runpy
from collections import UserDict, UserList
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot
from tests.adapters.story import SCENES, Story, tell, transcript
from tests.fakes import OFTEN, Scripted, virtual

from failsoft import Runtime
from failsoft.adapters.plain import close_tool_calls, run_tool_calls, run_tool_calls_sync
from failsoft.core.model.partial import partial
from failsoft.errors import FailsoftError
from failsoft.stores.memory import MemoryStore
from failsoft.testing import Ask, Seen, adapter_checks, check_adapter
from failsoft.testing.check_adapter import Steps, Tools


def chat(name: str, arguments: Any = "{}", id: str = "c1") -> dict[str, Any]:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": written}}


def response(name: str, arguments: Any = "{}", id: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": json.dumps(arguments)}


def block(name: str, arguments: Any = None, id: str = "c1") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments or {}}


def thing(data: Any) -> Any:
    """A dict as a client's object."""
    return json.loads(json.dumps(data), object_hook=lambda found: SimpleNamespace(**found))


def runtime() -> Runtime:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def weather(city: str) -> str:
        return f"Sunny in {city}"

    @rt.tool(read_only=True)
    async def broken() -> str:
        raise ValueError("Invalid airport code: XYZ")

    return rt


def run(rt: Runtime, *calls: Any, **options: Any) -> list[dict[str, Any]]:
    return asyncio.run(run_tool_calls(rt, calls, **options))


# --- the suite that all adapters pass ------------------------------------------------------------------------------------


class Abort(BaseException):
    """Control flow of a plain program passes through failsoft because it is not an ``Exception``."""


class Driver:
    control_flow = (Abort("enough"),)

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> list[list[Seen]]:
        if runtime is None:
            return [[Seen(ask.tool, str(await tools[ask.tool](**ask.args))) for ask in step] for step in steps]
        self.tools = tools
        for name in tools.keys() - set(runtime.tools):
            self.add(runtime, name)
        return [await self.step(runtime, step) for step in steps]

    def add(self, runtime: Runtime, name: str) -> None:
        async def tool(city: str) -> Any:
            return await self.tools[name](city)

        runtime.add(tool, id=name, **({} if name == "search" else {"idempotent": False}))

    async def step(self, runtime: Runtime, asks: list[Ask]) -> list[Seen]:
        calls = [chat(ask.tool, ask.args, f"c{number}") for number, ask in enumerate(asks)]
        answers = await run_tool_calls(runtime, calls)
        assert [answer["tool_call_id"] for answer in answers] == [call["id"] for call in calls]
        return [Seen(ask.tool, answer["content"]) for ask, answer in zip(asks, answers, strict=True)]


NOBODY_VALIDATES = {"a_broken_tool_may_have_acted"}  # it is the functions that look at their arguments


@pytest.mark.parametrize(
    "check", [c for c in adapter_checks() if c.__name__ not in NOBODY_VALIDATES], ids=lambda check: check.__name__
)
def test_adapter(check: Any) -> None:
    check_adapter(Driver(), check)


# --- the story -----------------------------------------------------------------------------------------------------------


def test_story() -> None:
    story, heard = Story(), []
    rt = story.runtime()
    for name, tool in story.tools.items():
        rt.add(tool, id=name, **({} if name in ("read_file", "weather") else {"idempotent": False}))
    for number, scene in enumerate(SCENES):
        story.runs.clear()
        written = [json.dumps(ask) for ask in scene.asks]
        if scene.title == "bad arguments":  # a plain loop has them as text
            written = ['{"people": 4']
            scene = scene._replace(asks=({"text": written[0]},))  # noqa: PLW2901
        answers = [run(rt, chat(scene.tool, text), thread=f"chat-{number}") for text in written]
        heard.append((scene, [answer["content"] for (answer,) in answers]))
        assert story.runs.get(scene.tool, 0) == scene.runs, scene.title
    assert tell(heard) == transcript(
        bad_arguments="""\
book_table(text='{"people": 4')
  book_table failed: INVALID_ARGUMENT (tool_validation, not run). It had no effect. Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "The arguments do not fit. They are not valid JSON: Expecting ',' delimiter: line 1 column 13 (char 12)."
"""
    )


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "plain_loop.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "tool: Sunny in Paris" in printed
    assert "tool_validation, not run). It was not run this time" in printed
    assert '{"weather": 3, "pay": 1}' in printed


# --- wire formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda call: call, thing], ids=["dicts", "objects"])
def test_openai_chat(form: Any) -> None:
    calls = [form(chat("weather", {"city": "Paris"}, "a")), form(chat("broken", {}, "b"))]
    first, second = run(runtime(), *calls)
    assert first == {"role": "tool", "tool_call_id": "a", "content": "Sunny in Paris"}
    assert (second["role"], second["tool_call_id"]) == ("tool", "b")
    assert second["content"].startswith("broken failed: INVALID_ARGUMENT")


@pytest.mark.parametrize("form", [lambda call: call, thing], ids=["dicts", "objects"])
def test_openai_responses(form: Any) -> None:
    output = [{"type": "reasoning", "summary": []}, response("weather", {"city": "Rome"}, "a")]
    assert run(runtime(), *map(form, output)) == [
        {"type": "function_call_output", "call_id": "a", "output": "Sunny in Rome"}
    ]


@pytest.mark.parametrize("form", [lambda call: call, thing], ids=["dicts", "objects"])
def test_anthropic(form: Any) -> None:
    content = [
        {"type": "text", "text": "Let me look."},
        block("weather", {"city": "Oslo"}, "a"),
        block("broken", id="b"),
    ]
    arguments = [form(each) for each in content]
    if form is thing:
        arguments[1].input = {"city": "Oslo"}  # the client keeps it as a dict
        arguments[2].input = {}
    (message,) = run(runtime(), *arguments)
    assert message["role"] == "user"
    good, bad = message["content"]
    assert good == {"type": "tool_result", "tool_use_id": "a", "content": "Sunny in Oslo"}
    assert (bad["tool_use_id"], bad["is_error"]) == ("b", True)


def test_the_clients_own_objects() -> None:
    from openai.types.chat import ChatCompletionMessage
    from openai.types.responses import ResponseFunctionToolCall

    message = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [chat("weather", {"city": "Paris"})]}
    )
    assert run(runtime(), *message.tool_calls or ())[0]["content"] == "Sunny in Paris"
    call = ResponseFunctionToolCall.model_validate(response("weather", {"city": "Paris"}))
    assert run(runtime(), call)[0]["output"] == "Sunny in Paris"


def test_free_text_tools() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    def shout(input: str) -> str:  # noqa: A002 - its name on the wire
        return input.upper()

    custom = {"id": "a", "type": "custom", "custom": {"name": "shout", "input": "hey"}}
    output = {"type": "custom_tool_call", "call_id": "b", "name": "shout", "input": "you"}
    assert run(rt, custom, output) == [
        {"role": "tool", "tool_call_id": "a", "content": "HEY"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "YOU"},
    ]


@pytest.mark.parametrize("nothing", [None, [], [{"type": "text", "text": "Done."}]])
def test_nothing_to_run(nothing: Any) -> None:
    assert asyncio.run(run_tool_calls(runtime(), nothing)) == []


def test_a_value_that_is_not_a_tool_call_is_rejected() -> None:
    with pytest.raises(TypeError, match="is not a tool call: pass message.tool_calls"):
        run(runtime(), {"name": "weather"})


@pytest.mark.parametrize(
    "whole", [{"role": "assistant", "tool_calls": []}, SimpleNamespace(tool_calls=[]), "Sunny.", 5], ids=repr
)
def test_a_whole_message_instead_of_its_tool_calls_is_rejected(whole: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"{whole!r} is not a tool call: pass message.tool_calls")):
        asyncio.run(run_tool_calls(runtime(), whole))


@pytest.mark.parametrize("given", ["failsoft.yaml", Runtime, []])
def test_an_argument_that_is_not_a_runtime_is_rejected(given: Any) -> None:
    with pytest.raises(FailsoftError, match=r"is not a Runtime: write run_tool_calls\(rt, message.tool_calls\)"):
        asyncio.run(run_tool_calls(given, [chat("weather", {"city": "Bern"})]))
    with pytest.raises(FailsoftError, match=r"is not a Runtime: write close_tool_calls\(rt, message.tool_calls\)"):
        close_tool_calls(given, [chat("weather", {"city": "Bern"})])


# --- arguments -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"city": "Par', "They are not valid JSON: Unterminated string"),
        ("[1, 2]", "They must be one JSON object, not list."),
        ('"Paris"', "They must be one JSON object, not str."),
        ("[" * 100_000, "They are not valid JSON: "),
        ('{"town": "Paris"}', "Missing: city. Not known: town."),
    ],
)
def test_bad_arguments_are_explained(arguments: str, says: str) -> None:
    (answer,) = run(runtime(), chat("weather", arguments))
    assert answer["content"].startswith("weather failed: INVALID_ARGUMENT (tool_validation")
    assert says in answer["content"]


@pytest.mark.parametrize("arguments", ["", " ", "{}", "null"])
def test_no_arguments(arguments: str) -> None:
    rt = Runtime()
    rt.add(lambda: "noon", id="time", read_only=True)
    assert run(rt, chat("time", arguments))[0]["content"] == "noon"


def piece(arguments: str, id: str | None = None, name: str | None = None) -> Any:
    """A piece of a streamed chat completion: only the first has the call's id and name."""
    return {"index": 0, "id": id, "type": None, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("form", [dict, thing], ids=["dict", "object"])
@pytest.mark.parametrize(
    "pieces",
    [
        [piece("", "c1", "pay"), piece('{"amount": 40}')],
        [{"functionCall": {"name": "pay", "willContinue": True}}],
        [{"functionCall": {"name": "pay", "partialArgs": [{"jsonPath": "$.amount", "numberValue": 40}]}}],
        [{"function_call": {"id": None, "name": "pay", "args": None, "will_continue": True, "partial_args": None}}],
        [{"id": None, "name": "pay", "args": None, "will_continue": None, "partial_args": [{"number_value": 4}]}],
    ],
)
def test_pieces_of_a_streamed_call_are_rejected_before_anything_runs(pieces: list[Any], form: Any) -> None:
    """Taken for a call, the first piece would run with the defaults of the tool's arguments."""
    rt, paid = Runtime(), []
    rt.add(lambda amount=10: paid.append(amount), id="pay", idempotent=False)
    with pytest.raises(TypeError, match="is a piece of a streamed tool call: put the pieces of each call together"):
        run(rt, *map(form, pieces))
    assert paid == []


def test_a_call_put_together_from_pieces_runs() -> None:
    call = piece('{"city": "Bern"}', "c1", "weather")
    assert run(runtime(), call)[0]["content"] == "Sunny in Bern"


@pytest.mark.parametrize("status", ["incomplete", "in_progress"])
@pytest.mark.parametrize(
    "call",
    [
        {"type": "function_call", "call_id": "c", "name": "pay", "arguments": ""},
        {"type": "custom_tool_call", "call_id": "c", "name": "pay", "input": "fort"},
    ],
    ids=lambda call: call["type"],
)
def test_a_call_that_the_provider_calls_incomplete_does_not_run(call: Any, status: str) -> None:
    """Its arguments look like none at all, or like a shorter text."""
    rt, paid = Runtime(), []
    rt.add(lambda **given: paid.append(given), id="pay", idempotent=False)
    (answer,) = run(rt, cut_off := {**call, "status": status})
    assert "They are incomplete: the response was cut off." in answer["output"]
    assert close_tool_calls(rt, [cut_off])[0]["output"].startswith("pay failed: INVALID_ARGUMENT")
    assert paid == []
    run(rt, {**call, "status": "completed"})
    assert len(paid) == 1


def test_a_call_with_arguments_that_are_there_runs_although_the_response_is_incomplete() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": '{"city": "Bern"}'}
    assert run(runtime(), {**call, "status": "incomplete"})[0]["output"] == "Sunny in Bern"


@pytest.mark.parametrize("arguments", ["{}", "{"])
def test_unknown_tool(arguments: str) -> None:
    (answer,) = run(rt := runtime(), chat("wether", arguments))
    assert "There is no tool named 'wether' here; did you mean weather?" in answer["content"]
    assert "wether" not in rt.tools


# --- answers ---------------------------------------------------------------------------------------------------------------


@dataclass
class Place:
    name: str


class Size(Enum):
    LARGE = "L"


class Mute:
    """Nothing of it can be had."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("no fields")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Zürich", "Zürich"),
        (None, "null"),
        ({"name": "Zürich"}, '{"name": "Zürich"}'),
        ([Place("Bern")], '[{"name": "Bern"}]'),
        ({1, 2}, "[1, 2]"),
        ({(1, 2): "odd"}, '{"(1, 2)": "odd"}'),
        ([datetime(2026, 11, 16, 8, 30, tzinfo=UTC), Size.LARGE], '["2026-11-16T08:30:00+00:00", "L"]'),
        pytest.param("caf\udce9", "caf?", id="half a character"),
        pytest.param(["caf\udce9"], '["caf?"]', id="half a character inside"),
        (partial(["a"], missing=["b"]), '["a"]\ntool succeeded in part. Missing, as data: "[\'b\']"'),
    ],
)
def test_values_become_text(value: Any, text: str) -> None:
    rt = Runtime()
    rt.add(lambda: value, id="tool", read_only=True, accept_partial=True)
    assert run(rt, chat("tool"))[0]["content"] == text


def test_a_value_that_cannot_be_serialised_does_not_affect_other_calls() -> None:
    rt = runtime()
    rt.add(lambda: [Mute()], id="tool", read_only=True)
    odd, other = run(rt, chat("tool", id="a"), chat("weather", {"city": "Bern"}, "b"))
    assert "Mute" in odd["content"]
    assert other["content"] == "Sunny in Bern"


def test_models_become_json() -> None:
    from pydantic import BaseModel

    class City(BaseModel):
        name: str

    rt = Runtime()
    rt.add(lambda: City(name="Bern"), id="tool", read_only=True)
    assert run(rt, chat("tool"))[0]["content"] == '{"name": "Bern"}'


def test_calls_run_side_by_side_and_answers_keep_their_order() -> None:
    rt, all_here = Runtime(), asyncio.Barrier(3)
    ended = {name: asyncio.Event() for name in "cba"}
    order = []

    @rt.tool(read_only=True)
    async def meet(name: str, after: str = "") -> str:
        await all_here.wait()
        if after:
            await ended[after].wait()
        order.append(name)
        ended[name].set()
        return name

    asked = ({"name": "a", "after": "b"}, {"name": "b", "after": "c"}, {"name": "c"})
    answers = run(rt, *(chat("meet", arguments, arguments["name"]) for arguments in asked))
    assert order == ["c", "b", "a"]
    assert [(answer["tool_call_id"], answer["content"]) for answer in answers] == [("a", "a"), ("b", "b"), ("c", "c")]


def test_calls_with_equal_ids_are_all_answered() -> None:
    calls = [chat("weather", {"city": city}, "") for city in ("Paris", "Rome")]
    assert [answer["content"] for answer in run(runtime(), *calls)] == ["Sunny in Paris", "Sunny in Rome"]


@pytest.mark.parametrize("id", [7, None])
def test_ids_that_are_not_text_are_returned_unchanged(id: Any) -> None:
    """They come from a server: the answer has the same one."""
    rt, call = runtime(), chat("weather", {"city": "Paris"}, id)
    assert run(rt, call) == [{"role": "tool", "tool_call_id": id, "content": "Sunny in Paris"}]
    assert close_tool_calls(rt, [call])[0]["tool_call_id"] == id


def test_a_timeout_limits_all_calls_together() -> None:
    rt = runtime()

    @rt.tool(read_only=True)
    async def slow() -> None:
        await asyncio.sleep(20)

    async def main() -> list[dict[str, Any]]:
        async with rt:
            return await run_tool_calls(
                rt, [chat("slow", id="a"), chat("weather", {"city": "Bonn"}, "b")], timeout="50ms"
            )

    slow_, quick = asyncio.run(main())
    assert slow_["content"].startswith("slow did not finish within the time for this turn.")
    assert quick["content"] == "Sunny in Bonn"


def test_calls_made_inside_a_turn_belong_to_the_turn() -> None:
    rt = runtime()

    async def main() -> list[str]:
        async with rt.turn() as turn:
            await run_tool_calls(rt, [chat("weather", {"city": "Bonn"}, "a"), chat("weather", "{", "b")])
        return [f"{outcome.id} {outcome.status}" for outcome in turn.report.outcomes.values()]

    assert asyncio.run(main()) == ["a succeeded", "b failed"]


@pytest.mark.parametrize("own", [{"thread": "chat-42"}, {"tenant": "acme"}, {"timeout": "5s"}], ids=repr)
def test_calls_with_their_own_thread_tenant_or_timeout_get_a_turn_of_their_own(own: Any) -> None:
    rt = runtime()

    async def main() -> Any:
        async with rt.turn() as turn:
            await run_tool_calls(rt, [chat("weather", {"city": "Bonn"}, "a")], **own)
        return turn.report.outcomes

    assert not asyncio.run(main())  # they are a turn's of their own


def test_without_an_event_loop() -> None:
    assert run_tool_calls_sync(runtime(), [chat("weather", {"city": "Bonn"})])[0]["content"] == "Sunny in Bonn"

    async def inside() -> None:
        run_tool_calls_sync(runtime(), [])

    with pytest.raises(FailsoftError, match="use `await run_tool_calls"):
        asyncio.run(inside())


# --- unanswered calls --------------------------------------------------------------------------------------------------------


def test_dangling_calls_are_closed() -> None:
    rt = Runtime()
    entered = asyncio.Event()

    @rt.tool(idempotent=False)
    async def pay(amount: int) -> None:
        entered.set()
        await asyncio.sleep(20)

    calls = [chat("pay", {"amount": 4}, "p")]

    async def main() -> None:
        running = asyncio.create_task(run_tool_calls(rt, calls, thread="t"))
        await entered.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    asyncio.run(main())
    (answer,) = close_tool_calls(rt, calls, thread="t")
    assert answer == snapshot(
        {
            "role": "tool",
            "tool_call_id": "p",
            "content": "pay was cancelled. It may already have taken effect: check before calling again. Call it again only if it is still wanted.",
        }
    )
    assert rt.threads["t"].dangling == []
    assert close_tool_calls(Runtime(), [block("pay", id="q")])[0]["content"][0]["content"].startswith(
        "pay was cancelled."
    )


def test_a_call_whose_arguments_were_cut_off_cannot_have_run() -> None:
    cut_off = chat("pay", {}, "p")
    cut_off["function"]["arguments"] = '{"amount": 4'
    (answer,) = close_tool_calls(Runtime(), [cut_off])
    assert answer["content"].startswith("pay failed: INVALID_ARGUMENT (tool_validation, not run). It had no effect.")


# --- streams ---------------------------------------------------------------------------------------------------------------


def pages(last: Any) -> Any:
    yield "page 1"
    if isinstance(last, Exception):
        raise last
    yield last


async def apages(last: Any) -> Any:
    for page in pages(last):
        yield page


@pytest.mark.parametrize("stream", [pages, apages])
def test_the_model_reads_a_stream_when_it_is_complete(stream: Any) -> None:
    rt = Runtime()
    rt.add(functools.partial(stream, "page 2"), id="read")
    [answer] = asyncio.run(run_tool_calls(rt, [chat("read")]))
    assert answer["content"] == '["page 1", "page 2"]'
    [answer] = asyncio.run(run_tool_calls(rt, [chat("read", {"lost": 1})]))
    assert "INVALID_ARGUMENT" in answer["content"]


@pytest.mark.parametrize("stream", [pages, apages])
def test_a_stream_that_breaks_off_is_a_failure(stream: Any) -> None:
    rt = Runtime()
    rt.add(functools.partial(stream, RuntimeError("Authentication failed (401)")), id="read")
    [answer] = asyncio.run(run_tool_calls(rt, [chat("read")]))
    assert answer["content"].startswith("read failed: UNAUTHENTICATED")


def test_a_call_without_a_name_is_answered() -> None:
    [answer] = asyncio.run(run_tool_calls(Runtime(), [{"id": "c1", "function": {"name": None, "arguments": "{}"}}]))
    assert answer["tool_call_id"] == "c1"
    assert "NOT_FOUND" in answer["content"]


# --- other providers ----------------------------------------------------------------------------------------------------------

BAD = "broken failed: INVALID_ARGUMENT"


def gemini(name: str, args: Any = None, **more: Any) -> Any:
    """A part of the Gemini client's: it has all fields, most of them None."""
    call = SimpleNamespace(id=None, name=name, args=args, **more)
    return SimpleNamespace(text=None, thought=None, function_call=call, inline_data=None)


def test_gemini_gets_its_parts_in_one_message() -> None:
    text = SimpleNamespace(text="Let me see.", thought=None, function_call=None, inline_data=None)
    (message,) = run(runtime(), text, gemini("weather", {"city": "Bern"}), gemini("broken"))
    assert message["role"] == "user"
    first, second = (part["function_response"] for part in message["parts"])
    assert first == {"name": "weather", "response": {"output": "Sunny in Bern"}}
    assert (second["name"], second["response"]["error"][: len(BAD)]) == ("broken", BAD)


def test_gemini_calls_without_their_parts() -> None:
    calls = [
        gemini("weather", {"city": "Bern"}).function_call,
        SimpleNamespace(id="7", name="weather", args={"city": "Rome"}),
    ]
    (message,) = run(runtime(), *calls)
    assert [part["function_response"].get("id") for part in message["parts"]] == [None, "7"]


def test_an_object_of_an_unknown_kind_is_not_run_without_its_arguments() -> None:
    """Only a name is known of it, as of an older call of Cohere's, whose arguments are ``parameters``."""
    rt, paid = Runtime(), []
    rt.add(lambda amount=10: paid.append(amount), id="pay", idempotent=False)
    with pytest.raises(TypeError, match="is not a tool call"):
        run(rt, SimpleNamespace(name="pay", parameters={"amount": 40}))
    assert paid == []


def test_gemini_by_rest() -> None:
    parts = [
        {"text": "Let me see.", "thought": True},
        {"functionCall": {"name": "weather", "args": {"city": "Bern"}, "id": "f1"}, "thoughtSignature": "x"},
        {"functionCall": {"name": "broken"}},
        {"executableCode": {"code": "1"}},
    ]
    (message,) = run(runtime(), *parts)
    first, second = (part["functionResponse"] for part in message["parts"])
    assert first == {"id": "f1", "name": "weather", "response": {"output": "Sunny in Bern"}}
    assert second["response"]["error"].startswith(BAD)


def test_gemini_gets_values_as_data_and_sends_numbers_as_floats() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def find(count: int, tags: list[str]) -> Any:
        return partial({"count": count, "tags": tags, "when": datetime(2026, 11, 17, tzinfo=UTC)}, missing=["price"])

    class Struct(UserDict[str, Any]):
        """A container of an older client's own."""

    (message,) = run(rt, gemini("find", Struct(count=2.0, tags=UserList(["a"]))))
    response = message["parts"][0]["function_response"]["response"]
    assert response["output"] == {"count": 2, "tags": ["a"], "when": "2026-11-17T00:00:00+00:00"}
    assert "price" in response["note"]


def test_bedrock() -> None:
    blocks = [
        {"text": "Let me see."},
        {"reasoningContent": {"reasoningText": {"text": "…"}}},
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Bern"}}},
        {"toolUse": {"toolUseId": "t2", "name": "broken", "input": {}}},
        {"toolUse": {"toolUseId": "t3", "name": "web", "input": {}, "type": "server_tool_use"}},
        {"cachePoint": {"type": "default"}},
    ]
    (message,) = run(runtime(), *blocks)
    first, second = (block["toolResult"] for block in message["content"])
    assert message["role"] == "user"
    assert first == {"toolUseId": "t1", "content": [{"text": "Sunny in Bern"}], "status": "success"}
    assert (second["toolUseId"], second["status"]) == ("t2", "error")
    assert second["content"][0]["text"].startswith(BAD)


LEGACY = {"name": "weather", "arguments": '{"city": "Bern"}'}


@pytest.mark.parametrize(
    "given",
    [
        LEGACY, [LEGACY], thing(LEGACY), [thing(LEGACY)], [{"role": "assistant", "content": None, "function_call": LEGACY}],
        [thing({"role": "assistant", "content": None, "function_call": LEGACY})],
    ],
)  # fmt: skip
def test_the_older_function_call_of_chat_completions(given: Any) -> None:
    assert asyncio.run(run_tool_calls(runtime(), given)) == [
        {"role": "function", "name": "weather", "content": "Sunny in Bern"}
    ]


def test_calls_without_an_id_are_kept_apart() -> None:
    rt = runtime()
    parts = [{"functionCall": {"name": "weather", "args": {"city": city}}} for city in ("Bern", "Rome", "Bern")]
    (message,) = run(rt, *parts)
    assert [part["functionResponse"]["response"]["output"] for part in message["parts"]] == [
        "Sunny in Bern", "Sunny in Rome", "Sunny in Bern",
    ]  # fmt: skip
    assert len({event.call_id for event in rt.events() if event.call_id}) == 3


@pytest.mark.parametrize("make", [lambda item: item, thing])
def test_calls_of_other_providers_can_be_closed(make: Any) -> None:
    given = [
        {"functionCall": {"name": "weather", "args": {}}},
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {}}},
        {"function_call": LEGACY},
    ]
    messages = close_tool_calls(runtime(), [make(item) for item in given])
    assert "error" in messages[0]["parts"][0]["functionResponse"]["response"]
    assert messages[1]["content"][0]["toolResult"]["status"] == "error"
    assert messages[2]["role"] == "function"


# --- what is not ours to run --------------------------------------------------------------------------------------------------

OTHERS = [
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
    "hologram_call",
]


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("make", [lambda item: item, thing])
def test_calls_that_are_not_ours_are_reported(kind: str, make: Any, caplog: pytest.LogCaptureFixture) -> None:
    item = make({"type": kind, "call_id": "x1", "action": {}})
    (message,) = run(runtime(), item, response("weather", {"city": "Bern"}))
    assert message["output"] == "Sunny in Bern"
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert f"{kind} x1 is not a tool call that failsoft runs" in record.getMessage()


@pytest.mark.parametrize("more", [{}, {"thoughtSignature": "a1"}])
@pytest.mark.parametrize("kind", ["hologramCall", "SDK_UNKNOWN_MEMBER"])
def test_parts_of_an_unknown_kind_are_reported(kind: str, more: Any, caplog: pytest.LogCaptureFixture) -> None:
    known = {"inlineData": {"data": ""}, "videoMetadata": {"fps": 1}}
    call = {"functionCall": {"name": "weather", "args": {"city": "Bern"}}}
    (message,) = run(runtime(), known, {kind: {"name": "x", "id": "x1"}, **more}, call)
    assert message["parts"][0]["functionResponse"]["response"] == {"output": "Sunny in Bern"}
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert f"{kind} x1 is not a tool call that failsoft runs" in record.getMessage()


@pytest.mark.parametrize("kind", [5, ["a"], {"b": 1}])
def test_a_type_that_is_no_text_is_reported(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert run(runtime(), {"type": kind, "id": "x1"}) == []
    assert "x1 is not a tool call that failsoft runs" in caplog.text


def test_items_that_are_not_calls_are_passed_to_on_other(caplog: pytest.LogCaptureFixture) -> None:
    rt, item = runtime(), {"type": "computer_call", "call_id": "x1"}
    for run_them in (run_tool_calls_sync, close_tool_calls):
        taken: list[Any] = []
        run_them(rt, [item, response("weather", {"city": "Bern"})], on_other=taken.append)
        assert taken == [item]
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def ahandle(item: Any) -> None:
    raise AssertionError("never awaited")


@pytest.mark.parametrize(
    ("handle", "says"), [(ahandle, "is async and would not be awaited"), ("log", "cannot be called")]
)
def test_an_on_other_that_would_not_get_the_items_is_rejected_at_once(handle: Any, says: str) -> None:
    for calls in ([], [chat("weather", {"city": "Bern"})]):
        with pytest.raises(FailsoftError, match=f"on_other: .* {says}"):
            asyncio.run(run_tool_calls(runtime(), calls, on_other=handle))
        with pytest.raises(FailsoftError, match=f"on_other: .* {says}"):
            close_tool_calls(runtime(), calls, on_other=handle)


def test_items_that_providers_run_themselves_are_ignored_silently(caplog: pytest.LogCaptureFixture) -> None:
    quiet = [
        "message", "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "text",
        "image_generation_call", "mcp_list_tools", "thinking", "server_tool_use", "web_search_tool_result",
        "program", "program_output", "tool_search_output", "additional_tools",
    ]  # fmt: skip
    assert run(runtime(), *({"type": kind, "id": "x"} for kind in quiet)) == []
    search = {"type": "tool_search_call", "id": "s", "call_id": None, "arguments": {}}
    assert run(runtime(), {**search, "execution": "server"}) == []
    assert caplog.records == []
    assert run(runtime(), {**search, "execution": "client"}) == []
    assert "tool_search_call s is not a tool call that failsoft runs" in caplog.text


@pytest.mark.parametrize("form", [lambda call: call, thing], ids=["dicts", "objects"])
@pytest.mark.parametrize(
    "caller", [{"type": "program", "caller_id": "p1"}, {"type": "direct"}], ids=lambda one: one["type"]
)
def test_an_answer_names_the_program_that_made_the_call(caller: Any, form: Any) -> None:
    """OpenAI's programs call tools, too: only with its caller does an answer reach the program."""
    custom = {"type": "custom_tool_call", "call_id": "b", "name": "weather", "input": "Rome"}
    calls = [form({**call, "caller": caller}) for call in (response("weather", {"city": "Bern"}, "a"), custom)]
    assert [(answer["call_id"], answer["caller"]) for answer in run(runtime(), *calls)] == [
        ("a", caller),
        ("b", caller),
    ]
    assert [answer["caller"] for answer in close_tool_calls(runtime(), calls)] == [caller, caller]


def test_a_hostile_type_is_shown_harmlessly(caplog: pytest.LogCaptureFixture) -> None:
    assert run(runtime(), {"type": "shell\x1b[2Jcall\nERROR", "id": "\x1b"}) == []
    assert all(mark not in caplog.text for mark in ("\x1b", "call\nERROR"))


# --- tools of which nothing is known -------------------------------------------------------------------------------------


class Flaky:
    """Acts each time, and loses the answer."""

    def __init__(self) -> None:
        self.done = 0

    async def later(self) -> str:
        self.done += 1
        raise ConnectionResetError("connection reset by peer")

    def now(self) -> str:
        self.done += 1
        raise ConnectionResetError("connection reset by peer")

    async def stream(self) -> Any:
        self.done += 1
        yield "one"
        raise ConnectionResetError("connection reset by peer")


UNDECLARED: Any = ["recognise", "as_specified", "never_repeat"]


@pytest.mark.parametrize("undeclared", UNDECLARED)
@pytest.mark.parametrize("kind", ["later", "now", "stream"])
def test_a_tool_of_which_nothing_is_known_counts_as_a_write(kind: str, undeclared: Any) -> None:
    rt, flaky, other = Runtime(undeclared=undeclared), Flaky(), Flaky()
    rt.add(getattr(flaky, kind), id="oracle", fallbacks=["other"])
    rt.add(other.later, id="other")
    (answer,) = run(rt, chat("oracle"))
    assert (flaky.done, other.done) == (1, 0)
    assert "may already have taken effect" in answer["content"]


@pytest.mark.parametrize("kind", ["later", "now"])
@virtual
async def test_an_undeclared_tool_is_repeated_only_outside_of_a_models_calls(kind: str) -> None:
    rt, flaky, mine = Runtime(), Flaky(), Flaky()
    rt.add(getattr(flaky, kind), id="oracle", breaker=OFTEN)
    rt.add(getattr(mine, kind), id="mine", breaker=OFTEN)
    for number in range(2):  # the second time its error is known, and takes the short way
        await rt.call("mine")
        async with rt.turn() as turn:
            await run_tool_calls(rt, [chat("oracle", id=f"c{number}")])
            turn.call("mine")
        await rt.call("oracle")
    assert (flaky.done, mine.done) == (2 * (1 + 5), 2 * (5 + 5))


def test_an_undeclared_fallback_is_tried_once_in_a_models_call() -> None:
    rt, flaky = Runtime(), Flaky()
    rt.add(flaky.later, id="oracle")

    @rt.tool(read_only=True, fallbacks=["oracle"], retry={"max_attempts": 1})
    async def weather() -> str:
        raise ConnectionRefusedError("refused")

    run(rt, chat("weather"))
    assert flaky.done == 1


def test_a_models_calls_share_the_tools_circuit() -> None:
    rt = Runtime()

    async def oracle() -> str:
        raise ConnectionRefusedError("connection refused")

    rt.add(oracle, breaker={"failure_threshold": 1}, retry={"max_attempts": 1})
    run(rt, chat("oracle"))
    assert rt.health("oracle").state == "open"
    assert asyncio.run(rt.call("oracle")).attempts == 0
    rt.disable("oracle", "closed")
    (answer,) = run(rt, chat("oracle"))
    assert "TOOL_UNAVAILABLE" in answer["content"].upper()


def test_a_tool_with_concurrency_1_may_call_itself() -> None:
    rt = Runtime()

    @rt.tool(concurrency=1, timeout="5s")
    async def oracle(depth: int) -> int:
        return 0 if not depth else 1 + await oracle(depth - 1)

    (answer,) = run(rt, chat("oracle", {"depth": 2}))
    assert answer["content"] == "2"


def test_an_undeclared_tool_is_recorded_before_a_models_call_starts() -> None:
    store = MemoryStore()
    rt, seen = Runtime(store=store), []

    @rt.tool
    async def oracle() -> str:
        seen.append([key for key, _ in store.find("pending") if "/begun/" in key])
        return "yes"

    run(rt, chat("oracle"), thread="t")
    assert len(seen[0]) == 1
    asyncio.run(rt.call("oracle", id="c9", thread="t"))
    assert seen[1] == []


def test_a_call_whose_id_is_taken_is_still_known_by_it_after_a_crash() -> None:
    store = MemoryStore()
    rt, seen = Runtime(store=store), []

    @rt.tool
    async def pay(amount: int) -> str:
        seen.append([key for key, _ in store.find("pending") if "/begun/pay/c1/" in key])
        return "paid"

    run(rt, chat("pay", {"amount": 1}), chat("pay", {"amount": 2}), thread="t")
    assert max(map(len, seen)) == 2


@virtual
async def test_the_calls_of_a_response_may_be_limited() -> None:
    rt = Runtime()
    rt.add(Scripted("found"), id="search")
    asked = [
        {"id": f"c{number}", "type": "function", "function": {"name": "search", "arguments": "{}"}} for number in "123"
    ]
    for limits in ({"max_calls": 2}, {"max_calls_per_tool": 2}):
        answers = await run_tool_calls(rt, asked, **limits)  # type: ignore[arg-type]
        assert [answer["content"] for answer in answers[:2]] == ["found", "found"]
        assert "in this turn" in answers[2]["content"]
