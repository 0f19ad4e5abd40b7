"""Runs of plain successes: as good as the events one by one."""

from __future__ import annotations

import pytest

from failsoft.observe.success_runs import Run, pack, unpack


def run(**changes: object) -> Run:
    columns: dict[str, object] = {
        "first": 7,
        "offset": 1_700_000_000.0,
        "turn_id": None,
        "tools": ["search", "search", "book"],
        "calls": [None, 4, "mine"],
        "began": [0.0, 1.0, 2.0],
        "ended": [0.25, 1.0001239, 3.0],
    }
    return Run(**{**columns, **changes})  # type: ignore[arg-type]


def test_a_run_is_a_sequence_of_flat_records() -> None:
    first, second, third = run(turn_id="t")
    assert first == {
        "seq": 7,
        "event_type": "CallSucceeded",
        "turn_id": "t",
        "call_id": "search.7",
        "tool_id": "search",
        "timestamp": "2023-11-14T22:13:20.250Z",
        "duration_ms": 250.0,
        "attempts": 1,
        "total_ms": 250.0,
        "primary": "search",
    }
    assert (second["call_id"], second["duration_ms"]) == ("search-4", 0.124)
    assert (third["call_id"], third["tool_id"], third["seq"]) == ("mine", "book", 9)
    assert run().timestamp == third["timestamp"]
    assert run()[-1] == run()[2]
    assert run()[1:] == [run()[1], run()[2]]
    with pytest.raises(IndexError):
        run()[3]


@pytest.mark.parametrize(
    "made",
    [
        run(),
        run(turn_id="tür\n1"),
        run(tools=["a", "a", "a"], calls=[None] * 3),
        run(tools=["a", "a", "a"], calls=[0] * 3),
        run(calls=[5, 6, 7]),
        run(calls=[5, 7, 6]),
        run(calls=["x", "y", "z"]),
        run(offset=-0.1, began=[1e-9, 1e9, 0.1], ended=[2e-9, 1e9, 0.30000000000000004]),
        run(tools=["x"], calls=[3], began=[0.0], ended=[10.0]),  # 10 is a line's end among the bytes
    ],
)
def test_packed_and_unpacked_it_is_the_same(made: Run) -> None:
    back = unpack(pack(made))
    assert [*back] == [*made]
    assert back.timestamp == made.timestamp


def test_packed_it_is_small() -> None:
    many = run(tools=["search"] * 1000, calls=range(1, 1001), began=[0.1] * 1000, ended=[0.2] * 1000)
    assert len(pack(many)) < 16_200
