"""Read tool calls in each provider's format, and write the answers in the same format.

Rules
-----
- Accept dicts and client objects: OpenAI chat completions (also the older ``function_call``) and responses, Anthropic
  messages, Gemini parts (client and REST) and interactions, Bedrock Converse, and the tool calls of LangChain's
  messages. Mistral, Cohere and Ollama send those of chat completions.
- Text, reasoning and calls run by the provider are not calls. ``_read`` returns None for them.
- ``Other`` is a call that the application must run (a shell, a computer, an approval) or an item of an unknown type. It
  must not be dropped: the provider rejects a conversation in which it has no answer.
- A piece of a streamed call is an error of the caller: a call runs only when all its arguments are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

Message = dict[str, Any]

_QUIET = frozenset({
    # OpenAI responses: not calls, or run by OpenAI
    "message", "reasoning", "compaction", "item_reference", "file_search_call", "web_search_call", "code_interpreter_call",
    "image_generation_call", "mcp_call", "mcp_list_tools", "mcp_approval_response", "function_call_output",
    "custom_tool_call_output", "computer_call_output", "local_shell_call_output", "shell_call_output",
    "apply_patch_call_output", "program", "program_output", "tool_search_output", "additional_tools", "output_text", "refusal", "input_text", "input_image", "input_file", "summary_text",
    # Anthropic: not calls, or run by Anthropic
    "text", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "container_upload", "tool_result", "image",
    "document", "search_result",
    # Gemini's interactions: not calls, or run by Google
    "user_input", "model_output", "thought", "function_result", "google_search_call", "google_search_result",
    "google_maps_call", "google_maps_result", "file_search_result", "code_execution_call", "code_execution_result",
    "url_context_call", "url_context_result", "mcp_server_tool_call", "mcp_server_tool_result",
    # LangChain's content blocks: not calls, or run by the provider
    "server_tool_call", "server_tool_result",
})  # fmt: skip
_PIECES = frozenset({
    # types of the events and deltas by which a call is streamed
    "content_block_start", "content_block_delta", "input_json_delta", "tool_call_chunk", "response.output_item.added",
    "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
})  # fmt: skip
_PARTS = frozenset({
    # Gemini parts and Bedrock blocks have no type, but one of these keys
    "text", "thought", "thoughtSignature", "thought_signature", "inlineData", "inline_data", "fileData", "file_data",
    "executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "functionResponse",
    "function_response", "toolCall", "tool_call", "toolResponse", "tool_response", "reasoningContent", "image", "document",
    "video", "audio", "toolResult", "guardContent", "cachePoint", "citationsContent", "searchResult", "videoMetadata",
    "video_metadata", "mediaResolution", "media_resolution", "partMetadata", "part_metadata",
    "toolUse", "functionCall", "function_call",  # run by the provider, or empty
})  # fmt: skip


class Answer(NamedTuple):
    """The answer to a call, for the model."""

    text: str
    value: Any = None  # plain data, only for a success
    failed: bool = False
    missing_text: str = ""  # what is missing from an incomplete value


class Form(NamedTuple):
    """The format of a provider's answers."""

    write: Callable[[Asked, Answer], Message]
    wrap: Callable[[list[Message]], Message] | None = None  # set if all answers go into one message


class Asked(NamedTuple):
    """One call, as the model requested it."""

    id: Any  # a string, if the server follows the API; None if the provider sends no id
    name: str
    arguments: Any  # a mapping, or JSON text
    form: Form
    cut_off: bool = False  # the provider says that the call is incomplete, and its arguments do not show it
    may_be_piece: bool = False  # it may be the first piece of a streamed call, which has no arguments yet
    caller: Any = None  # the program that made the call, if the answer must name it


class Other(NamedTuple):
    """A call that failsoft does not run, or an unknown item."""

    type: str
    id: Any
    item: Any


def read_all(given: Any) -> list[Asked | Other]:
    """Read the calls from a provider's response. Raise ``TypeError`` if it cannot contain calls."""
    calls = [given] if _is_legacy(given) else given or ()
    if not isinstance(calls, Iterable) or isinstance(calls, str | Mapping):
        raise _no_call(calls)
    return [found for found in map(_read, calls) if found is not None]


def write_all(asked: Iterable[Asked], answers: Iterable[Answer]) -> list[Message]:
    """Write the messages to send back, in the order of the requests."""
    messages: list[Message] = []
    together: dict[int, list[Message]] = {}
    for call, answer in zip(asked, answers, strict=True):
        part = call.form.write(call, answer)
        if call.form.wrap is None:
            messages.append(part)
            continue
        parts = together.setdefault(id(call.form), [])
        if not parts:
            messages.append(call.form.wrap(parts))
        parts.append(part)
    return messages


# --- reading ----------------------------------------------------------------------------------------------------------------


def _read(call: Any) -> Asked | Other | None:
    if _is_piece(call):
        raise TypeError(f"{call!r:.200} is a piece of a streamed tool call: put the pieces of each call together first")
    item_type = get(call, "type")
    found = _READERS[item_type](call) if isinstance(item_type, str) and item_type in _READERS else _read_untyped(call)
    if found is not None:
        return found
    if item_type is None:
        if (unknown := _unknown_part(call)) is not None:
            return unknown
        if _is_part(call):
            return None
        raise _no_call(call)
    if isinstance(item_type, str) and (item_type in _QUIET or item_type.endswith("_tool_result")):
        return None
    if get(call, "execution") == "server":
        return None  # a search for tools that the provider runs
    return Other(str(item_type), get(call, "call_id") or get(call, "id"), call)


def _read_untyped(call: Any) -> Asked | None:
    if (function := get(call, "function")) is not None:
        arguments = get(function, "arguments")
        may_be_piece = arguments == "" and _has(call, "index")
        return Asked(get(call, "id"), _name(function), arguments, CHAT, may_be_piece=may_be_piece)
    for key, form in (("functionCall", GEMINI_REST), ("function_call", GEMINI)):
        if (found := get(call, key)) is not None:
            return _legacy(found) if _is_legacy(found) else _gemini(found, form)
    if (used := get(call, "toolUse")) is not None:
        if get(used, "type") == "server_tool_use":
            return None
        return Asked(get(used, "toolUseId"), _name(used), get(used, "input"), BEDROCK)
    if _is_legacy(call):
        return _legacy(call)
    if _has(call, "name") and (_has(call, "args") or hasattr(call, "args")) and get(call, "type") is None:
        return _gemini(call, GEMINI)
    return None


def _gemini(call: Any, form: Form) -> Asked:
    return Asked(get(call, "id") or None, _name(call), _data(get(call, "args") or {}), form)


def _legacy(call: Any) -> Asked:
    return Asked(None, _name(call), get(call, "arguments"), LEGACY)


def _is_legacy(call: Any) -> bool:
    """True for ``message.function_call`` of older chat completions: a name and arguments only."""
    return _has(call, "name") and _has(call, "arguments") and get(call, "type") is None and get(call, "id") is None


def _is_piece(call: Any) -> bool:
    """True for a piece of a streamed call: chat completions number them, Gemini says that more will come, Bedrock's first
    piece has no input and the others have no name.
    """
    if (function := get(call, "function")) is not None:
        return _has(call, "index") and not get(call, "id") and not get(function, "name")
    if (used := get(call, "toolUse")) is not None:
        return not (_has(used, "name") and _has(used, "input"))
    if (item_type := get(call, "type")) is not None:
        return isinstance(item_type, str) and item_type in _PIECES
    if _has(call, "contentBlockStart") or _has(call, "contentBlockDelta"):
        return True
    found = get(call, "functionCall") or get(call, "function_call") or call
    more = get(found, "willContinue"), get(found, "will_continue")
    return True in more or any(get(found, key) for key in ("partialArgs", "partial_args"))


def _is_incomplete(call: Any) -> bool:
    return get(call, "status") in ("incomplete", "in_progress")


def _is_part(call: Any) -> bool:
    """True for a part or block that has no type and is not a call."""
    if isinstance(call, Mapping):
        return not call.keys().isdisjoint(_PARTS)
    return hasattr(call, "function_call")  # a Gemini client's part has all fields, most of them None


def _unknown_part(call: Any) -> Other | None:
    """Find a part or block of an unknown kind: an object under an unknown key."""
    if not isinstance(call, Mapping) or isinstance(call.get("tool") or call.get("name"), str):
        return None  # a name beside the object: no provider writes calls like that
    for key, value in call.items():
        if key not in _PARTS and isinstance(value, Mapping):
            return Other(str(key), get(value, "id"), call)
    return None


def _data(value: Any) -> Any:
    """Convert arguments to plain data: older Gemini clients use their own containers."""
    if isinstance(value, Mapping):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_data(item) for item in value]
    return value


def _no_call(given: object) -> TypeError:
    return TypeError(
        f"{given!r:.200} is not a tool call: pass message.tool_calls, response.output, message.content, "
        "response.function_calls or a message's parts"
    )


def _name(thing: Any) -> str:
    return str(get(thing, "name") or "")


def _has(thing: Any, name: str) -> bool:
    return get(thing, name) is not None


def get(thing: Any, name: str) -> Any:
    """Read a field of a dict or of a client object."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


# --- writing ----------------------------------------------------------------------------------------------------------------


def _write_tool_result(call: Asked, answer: Answer) -> Message:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": answer.text}
    return {**block, "is_error": True} if answer.failed else block


def _write_bedrock(call: Asked, answer: Answer) -> Message:
    status = "error" if answer.failed else "success"
    return {"toolResult": {"toolUseId": call.id, "content": [{"text": answer.text}], "status": status}}


def _write_function_response(call: Asked, answer: Answer) -> Message:
    response: Message = {"error": answer.text} if answer.failed else {"output": answer.value}
    if answer.missing_text:
        response["note"] = answer.missing_text
    named = {"name": call.name, "response": response}
    return named if call.id is None else {"id": call.id, **named}


def _write_output(kind: str, call: Asked, answer: Answer) -> Message:
    message = {"type": kind, "call_id": call.id, "output": answer.text}
    if call.caller is not None:  # a program that the provider runs waits for this answer
        message["caller"] = {key: get(call.caller, key) for key in ("type", "caller_id") if _has(call.caller, key)}
    return message


def _write_chat(call: Asked, answer: Answer) -> Message:
    message = {"role": "tool", "tool_call_id": call.id, "content": answer.text}
    from_ollama = call.id is None and isinstance(call.arguments, Mapping)
    return {**message, "tool_name": call.name} if from_ollama else message


def _write_function_result(call: Asked, answer: Answer) -> Message:
    result = [{"type": "text", "text": answer.text}]
    message = {"type": "function_result", "name": call.name, "call_id": call.id, "result": result}
    return {**message, "is_error": True} if answer.failed else message


CHAT = Form(_write_chat)
LEGACY = Form(lambda call, answer: {"role": "function", "name": call.name, "content": answer.text})
RESPONSES = Form(partial(_write_output, "function_call_output"))
INTERACTIONS = Form(_write_function_result)
CUSTOM = Form(partial(_write_output, "custom_tool_call_output"))
ANTHROPIC = Form(_write_tool_result, lambda blocks: {"role": "user", "content": blocks})
BEDROCK = Form(_write_bedrock, lambda blocks: {"role": "user", "content": blocks})
GEMINI = Form(
    lambda call, answer: {"function_response": _write_function_response(call, answer)},
    lambda parts: {"role": "user", "parts": parts},
)
GEMINI_REST = Form(
    lambda call, answer: {"functionResponse": _write_function_response(call, answer)},
    lambda parts: {"role": "user", "parts": parts},
)


def _read_custom(call: Any) -> Asked | None:
    if (custom := get(call, "custom")) is None:
        return None
    return Asked(get(call, "id"), _name(custom), {"input": get(custom, "input")}, CHAT)


def _read_function_call(call: Any) -> Asked:
    arguments, id = get(call, "arguments"), get(call, "call_id")
    if id is None and not isinstance(arguments, str):
        return Asked(get(call, "id"), _name(call), _data(arguments), INTERACTIONS)
    cut_off = not arguments and _is_incomplete(call)
    id = get(call, "id") if id is None else id
    return Asked(id, _name(call), arguments, RESPONSES, cut_off, caller=get(call, "caller"))


def _read_custom_call(call: Any) -> Asked:
    given = {"input": get(call, "input")}
    return Asked(get(call, "call_id"), _name(call), given, CUSTOM, _is_incomplete(call), caller=get(call, "caller"))


def _read_langchain(call: Any) -> Asked:
    arguments = get(call, "args")
    return Asked(get(call, "id"), _name(call), arguments, CHAT, arguments is None)


_READERS: Mapping[str, Callable[[Any], Asked | None]] = {
    "custom": _read_custom,
    "function_call": _read_function_call,
    "custom_tool_call": _read_custom_call,
    "tool_call": _read_langchain,
    "invalid_tool_call": _read_langchain,
    "tool_use": lambda call: Asked(get(call, "id"), _name(call), get(call, "input"), ANTHROPIC),
}
