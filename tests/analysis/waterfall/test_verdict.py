"""Where the time went: every moment once, in words that add up."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from failsoft.analysis.waterfall import Row, Segment, Waterfall, judge
from failsoft.analysis.waterfall.model import SegmentKind
from failsoft.analysis.waterfall.verdict import Share, format_seconds

LONG = Waterfall(
    "turn-1",
    40.2,
    (
        Row(
            "flights",
            "search",
            "succeeded",
            (
                Segment("failed", "search", 0.0, 8.0),
                Segment("waiting", "search", 8.0, 11.0),
                Segment("timeout", "search", 11.0, 20.1),
                Segment("waiting", "search", 20.1, 23.1),
                Segment("ok", "search", 23.1, 32.1),
            ),
            critical=True,
        ),
        Row("beside", "other", "failed", (Segment("killed", "other", 0.0, 30.0),)),
        Row("inside", "search", "succeeded", (Segment("ok", "search", 0.0, 30.0),), parent="flights", critical=True),
    ),
)


def test_the_turns_time_is_divided_along_the_critical_path() -> None:
    verdict = LONG.verdict
    assert str(verdict) == (
        "40.2 s: 17.1 s in 2 failed attempts of search, 6.0 s waiting to try again, 9.0 s useful (search), "
        "8.1 s outside tools."
    )
    assert verdict.path == (
        Share("failed", 17.1, "search", 2),
        Share("waiting", 6.0, "search"),
        Share("useful", 9.0, "search", 1),
        Share("outside", 8.1),
    )
    assert verdict.seconds("failed", "waiting") == 23.1


def test_the_verdict_adds_the_total_time_of_all_calls() -> None:
    verdict = LONG.verdict
    assert verdict.loss == Share("failed", 30.0, "other", 1)
    assert verdict.cost_of_all_calls == (
        "All calls together took 62.1 s: 47.1 s in 3 failed attempts, 6.0 s waiting to try again, 9.0 s useful. "
        "Most was lost to other: 30.0 s in 1 failed attempt."
    )
    assert verdict.to_dict()["loss"] == {"kind": "failed", "seconds": 30.0, "tool": "other", "attempts": 1}


def test_a_turn_without_calls() -> None:
    verdict = Waterfall("turn-1", 0.0).verdict
    assert str(verdict) == "0 ms: no tool ran."
    assert (verdict.cost_of_all_calls, verdict.loss, verdict.path) == ("", None, ())


def test_many_tools_are_counted_and_not_listed() -> None:
    failed = tuple(Segment("failed", f"tool{n}", float(n), n + 1.0) for n in range(6))
    text = str(Waterfall("t", 6.0, (Row("a", "tool0", "failed", failed, critical=True),)).verdict)
    assert "attempt of tool2, 3.0 s in 3 failed attempts of 3 other tools." in text


def test_queueing_and_time_outside_tools_are_named_only_when_significant() -> None:
    row = Row("a", "t", "succeeded", (Segment("queued", "t", 0.0, 0.05), Segment("ok", "t", 0.05, 9.95)), critical=True)
    assert str(Waterfall("t", 10.0, (row,)).verdict) == "10.0 s: 9.9 s useful (t)."
    row = Row("a", "t", "succeeded", (Segment("queued", "t", 0.0, 5.0), Segment("ok", "t", 5.0, 9.0)), critical=True)
    assert str(Waterfall("t", 10.0, (row,)).verdict) == (
        "10.0 s: 5.0 s waiting for a place to run, 4.0 s useful (t), 1.0 s outside tools."
    )


def test_durations_are_rounded_for_people() -> None:
    assert [format_seconds(s) for s in (0, 0.0004, 0.04, 0.0949, 0.095, 0.1, 1, 9.96, 40.2, 3600)] == [
        "0 ms", "0 ms", "40 ms", "95 ms", "0.1 s", "0.1 s", "1.0 s", "10.0 s", "40.2 s", "3600.0 s",
    ]  # fmt: skip


def test_waits_are_mentioned_only_if_there_were_any() -> None:
    failed, waited = Segment("failed", "t", 0.0, 2.0), Segment("held", "t", 2.0, 6.0)
    for segments, said in (
        ((failed,), "Most was lost to t: 2.0 s in 1 failed attempt."),
        ((failed, waited), "Most was lost to t: 6.0 s in 1 failed attempt and waits."),
        ((failed, waited, failed), "Most was lost to t: 8.0 s in 2 failed attempts and the waits between them."),
        ((failed, failed), "Most was lost to t: 4.0 s in 2 failed attempts."),
    ):
        verdict = judge(Waterfall("turn", 10.0, (Row("a", "t", "failed", segments),)))
        assert verdict.cost_of_all_calls.endswith(said)


KINDS: tuple[SegmentKind, ...] = get_args(SegmentKind)
TIMES = st.floats(0, 100).map(lambda value: round(value, 3))


def test_a_turn_that_took_no_time_to_speak_of() -> None:
    quick = Row("a", "a", "succeeded", (Segment("ok", "a", 0.0, 0.0002),), critical=True)
    short = Waterfall("turn", 0.0003, (quick,)).verdict
    assert (str(short), short.cost_of_all_calls) == ("0 ms: too short to break down.", "")
    longer = Waterfall("turn", 0.002, (quick,)).verdict
    assert (str(longer), longer.cost_of_all_calls) == ("2 ms: 2 ms outside tools.", "")


@st.composite
def rows(draw: st.DrawFn) -> Row:
    times = sorted(draw(st.lists(TIMES, min_size=2, max_size=8)))
    segments = tuple(
        Segment(draw(st.sampled_from(KINDS)), draw(st.sampled_from("abc")), start, end)
        for start, end in pairwise(times)
    )
    return Row(draw(st.text(max_size=3)), "a", None, segments, critical=draw(st.booleans()))


@given(st.lists(rows(), max_size=5), TIMES)
def test_the_parts_add_up_to_the_whole(made: list[Row], duration: float) -> None:
    verdict = judge(Waterfall("turn", duration, tuple(made)))
    assert math.isclose(sum(share.seconds for share in verdict.path), duration, abs_tol=1e-4)
    assert all(share.seconds >= 0 for share in verdict.path)
    work = sum(segment.duration for row in made for segment in row.segments)
    assert math.isclose(sum(share.seconds for share in verdict.work), work, abs_tol=1e-4)
    assert str(verdict).endswith(".")
