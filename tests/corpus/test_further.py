"""The floor on errors of further libraries, which need not be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.corpus.further import load, rebuild

from failsoft import Fault, classify

# percent
FLOOR = {"classification": 99, "code": 98, "category": 99, "effect": 99}
RECORDS = load()

RIGHT: dict[str, Callable[[Fault, dict[str, Any]], bool]] = {
    "classification": lambda fault, record: fault.classification == record["classification"],
    "code": lambda fault, record: fault.code.name in record["code_accept"],
    "category": lambda fault, record: fault.category in record["category_accept"],
    "effect": lambda fault, record: (fault.effect == "unknown") == record["ambiguous_effect"],
}


@pytest.fixture(scope="module")
def faults() -> list[Fault]:
    return [classify(rebuild(record)) for record in RECORDS]


@pytest.mark.parametrize("figure", FLOOR)
def test_floor(figure: str, faults: list[Fault]) -> None:
    wrong = [record["id"] for fault, record in zip(faults, RECORDS, strict=True) if not RIGHT[figure](fault, record)]
    assert 100 * (len(RECORDS) - len(wrong)) / len(RECORDS) >= FLOOR[figure], wrong


def test_the_hard_ones(faults: list[Fault]) -> None:
    hard = [(fault, record) for fault, record in zip(faults, RECORDS, strict=True) if record["hard"]]
    wrong = [record["id"] for fault, record in hard if not RIGHT["classification"](fault, record)]
    assert len(hard) > 400
    assert len(wrong) / len(hard) <= 0.02, wrong


def test_a_rebuilt_error_has_the_originals_type_and_text() -> None:
    record = next(record for record in RECORDS if record["id"] == "redis-drop")
    error = rebuild(record)
    assert (type(error).__module__, type(error).__name__) == ("redis.exceptions", "ConnectionError")
    assert str(error) == "Connection closed by server."
