"""The types that the pipeline, its drivers and the fast path share: a call, one attempt and its result."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from failsoft.core.model.fault import Effect, Fault
from failsoft.core.model.named_tuples import maker
from failsoft.core.resilience.retry import Attempts
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.runtime.scope import Caller, Scope

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Offer
    from failsoft.core.model.options import RetryOptions
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.observe.instrument import CallSpan
    from failsoft.runtime.call.allowance import CallAllowance
    from failsoft.runtime.persistence.write_record import WriteRecord
    from failsoft.runtime.progress import Activity
    from failsoft.runtime.tools.tool import Tool


UNNOTICED = 0.001  # seconds; a shorter wait is not recorded

Phraser = Callable[[Mapping[str, Any]], str | Awaitable[str]]  # phrases a text for the user, given its facts


class KeySource(Protocol):
    """A source of idempotency keys."""

    def new_key(self) -> str: ...


class CallTurn(Protocol):
    """The turn of a call, or the run of an agent: the part that a call needs."""

    id: str
    thread: str | None
    parent: Call | None  # the call around the turn
    allowance: CallAllowance | None  # None: its calls are not limited

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
    """One call, with the options that its caller gave, and its progress."""

    is_turn: ClassVar[bool] = False

    __slots__ = (
        "abandoned",
        "acted",
        "activity",
        "admitted",
        "args",
        "attempts_ended",
        "begun_record",
        "by_agent",
        "caller",
        "caller_id",
        "changed",
        "end_recorded",
        "failed_at",
        "has_case",
        "hinted_wait",
        "in_doubt",
        "inside",
        "invoked",
        "key",
        "key_made",
        "kwargs",
        "offer",
        "offer_taken",
        "parent",
        "rate_limited",
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
        "verifying",
        "waiting",
        "withdraw",
        "write_record",
        "write_recorded",
        "wrote",
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
        self.raw_id = id  # a number if the caller gave none: the text is made on demand
        self.tool = tool
        self.args = args
        self.kwargs = kwargs
        self.started = started
        self.turn = turn
        self.parent = parent
        self.thread = thread
        self.tenant = tenant
        self.timeout = timeout  # replaces the tool's
        self.retry = retry
        self.key = key
        self.key_made = False  # failsoft made the key, so another call gets another key
        self.required = required
        self.typed = typed  # a call by name, so argument types are checked
        self.by_agent = False  # a model asked for it: a tool with an undeclared effect counts as a write
        self.caller_id: str | None = None  # the id that its caller chose; its turn may use another one
        self.write_record: WriteRecord | None = None  # in the ledger of writes
        self.begun_record: dict[str, Any] | None = None  # of an earlier start of this call, which prevents another one
        self.write_recorded: bool | None = None  # the store had the record before the tool started; None: no record
        self.offer: Offer | None = None  # the retry offer that the user has accepted with this call
        self.offer_taken = False  # the offer is used up; the call makes no new one, so that offers end
        self.abandoned = False  # the turn continues without it, so there are no more retries
        self.end_recorded = False  # its turn has recorded its end
        self.rate_limited = False  # it waits for a token of its tool's rate
        self.waiting = False  # for its next attempt to begin: ending it now has no effect
        self.has_case = False  # it has left an open case in the ledger
        self.in_doubt = False  # an attempt that has ended may have acted
        self.verifying = False  # its tool has ended, and ``verify`` is finding out whether it has acted
        self.withdraw: Callable[[], bool] | None = None  # withdraws a queued thread job; False if the job has begun
        self.attempts_ended = 0  # attempts that have ended
        self.admitted = False  # a closed circuit has admitted an attempt
        self.invoked = True  # another attempt is under way, or waits for its slot
        self.failed_at: float | None = None  # when it first failed or was refused
        self.activity: Activity | None = None  # of the attempt under way, if its tool has an idle timeout
        self.hinted_wait = 0.0  # seconds waited so far because a server asked for it
        self.span: CallSpan | None = None  # its instruments; None: it has none
        self.acted = False  # an inner call may have had an effect that must not happen twice
        self.wrote = False  # an inner call of a tool known to write may have acted
        self.changed = False  # an inner call may have acted, but may be repeated
        self.inside: set[object] = set()  # inner calls of unsafe tools that have not ended, and functions in OS threads
        self.caller: Caller | None = None  # gets a report of its effect although the call is not its child

    @property
    def id(self) -> str:
        """The id that the caller gave, else tool and number. Inside a turn's call, the id of that call comes first.

        Every turn numbers its calls from 1, so a number alone would not be unique.
        """
        if not isinstance(self.raw_id, str):
            self.raw_id = self.shown_id
        return self.raw_id

    @property
    def shown_id(self) -> str:
        """The id, without fixing it: ``set_id`` may still change it."""
        if isinstance(self.raw_id, str):
            return self.raw_id
        within = "" if self.turn is None or self.parent is None else f"{self.parent.shown_id}/"
        return f"{within}{self.tool.id}-{self.raw_id}"

    def set_id(self, id: str | int) -> None:
        """Set the id that its turn uses."""
        self.raw_id = id

    @property
    def attempts(self) -> int:
        """Attempts so far, the one under way included."""
        return self.attempts_ended + self.is_running

    @property
    def is_running(self) -> bool:
        """True if the tool is running."""
        return self.invoked and not self.waiting

    @property
    def may_have_acted_now(self) -> bool:
        """True if the tool may have acted if the call ended now: it runs, is being verified, or ended in doubt."""
        return self.is_running or self.in_doubt or (self.verifying and self.attempts_ended > 0)

    @property
    def may_have_written_now(self) -> bool:
        """True if it is a write that may have acted if the call ended now."""
        return self.may_have_acted_now and (self.tool.is_write or self.write_record is not None)

    def begin(self) -> None:
        """Note that the tool runs now: the wait for a slot, a thread or a process is over."""
        self.waiting = False

    def stop_waiting(self) -> None:
        """Withdraw a call that still waits for a thread, so that it is certain that its tool does not run.

        If the thread has just begun, the tool runs, and the call no longer counts as waiting.
        """
        if self.waiting and self.withdraw is not None and not self.withdraw():
            self.begin()

    def full_call(self) -> Call:
        """Return this call."""
        return self

    def step_out(self, tool: object, started: float) -> Scope | None:
        """Return the outer call if this call began inside the attempt of ``tool`` at ``started``, else this call.

        If both began at the same moment, a call of the same tool is taken to be the attempt's own.
        """
        inside = self.started > started or (self.started == started and self.tool is not tool)
        return self.parent if inside else self

    @property
    def outer(self) -> Call | None:
        """The call around this one; for a call of a turn, the call around the turn."""
        return self.parent if self.parent is not None or self.turn is None else self.turn.parent

    @property
    def may_have_acted_inside(self) -> bool:
        """True if an inner call may have had an effect that must not happen twice, or may still have one."""
        return self.acted or bool(self.inside)

    @property
    def may_have_written_inside(self) -> bool:
        """True if a tool known to write may have acted inside, or may still act."""
        return self.wrote or any(
            getattr(getattr(inner, "call", inner), "writes_anew", False)  # a handle has its call
            for inner in self.inside
        )

    @property
    def acts_anew(self) -> bool:
        """True if this call may act again when the call around it makes it again."""
        return not self.tool.safe_to_repeat or self.has_new_key(self.tool)

    @property
    def writes_anew(self) -> bool:
        """True if ``acts_anew``, and the tool is known to write."""
        return self.tool.is_write or self.has_new_key(self.tool)

    def has_new_key(self, tool: Tool) -> bool:
        """True if ``tool`` takes an idempotency key that failsoft makes: a second call has another key."""
        parameter = tool.options.idempotency_key
        return parameter is not None and parameter not in self.kwargs and (self.key is None or self.key_made)

    def report_effect(self, tool: Tool, effect: Effect) -> None:
        """Report to the outer call that ``tool`` may have acted, unless the tool only reads."""
        if effect == "none":
            return
        caller = self.outer or self.caller
        if caller is None:
            return
        if tool.is_write or self.has_new_key(tool) or (self.may_have_written_inside and not tool.is_declared_safe):
            caller.acted = caller.wrote = True
        elif not tool.safe_to_repeat:
            caller.acted = True
        elif not tool.only_reads or (self.changed and not tool.is_declared_safe):
            caller.changed = True

    @property
    def is_inner(self) -> bool:
        return self.outer is not None

    @property
    def has_own_id(self) -> bool:
        """True if the caller chose the id, or if a generated id has already been shown."""
        return isinstance(self.raw_id, str)

    def sent_key(self, new_key: Callable[[], str]) -> str | None:
        """Return the key of this call, made now if its tool takes one and none was given."""
        parameter = self.tool.options.key_parameter
        if parameter is not None and parameter in self.kwargs:
            given = self.kwargs[parameter]
            return given if isinstance(given, str) else None
        if parameter is not None and self.key is None:
            self.key, self.key_made = new_key(), True
        return self.key

    def adopt_key(self, recorded: object) -> bool:
        """Use the key of an earlier start of this call. False if the tool takes a key and none was recorded."""
        parameter = self.tool.options.key_parameter
        if parameter is None or parameter in self.kwargs or not self.key_made:
            return True
        if not isinstance(recorded, str):
            return False
        self.key, self.key_made = recorded, False
        return True

    def arguments(self, rt: KeySource, tool: Tool) -> dict[str, Any]:
        """Return the caller's arguments, converted to the tool's types, with the idempotency key if the tool takes one.

        The key is the same for all attempts of this call, also by fallbacks.
        """
        kwargs = self.kwargs
        if self.typed and tool.argument_check is not None:
            checked = tool.argument_check(kwargs)
            if isinstance(checked, dict):  # else they do not fit, and the tool is not run
                kwargs = checked
        return self._with_key(rt, tool, kwargs)

    def sent_arguments(self, rt: KeySource, tool: Tool) -> dict[str, Any]:
        """Return the arguments as sent, with the key. Checks need these: a validator may refuse its own result."""
        return self._with_key(rt, tool, self.kwargs)

    def _with_key(self, rt: KeySource, tool: Tool, kwargs: dict[str, Any]) -> dict[str, Any]:
        parameter = tool.options.key_parameter
        if parameter is None or parameter in kwargs:
            return kwargs
        if self.key is None:
            self.key, self.key_made = rt.new_key(), True
        return {**kwargs, parameter: self.key}

    def named_arguments(self, rt: KeySource, tool: Tool) -> dict[str, Any]:
        """Return the arguments by name, positional ones and the defaults of the signature included."""
        arguments = dict(self.arguments(rt, tool))
        signature = tool.signature() if tool.command is None else None
        if signature is None:
            return arguments
        try:
            bound = signature.bind(*self.args, **arguments)
        except TypeError:  # they did not fit, and the tool said so
            return arguments
        bound.apply_defaults()
        named = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= named.pop(name)
        return named

    @property
    def fits_exactly(self) -> bool:
        """True if the arguments need no conversion to the tool's types."""
        check = self.tool.argument_check if self.typed else None
        return check is None or check(self.kwargs) is self.kwargs


class Invoke(NamedTuple):
    """Run one attempt. The answer is an ``AttemptResult``."""

    tool: Tool
    timeout: float  # seconds; infinity: none

    @property
    def limit(self) -> float | None:
        """The timeout; None if there is none."""
        return None if math.isinf(self.timeout) else self.timeout


NO_NOTES: Mapping[str, Any] = {}


class AttemptResult(NamedTuple):
    """The end of an attempt: a value, an error that the tool raised, or a fault that the driver found."""

    started: float
    ended: float
    value: Any = None
    error: Exception | None = None
    fault: Fault | None = None
    entered: bool = True  # False: the tool never ran (no slot, no thread)
    notes: Mapping[str, Any] = NO_NOTES  # for the event: where it ran
    still_running: bool = False  # it was abandoned and still runs

    def with_queue_time(self, seconds: float) -> AttemptResult:
        """Add the time that the attempt waited for a slot, an OS thread or a process."""
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
