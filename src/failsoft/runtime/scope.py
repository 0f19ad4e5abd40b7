"""The scope that a call is made from: none, the body of a turn, or another call.

``SCOPE`` holds a turn, a call, the handle of a turn's call, or an attempt of the fast path, which becomes a call when an
inner call asks for its parent. Read it with ``find_scope``. While an agent framework runs a guarded function, ``ASKED``
says which call of the model that is, and ``SCOPE`` is ``NOWHERE`` unless there is a turn or a call around it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Caller(Protocol):
    """A call with a tool that makes other calls."""

    acted: bool  # an inner call may have had an effect that must not happen twice
    wrote: bool  # an inner call of a tool known to write may have acted
    changed: bool  # an inner call may have acted, but may be repeated
    inside: set[object]  # calls and functions inside it that have not ended


class Scope(Protocol):
    """A turn, a call, or the handle of a turn's call, from which other calls are made."""

    is_turn: ClassVar[bool]

    def full_call(self) -> Caller | None:
        """The call; None for the body of a turn."""

    def step_out(self, tool: object, started: float) -> Scope | None:
        """The scope around this one if it is inside the attempt of ``tool`` that began at ``started``, else this one."""


class TurnScope:
    """The base class of a turn: what a call needs to recognise one without importing it."""

    __slots__ = ()

    is_turn: ClassVar[bool] = True


class CountsSuccess(Protocol):
    """The part of an agent's run that a guarded function's call uses."""

    def note_success(self) -> None: ...


# An attempt of the fast path. Its items: the value (``runtime.execution.stepping.step``), the call's id, the start, the
# runner and the tool, the arguments, the keywords, the fast attempt around it, and the call, once an inner call has asked
# for it. A list, because an object would cost more than the rest of the attempt.
LightAttempt = list[Any]
_CALL = 7


class _Nowhere:
    """A scope without a turn or a call."""

    is_turn: ClassVar[bool] = False

    def full_call(self) -> None:
        return None

    def step_out(self, tool: object, started: float) -> Scope:  # noqa: ARG002
        return self


NOWHERE: Scope = _Nowhere()  # keeps guarded functions off the fast path, which does not look for ``ASKED``
SCOPE: ContextVar[Scope | LightAttempt | None] = ContextVar("failsoft_scope", default=None)
ASKED: ContextVar[AskedFor | None] = ContextVar("failsoft_asked", default=None)


class AskedFor:
    """The model's call behind a guarded function that a framework runs."""

    __slots__ = ("id", "run", "taken", "thread", "tool", "turn", "valueless")

    def __init__(self, tool: object, id: str | None, thread: str | None, turn: Callable[[], object] | None) -> None:
        self.tool = tool  # of the guarded function
        self.id = id
        self.thread = thread
        self.turn = turn  # finds the agent's run
        self.run: CountsSuccess | None = None  # the run, if the call belongs to it directly
        self.taken = False  # True after the first call of that tool: the model did not ask for calls inside it
        self.valueless: Any = None  # its outcome, if it succeeded and its value was lost


def call_of(light: LightAttempt) -> Any:
    """The call of a fast attempt; it is made when an inner call asks for it."""
    if len(light) == _CALL:
        _, id, started, (runner, tool), args, kwargs, outer = light
        call = runner.new_call(tool, args, dict(kwargs), started, id)
        if outer is not None:
            around = call_of(outer)
            if isinstance(around, CallElsewhere):
                call.caller = around
            else:
                call.parent = around
        light.append(call)
    return light[_CALL]


def name_of(light: LightAttempt) -> str | None:
    """The id of the call that a fast attempt belongs to; None if that call is in another process."""
    tool = light[3][1]
    return None if tool is None else f"{tool.id}-{light[1]}"


def made_call_of(light: LightAttempt) -> Any:
    """The call of a fast attempt if an inner call has asked for it, else None."""
    return light[_CALL] if len(light) > _CALL else None


def report_inner_write(light: LightAttempt, tool: Any) -> None:
    """Report an effect inside a fast attempt to the call around it."""
    made = made_call_of(light)
    if made is not None and (made.wrote or made.changed):
        made.report_effect(tool, "unknown")


def watch_alone() -> LightAttempt:
    """Make the attempt of a tool whose runtime is in another process. Set it as ``SCOPE`` while the tool runs."""
    return [None, 0, 0.0, (_Elsewhere, None), (), {}, None]


class CallElsewhere:
    """A call of another process whose tool runs in this process: inner calls report their effects here."""

    __slots__ = ("acted", "changed", "inside", "wrote")

    is_turn: ClassVar[bool] = False

    def __init__(self) -> None:
        self.acted = self.changed = self.wrote = False
        self.inside: set[object] = set()

    @property
    def may_have_acted_inside(self) -> bool:
        """True if an inner call may have had an effect, or may still have one."""
        return self.acted or self.changed or bool(self.inside)

    def full_call(self) -> Caller:
        """Return this call."""
        return self

    def step_out(self, tool: object, started: float) -> Scope:  # noqa: ARG002
        """Return this call: it is around every attempt of this process."""
        return self


class _Elsewhere:
    """Replaces the runner of an attempt whose runtime is in another process."""

    @staticmethod
    def new_call(*_: object) -> CallElsewhere:
        return CallElsewhere()


def find_scope() -> Scope | None:
    """Find the turn, call or handle around the current code; None outside of all. Makes the call of a fast attempt."""
    scope = SCOPE.get()
    if scope is None or scope is NOWHERE:
        return None
    return call_of(scope) if isinstance(scope, list) else scope


def find_caller() -> Caller | None:
    """Return the call of the tool that runs here.

    None in the body of a turn: the turn itself reports what its calls did.
    """
    scope = find_scope()
    return None if scope is None else scope.full_call()


def in_thread(fn: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``fn`` to run in an OS thread or an executor as part of the current call.

    Guarded calls that ``fn`` makes are then known to the tool that made the thread: their effects count for its call.
    Until ``fn`` has returned, the call may not claim that nothing happened. Context variables are copied too. Without
    ``in_thread``, ``threading.Thread``, ``run_in_executor`` and ``executor.submit`` start from an empty context.
    """
    if not callable(fn):
        raise TypeError(f"in_thread: {fn!r:.80} cannot be called: give the function itself, not what it returned")
    context, caller, waiting = copy_context(), find_caller(), object()
    if caller is not None:
        caller.inside.add(waiting)

    @wraps(fn)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        running = object()
        if caller is not None:
            caller.inside.add(running)
        try:
            return context.copy().run(fn, *args, **kwargs)  # a copy: it may run in several threads at once
        finally:
            if caller is not None:
                caller.inside.difference_update((waiting, running))

    return run


def reset_variable(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a context variable. Does nothing for an abandoned tool, which runs on in another context."""
    try:
        variable.reset(token)
    except ValueError:
        variable.set(None if token.old_value is Token.MISSING else token.old_value)


def step_out(tool: object, started: float) -> None:
    """Leave the calls and turns inside an abandoned attempt: that of ``tool`` which began at ``started``."""
    scope = SCOPE.get()
    while scope is not None:
        around = _step_out_light(scope, tool, started) if isinstance(scope, list) else scope.step_out(tool, started)
        if around is scope:
            break
        scope = around
    SCOPE.set(scope)


def _step_out_light(light: LightAttempt, tool: object, started: float) -> LightAttempt | None:
    """``Scope.step_out`` of a fast attempt."""
    _, _, began, (_, own), _, _, outer = light[:_CALL]
    return outer if began > started or (began == started and own is not tool) else light
