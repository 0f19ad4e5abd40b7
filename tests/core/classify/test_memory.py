"""The classifier's cache: bounded, without secrets, and only for errors that type and text describe."""

from __future__ import annotations

import errno

import pytest
from tests.core.classify.made import error_type, make

import failsoft.core.classify as subject
from failsoft.core.classify import classify


@pytest.fixture(autouse=True)
def forget() -> None:
    subject._memory.clear()
    subject._clean.clear()


@pytest.mark.parametrize("make_error", [lambda: RuntimeError("xyzzy"), TimeoutError, lambda: OSError(111, "x")])
def test_the_second_time_is_the_same_but_for_the_cause(make_error: type[Exception]) -> None:
    first, second = make_error(), make_error()
    fault, again = classify(first), classify(second)
    assert len(subject._memory) == 1
    assert fault[:-1] == again[:-1]
    assert (fault.cause, again.cause) == (first, second)
    assert type(again) is type(fault)


def test_a_text_is_remembered_too() -> None:
    assert classify("xyzzy") == classify("xyzzy")
    assert classify("xyzzy").cause is None
    assert len(subject._memory) == 1


def attributes() -> Exception:
    return make("acme.Error", "xyzzy", status_code=404)


def cause() -> Exception:
    error = RuntimeError("xyzzy")
    error.__cause__ = KeyError("x")
    return error


def context() -> Exception:
    error = RuntimeError("xyzzy")
    error.__context__ = KeyError("x")
    return error


def note() -> Exception:
    error = RuntimeError("xyzzy")
    error.add_note("see above")
    return error


def hidden() -> Exception:
    """State that is neither in the arguments nor in ``__dict__``."""
    error = error_type("acme.Slotted", __slots__=("status_code",))("xyzzy")
    error.status_code = 404  # type: ignore[attr-defined]  # a slot
    return error


def with_property() -> Exception:
    return error_type("acme.Computed", status_code=property(lambda _: 404))("xyzzy")


def own_text() -> Exception:
    return error_type("acme.Spoken", __str__=lambda _: "anything")("xyzzy")


@pytest.mark.parametrize(
    "make_error",
    [
        attributes,
        cause,
        context,
        note,
        hidden,
        with_property,
        own_text,
        lambda: RuntimeError("a", "b"),
        lambda: RuntimeError(1),
        lambda: RuntimeError("x" * 1_000),
        lambda: FileNotFoundError(2, "x"),
        lambda: OSError(2, "x", "a file"),
    ],
)
def test_errors_with_more_than_type_and_text_are_not_cached(make_error: type[Exception]) -> None:
    classify(make_error())
    assert subject._memory == {}


def test_secrets_are_not_remembered() -> None:
    secret = "sk-proj-" + "a1B2" * 12
    for _ in range(2):
        assert secret not in classify(f"bad key {secret}").message
        assert secret not in classify(RuntimeError(f"bad key {secret}")).message
        assert secret not in classify(make("acme.Error", f"bad key {secret}", status_code=401)).message
    assert secret not in repr(subject._memory)
    assert all(type(kept) is int for kept in subject._clean)  # hashes


def test_the_number_of_remembered_errors_is_bounded() -> None:
    for number in range(5_000):
        classify(f"error {number}")
        classify(make("acme.Error", f"error {number}", status_code=404))
    assert len(subject._memory) <= subject._KEPT
    assert len(subject._clean) <= subject._KEPT


def test_types_are_remembered_within_bounds() -> None:
    for _ in range(3_000):
        classify(error_type("acme.Error")("x"))
    assert len(subject.facts_of.__globals__["_FACTS"]) <= subject.facts_of.__globals__["_TYPES_KEPT"]


def test_overrides_see_what_is_remembered_and_leave_it_alone() -> None:
    rows = [{"pattern": "xyzzy", "as": "permanent"}]
    assert classify("xyzzy").classification == "transient"
    assert classify("xyzzy", overrides=rows).classification == "permanent"
    assert classify("xyzzy").classification == "transient"


def test_an_errors_number_counts_though_it_was_set_by_hand() -> None:
    def numbered(number: int) -> OSError:
        error = OSError("failed")
        error.errno = number
        return error

    assert classify(numbered(errno.ECONNRESET)).code == "UNAVAILABLE"
    assert classify(numbered(errno.EACCES)).code == "PERMISSION_DENIED"
