"""Tasks of a tool that still run when it fails: they inherited its scope.

A tool that starts two requests with ``asyncio.gather`` fails with the first error, while the other request goes on. Such
a task may still act, so the call may not claim that nothing happened.

A task does not say what it will do, so every task of the tool counts, until it ends. failsoft's own tasks do not: they run
calls, which are counted themselves. Looking costs nothing until a tool fails. Then it takes about a microsecond for each
task of the event loop; where there are many, all failures of one round of the loop share one look.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from contextvars import Context
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from failsoft.runtime.scope import SCOPE, Caller, made_call_of

MANY = 500  # tasks of an event loop, above which the failures of one round share a look
_OWN = __file__.rpartition("runtime")[0]  # the directory of failsoft
_Found = list[tuple[Any, "asyncio.Task[Any]"]]  # scopes, with the tasks that inherited them
_LOOKS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Found] = WeakKeyDictionary()


def note_running_tasks(caller: Caller) -> bool:
    """Count the tasks of this event loop that ``caller``'s tool has started, until they end. True if there are any."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    current = asyncio.current_task()
    running = [task for scope, task in _look(loop) if task is not current and _is_scope_of(scope, caller)]
    for task in running:
        if task not in caller.inside and not task.done():
            caller.inside.add(task)
            task.add_done_callback(caller.inside.discard)
    return bool(running)


def _is_scope_of(scope: Any, caller: Caller) -> bool:
    """True if code in this scope is the tool of ``caller``, or a turn inside it."""
    if scope is caller:
        return True
    if isinstance(scope, list):
        return made_call_of(scope) is caller
    return getattr(scope, "parent" if scope.is_turn else "call", None) is caller


def _look(loop: asyncio.AbstractEventLoop) -> _Found:
    """Find the tasks that inherited a scope."""
    found = _LOOKS.get(loop)
    if found is None:
        tasks = asyncio.all_tasks(loop)
        found = [(scope, task) for task in tasks if (scope := _scope_of(task)) is not None and not _is_own(task)]
        if len(tasks) > MANY:
            _LOOKS[loop] = found
            loop.call_soon(_LOOKS.pop, loop, None)
    return found


def _scope_of(task: asyncio.Task[Any]) -> Any:
    context = _context_of(task)
    return None if context is None else context.get(SCOPE)


if sys.version_info >= (3, 12):

    def _context_of(task: asyncio.Task[Any]) -> Context | None:
        return task.get_context()

else:

    def _context_of(task: asyncio.Task[Any]) -> Context | None:
        """The context of a task, which has no method for it before Python 3.12."""
        return next((part for part in gc.get_referents(task) if type(part) is Context), None)


def _is_own(task: asyncio.Task[Any]) -> bool:
    """True if failsoft made the task's coroutine."""
    code = getattr(task.get_coro(), "cr_code", None)
    return isinstance(code, CodeType) and code.co_filename.startswith(_OWN)
