"""The tables hold together: kinds exist and are used, sources are named, keys let every phrase through."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.core.classify.made import samples

from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.tables import Group, codes, errnos, http, phrases, providers, sql, text_patterns, types
from failsoft.core.classify.text_reader import spell

ROOT = Path(__file__).parents[3]
MODULES = (codes, errnos, http, providers, sql, types)


def all_groups() -> list[Group[Any]]:
    found = []
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, tuple) and value and isinstance(value[0], Group):
                found += list(value)
    return found


def test_every_kind_that_a_table_names_exists() -> None:
    named = {kind for group in all_groups() for kind in group.rows.values()}
    named |= {phrase.kind for phrase in phrases.PHRASES} | set(providers.PREFIXES.values())
    overruling = {kind for room in (*http.OVERRULED.values(), *http.OVERRULED_KIND.values()) for kind in room}
    assert named | set(http.OVERRULED_KIND) | (overruling - http.ANYTHING) <= set(KINDS)


def test_every_kind_is_named_somewhere() -> None:
    named = {kind for group in all_groups() for kind in group.rows.values()} | {p.kind for p in phrases.PHRASES}
    said_by_code = {"not_json", "wrong_address", "broken_stream", "unknown"}
    assert set(KINDS) - named - said_by_code == set()


def test_every_group_names_its_source() -> None:
    assert [group for group in all_groups() if len(group.source) < 5 or not group.rows] == []
    assert [pattern for pattern in text_patterns.TEXT_PATTERNS if not pattern.source] == []


def test_transient_and_its_category_go_together() -> None:
    for name, kind in KINDS.items():
        assert (kind.classification == "transient") == (kind.category == "tool_transient"), name
        assert kind.reason, name


@pytest.mark.parametrize("phrase", phrases.PHRASES, ids=lambda phrase: phrase.name)
def test_every_text_that_matches_a_pattern_contains_one_of_its_keys(phrase: phrases.Phrase) -> None:
    keys = set(phrase.keys.split())
    made = samples(phrase.pattern, 1_500)
    assert len(made) > 0
    assert [text for text in made if not keys & {word[:4] for word in re.findall("[a-z]{3,}", text)}] == []


# texts in both the corpus and a pattern, word for word, because a vendor documents them
DOCUMENTED = {
    "name or service not": "glibc, gai_strerror(3)",
    "or service not known": "glibc, gai_strerror(3)",
    "index out of range": "Python, IndexError",
}


def test_no_pattern_repeats_the_corpus() -> None:
    """A rule says what errors of a kind look like; four words in a row from one message would name the message."""
    lines = (ROOT / "tests" / "corpus" / "errors.jsonl").read_text(encoding="utf-8").splitlines()
    known = set()
    for line in lines:
        words = re.findall(r"[a-z0-9'-]+", spell(json.loads(line)["message"]))
        known |= {" ".join(words[start : start + 4]) for start in range(len(words) - 3)}
    literal = set()
    for phrase in phrases.PHRASES:
        for branch in re.split(r"\|", phrase.pattern):
            if re.fullmatch(r"[\w' -]+", branch):
                words = branch.split()
                literal |= {" ".join(words[start : start + 4]) for start in range(len(words) - 3)}
    assert (literal & known) - set(DOCUMENTED) == set()


def test_the_page_shows_the_tables() -> None:
    path = ROOT / "tools" / "classification_page.py"
    spec = importlib.util.spec_from_file_location("classification_page", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run python tools/classification_page.py"
