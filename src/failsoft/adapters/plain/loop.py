"""Agents without a framework: a loop around a provider's client.

``await run_tool_calls(runtime, message.tool_calls)`` runs the calls that the model asked for. It returns the answers,
ready to be appended to the conversation.

Rules
-----
- Calls are read from dicts and from client objects, in the formats of all providers that
  ``adapters.plain.provider_formats`` lists. Other items (text, reasoning) are ignored, so a whole ``response.output`` or
  ``message.content`` may be passed. A call that failsoft does not run is reported, never dropped.
- Calls run concurrently, in the current turn or in a turn of their own. Every call gets an answer, in the order of the
  requests.
- The answer to a failed call is the explanation for the model. A tool's failure never raises.
- Unreadable arguments are answered too: the model learns what is wrong with them. Pieces of a streamed call are
  refused before any call runs.
- A tool counts as a write unless it is declared, or recognised by its name and description, as a read.
- A generator is read to its end and the model gets a list. A generator that fails midway is a failure.

This module imports no client and calls no model.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from datetime import date, time
from enum import Enum
from typing import Any, Unpack

from failsoft.adapters.plain.provider_formats import (
    GEMINI,
    GEMINI_REST,
    Answer,
    Asked,
    Message,
    Other,
    read_all,
    write_all,
)
from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import Duration
from failsoft.core.model.fault import Fault
from failsoft.core.model.json_values import plain
from failsoft.core.model.outcome import Outcome
from failsoft.errors import FailsoftError, TurnError
from failsoft.integration.api import (
    SCOPE,
    CallKeywords,
    Runtime,
    Turn,
    call_for_model,
    is_on_loop,
    read_time,
    require_callables,
    require_text_names,
    run_on_loop_thread,
    visible,
)
from failsoft.integration.arguments import MisfitError, read_arguments
from failsoft.integration.executor import use_daemon_threads
from failsoft.integration.framework_tool import open_turn, require_runtime
from failsoft.integration.streams import whole_stream
from failsoft.integration.unanswered import Unanswered, explain_dangling

log = logging.getLogger("failsoft")


async def run_tool_calls(
    runtime: Runtime,
    tool_calls: Any,
    *,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,  # noqa: ASYNC109 - the timeout of a turn, which ends without raising
    max_calls: int | None = None,
    max_calls_per_tool: int | None = None,
    on_other: Callable[[Any], object] | None = None,
) -> list[Message]:
    """Run the tool calls of one model response and return the messages to send back.

    ``thread`` names the conversation: failsoft then detects loops and remembers unavailable tools. ``timeout`` covers
    all calls together; a call that has not finished by then is answered as timed out. ``max_calls`` and
    ``max_calls_per_tool`` limit the calls; to limit a whole conversation turn, open ``rt.turn(max_calls=…)`` around the loop.
    ``on_other`` gets each item that failsoft does not run (a shell or computer call, an approval request, an unknown type); without it, a warning is
    logged.
    """
    require_runtime(runtime, "run_tool_calls(rt, message.tool_calls)")
    require_text_names("run_tool_calls", thread=thread, tenant=tenant)
    if timeout is not None:
        read_time("timeout", timeout)
    asked = _read(tool_calls, on_other)
    if not asked:
        return []
    use_daemon_threads(runtime)
    turn = SCOPE.get()
    own = (thread, tenant, timeout, max_calls, max_calls_per_tool)
    if isinstance(turn, Turn) and all(option is None for option in own):
        return _write(asked, await _run_all(runtime, asked))
    async with open_turn(
        runtime,
        thread=thread,
        tenant=tenant,
        timeout=timeout,
        max_calls=max_calls,
        max_calls_per_tool=max_calls_per_tool,
    ):
        outcomes = await _run_all(runtime, asked)
    return _write(asked, outcomes)


def run_tool_calls_sync(
    runtime: Runtime,
    tool_calls: Any,
    *,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,
    max_calls: int | None = None,
    max_calls_per_tool: int | None = None,
    on_other: Callable[[Any], object] | None = None,
) -> list[Message]:
    """Blocking version of ``run_tool_calls``, for code without an event loop."""
    if is_on_loop():
        raise FailsoftError("run_tool_calls_sync would block the event loop: use `await run_tool_calls(...)` here")
    return run_on_loop_thread(
        lambda: run_tool_calls(
            runtime,
            tool_calls,
            thread=thread,
            tenant=tenant,
            timeout=timeout,
            max_calls=max_calls,
            max_calls_per_tool=max_calls_per_tool,
            on_other=on_other,
        ),
    )


def close_tool_calls(
    runtime: Runtime,
    tool_calls: Any,
    *,
    thread: str | None = None,
    tenant: str | None = None,
    on_other: Callable[[Any], object] | None = None,
) -> list[Message]:
    """Answer calls that a crash or a cancellation left unanswered, without running them.

    Providers reject a conversation that contains an unanswered call.
    """
    require_runtime(runtime, "close_tool_calls(rt, message.tool_calls)")
    asked = _read(tool_calls, on_other)
    calls = [Unanswered(_id(call) or "", call.name, _find_misfit(runtime, call)) for call in asked]
    return _write(asked, explain_dangling(runtime, calls, thread=thread, tenant=tenant))


def _find_misfit(runtime: Runtime, call: Asked) -> Fault | None:
    """Return the fault of unreadable arguments (cut off, for instance): such a call cannot have run."""
    arguments = _arguments(runtime, call)
    return arguments if isinstance(arguments, Fault) else None


def _id(call: Asked) -> str | None:
    """Return the id that the provider sent. Mistral's client writes "null" where there is none."""
    return None if call.id is None or call.id == "null" else str(call.id)


def _arguments(runtime: Runtime, call: Asked) -> Mapping[str, Any] | Fault:
    if call.cut_off or (call.may_be_piece and _takes_arguments(runtime, call.name)):
        return builtin_faults.bad_arguments(detail="They are incomplete: the response was cut off.")
    return read_arguments(call.arguments)


def _takes_arguments(runtime: Runtime, tool: str) -> bool:
    return tool in runtime.tools and bool(runtime.tools[tool].schema.get("properties"))


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(given: Any, on_other: Callable[[Any], object] | None) -> list[Asked]:
    """Return the calls to run here. Report the others, so that the application answers them."""
    require_callables(on_other=on_other)
    found = read_all(given)
    for one in found:
        if isinstance(one, Other):
            if on_other is not None:
                on_other(one.item)
            else:
                log.warning(
                    "%s %s is not a tool call that failsoft runs: answer it yourself, or take it with on_other",
                    visible(one.type),
                    visible(str(one.id or "")),
                )
    return [one for one in found if isinstance(one, Asked)]


# --- running ---------------------------------------------------------------------------------------------------------


async def _run_all(runtime: Runtime, asked: list[Asked]) -> list[Outcome[Any]]:
    return await asyncio.gather(*(_run(runtime, call) for call in asked))


async def _run(runtime: Runtime, call: Asked) -> Outcome[Any]:
    if (id := _id(call)) is None:
        return await _call(runtime, call)
    try:
        return await _call(runtime, call, id=id)
    except TurnError:  # the id is not unique in its turn, as some servers send: use a generated one
        return await _call(runtime, call)


def _call(runtime: Runtime, call: Asked, **options: Unpack[CallKeywords]) -> Coroutine[Any, Any, Outcome[Any]]:
    arguments = _arguments(runtime, call)
    if isinstance(arguments, Mapping):
        if (whole := whole_stream(runtime, call.name, arguments)) is not None:
            return runtime.run(call.name, arguments, {call.name: whole}, **options)
        return call_for_model(runtime._engine, call.name, arguments, **options)
    if call.name not in runtime.tools:
        return runtime.call(call.name, None, **options)  # an unknown tool is reported before bad arguments
    fault = arguments

    async def refuse(_: dict[str, Any]) -> None:
        raise MisfitError(fault)

    return runtime.run(call.name, {"arguments": call.arguments}, {call.name: refuse}, **options)


# --- writing ---------------------------------------------------------------------------------------------------------


def _write(asked: list[Asked], outcomes: list[Outcome[Any]]) -> list[Message]:
    return write_all(asked, map(_answer, asked, outcomes))


def _answer(call: Asked, outcome: Outcome[Any]) -> Answer:
    text = _text(outcome)
    if outcome.status != "succeeded":
        return Answer(text, failed=True)
    if not outcome.value_known:
        return Answer(text, text)
    missing_text = outcome.remark
    value = None
    if call.form in (GEMINI, GEMINI_REST):  # the only formats that take data
        value = _sendable(outcome.value) if isinstance(outcome.value, str) else json.loads(_json(outcome.value))
    return Answer(text, value, missing_text=missing_text)


def _text(outcome: Outcome[Any]) -> str:
    if outcome.status != "succeeded" or not outcome.value_known:
        return outcome.explanation.model
    text = outcome.value if isinstance(outcome.value, str) else _json(outcome.value)
    return _sendable(f"{text}\n{outcome.remark}" if outcome.remark else text)


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as in odd file names: clients cannot send it
        text = text.encode(errors="replace").decode()
    return text


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_data)
    except Exception:  # a value's own methods may raise anything; the call has run and must be answered
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
