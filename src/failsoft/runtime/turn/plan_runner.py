"""Run a turn that is written down as data."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.analysis.turn_report import TurnReport
from failsoft.config.manifest import Plan, find_odd_arguments, load_plan
from failsoft.config.settings import read_file, refuse_lost_key
from failsoft.core.model.durations import Seconds
from failsoft.errors import ManifestError

if TYPE_CHECKING:
    from failsoft.runtime.tools.tool import Tool
    from failsoft.runtime.turn.turn import Turn


class OpenTurn(Protocol):
    """The part of ``Runtime.turn`` that a plan uses."""

    def __call__(
        self,
        *,
        timeout: Seconds | None,
        thread: str | None,
        max_calls: int | None,
        max_calls_per_tool: int | None,
    ) -> Turn: ...


log = logging.getLogger("failsoft")
_TEXT = re.compile(r"\n|^\s*(?:\{|\w+:\s)")  # several lines, an object, or a key: not the name of a file


async def run_plan(
    open_turn: OpenTurn, tools: Mapping[str, Tool], plan: Plan | Mapping[str, Any] | str | Path
) -> TurnReport:
    """Submit all calls of a plan as one turn, and wait for its end."""
    made = plan if isinstance(plan, Plan) else read_plan(plan)
    refuse_lost_keys(made, tools)
    async with turn_of(made, open_turn) as turn:
        turn.submit_plan(made)
    return turn.report


def turn_of(plan: Plan, open_turn: OpenTurn) -> Turn:
    """The turn of a plan, with the plan's own limits. Probable mistakes in the plan are logged."""
    for place, message in find_odd_arguments(plan):
        log.warning("%s: %s", place, message)
    if not plan.calls:
        log.warning("plan: there are no calls in it, so nothing runs")
    return open_turn(
        timeout=None if plan.timeout is None else Seconds(plan.timeout),
        thread=plan.thread,
        max_calls=plan.max_calls,
        max_calls_per_tool=plan.max_calls_per_tool,
    )


def refuse_lost_keys(plan: Plan, tools: Mapping[str, Tool]) -> None:
    """Raise one error for all calls with an idempotency key that their tools do not take."""
    problems: list[str] = []
    for number, call in enumerate(plan.calls):
        if (tool := tools.get(call.tool)) is not None:
            try:
                refuse_lost_key(tool.options, call.idempotency_key, f"{call.place}: calls[{number}].idempotency_key")
            except ManifestError as error:
                problems += error.problems
            if call.defaults and (wrong := tool.unknown_arguments(call.defaults)):
                problems.append(f"{call.place}: calls[{number}].defaults: {tool.id} has no parameter {wrong}")
    if problems:
        raise ManifestError(*problems)


def read_plan(plan: Mapping[str, Any] | str | Path) -> Plan:
    """Read a plan: a mapping, YAML or JSON text, or the path of a file."""
    if not isinstance(plan, Mapping | str | Path):
        instead = (
            'write {"calls": […]}'
            if isinstance(plan, list | tuple)
            else ("give a mapping, YAML or JSON text, or the path of a file")
        )
        raise ManifestError(f"plan: {brief(plan)} is not a plan: {instead}")
    if isinstance(plan, Path) or (isinstance(plan, str) and not _TEXT.search(plan)):
        return load_plan(read_file(plan), name=str(plan))
    return load_plan(plan, name="plan")
