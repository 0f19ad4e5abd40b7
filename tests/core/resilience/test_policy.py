from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.model.fault import Category, Code, Fault
from failsoft.core.resilience.policy import Policy, Then, When, match

ESCALATE = Then(strategy="escalate")


def test_one_value_or_several():
    when = When(tool="pay_*", code=["Unavailable", Code.INTERNAL], effect="unknown", turn_left="10s")
    assert when.tool == ("pay_*",)
    assert when.code == (Code.UNAVAILABLE, Code.INTERNAL)
    assert when.effect == ("unknown",)
    assert when.turn_left == 10


@pytest.mark.parametrize(
    ("said", "strategy"),
    [
        ({"delay": "5s"}, "retry"),
        ({"delay": "0s"}, "retry"),
        ({"tool": "cached_flights"}, "alternative_tool"),
        ({"message": "Please call us."}, None),
        ({"strategy": "escalate", "message": "Please call us."}, "escalate"),
    ],
)
def test_the_fields_of_a_policy_imply_its_strategy(said, strategy):
    assert Then(**said).strategy == strategy


@pytest.mark.parametrize(
    ("make", "wrong", "said"),
    [
        (When, {"tool": 3}, "tool: 3 is not a list of texts"),
        (When, {"tool": "pay_[ab]"}, r"tool: 'pay_\[ab\]' is not a tool's id: the only wildcards are \* and \?"),
        (When, {"tool": ""}, "tool: '' is not a tool's id"),
        (When, {"category": "transient"}, "category: .* did you mean tool_transient?"),
        (When, {"code": "NOPE"}, "code: 'NOPE' is not an error code"),
        (When, {"classification": "temporary"}, "classification: 'temporary' is not one of transient, permanent"),
        (When, {"attempt": 0}, "attempt: 0"),
        (When, {"breaker": "half-open"}, "breaker: .* did you mean half_open?"),
        (When, {"turn_left": 10}, 'turn_left: 10 has no unit: write "10s"'),
        (When, {"effect": ["none", "maybe"]}, "effect: 'maybe' is not one of"),
        (Then, {}, "expected an action: retry, alternative_tool"),
        (Then, {"strategy": "retri"}, "strategy: .* did you mean retry?"),
        (Then, {"strategy": "escalate", "delay": "1s"}, "delay: only a retry waits"),
        (Then, {"strategy": "retry", "tool": "b"}, "tool: drop it, or write strategy: alternative_tool"),
        (Then, {"delay": "1s", "tool": "b"}, "delay: an alternative is tried at once"),
        (Then, {"strategy": "retry", "delay": -1}, "delay: -1 is not a duration"),
        (Then, {"message": ""}, "message: ''"),
        (Policy, {"name": "", "then": ESCALATE}, "name: ''"),
        (Policy, {"name": "a", "then": "escalate"}, "then: expected Then, got 'escalate'"),
        (Policy, {"name": "a", "when": {}, "then": ESCALATE}, "when: expected When, got {}"),
        (Policy, {"name": "a", "then": ESCALATE, "even_if_effect_unknown": 1}, "even_if_effect_unknown: 1 is neither"),
        (Policy, {"name": "a", "then": ESCALATE, "even_if_effect_unknown": True}, "only a retry repeats"),
    ],
)
def test_a_wrong_policy_is_refused_with_what_would_be_right(make, wrong, said):
    with pytest.raises(ValueError, match=said):
        make(**wrong)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({}, {"tool": "pay_*", "attempt": 3}),
        ({"tool": "pay_*"}, {"tool": "pay_card"}),
        ({"tool": "pay_*"}, {"tool": "pay_card_*"}),
        ({"tool": "pay_?"}, {"tool": "pay_a"}),
        ({"tool": ["a", "b*"]}, {"tool": ["b1", "a"]}),
        ({"tags": ["x", "y"]}, {"tags": "x"}),
        ({"attempt": 2}, {"attempt": 3}),
        ({"turn_left": "10s"}, {"turn_left": "5s"}),
        ({"classification": "permanent"}, {"category": ["tool_validation", "tool_unavailable"]}),
        ({"effect": ["none", "unknown"]}, {"effect": "none"}),
        ({"breaker": ["open", "closed"]}, {"breaker": "open"}),
        ({"code": ["UNAVAILABLE", "INTERNAL"]}, {"code": "INTERNAL"}),
    ],
)
def test_a_wider_condition_covers_a_narrower_one_but_not_the_other_way(wide, narrow):
    assert When(**wide).covers(When(**narrow))
    assert not When(**narrow).covers(When(**wide))


def test_transient_and_tool_transient_are_one_condition():
    classification, category = When(classification="transient"), When(category="tool_transient")
    assert classification.covers(category)
    assert category.covers(classification)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tool": "pay_*"}, {"tool": "*_card"}),
        ({"tool": "pay_?"}, {"tool": "pay_*"}),
        ({"tool": "pay_*"}, {"code": "INTERNAL"}),
        ({"tags": "x"}, {"tool": "x"}),
        ({"turn_left": "5s"}, {"turn_left": "10s"}),
    ],
)
def test_a_condition_that_says_something_else_is_not_covered(one, other):
    assert not When(**one).covers(When(**other))


def test_conditions_that_no_failure_can_meet_are_impossible():
    assert When(classification="transient").is_possible
    assert not When(classification="transient", category="tool_validation").is_possible
    assert not When(classification="permanent", category="tool_transient").is_possible
    assert not When(classification="permanent", category="tool_transient").covers(When())


GLOBS = st.text("ab*?", min_size=1, max_size=4)
WORDS = ["".join(letters) for length in range(5) for letters in itertools.product("ab", repeat=length)]


@given(GLOBS, GLOBS)
def test_a_glob_that_covers_another_takes_every_name_of_it(wide, narrow):
    if When(tool=wide).covers(When(tool=narrow)):
        assert all(fnmatchcase(word, wide) for word in WORDS if fnmatchcase(word, narrow))


def test_categories_are_those_of_the_fault():
    assert When(category=get_args(Category)).covers(When())


# --- which one holds --------------------------------------------------------------------------------------------------

FAULT = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "unknown", "down", "it is down", "test")
FACTS = {
    "tool": "pay_card",
    "tags": ("money", "eu"),
    "fault": FAULT,
    "attempt": 2,
    "breaker": "closed",
    "turn_left": 9.0,
}


def holds(when: dict[str, object], **facts: object) -> bool:
    policy = Policy(name="it", when=When(**when), then=ESCALATE)
    return match([policy], **{**FACTS, **facts}) is policy


@pytest.mark.parametrize(
    ("when", "other"),
    [
        ({"tool": "pay_*"}, {"tool": "search"}),
        ({"tool": ["x", "pay_car?"]}, {"tool": "pay_cards"}),
        ({"tags": ["eu", "us"]}, {"tags": ("money",)}),
        ({"category": "tool_transient"}, {"fault": FAULT._replace(category="tool_validation")}),
        ({"code": ["UNAVAILABLE", "INTERNAL"]}, {"fault": FAULT._replace(code=Code.ABORTED)}),
        ({"classification": "transient"}, {"fault": FAULT._replace(classification="permanent")}),
        ({"attempt": 2}, {"attempt": 1}),
        ({"breaker": "closed"}, {"breaker": "open"}),
        ({"turn_left": "10s"}, {"turn_left": 10.0}),
        ({"turn_left": "10s"}, {"turn_left": None}),
        ({"effect": "unknown"}, {"fault": FAULT._replace(effect="none")}),
    ],
)
def test_every_condition_counts(when, other):
    assert holds(when)
    assert not holds(when, **other)


def test_all_conditions_must_hold():
    when = {"tool": "pay_*", "code": "UNAVAILABLE", "attempt": 2, "effect": "unknown"}
    assert holds(when)
    assert not holds({**when, "effect": "none"})
    assert not holds({**when, "tool": "search"})


def test_a_policy_without_conditions_holds_always_also_for_a_refusal():
    assert holds({})
    assert holds({}, attempt=0)
    assert not holds({"attempt": 2}, attempt=0)


def test_tool_names_are_case_sensitive():
    assert not holds({"tool": "PAY_*"})


def test_the_first_match_wins():
    book = [
        Policy(name="a", when=When(tool="x"), then=ESCALATE),
        Policy(name="b", when=When(tool="pay_*"), then=ESCALATE),
        Policy(name="c", then=ESCALATE),
    ]
    assert match(book, **FACTS).name == "b"
    assert match(book, **{**FACTS, "tool": "other"}).name == "c"
    assert match(book[:1], **FACTS) is None
