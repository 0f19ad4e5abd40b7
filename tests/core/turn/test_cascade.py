"""R9, row by row."""

from __future__ import annotations

import pytest

from failsoft.core.turn.cascade import cascade, used_default


@pytest.mark.parametrize(
    ("required", "defaults", "arguments", "verdict"),
    [
        # 1. required: false skips, whatever else is said
        (False, {}, ["flights"], "skip"),
        (False, {"flights": []}, ["flights"], "skip"),
        # 2. a default replaces the value
        (None, {"flights": []}, ["flights"], "substitute"),
        (True, {"flights": []}, ["flights"], "substitute"),
        (None, {"flights": None, "x": 1}, ["flights"], "substitute"),
        (None, {"flights": [], "hotels": []}, ["flights", "hotels"], "substitute"),
        # ... but only for every argument that the value was to fill
        (None, {"flights": []}, ["flights", "hotels"], "skip"),
        (True, {"flights": []}, ["flights", "hotels"], "escalate"),
        (None, {"other": []}, ["flights"], "skip"),
        # ... and a plain order has no argument to fill
        (None, {"flights": []}, [], "skip"),
        (True, {"flights": []}, [], "escalate"),
        # 3. required: true escalates
        (True, {}, ["flights"], "escalate"),
        # 4. nothing said
        (None, {}, ["flights"], "skip"),
        (None, {}, [], "skip"),
    ],
)
def test_the_first_rule_that_applies_decides(
    required: bool | None, defaults: dict[str, object], arguments: list[str], verdict: str
) -> None:
    assert cascade(required, defaults, arguments) == verdict


def test_a_default_is_reported_in_the_documents_words() -> None:
    assert used_default("compare_prices", "Tool B") == "Used default value for Tool B"
    assert used_default("compare_prices", "compare prices") == "Used default value for compare_prices"
