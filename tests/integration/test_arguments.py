"""Arguments as models write them, and the mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft.core.model.fault import Fault
from failsoft.integration.arguments import find_misfit, read_arguments

SCHEMA = {
    "type": "object",
    "properties": {"people": {"type": "integer"}, "day": {"type": "string"}, "guests": {"type": "array", "items": {"type": "string"}}},
    "required": ["people", "day"],
    "additionalProperties": False,
}  # fmt: skip


@pytest.mark.parametrize("given", ["", "  ", "{}", "null", None, {}])
def test_missing_arguments_are_an_empty_mapping(given: Any) -> None:
    assert read_arguments(given) == {}


def test_arguments_may_be_json_text_or_a_mapping() -> None:
    assert read_arguments('{"people": 4}') == {"people": 4}
    assert read_arguments({"people": 4}) == {"people": 4}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"people": 4', "They are not valid JSON: Expecting ',' delimiter"),
        ("[" * 100_000, "They are not valid JSON: "),
        ("[4]", "They must be one JSON object, not list."),
        (4, "They must be one JSON object, not int."),
    ],
)
def test_unreadable_arguments_are_a_fault_without_effect(given: Any, says: str) -> None:
    for fault in (read_arguments(given), find_misfit(SCHEMA, given)):
        assert isinstance(fault, Fault)
        assert (fault.rule, fault.effect) == ("bad_arguments", "none")
        assert says in fault.message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{}", "Missing: people, day."),
        ('{"people": "many", "day": "Monday"}', "Invalid: people. people: 'many' is not of type 'integer'."),
        ('{"day": 1}', "Missing: people. Invalid: day. day: 1 is not of type 'string'."),
        ('{"people": 4, "day": "Monday", "guests": [1]}', "Invalid: guests. guests.0: 1 is not of type 'string'."),
        ('{"people": 4, "day": "Monday", "x": 1}', "Invalid: arguments. Additional properties are not allowed"),
    ],
)
def test_misfits_name_the_arguments(given: str, says: str) -> None:
    fault = find_misfit(SCHEMA, given)
    assert fault is not None
    assert says in fault.message


def test_nothing_wrong_as_far_as_the_schema_tells() -> None:
    assert find_misfit(SCHEMA, '{"people": 4, "day": "Monday"}') is None
