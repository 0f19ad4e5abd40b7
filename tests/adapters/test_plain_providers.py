"""Plain loops: formats of further providers, and the first pieces of streamed calls."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.adapters.plain import close_tool_calls, run_tool_calls
from failsoft.stores.memory import MemoryStore


def thing(data: Any) -> Any:
    """A dict as a client's object, with the arguments as a dict."""
    if not isinstance(data, dict):
        return data
    return SimpleNamespace(**{key: value if key == "arguments" else thing(value) for key, value in data.items()})


def run(rt: Runtime, *calls: Any, **options: Any) -> list[dict[str, Any]]:
    return asyncio.run(run_tool_calls(rt, list(calls), **options))


def runtime() -> tuple[Runtime, list[Any]]:
    rt, ran = Runtime(), list[Any]()

    @rt.tool(idempotent=False)
    async def pay(amount: int = 10) -> str:
        ran.append(amount)
        return f"paid {amount}"

    @rt.tool(read_only=True)
    async def now() -> str:
        return "noon"

    return rt, ran


FORMS = pytest.mark.parametrize("form", [lambda call: call, thing], ids=["dict", "object"])


# --- pieces ------------------------------------------------------------------------------------------------------------------


def first_piece(name: str) -> dict[str, Any]:
    return {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}


@FORMS
def test_the_first_piece_of_a_call_does_not_run_with_the_defaults(form: Any) -> None:
    """It looks like a call without arguments, and may be the only piece that has come so far."""
    rt, ran = runtime()
    (answer,) = run(rt, form(first_piece("pay")))
    assert answer["tool_call_id"] == "c1"
    assert "They are incomplete: the response was cut off." in answer["content"]
    assert ran == []
    assert "not run" in close_tool_calls(rt, [form(first_piece("pay"))])[0]["content"]


@FORMS
def test_a_call_of_a_tool_without_arguments_runs_whether_or_not_it_is_the_first_piece(form: Any) -> None:
    rt, _ = runtime()
    assert run(rt, form(first_piece("now")))[0]["content"] == "noon"


def test_an_empty_text_as_arguments_means_none_where_calls_are_not_numbered() -> None:
    rt, ran = runtime()
    call = first_piece("pay")
    del call["index"]
    assert run(rt, call)[0]["content"] == "paid 10"
    call = {**first_piece("pay"), "function": {"name": "pay", "arguments": "{}"}}
    assert run(rt, call)[0]["content"] == "paid 10"
    assert ran == [10, 10]


@pytest.mark.parametrize(
    "piece",
    [
        {"toolUse": {"toolUseId": "t", "name": "pay"}},  # of Bedrock's contentBlockStart
        {"toolUse": {"input": '{"amou'}},  # of Bedrock's contentBlockDelta
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "t", "name": "pay"}}, "contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"amou'}}, "contentBlockIndex": 0}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "pay"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "input_json_delta", "partial_json": '{"amou'},
        {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": '{"amou'},
        {"type": "response.custom_tool_call_input.delta", "item_id": "fc", "delta": "amou"},
        {"type": "response.output_item.added", "item": {"type": "function_call", "call_id": "c", "name": "pay"}},
        {"type": "tool_call_chunk", "id": "c1", "name": "pay", "args": "", "index": 0},
    ],
    ids=lambda piece: str(piece.get("type") or next(iter(piece))),
)
@FORMS
def test_a_piece_of_any_provider_is_rejected_before_anything_runs(piece: Any, form: Any) -> None:
    rt, ran = runtime()
    whole = {"id": "c2", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    with pytest.raises(TypeError, match="is a piece of a streamed tool call: put the pieces of each call together"):
        run(rt, whole, form(piece))
    assert ran == []


@pytest.mark.parametrize("arguments", [{}, {"amount": 4}, '{"amount": 4}'])
def test_a_whole_bedrock_call_runs(arguments: Any) -> None:
    rt, _ = runtime()
    (message,) = run(rt, {"toolUse": {"toolUseId": "t", "name": "pay", "input": arguments}})
    assert message["content"][0]["toolResult"]["status"] == "success"


# --- Gemini's Interactions API -------------------------------------------------------------------------------------------------


@FORMS
def test_interactions_of_gemini_are_answered_in_their_form(form: Any) -> None:
    rt, _ = runtime()
    steps = [
        {"type": "thought", "signature": "x"},
        {"type": "function_call", "id": "g1", "name": "pay", "arguments": {"amount": 4}},
        {"type": "function_call", "id": "g2", "name": "pay", "arguments": {"amount": "four"}},
        {"type": "model_output", "content": [{"type": "text", "text": "One moment."}]},
    ]
    paid, failed = run(rt, *map(form, steps))
    assert paid == {
        "type": "function_result",
        "name": "pay",
        "call_id": "g1",
        "result": [{"type": "text", "text": "paid 4"}],
    }
    assert (failed["call_id"], failed["is_error"]) == ("g2", True)
    assert failed["result"][0]["text"].startswith("pay failed: INVALID_ARGUMENT")


def test_steps_that_gemini_runs_itself_are_ignored_silently(caplog: pytest.LogCaptureFixture) -> None:
    rt, _ = runtime()
    quiet = [
        "user_input", "model_output", "thought", "function_result", "google_search_call", "google_search_result",
        "code_execution_call", "code_execution_result", "url_context_call", "url_context_result",
    ]  # fmt: skip
    assert run(rt, *({"type": kind, "id": "x"} for kind in quiet)) == []
    assert caplog.records == []


def test_a_response_item_without_a_call_id_is_answered_under_its_own_id() -> None:
    rt, _ = runtime()
    (answer,) = run(rt, {"type": "function_call", "id": "fc_1", "name": "pay", "arguments": '{"amount": 4}'})
    assert answer == {"type": "function_call_output", "call_id": "fc_1", "output": "paid 4"}


# --- LangChain's messages, without its agents ------------------------------------------------------------------------------------


def test_tool_calls_of_a_langchain_message() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages

    rt, ran = runtime()
    calls = [{"id": f"c{amount}", "name": "pay", "args": {"amount": amount}} for amount in (1, 2)]
    message = AIMessage("", tool_calls=calls)
    answers = run(rt, *message.tool_calls)
    assert ran == [1, 2]
    read = convert_to_messages(answers)
    assert [(one.tool_call_id, one.text) for one in read if isinstance(one, ToolMessage)] == [
        ("c1", "paid 1"),
        ("c2", "paid 2"),
    ]


def test_a_call_that_langchain_could_not_read_is_answered() -> None:
    rt, ran = runtime()
    unread = {"type": "invalid_tool_call", "id": "c1", "name": "pay", "args": '{"amount": 4', "error": "cut off"}
    (answer,) = run(rt, unread)
    assert answer["tool_call_id"] == "c1"
    assert "They are not valid JSON" in answer["content"]
    (answer,) = run(rt, {**unread, "args": None})
    assert "They are incomplete" in answer["content"]
    assert ran == []


# --- calls without ids -----------------------------------------------------------------------------------------------------------


@FORMS
def test_an_answer_without_an_id_names_its_tool(form: Any) -> None:
    """Ollama matches the answers to its calls by ``tool_name``."""
    rt, _ = runtime()
    calls = [{"function": {"name": "pay", "arguments": {"amount": 4}}}, {"function": {"name": "now", "arguments": {}}}]
    paid, now = run(rt, *map(form, calls))
    assert (paid["tool_name"], paid["content"]) == ("pay", "paid 4")
    assert (now["tool_name"], now["content"]) == ("now", "noon")
    with_id = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    assert run(rt, form(with_id)) == [{"role": "tool", "tool_call_id": "c1", "content": "noon"}]


def test_the_id_that_mistrals_client_writes_where_none_came_is_not_an_id() -> None:
    """Otherwise every later write would look like the one that a crash interrupted."""
    store = MemoryStore()
    rt, begun = Runtime(store=store), list[str]()

    @rt.tool(idempotent=False)
    async def pay() -> str:
        begun.extend(key for key, _ in store.find("pending") if "/begun/" in key)
        return "paid"

    calls = [{"id": id, "function": {"name": "pay", "arguments": "{}"}, "index": 0} for id in ("null", "c1")]
    answers = run(rt, *calls, thread="t")
    assert [answer["tool_call_id"] for answer in answers] == ["null", "c1"]
    assert any("/c1/" in key for key in begun)
    assert not any("/null/" in key for key in begun)
