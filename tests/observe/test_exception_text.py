"""Tracebacks as text that is safe to keep."""

from __future__ import annotations

from failsoft.core.redact.sanitise import LIMIT
from failsoft.observe.exception_text import exception_text


def caught(raise_it: object) -> BaseException:
    try:
        raise_it()  # type: ignore[operator]
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def test_the_text_shows_the_traceback_and_the_message() -> None:
    def breaks() -> None:
        raise TypeError("no such thing")

    lines = exception_text(caught(breaks)).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any("in breaks" in line for line in lines)
    assert lines[-1] == "TypeError: no such thing"


def test_the_text_shows_the_cause_first() -> None:
    def breaks() -> None:
        try:
            raise KeyError("city")
        except KeyError as error:
            raise ValueError("bad input") from error

    text = exception_text(caught(breaks))
    assert text.index("KeyError: 'city'") < text.index("ValueError: bad input")


def test_the_text_shows_a_cause_that_is_falsy() -> None:
    class Empty(Exception):
        def __len__(self) -> int:
            return 0

    def breaks() -> None:
        raise ValueError("bad input") from Empty("no rows")

    assert "Empty: no rows" in exception_text(caught(breaks))


def test_a_context_that_was_suppressed_is_left_out() -> None:
    def breaks() -> None:
        try:
            raise KeyError("city")
        except KeyError:
            raise ValueError("bad input") from None

    assert "KeyError" not in exception_text(caught(breaks))


def test_a_circle_of_causes_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert exception_text(one).count("ValueError: one") == 1


def test_long_tracebacks_keep_their_end_and_no_secret() -> None:
    def deep(left: int) -> None:
        if left <= 0:
            raise TypeError("password=swordfish " + "x\n" * 1_000_000)
        [deep, deeper][left % 2](left - 1)

    def deeper(left: int) -> None:
        deep(left - 1)

    text = exception_text(caught(lambda: deep(300)))
    assert len(text.encode()) <= LIMIT
    assert "TypeError: password=[redacted]" in text
    assert "swordfish" not in text.rpartition("TypeError")[2]
