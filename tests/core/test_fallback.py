from __future__ import annotations

import pytest

from failsoft.core.fallback import alternatives, bars_others
from failsoft.core.fault import Code, Fault
from failsoft.core.options import Fallback, ToolOptions

FAULT = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "unknown", "down", "it is down", "test")
LISTED = (
    Fallback(tool="specific", handle_errors=("UNAVAILABLE",)),
    Fallback(tool="other", handle_errors=("INTERNAL",)),
    Fallback(tool="any"),
)
OPTIONS = ToolOptions(id="search", fallbacks=LISTED)


def names(options: ToolOptions = OPTIONS, fault: Fault = FAULT, **facts: object) -> list[str]:
    facts = {"tried": {"search"}, "safe": options.safe_to_repeat, **facts}
    return [one.tool for one in alternatives(options, fault, **facts)]


def test_those_that_take_the_error_in_their_order():
    assert names() == ["specific", "any"]
    assert names(fault=FAULT._replace(code=Code.INTERNAL)) == ["other", "any"]


def test_the_error_that_opened_the_circuit_decides():
    assert names(opened_by=FAULT._replace(code=Code.INTERNAL)) == ["other", "any"]


def test_nothing_is_tried_twice():
    assert names(tried={"search", "any"}) == ["specific"]


@pytest.mark.parametrize(
    ("said", "effect", "found"),
    [
        ({"idempotent": False}, "unknown", False),
        ({"idempotent": False}, "happened", False),
        ({"idempotent": False}, "none", True),
        ({"idempotent": True}, "unknown", True),
        ({}, "unknown", True),
        ({"idempotent": False, "idempotency_key": "key"}, "unknown", True),
    ],
)
def test_a_write_that_may_have_happened_is_not_done_by_other_means(said, effect, found):
    options = ToolOptions(id="pay", fallbacks=LISTED, **said)
    fault = FAULT._replace(effect=effect)
    assert bool(names(options, fault)) is found
    assert bool(names(options, fault, wanted="elsewhere")) is found


def test_the_one_that_is_wanted_comes_first_listed_or_not():
    assert names(wanted="any") == ["any", "specific"]
    assert names(wanted="other") == ["other", "specific", "any"]  # though it does not take this error
    assert names(wanted="elsewhere") == ["elsewhere", "specific", "any"]
    assert names(wanted="search") == ["specific", "any"]


def test_the_wanted_one_keeps_what_was_said_about_it():
    assert next(alternatives(OPTIONS, FAULT, safe=None, tried=(), wanted="specific")) is LISTED[0]


def test_a_bug_of_a_write_may_have_come_after_it():
    bug = FAULT._replace(effect="unknown", classification="permanent", category="internal_contract_bug")
    assert names(ToolOptions(id="pay", fallbacks=LISTED, idempotent=False), bug) == []
    assert names(ToolOptions(id="pay", fallbacks=LISTED, idempotent=False), bug._replace(effect="none")) != []
    assert names(ToolOptions(id="look", fallbacks=LISTED), bug) != []


@pytest.mark.parametrize(
    ("stand_in", "primary", "barred"),
    [
        ({}, {"idempotent": False}, True),
        ({"idempotent": False}, {}, True),
        ({"read_only": True}, {"idempotent": False}, False),
        ({}, {}, False),
    ],
)
def test_a_stand_in_does_what_the_primary_was_asked_for(stand_in, primary, barred):
    tools = ToolOptions(id="b", **stand_in), ToolOptions(id="a", **primary)
    safe = [tool.safe_to_repeat for tool in tools]
    assert bars_others(FAULT, *safe) is barred
    assert not bars_others(FAULT._replace(effect="none"), *safe)
