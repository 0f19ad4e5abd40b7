"""Matching the branches of a pattern finds the same texts as searching for the whole pattern."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.core.classify.made import samples

from failsoft.core.classify import phrase_match
from failsoft.core.classify.phrase_match import find_phrase
from failsoft.core.classify.tables.phrases import PHRASES, Phrase
from failsoft.core.classify.text_reader import Reading

CORPUS = Path(__file__).parents[2] / "corpus"


def search_whole(spelled: str, *, firm: bool = False) -> Phrase | None:
    """As ``find_phrase``, in the plain way."""
    words = {word[:4] for word in re.findall("[a-z]{3,}", spelled)}
    tried = [one for one in PHRASES if (one.firm or not firm) and words & set(one.keys.split())]
    return next((one for one in tried if re.search(rf"\b(?:{one.pattern})", spelled)), None)


@pytest.mark.parametrize("firm", [False, True])
def test_real_errors_are_read_alike(firm: bool) -> None:
    lines = [
        line for name in ("errors", "further") for line in (CORPUS / f"{name}.jsonl").read_text("utf-8").split("\n")
    ]
    records = [json.loads(line) for line in lines if line]
    records = [{**record, **record.get("error", {})} for record in records]
    texts = {Reading(record.get("message") or record.get("text") or "").full for record in records}
    assert len(texts) > 1000
    assert {text for text in texts if find_phrase(text, firm=firm) != search_whole(text, firm=firm)} == set()


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.name)
def test_every_text_that_matches_a_pattern_is_found(phrase: Phrase) -> None:
    made = {
        f"{before}{text}{after}"
        for text in samples(phrase.pattern, 60)
        for before in ("", "the ")
        for after in ("", " x")
    }
    whole = re.compile(rf"\b(?:{phrase.pattern})")
    row = phrase_match._Row(phrase.pattern)
    starts = {text: {word[:size] for word in re.findall("[a-z]{2,}", text) for size in (3, 4)} | {""} for text in made}
    assert {text for text in made if row.fits(text, starts[text]) != bool(whole.search(text))} == set()


@pytest.mark.parametrize(
    ("pattern", "starts"),
    [
        ("disk full|no space", {"disk", "no"}),
        (r"(?:no|unknown) tool\b", {"no", "unkn"}),
        (r"\b(?:tool )?missing", {"tool", "miss"}),
        ("(?:is |are )+busy", {"is", "are"}),
        ("(?:(?:bad|ill) (?:x|y)|[|)]x)y", {"bad", "ill", ""}),
        ("^killed", {"kill"}),
        ("(?<!not )found", {"foun"}),
        (r"\b(?<!\.)(?!tool box)tool", {"tool"}),
        ("log ?in", {"log"}),
        (r"(?:host)? ?name", {"host", "name"}),
        ("exit[ed]", {"exit"}),
        ("file?s", {"fil"}),
        ("ab?c", {""}),
        (r"\d+ times", {""}),
        (r"(?:un)*done", {""}),
    ],
)
def test_the_first_words_of_all_branches_are_found(pattern: str, starts: set[str]) -> None:
    assert phrase_match._Row(pattern).starts == starts


@pytest.mark.parametrize(
    ("branch", "piece"),
    [
        (r"\b\w+n't (?:be )?allowed", "allowed"),
        (r"\b\d+ redirects", " redirects"),
        (r"\bi/o time-?out", "o time"),
        (r"\bx(?:abc(?:def)|[(]ghi)? ab?", " a"),
        (r"\b\w{1,4000}x{0,3} err", " err"),
        (r"\b\w+[abc]\d", ""),
    ],
)
def test_plain_text_in_a_branch(branch: str, piece: str) -> None:
    assert phrase_match._longest_piece(branch) == piece


def test_a_branch_begins_where_a_word_begins() -> None:
    row = phrase_match._Row("(?<!no )(?!tool missing x)tool missing|^done")
    texts = ("a tool missing", "no tool missing", "toytool missing", "tool missing x", "tool missing x, tool missing")
    assert [row.fits(text, {"tool", "done"}) for text in texts] == [True, False, False, False, True]
    assert [row.fits(text, {"tool", "done"}) for text in ("done", "not done")] == [True, False]


def test_few_patterns_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typical message costs a handful of short searches, however long the table grows."""
    tried: list[str] = []

    class Counted(phrase_match._Row):
        __slots__ = ()

        def fits(self, text: str, starts: set[str]) -> bool:
            tried.extend(self.starts & starts)
            return super().fits(text, starts)

    monkeypatch.setattr(phrase_match, "_ROWS", [Counted(phrase.pattern) for phrase in PHRASES])
    assert find_phrase("could not reach db-7.example.com:5432: connection reset by peer") is not None
    assert 0 < len(tried) <= 16
