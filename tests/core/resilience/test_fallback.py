from __future__ import annotations

import pytest

from failsoft.core.effects.tool_effect import know_effect
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.options import Fallback, ToolOptions
from failsoft.core.resilience.fallback import alternatives, forbids_fallback, may_have_acted, would_act_again

FAULT = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "unknown", "down", "it is down", "test")
LISTED = (
    Fallback(tool="specific", handle_errors=("UNAVAILABLE",)),
    Fallback(tool="other", handle_errors=("INTERNAL",)),
    Fallback(tool="any"),
)
OPTIONS = ToolOptions(id="search", fallbacks=LISTED)


def names(options: ToolOptions = OPTIONS, fault: Fault = FAULT, **facts: object) -> list[str]:
    facts = {"tried": {"search"}, **facts}
    return [one.tool for one in alternatives(options, fault, **facts)]


def test_fallbacks_that_handle_the_error_are_offered_in_order():
    assert names() == ["specific", "any"]
    assert names(fault=FAULT._replace(code=Code.INTERNAL)) == ["other", "any"]


def test_the_error_that_opened_the_circuit_decides():
    assert names(opened_by=FAULT._replace(code=Code.INTERNAL)) == ["other", "any"]


def test_nothing_is_tried_twice():
    assert names(tried={"search", "any"}) == ["specific"]


@pytest.mark.parametrize(
    ("said", "effect", "barred"),
    [
        ({"idempotent": False}, "unknown", True),
        ({"idempotent": False}, "happened", True),
        ({"idempotent": False}, "none", False),
        ({"idempotent": True}, "unknown", False),
        ({"id": "gadget"}, "unknown", False),
        ({}, "unknown", True),
        ({"idempotent": False, "idempotency_key": "key"}, "unknown", False),
    ],
)
def test_a_write_that_may_have_happened_is_not_done_by_other_means(said, effect, barred):
    known = know_effect(ToolOptions(**{"id": "pay", **said}))
    assert forbids_fallback(effect, known, known) is barred


def test_the_one_that_is_wanted_comes_first_listed_or_not():
    assert names(wanted="any") == ["any", "specific"]
    assert names(wanted="other") == ["other", "specific", "any"]  # though it does not take this error
    assert names(wanted="elsewhere") == ["elsewhere", "specific", "any"]
    assert names(wanted="search") == ["specific", "any"]


def test_the_wanted_one_keeps_what_was_said_about_it():
    assert next(alternatives(OPTIONS, FAULT, tried=(), wanted="specific")) is LISTED[0]


@pytest.mark.parametrize(
    ("stand_in", "primary", "barred"),
    [
        ({}, {"idempotent": False}, True),
        ({"idempotent": False}, {}, True),
        ({"idempotent": True}, {"idempotent": False}, True),
        ({"read_only": True}, {"idempotent": False}, False),
        ({"idempotent": True}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_fallback_is_forbidden_if_it_could_repeat_the_primarys_effect(stand_in, primary, barred):
    tools = ToolOptions(id="b", **stand_in), ToolOptions(id="a", **primary)
    known = [know_effect(tool) for tool in tools]
    assert forbids_fallback("unknown", *known) is barred
    assert not forbids_fallback("none", *known)


@pytest.mark.parametrize(
    ("said", "acted"),
    [({"read_only": True}, False), ({"idempotent": True}, True), ({"idempotency_key": "key"}, True), ({}, False)],
)
def test_a_declared_write_may_have_acted_if_its_effect_is_not_known(said, acted):
    known = know_effect(ToolOptions(id="gadget", **said))
    assert [may_have_acted(effect, known) for effect in ("none", "unknown", "happened")] == [False, acted, acted]


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ({"read_only": True}, False),
        ({"id": "get_rate"}, False),
        ({}, False),
        ({"idempotent": True}, False),
        ({"id": "pay", "idempotent": True}, True),
        ({"idempotent": False}, True),
        ({"idempotency_key": "key"}, True),
        ({"id": "pay"}, True),
    ],
)
def test_a_write_does_it_again_whatever_makes_repeating_it_safe(said, again):
    options = ToolOptions(**{"id": "gadget", **said})
    assert would_act_again(know_effect(options), options) is again
    assert would_act_again(know_effect(options, foreign=True), options) is (again or said == {})
    assert would_act_again(know_effect(options, undeclared="never_repeat"), options) is (again or said == {})
