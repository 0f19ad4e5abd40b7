"""Functions that a worker can find and run."""

from __future__ import annotations

import functools
import sys
from importlib.machinery import ModuleSpec
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools

from failsoft.errors import ManifestError
from failsoft.runtime.execution.processes import target
from failsoft.runtime.execution.processes.target import Target, target_of

HERE = "tests.runtime.execution.processes.fake_tools"


def test_a_function_is_named_by_its_module() -> None:
    found = target_of(fake_tools.echo)
    assert found == Target(HERE, "echo", ("value",))
    assert str(found) == f"{HERE}:echo"


def test_a_static_method_can_be_found() -> None:
    assert target_of(fake_tools.Box.stored)[:2] == (HERE, "Box.stored")
    assert target.find(HERE, "Box.stored") is fake_tools.Box.stored


def a_local() -> Any:
    def local() -> None: ...

    return local


class Callable_:
    def __call__(self) -> None: ...


def a_stream() -> Any:
    yield 1


async def an_async_stream() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda: None, "a lambda has no name"),
        (a_local(), "inside a function"),
        (fake_tools.Box().method, "bound to an instance"),
        (Callable_(), "not a function"),
        (functools.partial(fake_tools.echo, 1), "not a function"),
        (a_stream, "a stream cannot leave"),
        (an_async_stream, "a stream cannot leave"),
        (functools.wraps(fake_tools.echo)(lambda value: value), "leads to the function that it wraps; decorate that"),
    ],
)
def test_a_function_that_a_worker_cannot_find_is_rejected(fn: Any, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        target_of(fn)


def of_main() -> None: ...


of_main.__module__ = "__main__"


def test_a_function_of_a_script_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    with pytest.raises(ManifestError, match="cannot import a script; move it to a module"):
        target_of(of_main)


def test_a_module_run_with_dash_m_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec("travel.tools", None))
    assert target_of(of_main).module == "travel.tools"


def test_unwrapping_removes_only_the_guard() -> None:
    assert target.unwrap(fake_tools.doubly_wrapped)("x") == ["decorated", "x"]
    assert target.unwrap(fake_tools.wrapped_outside)("x") == "x"
    assert target.unwrap(fake_tools.echo) is fake_tools.echo


def test_a_decorator_without_a_guard_stays() -> None:
    plain = fake_tools.decorated_once(fake_tools.echo)
    assert target.unwrap(plain) is plain


def test_a_manifests_path_is_a_target() -> None:
    assert target.parse("travel.tools:search") == Target("travel.tools", "search")


def test_context_variables_are_found_by_path() -> None:
    assert target.variable(f"{HERE}:REQUEST") is fake_tools.REQUEST
    with pytest.raises(ManifestError, match="is of type int, not a ContextVar: name one"):
        target.variable(f"{HERE}:NOT_A_VARIABLE")
