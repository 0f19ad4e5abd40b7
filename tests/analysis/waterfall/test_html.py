"""The page: one file, nothing fetched, nothing run, hostile text shown as text."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

import failsoft
from failsoft.analysis.waterfall import Row, Segment, Tick, Waterfall
from failsoft.analysis.waterfall.row_text import describe_row, sum_up

EVIL = "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"' \u202egnp\x1b[31m\u2028&amp;{{x}}"
SHOWN = "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"' \\u202egnp\\x1b[31m &amp;{{x}}"

FAILED = Row(
    "flights",
    "search",
    "failed",
    (Segment("failed", "search", 0.0, 1.0, "503 down"), Segment("waiting", "search", 1.0, 1.5),
     Segment("timeout", "search", 1.5, 3.5, "too slow")),
    (Tick("opened", "search", 3.5),),
    code="UNAVAILABLE",
    critical=True,
)  # fmt: skip
OTHERS = (
    Row("skipped", "compare", "skipped", (), (Tick("skipped", "compare", 3.5),), root="flights"),
    Row("late", "compare", "skipped", (), (Tick("skipped", "compare", 4.0),)),
    Row("rates", "bank", "succeeded", (Segment("queued", "bank", 0.0, 0.5), Segment("failed", "bank", 0.5, 0.6, "no"),
        Segment("ok", "ecb", 0.6, 2.0)), via="ecb"),
    Row("inside", "bank", "succeeded", (Segment("ok", "bank", 0.5, 0.50001),), via="bank", parent="rates"),
    Row("again", "search", "failed", (), (Tick("refused", "search", 3.6, "Circuit breaker open"),)),
    Row("slow", "slow", "timed_out", (Segment("left", "slow", 0.0, 4.0),)),
)  # fmt: skip
TURN = Waterfall("turn-1", 4.0, (FAILED, *OTHERS), deadline=4.0)


class Page(HTMLParser):
    """The page as a browser parses it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append(data.replace("\N{NO-BREAK SPACE}", " "))


def hostile() -> Waterfall:
    segments = (Segment("failed", EVIL, 0.0, 1.0, EVIL),)
    bad = Row(EVIL, EVIL, "failed", segments, (Tick("refused", EVIL, 1.0, EVIL),), code=EVIL, critical=True)
    return Waterfall(EVIL, 1.0, (bad, Row("b", EVIL, "skipped", (), (Tick("skipped", EVIL, 1.0),), root=EVIL)))


@pytest.mark.parametrize("waterfall", [TURN, hostile(), Waterfall("empty", 0.0)])
def test_nothing_runs_and_nothing_is_fetched(waterfall: Waterfall) -> None:
    page = Page(waterfall.to_html())
    assert not {"script", "img", "link", "iframe", "object", "a", "form", "base", "foreignobject"} & {*page.tags}
    handlers = [name for _, name, _ in page.attributes if name.startswith("on") or name in ("style", "href", "src")]
    assert handlers == []
    assert "http:" not in waterfall.to_html()
    assert "https:" not in waterfall.to_html()


def test_the_policy_forbids_all_but_its_own_style_sheet() -> None:
    text = TURN.to_html()
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(sha256(style[0].encode()).digest()).decode()
    metas = [value for tag, name, value in Page(text).attributes if (tag, name) == ("meta", "content")]
    [policy] = [value for value in metas if value and "src" in value]
    assert len(style) == 1
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"


def test_hostile_text_is_shown_as_text() -> None:
    page = Page(hostile().to_html())
    everything = "".join(page.texts)
    assert f"Turn {SHOWN}" in page.texts
    assert f"attempt 1, {SHOWN} failed after 1.0 s: {SHOWN}" in everything
    assert not {"\u202e", "\x1b", "\u2028"} & {*hostile().to_html()}


def test_every_call_has_its_bar_its_words_and_its_end() -> None:
    text = TURN.to_html()
    page = Page(text)
    everything = " ".join(page.texts)
    for row in TURN.rows:
        assert row.id in everything
    assert page.tags.count("details") == len(TURN.rows)
    assert "search: failed, 1.0 s: 503 down" in everything
    assert "ecb: fallback, 1.4 s" in everything
    assert "skipped: flights failed" in everything
    assert "the turn's deadline" in everything
    kinds = {value for tag, name, value in page.attributes if (tag, name) == ("rect", "class")}
    assert {"failed", "timeout", "waiting", "queued", "fallback", "ok", "left", "end"} <= kinds
    assert text.count('class="call critical"') == 1
    assert 'class="call inner"' in text


def test_skips_name_their_root_cause() -> None:
    text = " ".join(Page(TURN.to_html()).texts)
    assert re.search(r"compare skipped : +skipped, because search failed", text), text
    assert "no time was left" in text
    assert "What went wrong" not in Waterfall("t", 1.0).to_html()


def test_every_failure_is_in_words_with_its_decision_and_reason() -> None:
    row = Row(
        "pay-1", "pay", "failed", (Segment("timeout", "pay", 0.0, 1.0, "Tool timeout after 1s"),), code="DEADLINE_EXCEEDED",
        error="Tool timeout after 1s", decision="escalate", reason="Transient error (not repeatable)", label="payment",
        may_have_acted=True,
    )  # fmt: skip
    text = " ".join(Page(Waterfall("t", 1.0, (row,)).to_html()).texts)
    assert re.search(r"payment #1 : +DEADLINE_EXCEEDED: Tool timeout after 1s", text)
    assert "Decision: escalate. Transient error (not repeatable)" in text
    assert "It may have taken effect" in text


def test_the_page_says_which_version_made_it() -> None:
    assert f"Made by failsoft {failsoft.__version__}" in TURN.to_html()


def test_the_shortest_segment_is_still_visible() -> None:
    short = Row("x", "x", "succeeded", (Segment("ok", "x", 1.0, 1.000001),), via="x")
    widths = re.findall(r'class="ok" x="[\d.]+%" y="5" width="([\d.]+)%"', Waterfall("t", 1000.0, (short,)).to_html())
    assert [float(width) for width in widths] == [0.3]


def test_a_call_in_words() -> None:
    assert [*describe_row(FAILED)] == [
        "at 0 ms: attempt 1, search failed after 1.0 s: 503 down",
        "at 1.0 s: waited 0.5 s to try again",
        "at 1.5 s: attempt 2, search timed out after 2.0 s: too slow",
        "at 3.5 s: the circuit of search opened",
        "in the end: UNAVAILABLE, 2 attempts, circuit opened",
    ]
    assert sum_up(FAILED) == "failed 1.0 s · waited 0.5 s · timed out 2.0 s"
    assert sum_up(OTHERS[2]) == "queued 0.5 s · failed 0.1 s · ecb worked 1.4 s"
    refused: Any = [*describe_row(OTHERS[4])]
    assert refused == ["at 3.6 s: refused: Circuit breaker open", "in the end: refused: circuit open"]


@pytest.mark.parametrize("duration", [0.25, 0.45, 0.3, 0.72, 9.7, 40.1, 61.0])
def test_the_last_label_of_the_axis_has_room(duration: float) -> None:
    page = Waterfall("turn", duration).to_html()
    axis = page.partition('class="axis"')[2].partition("</svg>")[0]
    labels = [(float(x), bool(end)) for x, end in re.findall(r'x="([\d.]+)%" y="12"( text-anchor="end")?', axis)]
    assert len(labels) >= 2
    (before, _), (last, ends) = labels[-2:]
    assert last - before >= (20 if ends else 5)


def test_the_result_of_a_call_is_not_cut_off() -> None:
    style = TURN.to_html().partition("<style>")[2].partition("</style>")[0]
    cut = [rule for rule in style.split("}") if "ellipsis" in rule]
    assert cut
    assert all(".result" not in rule for rule in cut)
    assert style.index("max-width: 700px") > max(style.index(rule) for rule in cut)  # else phones would cut off names


def test_an_id_that_says_the_same_as_the_name_is_not_repeated() -> None:
    row = Row("weather", "weather", "succeeded", (Segment("ok", "weather", 0.0, 1.0),), via="weather")
    assert '<span class="id">' not in Waterfall("turn-1", 1.0, (row,)).to_html()
    assert '<span class="id">flights</span>' in TURN.to_html()


@pytest.mark.parametrize("seconds", [1.0, 4.0, 9.0, 40.0, 350.0])
def test_the_axis_names_its_last_mark_on_phones_too(seconds: float) -> None:
    row = Row("a", "search", "succeeded", (Segment("ok", "search", 0.0, seconds),), via="search")
    axis = Waterfall("turn-1", seconds, (row,)).to_html().partition('<div class="axis">')[2].partition("</div>")[0]
    assert 'class="odd"' not in axis.rpartition("<text")[2]
