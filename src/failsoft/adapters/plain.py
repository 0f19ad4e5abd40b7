"""Agents without a framework: a loop around an ``openai`` or ``anthropic`` client.

``await run_tool_calls(runtime, message.tool_calls)`` runs what the model has asked for and gives back the messages that
answer it, ready to be appended to the conversation.

Rules
-----
- Calls are read from dicts and from the clients' own objects, in three wire formats: OpenAI's chat completions and
  responses, Anthropic's messages. What is no tool call (text, reasoning) is left alone, so that a whole
  ``response.output`` or ``message.content`` may be handed over.
- They run side by side, in the turn that is going on or in one of their own. Every call gets its answer, in the order
  in which the model asked.
- A failed call's answer is the explanation that is made for the model; nothing is raised for a tool's failure.
- Arguments that cannot be read are answered too: the model learns what is wrong with them.
- What a generator yields is read to its end: the model gets a list, and one that breaks off is a failure.

No client is imported, and no model is called.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import date, time
from enum import Enum
from typing import Any, NamedTuple, Unpack

from failsoft.core.durations import Duration
from failsoft.core.outcome import Outcome
from failsoft.core.plain import plain
from failsoft.errors import FailsoftError, TurnError
from failsoft.runtime.arguments import MisfitError, read_arguments
from failsoft.runtime.beside import is_on_loop, run_beside
from failsoft.runtime.dangling import explain_dangling
from failsoft.runtime.foreign import open_turn, refuse_other
from failsoft.runtime.keywords import CallKeywords
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.stream import whole_stream
from failsoft.runtime.turn import Turn

Message = dict[str, Any]


async def run_tool_calls(
    runtime: Runtime,
    tool_calls: Iterable[Any] | None,
    *,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,  # noqa: ASYNC109 - a turn's, which ends softly
) -> list[Message]:
    """Run the tool calls of one answer of the model; the messages to send back.

    ``thread`` names the conversation: with it, loops are noticed and missing tools remembered. ``timeout`` is for all
    the calls together; what is not there by then is answered as such.
    """
    refuse_other(runtime, "run_tool_calls(rt, message.tool_calls)")
    asked = _read_all(tool_calls)
    if not asked:
        return []
    turn = SCOPE.get()
    if isinstance(turn, Turn) and thread is None and tenant is None and timeout is None:
        return _write_all(asked, await _run_all(runtime, asked))
    async with open_turn(runtime, thread=thread, tenant=tenant, timeout=timeout):
        outcomes = await _run_all(runtime, asked)
    return _write_all(asked, outcomes)


def run_tool_calls_sync(
    runtime: Runtime,
    tool_calls: Iterable[Any] | None,
    *,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,
) -> list[Message]:
    """The same for code that has no event loop."""
    if is_on_loop():
        raise FailsoftError("run_tool_calls_sync would block the event loop: use `await run_tool_calls(...)` here")
    return run_beside(
        lambda: run_tool_calls(runtime, tool_calls, thread=thread, tenant=tenant, timeout=timeout),
    )


def close_tool_calls(
    runtime: Runtime, tool_calls: Iterable[Any] | None, *, thread: str | None = None, tenant: str | None = None
) -> list[Message]:
    """Answers for calls that a crash or a cancellation has left without one: they are not run.

    Providers refuse a conversation in which a call has no answer.
    """
    refuse_other(runtime, "close_tool_calls(rt, message.tool_calls)")
    asked = _read_all(tool_calls)
    calls = [(str(call.id), call.name) for call in asked]
    return _write_all(asked, explain_dangling(runtime, calls, thread=thread, tenant=tenant))


# --- reading ---------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """One call, as the model asked for it."""

    id: Any  # a text, if its server keeps to the rules
    name: str
    arguments: Any  # a mapping, or JSON text
    write: Callable[[str, str], Message]  # the answer: id and text


def _read_all(tool_calls: Iterable[Any] | None) -> list[Asked]:
    calls = tool_calls or ()
    if not isinstance(calls, Iterable) or isinstance(calls, str | Mapping):
        raise _no_call(calls)
    return [asked for asked in map(_read, calls) if asked is not None]


def _read(call: Any) -> Asked | None:
    kind = _get(call, "type")
    if (function := _get(call, "function")) is not None:
        return Asked(_get(call, "id"), _name(function), _get(function, "arguments"), _chat)
    if kind == "custom" and (custom := _get(call, "custom")) is not None:
        return Asked(_get(call, "id"), _name(custom), {"input": _get(custom, "input")}, _chat)
    if kind == "function_call":
        return Asked(_get(call, "call_id"), _name(call), _get(call, "arguments"), _response)
    if kind == "custom_tool_call":
        return Asked(_get(call, "call_id"), _name(call), {"input": _get(call, "input")}, _custom_response)
    if kind == "tool_use":
        return Asked(_get(call, "id"), _name(call), _get(call, "input"), _block)
    if kind is None:
        raise _no_call(call)
    return None


def _no_call(given: object) -> TypeError:
    return TypeError(f"{given!r:.200} is no tool call: hand over message.tool_calls, response.output or content")


def _name(thing: Any) -> str:
    return str(_get(thing, "name") or "")


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


# --- running ---------------------------------------------------------------------------------------------------------


async def _run_all(runtime: Runtime, asked: list[Asked]) -> list[Outcome[Any]]:
    return await asyncio.gather(*(_run(runtime, call) for call in asked))


async def _run(runtime: Runtime, call: Asked) -> Outcome[Any]:
    if call.id is None:
        return await _call(runtime, call)
    try:
        return await _call(runtime, call, id=str(call.id))
    except TurnError:  # an id that is not unique in its turn, as some servers hand out: the call has another one then
        return await _call(runtime, call)


def _call(runtime: Runtime, call: Asked, **options: Unpack[CallKeywords]) -> Coroutine[Any, Any, Outcome[Any]]:
    arguments = read_arguments(call.arguments)
    if isinstance(arguments, Mapping):
        if (whole := whole_stream(runtime, call.name, arguments)) is not None:
            return runtime.run(call.name, arguments, {call.name: whole}, **options)
        return runtime.call(call.name, arguments, **options)
    if call.name not in runtime.tools:
        return runtime.call(call.name, None, **options)  # that there is no such tool comes first
    fault = arguments

    async def refuse(_: dict[str, Any]) -> None:
        raise MisfitError(fault)

    return runtime.run(call.name, {"arguments": call.arguments}, {call.name: refuse}, **options)


# --- writing ---------------------------------------------------------------------------------------------------------


def _write_all(asked: list[Asked], outcomes: list[Outcome[Any]]) -> list[Message]:
    messages: list[Message] = []
    blocks: list[Message] = []
    for call, outcome in zip(asked, outcomes, strict=True):
        message = call.write(call.id, _text(outcome))
        if call.write is not _block:
            messages.append(message)
            continue
        if not blocks:  # Anthropic wants all results in one message
            messages.append({"role": "user", "content": blocks})
        blocks.append(message if outcome.status == "succeeded" else {**message, "is_error": True})
    return messages


def _chat(id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": id, "content": text}


def _response(id: str, text: str) -> Message:
    return {"type": "function_call_output", "call_id": id, "output": text}


def _custom_response(id: str, text: str) -> Message:
    return {"type": "custom_tool_call_output", "call_id": id, "output": text}


def _block(id: str, text: str) -> Message:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def _text(outcome: Outcome[Any]) -> str:
    if outcome.status != "succeeded":
        return outcome.explanation.model
    text = outcome.value if isinstance(outcome.value, str) else _json(outcome.value)
    text = text if outcome.missing is None else f"{text}\n{outcome.explanation.model}"
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as in odd file names: the client could not send it
        text = text.encode(errors="replace").decode()
    return text


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_data)
    except Exception:  # the tool has run, and others beside it: whatever a value's own methods do, they are answered
        return json.dumps(plain(value), ensure_ascii=False)


def _data(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)  # pydantic
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)
