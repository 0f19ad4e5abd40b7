"""The table of words: how it is read, and that nothing in it is dead or wrong."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from failsoft.core.effects.tool_effect import KnownEffect
from failsoft.core.explain.catalogue import (
    ENGLISH,
    capitalise,
    describe_when,
    enumerate_names,
    fill,
    find_problems,
    pick,
)
from failsoft.core.explain.explanation import explain
from failsoft.core.explain.turn_message import compose
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Category, Effect
from failsoft.core.model.outcome import Outcome, Status
from failsoft.errors import CallFailed


@pytest.mark.parametrize(
    ("text", "facts", "filled"),
    [
        ("{a} and {b}", {"a": 1, "b": "two"}, "1 and two"),
        ("x {a} y", {"a": ""}, "x y"),
        ("{a} y", {"a": ""}, "y"),
        ("x {a}{b}.", {"a": "", "b": ", 1 attempt"}, "x, 1 attempt."),
        ("{unknown} stays", {}, "{unknown} stays"),
        ("x {unknown} stays", {}, "x {unknown} stays"),
        ("{a}", {"a": "{b}", "b": "never"}, "{b}"),
        ('a {"json": {a}}', {"a": 1}, 'a {"json": 1}'),
        ("  {a}  ", {"a": "two  spaces"}, "two  spaces"),
    ],
)
def test_facts_are_filled_in(text: str, facts: dict[str, object], filled: str) -> None:
    assert fill(text, facts) == filled


def test_the_first_key_that_there_is_counts() -> None:
    assert pick({"b": "B", "c": "C"}, "a", "b", "c") == "B"
    assert pick({}, "a") == ""


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b, c and 1 other"),
        (list("abcdefg"), "a, b, c and 4 others"),
    ],
)
def test_names_are_listed_in_words(names: list[str], listed: str) -> None:
    assert enumerate_names(ENGLISH, iter(names)) == listed


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "in a little while"),
        (0.0, "in a little while"),
        (-1.0, "in a little while"),
        (float("nan"), "in a little while"),
        (float("inf"), "in a little while"),
        (0.2, "in about a second"),
        (1.0, "in about a second"),
        (12.1, "in about 13 seconds"),
        (90.0, "in about 90 seconds"),
        (91.0, "in about 2 minutes"),
        (120.0, "in about 2 minutes"),
        (5400.0, "in about 90 minutes"),
        (5401.0, "in about 2 hours"),
        (86400.0, "in about 24 hours"),
    ],
)
def test_waits_are_phrased_in_words_and_never_rounded_down(seconds: float | None, words: str) -> None:
    assert describe_when(ENGLISH, seconds) == words


def test_a_sentence_begins_with_a_capital() -> None:
    assert capitalise("flight search of eBay") == "Flight search of eBay"
    assert capitalise("") == ""


# --- the table itself ------------------------------------------------------------------------------------------------


def test_english_has_no_problems() -> None:
    assert find_problems(ENGLISH) == []


@pytest.mark.parametrize("prefix", ["user", "retry", "steps", "ask"])
def test_every_category_has_its_words(prefix: str) -> None:
    assert [c for c in get_args(Category) if not ENGLISH.get(f"{prefix}.{c}")] == []


def test_every_effect_has_its_words() -> None:
    assert [e for e in get_args(Effect) if not ENGLISH.get(f"effect.{e}")] == []


class Recording(dict[str, str]):
    """Texts that remember which of them were read."""

    def __init__(self) -> None:
        super().__init__(ENGLISH)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return super().__getitem__(key)


def test_every_key_is_read_by_something() -> None:
    texts = Recording()
    fault = builtin_faults.tool_timeout(1.0)._replace(rule="some rule")
    rules = [value for name, value in vars(builtin_faults).items() if name.isupper() and not name.startswith("_")]
    faults = [fault._replace(rule=rule) for rule in rules]
    for category in get_args(Category):
        permanent = category != "tool_transient"
        each = fault._replace(category=category, classification="permanent" if permanent else "transient")
        faults += [
            each._replace(effect=effect, message=text) for effect in get_args(Effect) for text in ("", "Bad x: y")
        ]
    faults += [fault._replace(retry_after=seconds) for seconds in (1, 50, 60, 100, 3600, 9000)]
    outcomes: list[Outcome[Any]] = [
        Outcome(f"{status} {number}", f"t{number}", status, None, number % 3, fault=each, escalated=True)
        for number, each in enumerate(faults)
        for status in get_args(Status)
    ]
    repeated: Outcome[Any] = Outcome("repeated", "repeated", "succeeded", "room 12")
    repeated.set_repeats(5)
    outcomes.append(repeated)
    outcomes += [
        Outcome(
            "outer",
            "outer",
            "failed",
            fault=faults[0]._replace(rule=f"nested: {rules[0]}", cause=CallFailed(outcomes[0])),
        ),
        Outcome("part", "part", "succeeded", missing=[1], decision=Decision("escalate", "why")),
        Outcome("again", "part", "succeeded", missing=[1]),
        *(Outcome(f"after {tool}", tool, "skipped", root=root) for root, tool in zip("abab", "ijkl", strict=True)),
        Outcome("a", "a", "failed"),
    ]
    lost: Outcome[Any] = Outcome("lost", "lost", "succeeded", via="verify")
    lost.lose_value()
    after = Outcome(
        "lost", "x", "skipped", root="lost", fault=builtin_faults.dependency_failed("lost", "lost", lost=True)
    )
    outcomes = [Outcome("found", "found", "succeeded", 1, via="verify"), lost, after, *outcomes]
    for outcome in outcomes:
        for safe in (True, False, None):
            explain(outcome, texts, known=KnownEffect("write", "declared", "", safe))
        compose({outcome.id: outcome}, texts, writes={outcome.tool})
    for several in (outcomes, outcomes[-2:], outcomes[-4:], outcomes[-5:], []):
        compose({outcome.id: outcome for outcome in several}, texts)
    assert sorted(set(ENGLISH) - texts.read) == []


# --- other people's tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts",
    [
        {"user.tool_transient": "{Label} sleeps; again {when}."},
        {"user.my_own_rule": "{label}"},
        {"flight_search/user": "{label}"},
        {"flight_search/model.circuit_open": "{tool} {data}"},
        {"turn.completed": "Fertig: {labels}"},
        {"list.and": " und "},
        {"steps.my_own_rule": "Call {label}’s owner."},
        {"retry.circuit_open": "Wait."},
        {"a/b/user": "an id may have a slash"},
    ],
)
def test_valid_texts_have_no_problems(texts: dict[str, str]) -> None:
    assert find_problems(texts) == []


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"turn.complete": "x"}, "turn.complete: no text has this key; did you mean turn.completed"),
        ({"usr.tool_transient": "x"}, "usr.tool_transient: no text has this key; did you mean user.tool_transient"),
        ({"user": "x"}, "user: no text has this key"),
        ({"flight_search/turn.completed": "x"}, "flight_search/turn.completed: no text has this key"),
        ({"flight_search/steps.tool_transient": "x"}, "flight_search/steps.tool_transient: no text has this key"),
        ({"retry": "x"}, "retry: no text has this key"),
        ({"user.tool_transiant": "x"}, "user.tool_transiant: no text has this key; did you mean user.tool_transient?"),
        (
            {"a/user.tool_transiant": "x"},
            "a/user.tool_transiant: no text has this key; did you mean a/user.tool_transient?",
        ),
        ({"list.and": "{x}"}, "list.and: there is no fact {x}; there are none"),
        ({"turn.but": "{rest} {x}"}, "turn.but: there is no fact {x}; there are completed, rest"),
    ],
)
def test_each_invalid_text_is_reported(texts: dict[str, str], problem: str) -> None:
    (found,) = find_problems(texts)
    assert found.startswith(problem)


def test_an_unknown_fact_is_reported_with_the_known_ones() -> None:
    (found,) = find_problems({"user.tool_transient": "{lable}"})
    assert found.startswith("user.tool_transient: there is no fact {lable}; there are Label, attempts, ")
