"""Move an abandoned tool, which could not be cancelled, to a task of its own.

Timeouts, task groups and cancel scopes remember the task that entered them. Without a correction they would cancel the
tool's former caller, refuse to be exited in another task, or come between the caller and its own scopes. Context variables
that the tool has set, such as the current span, would stay set for its caller.

Context managers are found on the value stack of suspended coroutines (the ``__exit__`` of a ``with``), which only the
garbage collector shows; in generators that ``contextlib`` wraps or that are iterated over; and in exit stacks. anyio keeps
a chain of scopes per task, the innermost first. The scopes of the tool are at its beginning, so the chain is cut behind
the last of them. Scopes that were entered by hand (a session that opens its task group in ``__aenter__``) are looked for
in the attributes of the object that holds them.

All of these are private attributes of other libraries. If a version does not have them, nothing is changed.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from contextvars import Token
from itertools import pairwise
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any

from failsoft.runtime.scope import SCOPE

_KNOWN_BY = ("_task", "_parent_task")  # asyncio's timeouts, and its task groups
_EXITS = ("__exit__", "__aexit__")
_DEPTH = 3  # a session, its task group, the scope of that task group

Task = asyncio.Task[Any]
HandOver = Callable[["GeneratorType[Any, Any, Any]", Task, asyncio.Task[None]], None]


def transfer_scopes(running: Any, caller: Task, new_task: Task, cancels: int, hand_over: HandOver) -> None:
    """Transfer everything that ``running`` has entered to the task ``new_task``.

    ``cancels`` counts the cancellations of the caller since it began, from outside or by what it has entered.
    ``hand_over`` moves the deadline of a guarded call that ``running`` waits for.
    """
    with suppress(Exception):  # private attributes may differ between versions: answer the caller anyway
        for inside in _suspended(running):
            if isinstance(inside, GeneratorType):
                hand_over(inside, caller, new_task)
        entered, scopes = _find(running, caller)
        for _ in range(min(cancels, _requests(entered, scopes, caller))):  # they no longer cancel the caller
            caller.uncancel()
        for one in entered:
            for name in _KNOWN_BY:
                if getattr(one, name, None) is caller:
                    setattr(one, name, new_task)
        if scopes:
            _cut(scopes, caller, new_task)
        for token in reversed([*_tokens(running)]):
            with suppress(ValueError, RuntimeError):  # of another context, or already used
                token.var.reset(token)


def count_requests(running: Any, caller: Task) -> int:
    """The number of open cancellations of the caller's task that come from inside ``running``."""
    with suppress(Exception):
        return _requests(*_find(running, caller), caller)
    return 0


def _find(running: Any, caller: Task) -> tuple[list[Any], list[Any]]:
    """Find the scopes that the tool has entered, and the caller's anyio scopes inside them."""
    found = {id(one): one for one in _entered(running)}  # a generator may be found twice
    return list(found.values()), _scopes(found, caller)


def _requests(entered: list[Any], scopes: list[Any], caller: Task) -> int:
    timeouts = [one for one in entered if isinstance(one, asyncio.Timeout) and one.expired()]
    groups = [one for one in entered if getattr(one, "_parent_cancel_requested", False)]
    of_caller = [one for one in (*timeouts, *groups) if caller in [getattr(one, name, None) for name in _KNOWN_BY]]
    return len(of_caller) + sum(scope._pending_uncancellations or 0 for scope in scopes)


def _suspended(running: Any) -> Iterator[Any]:
    """A suspended coroutine or generator and everything that it waits for, from the outside in."""
    while running is not None:
        yield running
        held = (held for held in gc.get_referents(running) if isinstance(held, Coroutine | Generator | AsyncGenerator))
        running = _awaited(running) or next(held, None)


def _entered(running: Any) -> Iterator[Any]:
    """The context managers around the current positions of a suspended coroutine or generator and what it waits for."""
    for inside in _suspended(running):
        yield from _managers(inside)


def _managers(inside: Any) -> Iterator[Any]:
    for held, neighbour in pairwise([*gc.get_referents(inside), None]):
        if isinstance(held, MethodType) and held.__name__ in _EXITS:
            yield from _opened(held.__self__)
        elif (
            isinstance(held, FunctionType) and held.__name__ in _EXITS
        ):  # newer versions of Python keep the two side by side
            yield from _opened(neighbour)
        elif isinstance(held, AsyncGeneratorType):  # it is iterated over
            yield from _entered(held)
    if isinstance(inside, CoroutineType) and inside.__name__ in _EXITS and inside.cr_frame is not None:
        yield from _opened(inside.cr_frame.f_locals.get(inside.cr_code.co_varnames[0]))  # it is being exited


def _tokens(running: Any) -> Iterator[Token[Any]]:
    """Find the tokens of context variables that the tool has set and will reset, the outermost first."""
    for inside in _suspended(running):
        for one in (*_managers(inside), inside):
            made = getattr(one, "gen", one)
            for held in (*gc.get_referents(made), *_attributes(made)):
                if isinstance(held, Token) and held.var is not SCOPE:  # ``scope.step_out`` resets that one
                    yield held


def _opened(manager: Any) -> Iterator[Any]:
    """A context manager, and the context managers inside it."""
    yield manager
    made = getattr(manager, "gen", None)
    if isinstance(made, Generator | AsyncGenerator):
        yield from _entered(made)
    for _, leave in getattr(manager, "_exit_callbacks", ()):
        if isinstance(leave, MethodType):
            yield from _opened(leave.__self__)


def _awaited(running: Any) -> Any:
    return next(filter(None, (getattr(running, name, None) for name in ("cr_await", "gi_yieldfrom", "ag_await"))), None)


def _held(found: dict[int, Any]) -> dict[int, Any]:
    """These and the context managers in their attributes, by their identity."""
    newest = list(found.values())
    for _ in range(_DEPTH):
        values = [
            value
            for one in newest
            for value in _attributes(one)
            if hasattr(type(value), "__exit__") or hasattr(type(value), "__aexit__")
        ]
        newest = [part for value in values for part in _opened(value) if id(part) not in found]
        found |= {id(one): one for one in newest}
    return found


def _attributes(one: Any) -> list[Any]:
    return list(getattr(one, "__dict__", {}).values())


def _scopes(entered: dict[int, Any], caller: Task) -> list[Any]:
    """The caller's chain of anyio scopes, up to the last one that the tool has entered."""
    anyio = sys.modules.get("anyio._backends._asyncio")
    if anyio is None or caller not in anyio._task_states:
        return []
    chain = []
    scope = anyio._task_states[caller].cancel_scope
    while scope is not None and scope._host_task is caller:
        chain.append(scope)
        scope = scope._parent_scope
    held = _held(dict(entered))
    while chain and id(chain[-1]) not in held:
        chain.pop()
    return chain


def _cut(scopes: list[Any], caller: Task, new_task: Task) -> None:
    """Transfer these scopes to the task ``new_task``."""
    states = sys.modules["anyio._backends._asyncio"]._task_states
    state, outermost = states[caller], scopes[-1]
    rest = outermost._parent_scope
    if rest is not None:
        rest._child_scopes.discard(outermost)
        rest._tasks.add(caller)
        outermost._parent_scope = None
    state.cancel_scope = rest
    states[new_task] = type(state)(None, scopes[0])
    for scope in scopes:
        scope._host_task = new_task
        if caller in scope._tasks:
            scope._tasks.discard(caller)
            scope._tasks.add(new_task)
        scope._pending_uncancellations = scope._cancelling_at_enter = 0
