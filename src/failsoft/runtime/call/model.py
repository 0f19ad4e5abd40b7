"""A call, one attempt and its result: the types that the pipeline, its drivers and the fast path share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from failsoft.core.model.fault import Effect, Fault
from failsoft.core.model.named_tuples import maker
from failsoft.core.resilience.retry import Attempts
from failsoft.runtime.scope import Caller, Scope

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Offer
    from failsoft.core.model.options import RetryOptions
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.observe.instrument import CallSpan
    from failsoft.runtime.persistence.effect_ledger import WriteRecord
    from failsoft.runtime.tools.tool import Tool


UNNOTICED = 0.001  # seconds; a shorter wait is not recorded

Phraser = Callable[[Mapping[str, Any]], str | Awaitable[str]]  # phrases a text for the user, given its facts


class KeySource(Protocol):
    """A source of idempotency keys."""

    def new_key(self) -> str: ...


class CallTurn(Protocol):
    """The turn of a call, as far as the call needs it: a turn, or the run of an agent."""

    id: str
    thread: str | None
    parent: Call | None  # the call that the turn is inside of

    @property
    def over(self) -> bool: ...
    def left(self) -> float | None: ...


class HandleTurn(CallTurn, Protocol):
    """The turn that a handle belongs to."""

    tenant: str | None


class TurnCall(Protocol):
    """A call that was submitted to a turn: a handle."""

    id: str
    tool: Any
    started: float

    @property
    def turn(self) -> HandleTurn: ...
    def full_call(self) -> Call: ...
    def suspend(self) -> None: ...


class Call:
    """One call by name, with everything its caller said about it."""

    is_turn: ClassVar[bool] = False

    __slots__ = (
        "abandoned",
        "acted",
        "admitted",
        "args",
        "attempts_ended",
        "by_agent",
        "caller",
        "caller_id",
        "end_recorded",
        "failed_at",
        "hinted_wait",
        "inside",
        "invoked",
        "key",
        "kwargs",
        "offer",
        "offer_taken",
        "parent",
        "raw_id",
        "required",
        "retry",
        "span",
        "started",
        "tenant",
        "thread",
        "timeout",
        "tool",
        "turn",
        "typed",
        "waiting",
        "withdraw",
        "write_record",
        "write_recorded",
    )  # fmt: skip

    def __init__(
        self,
        id: str | int,
        tool: Tool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        started: float,
        *,
        turn: CallTurn | None = None,
        parent: Call | None = None,
        thread: str | None = None,
        tenant: str | None = None,
        timeout: float | None = None,
        retry: RetryOptions | None = None,
        key: str | None = None,
        required: bool | None = None,
        typed: bool = False,
    ) -> None:
        self.raw_id = id  # a number: nobody has given one, and none is made before somebody asks
        self.tool = tool
        self.args = args
        self.kwargs = kwargs
        self.started = started
        self.turn = turn
        self.parent = parent
        self.thread = thread
        self.tenant = tenant
        self.timeout = timeout  # for this call, instead of the tool's
        self.retry = retry
        self.key = key
        self.required = required
        self.typed = typed  # by name: the types of its arguments are checked
        self.by_agent = False  # a model asked for it: a tool of which nothing is known counts as a write
        self.caller_id: str | None = None  # the id that its caller has chosen; its turn may know it by another
        self.write_record: WriteRecord | None = None  # in the ledger of writes
        self.write_recorded: bool | None = (
            None  # the store had that record before the tool started; None: there is none to have
        )
        self.offer: Offer | None = None  # the retry offer behind it; the user has asked for the call
        self.offer_taken = False  # that offer has been used up: this call leaves no other (R10)
        self.abandoned = False  # the turn has gone on without it: no further retry (R7)
        self.end_recorded = False  # its turn has written down its end
        self.waiting = False  # for its next attempt to begin, so that ending it now harms nothing
        self.withdraw: Callable[[], bool] | None = None  # takes back what a thread is to run; False: it has begun
        self.attempts_ended = 0  # attempts that have ended
        self.admitted = False  # an attempt of it was made through a closed circuit
        self.invoked = True  # another one is under way, or waits for its slot
        self.failed_at: float | None = None  # when it first failed or was refused
        self.hinted_wait = 0.0  # seconds waited so far because a server asked for it
        self.span: CallSpan | None = None  # its instruments; None: it has none
        self.acted = False  # a call inside its attempt may have had an effect that must not be had twice
        self.inside: set[object] = set()  # inner calls of unsafe tools that have not ended, and functions in OS threads
        self.caller: Caller | None = (
            None  # a call that it is made from, and is no child of: only its effect counts there
        )

    @property
    def id(self) -> str:
        """As it was given, else the tool and a number; inside a turn's call with that one's id before it.

        A turn counts its calls by itself, so a number alone could be one of theirs.
        """
        if not isinstance(self.raw_id, str):
            self.raw_id = self.shown_id
        return self.raw_id

    @property
    def shown_id(self) -> str:
        """The id, for a reader who does not fix it by looking."""
        if isinstance(self.raw_id, str):
            return self.raw_id
        within = "" if self.turn is None or self.parent is None else f"{self.parent.shown_id}/"
        return f"{within}{self.tool.id}-{self.raw_id}"

    def set_id(self, id: str | int) -> None:
        """Give it the id that its turn knows it by."""
        self.raw_id = id

    @property
    def attempts(self) -> int:
        """Attempts so far, the one under way included."""
        return self.attempts_ended + self.is_running

    @property
    def is_running(self) -> bool:
        """Is the tool running?"""
        return self.invoked and not self.waiting

    def begin(self) -> None:
        """It has waited for a slot, a thread or a process: now the tool runs."""
        self.waiting = False

    def stop_waiting(self) -> None:
        """See to it that a call which still waits for a thread never runs, before anybody says that it has not.

        If the thread has just begun, the tool runs: then the call no longer waits.
        """
        if self.waiting and self.withdraw is not None and not self.withdraw():
            self.begin()

    def full_call(self) -> Call:
        """This call, for whoever has a scope."""
        return self

    def step_out(self, tool: object, started: float) -> Scope | None:
        """The call around this one if it has begun inside the attempt of ``tool`` that started then, else this one.

        What began in the same moment is the attempt's own call if it is one of the same tool.
        """
        inside = self.started > started or (self.started == started and self.tool is not tool)
        return self.parent if inside else self

    @property
    def outer(self) -> Call | None:
        """The call that it is made inside of, or in a turn inside it."""
        return self.parent if self.parent is not None or self.turn is None else self.turn.parent

    @property
    def may_have_acted_inside(self) -> bool:
        """True if an inner call may have had an effect that must not be had twice, or may still have one."""
        return self.acted or bool(self.inside)

    def report_effect(self, tool: Tool, effect: Effect) -> None:
        """Let the call around this one know that ``tool`` may have acted here, unless that does no harm twice."""
        if effect != "none" and not tool.safe_to_repeat:
            caller = self.outer or self.caller
            if caller is not None:
                caller.acted = True

    @property
    def is_inner(self) -> bool:
        return self.outer is not None

    @property
    def has_own_id(self) -> bool:
        """Has it an id of somebody's choice, or one that has been seen, not just a number?"""
        return isinstance(self.raw_id, str)

    def arguments(self, rt: KeySource, tool: Tool) -> dict[str, Any]:
        """Return the tool's arguments: the caller's, in the tool's types, and the key where the tool takes one.

        The key stays the same over all attempts of this call, whichever tool makes them.
        """
        kwargs = self.kwargs
        if self.typed and tool.argument_check is not None:
            checked = tool.argument_check(kwargs)
            if isinstance(checked, dict):  # else they do not fit, and the tool is not run
                kwargs = checked
        parameter = tool.options.idempotency_key
        if parameter is None or parameter in kwargs:
            return kwargs
        if self.key is None:
            self.key = rt.new_key()
        return {**kwargs, parameter: self.key}

    @property
    def fits_exactly(self) -> bool:
        """True if its arguments may be given to the tool as they are."""
        check = self.tool.argument_check if self.typed else None
        return check is None or check(self.kwargs) is self.kwargs


class Invoke(NamedTuple):
    """Run one attempt. The answer is an ``AttemptResult``."""

    tool: Tool
    timeout: float  # seconds; infinity: none


NO_NOTES: Mapping[str, Any] = {}


class AttemptResult(NamedTuple):
    """An attempt has ended: with a value, an error that the tool raised, or a fault that the driver found."""

    started: float
    ended: float
    value: Any = None
    error: Exception | None = None
    fault: Fault | None = None
    entered: bool = True  # False: it never got to run (no slot, no thread)
    notes: Mapping[str, Any] = NO_NOTES  # for the event: where it ran
    still_running: bool = False  # it was abandoned and still runs

    def with_queue_time(self, seconds: float) -> AttemptResult:
        """The same result with the time that the attempt waited for a slot, an OS thread or a process."""
        if seconds < UNNOTICED:
            return self
        return self._replace(notes={**self.notes, "queued_ms": round(seconds * 1000, 3)})


make_result: Callable[
    [tuple[float, float, Any, Exception | None, Fault | None, bool, Mapping[str, Any], bool]], AttemptResult
] = maker(AttemptResult)
NO_ATTEMPTS = Attempts()


class Progress(NamedTuple):
    """The attempts of a call on the fast path (``runtime.fastpath.retry``) that the pipeline continues from."""

    primary: Fault | None = None
    effect: Effect = "none"
    attempts: Attempts = NO_ATTEMPTS
    retried: tuple[Family, ...] = ()


NO_PROGRESS = Progress()
