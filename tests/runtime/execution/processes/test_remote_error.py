"""Exceptions on their way from one process to another."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools

from failsoft.core.model.fault import Fault
from failsoft.runtime.execution.processes.remote_error import RemoteError, describe, rebuild


def sent(error: BaseException) -> Any:
    """An exception as the application gets it."""
    return rebuild(pickle.loads(pickle.dumps(describe(error))))


def raised(name: str) -> BaseException:
    try:
        fake_tools.fails(name)
    except BaseException as error:
        return error
    raise AssertionError(name)


def test_a_picklable_exception_is_returned_as_itself() -> None:
    error = sent(raised("not_found"))
    assert type(error) is fake_tools.NotFound
    assert (str(error), error.what) == ("PAR", "PAR")


def test_an_errno_comes_back() -> None:
    error = sent(raised("timeout"))
    assert type(error) is TimeoutError
    assert error.errno == 110


def test_an_unpicklable_exception_is_returned_with_everything_classification_needs() -> None:
    error = sent(raised("refused"))
    assert isinstance(error, RemoteError)
    assert str(error) == "the service says no"
    assert type(error).__name__ == "Refused"
    assert error.remote_types[:3] == (
        "tests.runtime.execution.processes.fake_tools.Refused",
        "builtins.ConnectionError",
        "builtins.OSError",
    )
    assert error.response.status_code == 503
    assert error.response.headers == {"Retry-After": "7"}
    assert error.retries == 3
    assert not hasattr(error, "lock")


def test_the_worker_classifies_and_returns_the_fault() -> None:
    for name in ("refused", "not_found", "group"):
        fault = sent(raised(name)).remote_fault
        assert isinstance(fault, Fault)
    assert sent(raised("refused")).remote_fault.http_status == 503


def test_an_error_that_cannot_be_read_is_still_described() -> None:
    error = sent(raised("unreadable"))
    assert type(error).__name__ == "Unreadable"
    assert str(error) == "<Unreadable that cannot be shown>"


def test_a_class_that_pickles_into_another_is_not_trusted() -> None:
    error = sent(raised("changed"))
    assert isinstance(error, RemoteError)
    assert (type(error).__name__, str(error)) == ("Changed", "original")


@pytest.mark.parametrize("name", ["exit", "interrupt"])
def test_exits_and_interrupts_of_a_worker_are_errors_in_the_parent(name: str) -> None:
    error = sent(raised(name))
    assert isinstance(error, RemoteError)
    assert error.remote_types[-1] == "builtins.BaseException"


def test_nothing_is_imported_because_of_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.runtime.execution.processes import fake_library

    described = describe(fake_library.LibraryError("from afar"))
    monkeypatch.delitem(sys.modules, fake_library.__name__)
    error = rebuild(described)
    assert isinstance(error, RemoteError)
    assert error.status_code == 429  # type: ignore[attr-defined]
    assert fake_library.__name__ not in sys.modules


def test_causes_come_along() -> None:
    try:
        fake_tools.fails_because()
    except fake_tools.NotFound as caught:
        error = sent(caught)
    assert type(error) is fake_tools.NotFound
    assert isinstance(error.__cause__, RemoteError)
    assert error.__cause__.response.status_code == 503  # type: ignore[attr-defined]
    assert error.__suppress_context__


def test_groups_come_back_as_groups() -> None:
    error = sent(raised("group"))
    assert isinstance(error, ExceptionGroup)
    assert error.message == "two"
    assert [type(leaf).__name__ for leaf in error.exceptions] == ["ValueError", "Refused"]


def test_the_traceback_is_a_note() -> None:
    error = sent(raised("value"))
    assert "in the worker process" in error.__notes__[0]
    assert "in fails" in error.__notes__[0]
    assert str(error) == "bad airport"


def test_texts_and_chains_are_bounded() -> None:
    assert len(pickle.dumps(describe(raised("huge")))) < 1_000_000
    error: BaseException = ValueError("innermost")
    for _ in range(500):
        outer = ValueError("outer")
        outer.__cause__ = error
        error = outer
    link, length = sent(error), 0
    while link is not None:
        link, length = link.__cause__, length + 1
    assert length < 20


def test_a_remote_error_can_be_pickled_and_can_cross_again() -> None:
    first = sent(raised("refused"))
    for again in (pickle.loads(pickle.dumps(first)), sent(first)):
        assert isinstance(again, RemoteError)
        assert again.remote_types == first.remote_types
        assert (type(again).__name__, str(again)) == ("Refused", "the service says no")
        assert again.response.status_code == 503  # type: ignore[attr-defined]


def test_groups_that_contain_each_other_many_times_are_sent_in_part() -> None:
    error: Exception = ValueError("no seats")
    for _ in range(8):
        error = ExceptionGroup("several", [error] * 30)
    assert len(sent(error).exceptions) == 30
    assert len(pickle.dumps(describe(error))) < 1_000_000
