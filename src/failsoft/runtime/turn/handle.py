"""A call of a turn, from its submission to its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, TypedDict, TypeVar, cast

from failsoft.core.model.durations import Duration
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.options import RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.predicate import predicate
from failsoft.core.redact.sanitise import mask_id
from failsoft.core.startup.lazy_pattern import lazy_pattern
from failsoft.core.turn import machine as core
from failsoft.errors import TurnError
from failsoft.runtime.call.model import Call, HandleTurn
from failsoft.runtime.scope import Caller

if TYPE_CHECKING:
    from failsoft.runtime.tools.tool import Tool

T = TypeVar("T")

NO_ARGUMENTS: Mapping[str, Any] = {}
_INSTEAD = (
    "the value is not there yet. Pass the handle itself as an argument of the next call, or use `await handle.value()`"
)
_MISUSE = lazy_pattern(r"\bHandle\b")  # in Python's texts, such as "object of type 'Handle' has no len()"
# Types that a handle is compared with by mistake
_VALUES = frozenset({str, bytes, int, float, bool, list, tuple, dict, set, frozenset})
# What Python says up to 3.13, and from 3.14 on
_AWAITED_METHOD = ("object method can't be used in 'await' expression", "'method' object can't be awaited")
_OF_OUTCOMES = frozenset({"value", "status", "fault", "unwrap", "attempts", "explanation", "decision"})
SHOWN = "<Handle "  # the beginning of a handle's repr


class HandleOwner(HandleTurn, Protocol):
    """The part of a turn that its handles use."""

    given: set[str]


class HandleScheduler(Protocol):
    """The part of a turn's scheduler that handles use."""

    shown: bool

    @property
    def turn(self) -> HandleOwner: ...
    def suspend(self, handle: Handle[Any]) -> None: ...
    def arrival(self, handle: Handle[Any]) -> asyncio.Future[None]: ...


class Handle(core.Node, Generic[T]):
    """A submitted call of a turn. Await it for its outcome, or use it as an argument of another call."""

    __slots__ = (
        "_outcome",
        "arguments",
        "call",
        "context",
        "ended",
        "result",
        "scheduler",
        "started",
        "task",
        "tool",
    )

    is_turn: ClassVar[bool] = False
    result: T | None  # the value, or None; set when the call ends
    ended: float  # set after a plain success
    context: Context  # the context of its submission; set until a lane runs it

    def __init__(self, scheduler: HandleScheduler, id: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        # The first lines are ``super().__init__``: inlined, they save a fifth of the time.
        self.id = id
        self.needs = ()
        self.fills = NO_ARGUMENTS
        self.terms = tool.terms
        self.state = "new"
        self.dependants = None
        self.substitutes = None
        self.scheduler = scheduler  # refers to the turn; replaced in the scheduler when the turn has ended
        self.tool = tool
        self.arguments = arguments
        self.started = 0.0
        self._outcome: Outcome[T] | None = None
        self.task: asyncio.Task[None] | None = None
        self.call: Call | None = None  # made when the fast path is not enough

    def set_options(
        self,
        required: bool | None,
        defaults: Mapping[str, Any] | None,
        timeout: float | None,
        retry: RetryOptions | None,
        key: str | None,
    ) -> None:
        """Override the tool's options with the caller's."""
        special = timeout is not None or retry is not None or key is not None
        self.terms = (
            self.required if required is None else required,
            {**self.defaults, **defaults} if defaults else self.defaults,
            self.terms[2] and not special,
        )
        if special:
            call = self.full_call()
            call.timeout, call.retry, call.key = timeout, retry, key

    def report_effect_to(self, caller: Caller) -> None:
        """Report effects to the call whose tool submitted this one. Until this call has ended, its effect is unknown,
        unless it may be repeated.
        """
        self.terms = (*self.terms[:2], False)
        self.full_call().caller = caller
        if acts_anew(self.tool, self.call):
            caller.inside.add(self)

    @property
    def turn(self) -> HandleOwner:
        """The turn of the call."""
        return self.scheduler.turn

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        while (outcome := self.outcome) is None:
            yield from asyncio.shield(self.scheduler.arrival(self)).__await__()
        return outcome

    @property
    def outcome(self) -> Outcome[T] | None:
        """The outcome; None while the call is open. The outcome of a plain success is made on demand."""
        if self._outcome is None and self.state == "succeeded":
            tool, taken = self.tool, self.ended - self.started
            self._outcome = Outcome(
                self.id, tool.id, "succeeded", self.result, 1, tool.id, taken, None, None, None, tool.label
            )
        return self._outcome

    async def value(self) -> T:
        """The call's value; raises ``CallFailed`` if it has none."""
        return (await self).unwrap()

    @predicate
    def done(self) -> bool:
        """True if the call has ended."""
        return self.state == "succeeded" or self._outcome is not None

    def __str__(self) -> str:
        raise TurnError(self._not_yet("as text"))

    def __format__(self, spec: str) -> str:
        raise TurnError(self._not_yet("in an f-string"))

    def __getitem__(self, key: object) -> NoReturn:
        raise TurnError(self._not_yet(f"[{key!r:.40}]"))

    def __int__(self) -> NoReturn:
        raise TurnError(self._not_yet("int()"))

    def __float__(self) -> NoReturn:
        raise TurnError(self._not_yet("float()"))

    def __bool__(self) -> NoReturn:
        raise TurnError(self._not_yet("as a condition"))

    def __eq__(self, other: object) -> bool:
        """Compare by identity. The comparison with a value is refused: the call's value is not known yet."""
        if other is None or isinstance(other, Handle):
            return self is other
        if type(other) in _VALUES:
            raise TurnError(self._not_yet(f"== {other!r:.40}"))
        return NotImplemented

    __hash__ = object.__hash__

    def _not_yet(self, use: str) -> str:
        """Explain what to do instead of using a handle as its value."""
        return f"{use}: {self.id!r} is a handle, {_INSTEAD}"

    def __repr__(self) -> str:
        self.scheduler.shown = True  # text with a handle in it may become an argument
        return f"{SHOWN}{self.id!r}, {'open' if self.outcome is None else self.outcome.status}>"

    def resolve(self, outcome: Outcome[Any]) -> None:
        """Set the outcome."""
        self._outcome, self.result = outcome, outcome.value

    def step_out(self, tool: object, started: float) -> Handle[T]:  # noqa: ARG002
        """This handle: leaving an attempt never leaves the call that it belongs to."""
        return self

    def suspend(self) -> None:
        """Let other calls of the turn go on: this one suspends, or waits for its next attempt."""
        self.scheduler.suspend(self)

    def full_call(self) -> Call:
        """The call with all its options."""
        if self.call is None:
            turn = self.turn
            self.call = Call(
                self.id,
                self.tool,
                (),
                cast("dict[str, Any]", self.arguments),
                self.started,
                turn=turn,
                thread=turn.thread,
                tenant=turn.tenant,
                required=self.required,
                typed=True,
            )
            self.call.caller_id = self.id if self.id in turn.given else None
        return self.call


def has_acted(handle: Handle[Any]) -> bool:
    """True if the call may have had an effect that must not happen twice."""
    outcome = handle.outcome
    if outcome is None or not acts_anew(handle.tool, handle.call):
        return False
    return outcome.fault is None or outcome.fault.effect != "none"


def has_changed(handle: Handle[Any]) -> bool:
    """True if the call may have had an effect, though it may be repeated."""
    outcome = handle.outcome
    if outcome is None or handle.tool.only_reads:
        return False
    return outcome.fault is None or outcome.fault.effect != "none"


def acts_anew(tool: Tool, call: Call | None) -> bool:
    """True if the call may act again when it is made again."""
    if call is not None:
        return call.acts_anew
    return not tool.safe_to_repeat or tool.options.idempotency_key is not None


def report_ends(caller: Caller, handles: Iterable[Handle[Any]]) -> None:
    """Report the possible effects of a turn's calls to the call that submitted them."""
    for handle in handles:
        if has_acted(handle):
            caller.acted = True
            caller.wrote |= handle.full_call().writes_anew
        elif has_changed(handle):
            caller.changed = True


def explain_missing(error: BaseException | None) -> None:
    """Extend Python's error about a handle's missing attribute or wrong type by what to write instead.

    A ``__getattr__`` would be simpler, but it makes every attribute of a handle five times as slow to read.
    """
    if isinstance(error, AttributeError) and error.obj is None and error.name in _OF_OUTCOMES:
        error.args = (
            f"{error.args[0]}: if this is handle.outcome, it is None until the call has ended; await the handle",
        )
    elif isinstance(error, AttributeError) and isinstance(error.obj, Handle):
        error.args = (f"a handle has no {error.name!r}: {_INSTEAD}",)
    elif isinstance(error, TypeError) and len(error.args) == 1 and _MISUSE.search(str(error)):
        error.args = (f"{error.args[0]}: {_INSTEAD}",)
    elif isinstance(error, TypeError) and len(error.args) == 1 and error.args[0] in _AWAITED_METHOD:
        error.args = (f"{error.args[0]}: the value of a call is `await handle.value()`, with brackets",)


class TurnCallKeywords(TypedDict, total=False):
    """The options of a call in a turn."""

    id: str
    depends_on: Sequence[Handle[Any] | str]
    required: bool | None
    defaults: Mapping[str, Any] | None
    timeout: Duration | None
    retry: RetryOptions | Mapping[str, Any] | None
    idempotency_key: str | None


class Outcomes(Mapping[str, Outcome[Any]]):
    """The outcomes of a turn's calls, in the order of submission."""

    __slots__ = ("_handles",)

    def __init__(self, handles: Mapping[str, Handle[Any]]) -> None:
        self._handles = handles

    def __getitem__(self, id: str) -> Outcome[Any]:
        if isinstance(id, Handle):
            raise TurnError(f"outcomes and results are found by id: write handle.id, {id.id!r}")
        if id not in self._handles and isinstance(id, str):
            id = mask_id(id)
        if id not in self._handles:
            raise KeyError(f"there is no call {id!r} in this turn{did_you_mean(id, self._handles)}")
        return cast("Outcome[Any]", self._handles[id].outcome)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

    def __repr__(self) -> str:
        return repr(dict(self))
