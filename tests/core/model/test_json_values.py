"""Any value becomes plain data, and nothing raises on the way."""

from __future__ import annotations

import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from failsoft.core.model.json_values import DEPTH, LENGTH, plain, shown


class Colour(StrEnum):
    RED = "red"


class Shade(str, Enum):  # noqa: UP042 - its str() is not its text
    DARK = "dark"


class Level(IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Flight:
    number: str
    stops: list[Point] = field(default_factory=list)


class Hotel(BaseModel):
    name: str
    since: dt.date


@dataclass
class Ring:
    inside: Any = None


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileMapping(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("no")


class HostileLength(list[int]):
    def __len__(self) -> int:
        raise RuntimeError("no")


HostileLength.__name__ = "list"  # reprlib goes by the name


@pytest.mark.parametrize(
    ("value", "as_plain"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.5, 1.5),
        ("text", "text"),
        ((1, (2, 3)), [1, [2, 3]]),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
        (OrderedDict(a=1), {"a": 1}),
        (Colour.RED, "red"),
        (Shade.DARK, "dark"),
        (Level.HIGH, 3),
        (Point(1, 2), [1, 2]),
        (Flight("AF 1234", [Point(1, 2)]), {"number": "AF 1234", "stops": [[1, 2]]}),
        ([Hotel(name="Lutetia", since=dt.date(1910, 12, 28))], [{"name": "Lutetia", "since": "1910-12-28"}]),
        (dt.datetime(2025, 11, 6, 10, 30, tzinfo=dt.UTC), "2025-11-06T10:30:00+00:00"),
        (dt.timedelta(seconds=1), "datetime.timedelta(seconds=1)"),
        (Flight, "<class 'tests.core.model.test_json_values.Flight'>"),
        ({1: "x", Colour.RED: "y"}, {"1": "x", "red": "y"}),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ({3, 1, 2}, "{1, 2, 3}"),
        (b"raw", "b'raw'"),
        (int, "<class 'int'>"),
        ([], []),
        ({}, {}),
    ],
)
def test_values_as_json_would_have_them(value: object, as_plain: object) -> None:
    result = plain(value)
    assert result == as_plain
    assert type(result) is type(as_plain)
    json.dumps(result, allow_nan=False)


def test_exact_types_come_out() -> None:
    assert type(plain(Colour.RED)) is str
    assert type(plain(Level.HIGH)) is int
    (key,) = plain({Colour.RED: 1})
    assert type(key) is str


def test_deep_and_cyclic_values_end() -> None:
    ring = Ring()
    ring.inside = [ring, ring]
    json.dumps(plain(ring))
    cycle: list[Any] = []
    cycle.append(cycle)
    json.dumps(plain(cycle))
    mapping: dict[str, Any] = {}
    mapping["self"] = mapping
    json.dumps(plain(mapping))


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"in": value}])
def test_values_within_the_depth_limit_are_kept(wrap: Callable[[Any], Any]) -> None:
    deep: Any = "bottom"
    for _ in range(DEPTH):
        deep = wrap(deep)
    assert plain(deep) == deep
    assert plain(wrap(deep)) != wrap(deep)
    assert json.dumps(plain(wrap(wrap(deep))))


@pytest.mark.parametrize("value", [Hostile(), HostileMapping(a=1), [Hostile()], {"a": Hostile()}, {Hostile(): 1}])
def test_hostile_values_are_shown_all_the_same(value: object) -> None:
    assert plain(value) is not None
    assert json.dumps(plain(value))


def test_a_value_whose_repr_fails_is_shown_by_its_type() -> None:
    assert shown(HostileLength()) in ("<list that cannot be shown>", "[]")
    assert shown(Hostile()).startswith("<Hostile instance at")


def test_integers_too_long_to_print_are_truncated() -> None:
    longest = 2**12000 - 1
    assert json.loads(json.dumps(plain(longest))) == longest
    assert json.dumps(plain(10**5000))


def test_shown_values_are_short_and_sanitised() -> None:
    assert len(shown("x" * 100_000)) <= LENGTH
    assert len(shown(set(range(100_000)))) < 200
    assert "\x1b" not in shown(type("X", (), {"__repr__": lambda self: "\x1b[31mred"})())
    assert "hunter2" not in shown({"password": "hunter2"})


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(), st.lists))
def test_any_value_goes_through_json(value: object) -> None:
    json.dumps(plain(value), allow_nan=False)
