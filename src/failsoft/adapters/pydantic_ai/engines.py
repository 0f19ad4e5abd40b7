"""Reject durable engines that retry tools inside the guard.

Temporal and Prefect run each tool in a unit of their own (an activity, a task) and retry that unit. The guard is
outside and does not see these retries: a payment could be made several times and be reported as one attempt.
``Failsoft`` therefore refuses to run with them. DBOS runs tools in the workflow itself, inside the guard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset

from failsoft.adapters.pydantic_ai.private import dynamic_toolset, is_engine_toolset, retries_steps
from failsoft.errors import FailsoftError


class OutsideEngineError(FailsoftError, UserError):
    """The guard is outside a durable engine's retries. A ``UserError``, so that the engine does not retry it either."""


def refuse_engines(root: AbstractCapability[Any] | None) -> None:
    """Raise if a capability of this agent retries tools inside the guard."""
    if root is not None:
        found: list[AbstractCapability[Any]] = []
        root.apply(found.append)
        for one in found:
            if retries_steps(one):
                raise _refusal(type(one).__name__)
            refuse_engines(getattr(one, "wrapped", None))


def refuse_engine_toolsets(toolset: AbstractToolset[Any]) -> None:
    """Check older wrapper agents, such as ``TemporalAgent``, of which only the toolsets are visible, and toolsets that
    functions make during a run.
    """
    if is_engine_toolset(type(toolset)):
        raise _refusal(type(toolset).__name__)
    inner: Iterable[Any] = getattr(toolset, "wrapped", None), dynamic_toolset(toolset)
    if isinstance(toolset, CombinedToolset):
        inner = toolset.toolsets
    for one in inner:
        if isinstance(one, AbstractToolset):
            refuse_engine_toolsets(one)


def _refusal(engine: str) -> OutsideEngineError:
    return OutsideEngineError(
        f"Failsoft(rt) does not work beside {engine}: the engine retries each tool inside the guard, so a tool would act "
        "several times and be reported as one attempt. Leave Failsoft(rt) out, decorate a function with @rt.tool and "
        "call it in the tool's body: then the whole guarded call is inside the engine's unit and acts once"
    )
