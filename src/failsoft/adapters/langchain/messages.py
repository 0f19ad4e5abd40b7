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
        asks, answers = _does(type(message))
        if answers:
            dangling.pop(message.tool_call_id, None)  # type: ignore[union-attr]  # a ToolMessage
        elif asks and message.tool_calls:  # type: ignore[union-attr]  # an AIMessage
            dangling |= asked(message)
    return dangling


@cache
def _does(kind: type) -> tuple[bool, bool]:
    """Do such messages ask for calls, do they answer them? ``isinstance`` is slow for pydantic's classes."""
    return issubclass(kind, AIMessage), issubclass(kind, ToolMessage)


def asked(message: AnyMessage) -> dict[str, str]:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return {call["id"]: call["name"] for call in calls if call["id"] is not None}
