"""Outcomes as LangChain's messages, and the calls that a conversation has left without an answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from failsoft.core.outcome import Outcome


def translate(id: str | None, outcome: Outcome[Any]) -> Any:
    if outcome.status != "succeeded":
        return to_message(id, outcome)
    if outcome.via != outcome.tool and isinstance(outcome.value, ToolMessage):
        return outcome.value.model_copy(update={"name": outcome.tool})  # some providers match answers by name
    return outcome.value


def to_message(id: str | None, outcome: Outcome[Any]) -> ToolMessage:
    return ToolMessage(
        outcome.explanation.model, name=outcome.tool, tool_call_id=id, status="error", artifact=outcome.to_dict()
    )


def find_dangling(messages: Iterable[AnyMessage]) -> dict[str, str]:
    """The calls that nobody has answered: their ids, and the tools."""
    dangling: dict[str, str] = {}
    for message in messages:
        kind = message.__class__
        if asks(kind):
            if message.tool_calls:  # type: ignore[union-attr]  # an AIMessage
                dangling |= asked(message)
        elif dangling and answers(kind):
            dangling.pop(message.tool_call_id, None)  # type: ignore[union-attr]  # a ToolMessage
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


def asked(message: AnyMessage) -> dict[str, str]:
    """The calls that a message asks for: their ids, and the tools."""
    calls: Any = message.tool_calls if asks(type(message)) else ()  # type: ignore[union-attr]  # an AIMessage
    return {call["id"]: call["name"] for call in calls if call["id"] is not None}
