"""Translate outcomes to LangChain messages, and find unanswered calls in a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.prebuilt.tool_node import msg_content_output
from langgraph.types import Command

from failsoft.core.model.outcome import Outcome


def translate(id: str | None, outcome: Outcome[Any]) -> Any:
    if outcome.status != "succeeded":
        return to_message(id, outcome)
    value = outcome.value if outcome.value_known else outcome.explanation.model
    remark = outcome.remark
    if outcome.via == outcome.tool and not remark:
        return value
    if not isinstance(value, ToolMessage):
        parts = value if isinstance(value, list) and value else [value]
        if all(isinstance(part, ToolMessage | Command) for part in parts):
            return value
        written: Any = msg_content_output(value)
        value = ToolMessage(written, tool_call_id=id)  # the fallback is a function registered with the runtime
    content = value.content
    if remark:
        content = f"{content}\n{remark}" if isinstance(content, str) else [*content, {"type": "text", "text": remark}]
    return value.model_copy(update={"name": outcome.tool, "content": content})  # some providers match answers by name


def to_message(id: str | None, outcome: Outcome[Any]) -> ToolMessage:
    return ToolMessage(
        outcome.explanation.model, name=outcome.tool, tool_call_id=id, status="error", artifact=outcome.to_dict()
    )


def keep_message(message: ToolMessage, outcome: Outcome[Any]) -> ToolMessage:
    """Keep the user's own error message; add the outcome as its artifact if it has none."""
    changes: dict[str, Any] = {"name": outcome.tool}
    if message.artifact is None:
        changes["artifact"] = outcome.to_dict()
    return message.model_copy(update=changes)


def find_unanswered(messages: Iterable[AnyMessage]) -> dict[tuple[int, str], str]:
    """Find the unanswered calls: (index of the asking message, call id) -> tool name.

    The id alone is not unique: some models restart their numbering in every message.
    """
    dangling: dict[tuple[int, str], str] = {}
    places: dict[str, int] = {}
    for place, message in enumerate(messages):
        message_class = message.__class__
        if asks(message_class):
            for call in message.tool_calls:  # type: ignore[union-attr]  # an AIMessage
                if (id := call["id"]) is not None:
                    dangling[place, id] = call["name"]
                    places[id] = place
        elif dangling and answers(message_class):
            id = message.tool_call_id  # type: ignore[union-attr]  # a ToolMessage
            dangling.pop((places.get(id, -1), id), None)
    return dangling


# Cached: ``isinstance`` is slow for pydantic classes.
@cache
def asks(message_class: type[Any]) -> bool:
    """True for messages that ask for tool calls."""
    return issubclass(message_class, AIMessage)


@cache
def answers(message_class: type[Any]) -> bool:
    """True for messages that answer tool calls."""
    return issubclass(message_class, ToolMessage)
