"""The scope that a call is made from: none, the body of a turn, or another call.

``SCOPE`` is a turn, or a call whose inner calls are its children. ``LIGHT`` is the attempt of an undeclared tool on the
happy path: its inner calls are not its children, but what they did is asked for if it fails. Tools that are declared
safe to repeat have neither there, so nothing is paid for them. While an agent framework runs a guarded function, ``LIGHT``
says which call of the model's that is (``AskedFor``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Caller(Protocol):
    """A call from whose tool other calls are made."""

    acted: bool  # a call inside it may have had an effect that must not be had twice
    inside: set[object]  # calls and functions inside it that have not ended


class Scope(Protocol):
    """A turn, a call, or the handle of a turn's call, from which other calls are made."""

    is_turn: ClassVar[bool]

    def full_call(self) -> Caller | None:
        """The call; None for the body of a turn."""

    def step_out(self, tool: object, started: float) -> Scope | None:
        """The scope around this one if it is inside the attempt of ``tool`` that began then, else this one."""


class CountsSuccess(Protocol):
    """The run of an agent, as far as a guarded function's call needs it."""

    def note_success(self) -> None: ...


# An attempt's box (``runtime.execution.deadline``), and after what that holds: runner, tool, arguments, keywords, start; then its
# call, once somebody has asked for it. A list, because anything else costs more than all the rest of it.
LightAttempt = list[Any]
_CALL = 7

SCOPE: ContextVar[Scope | None] = ContextVar("failsoft_scope", default=None)
LIGHT: ContextVar[LightAttempt | None] = ContextVar("failsoft_light", default=None)


class AskedFor(list[Any]):
    """The model's call behind a guarded function that a framework runs. Empty: no light attempt."""

    __slots__ = ("id", "run", "taken", "thread", "tool", "turn")

    def __init__(self, tool: object, id: str | None, thread: str | None, turn: Callable[[], object] | None) -> None:
        super().__init__()
        self.tool = tool  # of the guarded function
        self.id = id
        self.thread = thread
        self.turn = turn  # finds the agent's run
        self.run: CountsSuccess | None = None  # that run, if the call is one of its own
        self.taken = False  # by the first call of that tool: others inside it are not the model's


def call_of(light: LightAttempt) -> Caller:
    """The call of a light attempt; it is made when an inner call asks for it."""
    if len(light) == _CALL:
        runner, tool, args, kwargs, started = light[2:]
        light.append(runner.new_call(tool, args, kwargs, started))
    call: Caller = light[_CALL]
    return call


def is_watched(light: LightAttempt) -> bool:
    """True for the box of an undeclared tool: its inner calls may ask for its call."""
    return len(light) >= _CALL


def made_call_of(light: LightAttempt) -> Any:
    """The call of a light attempt if an inner call has asked for it, else None."""
    return light[_CALL] if len(light) > _CALL else None


def watch_alone() -> LightAttempt:
    """A light attempt of a tool whose runtime is in another process. To be set as ``LIGHT`` while the tool runs."""
    return [None, None, _Elsewhere, None, (), {}, 0.0]


class CallElsewhere:
    """The call of another process whose tool runs in this one: inner calls report here what they did."""

    __slots__ = ("acted", "inside")

    def __init__(self) -> None:
        self.acted = False
        self.inside: set[object] = set()

    @property
    def may_have_acted_inside(self) -> bool:
        """True if an inner call may have had an effect that must not be had twice, or may still have one."""
        return self.acted or bool(self.inside)


class _Elsewhere:
    """Replaces the runner of a light attempt whose runtime is in another process."""

    @staticmethod
    def new_call(*_: object) -> CallElsewhere:
        return CallElsewhere()


def find_caller() -> Caller | None:
    """The call from whose tool this is asked, whether its inner calls are its children or not.

    None in the body of a turn: the turn itself reports what its calls did.
    """
    scope = SCOPE.get()
    if scope is not None:
        return scope.full_call()
    light = LIGHT.get()
    return call_of(light) if light else None


def in_thread(fn: Callable[P, R]) -> Callable[P, R]:
    """``fn``, to be run in an OS thread or an executor as part of the current call.

    Guarded calls that ``fn`` makes are then known to the tool that made the thread: their effects count for its call.
    Until ``fn`` has returned, the call may not claim that nothing happened. Context variables are there as well. Without
    it, ``threading.Thread``, ``run_in_executor`` and ``executor.submit`` start from an empty context.
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


def leave(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Back to what was before; also for an orphan (``runtime.execution.deadline``), which goes on in another context."""
    try:
        variable.reset(token)
    except ValueError:
        variable.set(None if token.old_value is Token.MISSING else token.old_value)


def step_out(tool: object, started: float) -> None:
    """Leave the calls and turns under way inside an attempt of ``tool`` that began then and has been abandoned."""
    scope = SCOPE.get()
    while scope is not None:
        around = scope.step_out(tool, started)
        if around is scope:
            break
        scope = around
    SCOPE.set(scope)
