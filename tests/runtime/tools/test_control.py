"""Finding a framework's control flow in exceptions and groups."""

from __future__ import annotations

from failsoft.runtime.tools.control import is_any


def is_stop(error: BaseException) -> bool:
    return isinstance(error, StopIteration)


def test_an_exception_in_a_group_in_a_group_is_found() -> None:
    inner = ExceptionGroup("inner", [ValueError(), StopIteration()])
    assert is_any(ExceptionGroup("outer", [KeyError(), inner]), is_stop)
    assert is_any(StopIteration(), is_stop)
    assert not is_any(ExceptionGroup("outer", [KeyError()]), is_stop)


def test_groups_that_share_members_are_read_once() -> None:
    read: list[BaseException] = []
    error: Exception = ValueError()
    for _ in range(60):  # 2 ** 60 paths lead to the ValueError
        error = ExceptionGroup("both", [error, error])
    assert not is_any(error, lambda one: bool(read.append(one)))
    assert len(read) == 1
