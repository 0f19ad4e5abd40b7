"""``NamedTuple`` behaves as the one of ``typing``."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing

import pytest
from pydantic import TypeAdapter

from failsoft.core.startup.named_tuple import NamedTuple


class Point(NamedTuple):
    """A point."""

    x: int
    y: int = 2
    label: str | None = None

    @property
    def sum(self) -> int:
        return self.x + self.y


class Known(typing.NamedTuple):
    """A point."""

    x: int
    y: int = 2
    label: str | None = None


class Doubled(Point):
    """A named tuple with a constructor of its own."""

    def __new__(cls, x: int) -> typing.Self:
        return super().__new__(cls, 2 * x)


CALLS = [((), {}), ((1, 2, "a", 4), {}), ((1,), {"z": 3}), ((1,), {"x": 3}), ((1, 3), {}), ((1,), {"label": "a"})]


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_it_is_made_like_a_named_tuple_of_typing(args, kwargs):
    def made(cls):
        try:
            return tuple(cls(*args, **kwargs))
        except TypeError as wrong:
            return str(wrong).replace("Known", "Point")

    assert made(Point) == made(Known)
    assert made(Point) == made(Known)  # the second time with the constructor that the first has made


def test_it_has_what_a_named_tuple_of_typing_has():
    assert Point(1)._asdict() == Known(1)._asdict() == {"x": 1, "y": 2, "label": None}
    assert repr(Point(1)) == repr(Known(1)).replace("Known", "Point")
    assert Point(1)._replace(y=5) == (1, 5, None)
    assert Point._make([1, 2, "a"]) == (1, 2, "a")
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__"):
        assert getattr(Point, name) == getattr(Known, name), name
    assert Point(3).sum == 5


@pytest.mark.parametrize("wrong", [lambda point: point._replace(z=1), lambda point: point._make([1])])
def test_wrong_fields_are_refused_as_by_typing(wrong):
    with pytest.raises((ValueError, TypeError)) as mine:
        wrong(Point(1))
    with pytest.raises((ValueError, TypeError)) as theirs:
        wrong(Known(1))
    assert (type(mine.value), str(mine.value)) == (type(theirs.value), str(theirs.value))


def test_it_may_have_no_fields():
    class Nothing(NamedTuple):
        """Nothing."""

    assert Nothing() == ()
    with pytest.raises(TypeError):
        Nothing(1)  # type: ignore[call-arg]


def test_its_fields_cannot_be_set():
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Point(1).other = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("again", [lambda point: pickle.loads(pickle.dumps(point)), copy.copy, copy.deepcopy])
def test_copies_are_equal_and_of_its_class(again):
    made = again(Point(1, label="a"))
    assert made == (1, 2, "a")
    assert type(made) is Point


def test_a_match_statement_takes_it_apart():
    match Point(1):
        case Point(x, y=2):
            assert x == 1
        case _:
            pytest.fail("no match")


def test_the_signature_is_known_before_the_first_tuple_is_made():
    class Fresh(NamedTuple):
        name: str
        size: int = 1

    assert [str(one) for one in inspect.signature(Fresh).parameters.values()] == ["name", "size=1"]
    assert TypeAdapter(Point).validate_python(["1"]) == (1, 2, None)


def test_a_subclass_may_have_its_own_constructor():
    assert Doubled(2) == (4, 2, None)
    assert isinstance(Doubled(2), Doubled)


def test_a_field_without_a_default_may_not_follow_one_with():
    with pytest.raises(TypeError, match="default"):

        class Wrong(NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]
