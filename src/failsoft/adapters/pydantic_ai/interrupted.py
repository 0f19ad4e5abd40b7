"""Calls that a crash or a cancellation left without an answer.

pydantic-ai answers them itself, as interrupted "before a result was produced": a model that reads that pays again. Here it
learns what may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from failsoft.adapters.pydantic_ai.private import SYNTHESIZED
from failsoft.runtime.dangling import explain_dangling
from failsoft.runtime.runtime import Runtime

_TOLD = "failsoft"  # in the metadata of an answer that pydantic-ai made up: the outcome


def explain_interrupted(runtime: Runtime, messages: Iterable[ModelMessage], thread: str | None) -> None:
    """Write what may have happened into pydantic-ai's own answers; they keep it, for this run and for later ones."""
    found: list[Any] = [part for message in messages for part in message.parts if _is_made_up(part)]
    if found:
        calls = [(part.tool_call_id, part.tool_name) for part in found]
        for part, outcome in zip(found, explain_dangling(runtime, calls, thread=thread), strict=True):
            part.content, part.metadata = outcome.explanation.model, {**part.metadata, _TOLD: outcome.to_dict()}


def _is_made_up(part: Any) -> bool:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.metadata, dict):
        return False
    return SYNTHESIZED in part.metadata and _TOLD not in part.metadata
