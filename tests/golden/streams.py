"""The golden files: one per group of scenarios, in ``tests/golden/events``; how they are written, read and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.golden import borrowed, scenes
from tests.golden.recording import Scenario, record, rounded
from tests.soak.day import live

PLACE = Path(__file__).parent / "events"
HINT = "run `make golden` if this is intended and add a changelog entry"
DAYS = (1, 2, 3)  # seeds of the soak test's days, with few agents
GROUPS = (*borrowed.MODULES, *scenes.SCENES, "soak_days")
MOST = 12  # scenarios that a report of differences shows


def scenarios(group: str) -> Iterator[Scenario]:
    """The scenarios of a group, in the order of its file."""
    if group in borrowed.MODULES:
        yield from borrowed.scenarios(group)
    elif group in scenes.SCENES:
        yield from scenes.SCENES[group]
    else:
        yield from (Scenario(f"day_{seed}", partial(_live, seed), shown=100) for seed in DAYS)


def _live(seed: int) -> list[dict[str, Any]]:
    return [rounded(event) for event in live(seed, agents=2, spells=3).events]


def make_stream(group: str) -> list[str]:
    """Play all scenarios of a group; the lines of its file."""
    return [line for scenario in scenarios(group) for line in record(scenario)]


def path_of(group: str) -> Path:
    """Where the golden file of a group is."""
    return PLACE / f"{group}.jsonl"


def read_stream(group: str) -> list[str]:
    """The lines of a golden file; none if there is no such file."""
    path = path_of(group)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def write_all() -> None:
    """Write all golden files anew, and remove those of groups that are gone."""
    PLACE.mkdir(exist_ok=True)
    for path in PLACE.glob("*.jsonl"):
        if path.stem not in GROUPS:
            path.unlink()
    for group in GROUPS:
        path_of(group).write_text("".join(f"{line}\n" for line in make_stream(group)), encoding="utf-8")


# --- comparing ----------------------------------------------------------------------------------------------------------


def describe_differences(golden: list[str], now: list[str]) -> str:
    """The first event that differs in each scenario, with the fields that do; "" if there is no difference."""
    before, after = _by_scenario(golden), _by_scenario(now)
    told = [
        f"{name}: {'is not recorded' if name in after else 'is recorded, and no longer there'}"
        for name in sorted(before.keys() ^ after.keys())
    ]
    told += [_first_difference(name, before[name], after[name]) for name in before if name in after]
    told = [one for one in told if one]
    if not told:
        return ""
    more = [f"… and {len(told) - MOST} more"] if len(told) > MOST else []
    return "\n".join([f"{len(told)} scenarios differ: {HINT}", *told[:MOST], *more])


def _by_scenario(lines: list[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    events: list[dict[str, Any]] = []
    for line in lines:
        told = json.loads(line)
        if "scenario" in told:
            events = found.setdefault(told["scenario"], [])
        events.append(told)
    return found


def _first_difference(name: str, golden: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    for number, (before, after) in enumerate(zip_longest(golden, now)):
        if before == after:
            continue
        head = f"{name}, line {number}: {_brief(before)}"
        if before is None or after is None:
            return f"{name}, line {number}: golden {_brief(before)}, now {_brief(after)}"
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key, ...) != after.get(key, ...))
        lines = [f"    {key}: golden {_shown(before, key)}, now {_shown(after, key)}" for key in changed]
        return "\n".join([head, *lines])
    return ""


def _brief(event: dict[str, Any] | None) -> str:
    if event is None:
        return "nothing"
    if "event_type" not in event:
        return json.dumps(event)
    return f"{event['event_type']} of {event['call_id'] or event['turn_id']}"


def _shown(event: dict[str, Any], key: str) -> str:
    return json.dumps(event[key], ensure_ascii=False) if key in event else "(absent)"
