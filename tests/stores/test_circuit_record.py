"""Circuits as records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from failsoft.core.classify import classify
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.stores.circuit_record import next_version, pack, unpack, version_of
from failsoft.stores.ports import KeptCircuit


def test_a_record_has_the_whole_circuit() -> None:
    circuit = KeptCircuit(BreakerState("half_open", 5, 1, 3, 1.7e9, 2, 35.0), classify("503 Service Unavailable"))
    assert unpack(json.loads(json.dumps(pack(circuit, 7)))) == (circuit, 7)


@pytest.mark.parametrize(
    "record",
    [None, 3, [], {}, {"failures": "many"}, {"failures": 1, "state": "ajar"}, {"failures": 1, "opened_by": {"code": "?"}}],
    ids=str,
)  # fmt: skip
def test_an_unreadable_record_is_ignored(record: Any) -> None:
    assert unpack(record) is None
    assert version_of(record) == 0


def test_an_open_circuit_of_version_0_1_0_admits_a_probe_at_once() -> None:
    found = unpack({"until": 1.7e9, "failures": 5, "opened_by": None})
    assert found == (KeptCircuit(BreakerState("open", 5, 0, 1, 0.0)), 1)


def test_failures_counted_by_version_0_1_0_are_counted_on() -> None:
    assert unpack({"failures": 2}) == (KeptCircuit(BreakerState("closed", 2)), 1)


def test_versions_grow_although_a_record_has_expired() -> None:
    first = next_version(0, 1000.0)
    assert next_version(0, 1001.0) > first
    assert next_version(first, 1000.0) == first + 1
