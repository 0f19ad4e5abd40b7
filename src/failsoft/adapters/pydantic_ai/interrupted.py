"""Calls that a crash or a cancellation left without an answer.

pydantic-ai answers them itself, as interrupted "before a result was produced": a model that reads that pays again. Here it
learns what may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_core import from_json

from failsoft.adapters.pydantic_ai.private import SYNTHESIZED
from failsoft.core.model.builtin_faults import bad_arguments
from failsoft.core.model.fault import Fault
from failsoft.integration.unanswered import Unanswered, explain_dangling
from failsoft.runtime.runtime import Runtime

_TOLD = "failsoft"  # in the metadata of an answer that pydantic-ai made up: the outcome


def explain_interrupted(runtime: Runtime, messages: Iterable[ModelMessage], thread: str | None) -> None:
    """Write what may have happened into pydantic-ai's own answers; they keep it, for this run and for later ones."""
    found: list[Any] = []
    calls: list[Unanswered] = []
    asked: dict[str, Any] = {}
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, ToolCallPart):
            asked[part.tool_call_id] = part.args
        elif _is_made_up(part):
            found.append(part)
            calls.append(Unanswered(part.tool_call_id, part.tool_name, _find_misfit(asked.get(part.tool_call_id))))
    if found:
        for part, outcome in zip(found, explain_dangling(runtime, calls, thread=thread), strict=True):
            part.content, part.metadata = outcome.explanation.model, {**part.metadata, _TOLD: outcome.to_dict()}


def _find_misfit(given: Any) -> Fault | None:
    """Why a call cannot have run: its arguments were cut off. pydantic-ai reads them with the same parser."""
    if not isinstance(given, str) or not given:
        return None
    try:
        from_json(given)
    except ValueError as error:
        return bad_arguments(detail=f"They are not valid JSON: {error}.")
    return None


def _is_made_up(part: Any) -> TypeGuard[ToolReturnPart]:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.metadata, dict):
        return False
    return SYNTHESIZED in part.metadata and _TOLD not in part.metadata
