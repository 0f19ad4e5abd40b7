"""The picture in characters: every form, every width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.waterfall.test_verdict import LONG, rows

from failsoft.analysis.waterfall import Row, Segment, Tick, Waterfall, draw, lay_out
from failsoft.analysis.waterfall.model import PAUSES, SegmentKind
from failsoft.analysis.waterfall.terminal import FORMS, LEGEND, SIGNS, axis, summarise


def bar(*segments: Segment, ticks: tuple[Tick, ...] = (), width: int = 10, duration: float = 10.0) -> str:
    row = Row("a", "t", segments=segments, ticks=ticks)
    (line,) = lay_out(Waterfall("turn", duration, (row,)), width)
    return "".join(char for char, _ in line.cells)


@pytest.mark.parametrize("kind", list(FORMS))
def test_every_form_has_its_body_and_its_end(kind: SegmentKind) -> None:
    body, end = FORMS[kind]
    assert bar(Segment(kind, "t", 2.0, 6.0)) == f"  {body * 3}{end}    "


def test_forms_differ_without_colour() -> None:
    shown = [signs for signs, _, _ in LEGEND if signs != "▓"]  # what runs now becomes one of the others
    assert len(set(shown)) == len(shown)
    assert {kind for _, kind, _ in LEGEND} >= {*FORMS, *SIGNS, "fallback"}


def test_the_shortest_attempts_have_a_cell_each() -> None:
    tiny = [Segment("failed", "t", 1.0 + n / 1000, 1.0 + n / 1000) for n in range(3)]
    assert bar(*tiny) == " ✗✗✗      "
    assert bar(*tiny, Segment("ok", "t", 10.0, 10.0)) == " ✗✗✗     █"
    assert bar(Segment("failed", "t", 1.0, 1.0), Segment("waiting", "t", 1.0, 1.1)) == " ✗        "


def test_signs_are_drawn_at_their_time_without_hiding_an_attempt() -> None:
    ticks = (Tick("refused", "t", 5.0),)
    assert bar(ticks=ticks) == "     ╳    "
    opened = (Tick("opened", "t", 4.0), Tick("refused", "t", 4.0))
    assert bar(Segment("timeout", "t", 0.0, 4.0), ticks=opened) == "▒▒▒!◆╳    "
    assert bar(Segment("timeout", "t", 0.0, 10.0), ticks=opened)[-1] == "╳"


def test_a_fallbacks_work_is_drawn_differently() -> None:
    assert bar(Segment("failed", "t", 0.0, 2.0), Segment("ok", "other", 2.0, 4.0)) == "▒✗▆▆      "


@pytest.mark.parametrize(
    ("duration", "width", "line"),
    [
        (4.0, 40, "0 s       1 s       2 s       3 s    4 s"),
        (4.0, 20, "0 s      2 s     4 s"),
        (0.05, 30, "0 ms        20 ms       40 ms "),
        (7200.0, 30, "0 s            3600 s   7200 s"),
        (0.0, 12, "0 s      1 s"),
    ],
)
def test_the_axis_has_round_marks(duration: float, width: int, line: str) -> None:
    made = axis(Waterfall("turn", duration), width)
    assert len(made) == width
    assert made.split() == line.split()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row("a", "t", "succeeded", (Segment("ok", "t", 0, 1),), via="t"), "ok"),
        (Row("a", "t", "succeeded", (Segment("failed", "t", 0, 1), Segment("ok", "t", 1, 2)), via="t"), "ok, 2 attempts"),
        (Row("a", "t", "succeeded", (Segment("ok", "b", 0, 1),), via="b"), "ok by b"),
        (Row("a", "t", "succeeded", via="t", partial=True, defaults=("x", "y")), "ok, in part, default for x, y"),
        (Row("a", "t", "failed", (Segment("failed", "t", 0, 1),), code="INTERNAL"), "INTERNAL"),
        (Row("a", "t", "failed", (Segment("failed", "t", 0, 1),) * 2, code="INTERNAL"), "INTERNAL, 2 attempts"),
        (Row("a", "t", "failed", (Segment("killed", "t", 0, 1),), may_have_acted=True), "timed out, may have acted"),
        (Row("a", "t", "failed", (Segment("timeout", "t", 0, 1),) * 2), "2 timeouts"),
        (Row("a", "t", "failed", ticks=(Tick("refused", "t", 0, "Circuit breaker open for t"),)), "refused: circuit open"),
        (Row("a", "t", "failed", ticks=(Tick("refused", "t", 0, "gone"),), code="NOT_FOUND"), "refused: NOT_FOUND"),
        (Row("a", "t", "skipped", root="b"), "skipped: b failed"),
        (Row("a", "t", "skipped"), "skipped: no time left"),
        (Row("a", "t", "timed_out"), "left at the deadline"),
        (Row("a", "t", "timed_out", late=1.5), "left; came 1.5 s late"),
        (Row("a", "t", "cancelled"), "cancelled"),
        (Row("a", "t"), "has not begun"),
        (Row("a", "t", segments=(Segment("failed", "t", 0, 1), Segment("waiting", "t", 1, 2))), "waiting to try again"),
        (Row("a", "t", segments=(Segment("held", "t", 0, 2),)), "held back by a rate limit"),
        (Row("a", "t", segments=(Segment("running", "t", 0, 1),)), "running"),
        (Row("a", "t", segments=(Segment("failed", "t", 0, 1), Segment("running", "t", 1, 2))), "running, attempt 2"),
    ],
)  # fmt: skip
def test_a_call_is_summarised_in_a_few_words(row: Row, words: str) -> None:
    assert summarise(row) == words


def test_the_legend_lists_only_signs_that_were_drawn() -> None:
    legend = draw(LONG, width=100).splitlines()[-2]
    assert legend == "█ worked  ▒✗ failed  ▒! timed out  ▒† killed  ╱╱ waiting  ┃ what the end waited for"
    assert draw(Waterfall("turn", 1.0), width=60).splitlines()[-1] == "1.0 s: 1.0 s outside tools."


def test_long_names_and_results_are_cut() -> None:
    row = Row("n" * 100, "t", "skipped", root="r" * 100)
    (_, line, *_) = draw(Waterfall("turn", 1.0, (row,)), width=100).splitlines()
    assert len(line) <= 100
    assert "n…" in line
    assert line.endswith("r…")


@given(st.lists(rows(), max_size=4), st.floats(0, 1000), st.integers(1, 200))
def test_every_bar_has_the_same_width(made: list[Row], duration: float, width: int) -> None:
    waterfall = Waterfall("turn", duration, tuple(made))
    lines = lay_out(waterfall, width)
    assert [len(line.cells) for line in lines] == [width] * len(made)
    for line in lines:
        ran = [segment for segment in line.row.segments if segment.kind not in PAUSES]
        assert not ran or any(kind != "none" for _, kind in line.cells)


def test_names_from_outside_do_nothing_to_a_terminal() -> None:
    evil = "a\u202eb\n\r\x1b]0;x\x07"
    ran = Row(evil, evil, "succeeded", (Segment("ok", evil, 0.0, 1.0),), via="other\x9b", critical=True)
    skipped = Row("b", "b", "skipped", ticks=(Tick("skipped", "b", 1.0),), root=evil)
    text = draw(Waterfall("turn", 1.0, (ran, skipped)), width=100)
    assert all(line.isprintable() for line in text.split("\n"))
    assert len(text.split("\n")) == 6  # the axis, two rows, a blank, the legend, the verdict
    assert "a\\u202eb  \\x1b]0;x\\x07" in text
