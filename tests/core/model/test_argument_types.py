"""JSON values and annotations: values that fit, values that are converted, and the message for the rest."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict, TypeVar, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from failsoft.core.model.argument_types import Misfit, Richer, reader

T = TypeVar("T")
UserId = NewType("UserId", int)


class Line(TypedDict):
    amount: int
    note: NotRequired[Annotated[str, "what for"]]


class Bill(TypedDict, total=False):
    lines: list[Line]


THING = object()

FITS: list[tuple[Any, Any]] = [
    (str, "Rome"),
    (str, ""),
    (int, 40),
    (int, -(10**40)),
    (float, 2.5),
    (float, 2),
    (bool, True),
    (None, None),
    (type(None), None),
    (Optional[int], None),  # noqa: UP045 - as users write it
    (int | None, 4),
    (Union[int, str], "4"),  # noqa: UP007
    (int | str, "4"),
    (str | int, 4),
    (bool | int, 1),
    (Literal["a", "b"], "b"),
    (list, [1, "a", None]),
    (list[int], [1, 2]),
    (list[int], []),
    (Sequence[str], ["a"]),
    (Iterable[str], ["a"]),
    (Collection[Any], [1]),
    (dict, {"a": 1}),
    (dict[str, int], {"a": 1}),
    (Mapping[str, Any], {"a": THING}),
    (MutableMapping[str, list[int]], {"a": [1]}),
    (list[dict[str, int | None]], [{"a": None}]),
    (Any, "forty"),
    (object, "forty"),
    (T, "forty"),
    (UserId, 7),
    (int, THING),  # not JSON
    (int, Decimal(4)),
    (list[int], [THING]),
    (list[int], (1, 2)),
    (dict[str, int], {"a": THING}),
    (tuple[int, int], (1, 2)),
    (Line, {"amount": 4, "note": "a", "more": [1]}),  # a key that is not declared stays
    (Line, {"amount": THING}),
    (Line, THING),
    (Line | None, None),
    (Bill, {}),
]


@pytest.mark.parametrize(("annotation", "value"), FITS)
def test_a_value_that_fits_is_returned_unchanged(annotation: Any, value: Any) -> None:
    found = reader(annotation)
    assert found is None or found.read(value, False) is value


CONVERTED: list[tuple[Any, Any, Any]] = [
    (int, "40", 40),
    (int, "-7", -7),
    (int, 40.0, 40),
    (float, "2.5", 2.5),
    (float, "1e3", 1000.0),
    (bool, "true", True),
    (bool, "false", False),
    (int | None, "4", 4),
    (int | float, "2.5", 2.5),
    (Literal[1, 2], "2", 2),
    (Literal[1, 2], 2.0, 2),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, str], ["1", "a"], (1, "a")),
    (tuple, [1], (1,)),
    (set[int], [1, "2"], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (AbstractSet[str], ["a"], {"a"}),
    (list[int], ["1", 2], [1, 2]),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (list[tuple[int, int]], [[1, 2]], [(1, 2)]),
    (set[str] | None, ["a"], {"a"}),
    (Line, {"amount": "4", "more": "4"}, {"amount": 4, "more": "4"}),
    (Bill, {"lines": [{"amount": "4"}]}, {"lines": [{"amount": 4}]}),
    (list[Annotated[int, "how many"]], ["4"], [4]),
    (Annotated[int, Field(description="how many")] | None, "4", 4),
]


@pytest.mark.parametrize(("annotation", "value", "made"), CONVERTED)
def test_values_are_converted_if_nothing_is_lost(annotation: Any, value: Any, made: Any) -> None:
    found = reader(annotation)
    assert found is not None
    read = found.read(value, False)
    assert (read, type(read)) == (made, type(made))


REFUSED: list[tuple[Any, Any, str]] = [
    (int, "forty", "x must be an integer, not a text."),
    (int, "", "x must be an integer, not a text."),
    (int, " 40", "x must be an integer, not a text."),
    (int, "4_0", "x must be an integer, not a text."),
    (int, "٤", "x must be an integer, not a text."),
    (int, "0x10", "x must be an integer, not a text."),
    (int, "9" * 5_000, "x must be an integer, not a text."),
    (int, 2.5, "x must be an integer, not a number."),
    (int, 1e300, "x must be an integer, not a number."),
    (int, math.nan, "x must be an integer, not a number."),
    (int, math.inf, "x must be an integer, not a number."),
    (int, True, "x must be an integer, not true."),
    (int, None, "x must be an integer, not null."),
    (float, "nan", "x must be a number, not a text."),
    (float, "1e999", "x must be a number, not a text."),
    (float, False, "x must be a number, not false."),
    (str, 5, "x must be a text, not a number."),
    (str, None, "x must be a text, not null."),
    (str, ["a"], "x must be a text, not an array."),
    (bool, 1, "x must be true or false, not a number."),
    (bool, "yes", "x must be true or false, not a text."),
    (None, 0, "x must be null, not a number."),
    (int | None, "x", "x must be an integer or null, not a text."),
    (Literal["a", "b"], "A", "x must be 'a' or 'b', not a text."),
    (Literal[1], True, "x must be 1, not true."),
    (list[int], "abc", "x must be an array, not a text."),
    (Sequence[str], "abc", "x must be an array, not a text."),
    (list[int], {"a": 1}, "x must be an array, not an object."),
    (list[int], [1, "b"], "x[1] must be an integer, not a text."),
    (list[list[int]], [[1], ["b"]], "x[1][0] must be an integer, not a text."),
    (dict[str, int], [1], "x must be an object, not an array."),
    (dict[str, int], {"a": "b"}, "x.a must be an integer, not a text."),
    (dict[int, str], {"a": "b"}, "x.a must be an integer, not a text."),
    (tuple[int, int], [1], "x must be an array of 2, not an array."),
    (set[int], [[1]], "x[0] must be an integer, not an array."),
    (set, [[1]], "x must be an array of plain values, not an array."),
    (list[int] | None, [1, "b"], "x[1] must be an integer, not a text."),
    (Line, {"amount": "forty"}, "x.amount must be an integer, not a text."),
    (Line, {"amount": 4, "note": 5}, "x.note must be a text, not a number."),
    (Line, {"note": "a"}, "x must be an object with amount, not an object."),
    (Line, [1], "x must be an object, not an array."),
    (Bill, {"lines": [{"amount": 4}, {"amount": True}]}, "x.lines[1].amount must be an integer, not true."),
    (list[Annotated[int, "how many"]], [True], "x[0] must be an integer, not true."),
    (Annotated[int, Field(description="how many")], True, "x must be an integer, not true."),
    (Annotated[bool, Field(description="sure?")] | None, "yes", "x must be true or false or null, not a text."),
]


@pytest.mark.parametrize(("annotation", "value", "told"), REFUSED)
def test_a_value_that_does_not_fit_is_reported_with_its_path(annotation: Any, value: Any, told: str) -> None:
    found = reader(annotation)
    assert found is not None
    with pytest.raises(Misfit) as caught:
        found.read(value, False)
    assert caught.value.explain("x") == told


@pytest.mark.parametrize(
    "annotation",
    [Decimal, bytes, complex, Literal[b"a"], "Forward", 5, list[Decimal], Decimal | None, Annotated[int, Field(gt=0)]],
)
def test_richer_annotations_are_left_to_others(annotation: Any) -> None:
    with pytest.raises(Richer):
        reader(annotation)


ANNOTATIONS = st.recursive(
    st.sampled_from([str, int, float, bool, None, Literal["a", 1], int | None, Any]),
    lambda inner: st.one_of(
        inner.map(lambda one: list[one]),  # type: ignore[valid-type]
        inner.map(lambda one: dict[str, one]),  # type: ignore[valid-type]
        inner.map(lambda one: tuple[one, ...]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda two: Union[two]),  # noqa: UP007
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["a", "4", "true", "2.5", "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "1"]), inner, max_size=2),
    max_leaves=5,
)


@given(ANNOTATIONS, VALUES)
def test_nothing_is_accepted_that_pydantic_refuses(annotation: Any, value: Any) -> None:
    found = reader(annotation)
    try:
        read = value if found is None else found.read(value, False)
    except Misfit:
        return
    try:
        theirs = TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        raise AssertionError(f"{annotation}: {value!r} was read as {read!r}") from None
    assert (
        read == theirs or repr(read) == repr(theirs) or "Union" in str(annotation)
    )  # NaN; members are preferred otherwise
