"""Print replayed decisions: each as recorded, and as decided now where that differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from failsoft.analysis.replay import Cascaded, Replayed
from failsoft.surfaces.cli.console import clean, make_console

if TYPE_CHECKING:
    from failsoft.core.model.decision import Decision


def show_replayed(replayed: Sequence[Replayed | Cascaded], different: int, not_comparable: int) -> None:
    """Print one line per decision, then the counts."""
    signs = {True: ("same     ", "green"), False: ("different", "bold red"), None: ("unknown  ", "yellow")}
    console = make_console()
    for each in replayed:
        was, now = _describe_replayed(each)
        line = Text.assemble(signs[each.same], clean(f"  {each.call_id or '-'}: {was}"))
        if each.same is False:
            line.append(clean(f"; now {now}"), "red")
        if each.not_comparable:
            line.append(clean(f"; {each.not_comparable}"), "yellow")
        console.print(line, soft_wrap=True)
    same = len(replayed) - different - not_comparable
    counts = f"{same} of {len(replayed)} decisions came out the same"
    console.print(
        Text(f"{counts}, {different} different, {not_comparable} not recorded", "red" if different else "green")
    )


def _describe_replayed(each: Replayed | Cascaded) -> tuple[str, str]:
    """Describe a decision as recorded and as repeated."""
    if isinstance(each, Replayed):
        was, now = each.recorded, each.now or each.recorded
        return _describe_decision(was, now), _describe_decision(now, was)
    roots = (f": {root} failed" if root else "" for root in (each.root, each.root_now))
    was_root, now_root = roots
    return f"{each.recorded}{was_root}", f"{each.now}{now_root}"


def _describe_decision(decision: Decision, other: Decision) -> str:
    """Describe a decision, with the parts that differ from another one."""
    tool = f" with {decision.tool or 'no tool'}" if decision.tool != other.tool else ""
    delay, delay_there = (round((each.delay or 0.0) * 1000) for each in (decision, other))
    after = f" after {delay} ms" if delay != delay_there else ""
    return f"{decision.strategy}{tool}{after}: {decision.reason}"
