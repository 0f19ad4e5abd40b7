"""The event stream of every scenario is the recorded one: no change of it goes unnoticed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from tests.golden.recording import Scenario, record
from tests.golden.streams import (
    GROUPS,
    HINT,
    PLACE,
    describe_differences,
    make_stream,
    path_of,
    read_stream,
)

from failsoft import Runtime
from failsoft.observe import events
from failsoft.testing import virtual_time

LARGEST = 1_500_000  # bytes of all golden files


@pytest.mark.parametrize("group", GROUPS)
def test_the_events_are_the_recorded_ones(group: str) -> None:
    differences = describe_differences(read_stream(group), make_stream(group))
    assert not differences, differences


def test_every_group_has_a_file_and_there_are_no_others() -> None:
    assert {path.name for path in PLACE.iterdir()} == {path_of(group).name for group in GROUPS}


def test_every_type_of_event_is_recorded() -> None:
    known = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    recorded = {json.loads(line).get("event_type") for group in GROUPS for line in read_stream(group)}
    assert known - recorded == set()


def test_the_files_are_small_and_hold_nothing_of_the_machine_that_wrote_them() -> None:
    texts = [path_of(group).read_text(encoding="utf-8") for group in GROUPS]
    assert sum(len(text.encode()) for text in texts) <= LARGEST
    odd = re.compile(r'"/[a-z]+/|0x[0-9a-f]{6,}|site-packages|/home/|/usr/|/tmp/|line \d+, in ')
    assert [found.group() for text in texts for found in odd.finditer(text)] == []


# --- the report of differences ------------------------------------------------------------------------------------------


def lines(*told: Mapping[str, object]) -> list[str]:
    return [json.dumps(one) for one in told]


ONE = {"scenario": "a call"}
DONE = {"event_type": "CallSucceeded", "call_id": "c-1", "turn_id": None, "attempts": 1}


def test_equal_streams_have_no_differences() -> None:
    assert describe_differences(lines(ONE, DONE), lines(ONE, DONE)) == ""


def test_the_first_event_that_differs_is_shown_with_its_fields_and_the_hint() -> None:
    told = describe_differences(lines(ONE, DONE, DONE), lines(ONE, {**DONE, "attempts": 2, "more": 1}, ONE))
    assert told.splitlines() == [
        f"1 scenarios differ: {HINT}",
        "a call, line 1: CallSucceeded of c-1",
        "    attempts: golden 1, now 2",
        "    more: golden (absent), now 1",
    ]


def test_missing_events_and_scenarios_are_shown() -> None:
    told = describe_differences(lines(ONE, DONE), lines(ONE, {**ONE, "scenario": "another"}, DONE))
    assert "another: is not recorded" in told
    assert "a call, line 1: golden CallSucceeded of c-1, now nothing" in told


def test_more_events_than_are_written_out_count_as_well() -> None:
    def play(last: str) -> Scenario:
        def calls() -> None:
            with virtual_time() as clock:
                rt = Runtime()
                rt.add(lambda: 1, id="first", timeout=None)
                rt.add(lambda: 1, id=last, timeout=None)
                for tool in ["first"] * 5 + [last]:
                    rt.call_sync(tool)
                clock.advance(1)

        return Scenario("calls", calls, shown=3)

    same, other = record(play("second")), record(play("third"))
    assert len(same) == 5  # its name, three events, and the digest of the rest
    assert record(play("second")) == same
    assert "sha256: golden" in describe_differences(same, other)
