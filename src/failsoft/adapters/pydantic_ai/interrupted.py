"""Explain calls that a crash or a cancellation left unanswered.

pydantic-ai itself answers such a call as interrupted "before a result was produced". A model that reads this may pay
again. So its text is replaced by failsoft's, which says what may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_core import from_json

from failsoft.adapters.pydantic_ai.private import SYNTHESIZED
from failsoft.core.model.builtin_faults import bad_arguments
from failsoft.core.model.fault import Fault
from failsoft.integration.api import Runtime
from failsoft.integration.unanswered import Unanswered, explain_unanswered_async

_OUTCOME_KEY = "failsoft"  # metadata key of the outcome, in an answer that pydantic-ai synthesised


async def explain_interrupted(runtime: Runtime, messages: Iterable[ModelMessage], thread: str | None) -> None:
    """Replace the text of pydantic-ai's synthesised answers, for this run and later ones."""
    found: list[Any] = []
    calls: list[Unanswered] = []
    asked: dict[str, Any] = {}
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, ToolCallPart):
            asked[part.tool_call_id] = part.args
        elif _is_synthesised(part):
            found.append(part)
            calls.append(Unanswered(part.tool_call_id, part.tool_name, _find_misfit(asked.get(part.tool_call_id))))
    if found:
        outcomes = await explain_unanswered_async(runtime, calls, thread=thread)
        for part, outcome in zip(found, outcomes, strict=True):
            part.content, part.metadata = outcome.explanation.model, {**part.metadata, _OUTCOME_KEY: outcome.to_dict()}


def _find_misfit(given: Any) -> Fault | None:
    """Return the fault of cut-off arguments: such a call cannot have run. pydantic-ai uses the same parser."""
    if not isinstance(given, str) or not given:
        return None
    try:
        from_json(given)
    except ValueError as error:
        return bad_arguments(detail=f"They are not valid JSON: {error}.")
    return None


def _is_synthesised(part: Any) -> TypeGuard[ToolReturnPart]:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.metadata, dict):
        return False
    return SYNTHESIZED in part.metadata and _OUTCOME_KEY not in part.metadata
