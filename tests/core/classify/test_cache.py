"""Recalling: the same answer without reading again, no text kept, so many and no more."""

from __future__ import annotations

import pytest
from tests.core.classify.made import http_error

from failsoft.core.classify import classify
from failsoft.core.classify.cache import KEPT, LENGTH, cached


def count_reads() -> tuple[list[str], object]:
    read: list[str] = []

    @cached
    def upper(text: str) -> str:
        read.append(text)
        return text.upper()

    return read, upper


def test_a_cached_text_is_not_read_again() -> None:
    read, upper = count_reads()
    assert [upper("a"), upper("b"), upper("a")] == ["A", "B", "A"]  # type: ignore[operator]
    assert read == ["a", "b"]


def test_long_texts_are_read_anew() -> None:
    read, upper = count_reads()
    for _ in range(2):
        upper("x" * (LENGTH + 1))  # type: ignore[operator]
    assert len(read) == 2


def test_the_cache_is_bounded() -> None:
    read, upper = count_reads()
    for number in range(KEPT + 1):
        upper(str(number))  # type: ignore[operator]
    upper("0")  # type: ignore[operator]
    assert read[-1] == "0"


def test_no_text_is_kept() -> None:
    _, upper = count_reads()
    upper("sk-secret")  # type: ignore[operator]
    kept = next(cell.cell_contents for cell in upper.__closure__ if isinstance(cell.cell_contents, dict))  # type: ignore[attr-defined]
    assert list(kept) == [(hash("sk-secret"),)]


def test_further_arguments_are_part_of_the_cache_key() -> None:
    @cached
    def times(text: str, count: int) -> str:
        return text * count

    assert [times("ab", 1), times("ab", 2)] == ["ab", "abab"]


def test_another_thread_may_make_room_at_any_moment() -> None:
    """An entry is looked up only once: it may be gone a moment later."""

    class Forgetful(dict[object, object]):
        def __contains__(self, key: object) -> bool:
            return True

    _, upper = count_reads()
    cell = next(cell for cell in upper.__closure__ if isinstance(cell.cell_contents, dict))  # type: ignore[attr-defined]
    cell.cell_contents = Forgetful()
    assert upper("a") == "A"  # type: ignore[operator]


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_the_same_body_under_another_status_is_another_error(status: int) -> None:
    classify(http_error(500, b'{"message": "xyzzy"}'))
    assert classify(http_error(status, b'{"message": "xyzzy"}')).http_status == status


def test_headers_are_read_anew() -> None:
    for seconds in ("3", "7"):
        assert classify(http_error(503, b"{}", {"Retry-After": seconds})).retry_after == float(seconds)
