"""Outcomes as LangChain's messages, and the calls that a conversation has left without an answer."""

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
    value = outcome.value
    if outcome.via == outcome.tool and outcome.missing is None:
        return value
    if not isinstance(value, ToolMessage):
        parts = value if isinstance(value, list) and value else [value]
        if all(isinstance(part, ToolMessage | Command) for part in parts):
            return value
        written: Any = msg_content_output(value)
        value = ToolMessage(written, tool_call_id=id)  # of a function of the runtime's own
    content = value.content
    if outcome.missing is not None:
        lacks = outcome.explanation.model
        content = f"{content}\n{lacks}" if isinstance(content, str) else [*content, {"type": "text", "text": lacks}]
    return value.model_copy(update={"name": outcome.tool, "content": content})  # some providers match answers by name


def to_message(id: str | None, outcome: Outcome[Any]) -> ToolMessage:
    return ToolMessage(
        outcome.explanation.model, name=outcome.tool, tool_call_id=id, status="error", artifact=outcome.to_dict()
    )


def keep_words(message: ToolMessage, outcome: Outcome[Any]) -> ToolMessage:
    """The user's own error message, with the whole outcome as its artifact where it has none."""
    changes: dict[str, Any] = {"name": outcome.tool}
    if message.artifact is None:
        changes["artifact"] = outcome.to_dict()
    return message.model_copy(update=changes)


def find_dangling(messages: Iterable[AnyMessage]) -> dict[tuple[int, str], str]:
    """The calls that nobody has answered, and their tools: by the place of the message that asks, and by their ids.

    An id alone is not enough: some models number their calls anew in every message.
    """
    dangling: dict[tuple[int, str], str] = {}
    places: dict[str, int] = {}
    for place, message in enumerate(messages):
        kind = message.__class__
        if asks(kind):
            for call in message.tool_calls:  # type: ignore[union-attr]  # an AIMessage
                if (id := call["id"]) is not None:
                    dangling[place, id] = call["name"]
                    places[id] = place
        elif dangling and answers(kind):
            id = message.tool_call_id  # type: ignore[union-attr]  # a ToolMessage
            dangling.pop((places.get(id, -1), id), None)
    return dangling


# ``isinstance`` is slow for pydantic's classes.
@cache
def asks(kind: type[Any]) -> bool:
    """Do such messages ask for calls?"""
    return issubclass(kind, AIMessage)


@cache
def answers(kind: type[Any]) -> bool:
    """Do they answer them?"""
    return issubclass(kind, ToolMessage)
