"""The outcome of a call: one type for every way in which a call can end.

Rules
-----
- ``timed_out`` means the turn's deadline; a tool's own timeout is ``failed`` with DEADLINE_EXCEEDED.
- ``unwrap`` is the only place where an outcome becomes an exception. The fault decides its class.
- Label and explanation are computed on first use: most outcomes succeed and never need them.
- An outcome does not import the texts. The function that explains it is passed in. An outcome made without one (by a
  user, by the fast path, from a pickle) is explained by ``Outcome._explain_bare``, which ``core`` sets.
- ``CallFailed`` and its subclasses are here because outcome and error refer to each other.
- ``to_dict`` and pickles contain no live exception. An explanation that a callable makes is made before pickling.

Why not a frozen dataclass: every call by name makes an outcome, and this class costs a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args

from failsoft.core.model.builtin_faults import CIRCUIT_OPEN, is_own_timeout
from failsoft.core.model.compared import Shown
from failsoft.core.model.decision import Decision, show_decision
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.model.errors import FailsoftError
from failsoft.core.model.fault import Fault, show_fault
from failsoft.core.model.json_values import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from failsoft.core.model.explanation import Explanation

T = TypeVar("T")
_new = object.__new__
_VALUES = frozenset({str, bytes, int, float, bool, list, tuple, dict})  # what a tool may return

Status = Literal["succeeded", "failed", "skipped", "timed_out", "cancelled"]


class ShownStatus(Shown):
    """The status of an outcome, as users see it."""

    __slots__ = ()

    name = "outcome.status"
    known = get_args(Status)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("success", "successful", "ok", "done", "complete", "completed", "finished"), "succeeded"),
        **dict.fromkeys(("failure", "error", "errored", "exception"), "failed"),
        "timeout": "timed_out",
    }


_STATUSES = ShownStatus.every()
_SUCCEEDED: Status = _STATUSES["succeeded"]


class Outcome(Generic[T]):
    """The outcome of one call. ``unwrap()`` returns the value or raises."""

    # Fields that most outcomes do not have get their value from the class: that halves the attributes to set.
    value: T | None = None
    attempts = 0
    via: str | None = None
    duration = 0.0
    fault: Fault | None = None
    decision: Decision | None = None
    missing: Any = None
    partial: Any = None
    root: str | None = None
    escalated = False
    recorded: bool | None = None
    told: str | None = None
    _explanation: Explanation | Callable[[Outcome[T]], Explanation] | None = None
    _repeats = 0
    _value_lost = False

    _explain_bare: ClassVar[Callable[[Outcome[Any]], Explanation]]  # of outcomes made without one; set in ``core``
    _on_misuse: ClassVar[Callable[[str, str], object]] = staticmethod(lambda *_: None)  # the runtime logs it

    def __init__(
        self,
        id: str | int,
        tool: str,
        status: Status,
        value: T | None = None,
        attempts: int = 0,
        via: str | None = None,
        duration: float = 0.0,
        fault: Fault | None = None,
        decision: Decision | None = None,
        missing: Any = None,
        label: str = "",
        root: str | None = None,
        escalated: bool = False,
        explanation: Explanation | Callable[[Outcome[T]], Explanation] | None = None,
        told: str | None = None,
        recorded: bool | None = None,
        partial: Any = None,
    ) -> None:
        self._id = id
        self.tool = tool  # the id of the tool that was called
        # succeeded, failed, skipped, timed_out (the turn's deadline) or cancelled
        self.status: Status = _STATUSES.get(status, status)
        self.value = value  # what the tool returned
        self.attempts = attempts  # all attempts, fallbacks included; 0 if the call was refused or not run
        self.via = via  # the tool that returned the value; "verify" if the value was lost and found again
        self.duration = duration  # seconds from start to end
        self.fault = None if fault is None else show_fault(fault)  # the last failure; None for a success
        decided = None if decision is None else show_decision(decision)
        self.decision = decided  # the decision about the failure, with its reason
        self._label = label
        self._explanation = explanation
        if missing is not None:
            self.missing = missing  # what a partial value lacks
        if partial is not None:
            self.partial = partial  # for a failed call: the best partial result, if partial results are not accepted
        if root is not None:
            self.root = root  # for a skipped call: the id of the call whose failure is the cause
        if escalated:
            self.escalated = True  # whether the failure was escalated
        if recorded is not None:
            self.recorded = recorded  # for a write: whether the store recorded it before it started; else None
        if told is not None:
            self.told = told  # a policy's text for the user, in place of the built-in text

    @property
    def id(self) -> str:
        """The call's id: as the caller chose it, else the tool's id and a number."""
        return self._id if isinstance(self._id, str) else f"{self.tool}-{self._id}"

    @property
    def label(self) -> str:
        """The tool's name for people."""
        return self._label or self.tool.replace("_", " ")

    @property
    def value_known(self) -> bool:
        """False for a call that has succeeded, as ``verify`` found out, but whose value is lost."""
        return not self._value_lost

    def lose_value(self) -> None:
        """Note that the call has succeeded, and that its value is not known."""
        self._value_lost = True

    @property
    def explanation(self) -> Explanation:
        """The texts for the user, the model and the operator."""
        made = self._explanation
        if made is None:
            made = self._explanation = Outcome._explain_bare(self)
        elif callable(made):
            made = made(self)
            made = self._explanation = made if self.told is None else made._replace(user=self.told)
        return made

    @property
    def repeats(self) -> int:
        """The number of identical calls with this result, if that is no progress (five within a minute); else 0."""
        return self._repeats

    def set_repeats(self, repeats: int) -> None:
        """Note that the same call keeps returning this result."""
        self._repeats = repeats

    @property
    def remark(self) -> str:
        """A sentence for the model to read with the value: the missing part, or the lack of progress; else empty."""
        return (
            self.explanation.model if self.status == "succeeded" and (self.missing is not None or self.repeats) else ""
        )

    def reword(self, user: str) -> None:
        """Replace the user's text. The texts for model and operator stay."""
        self._explanation = self.explanation._replace(user=user)

    def unwrap(self) -> T:
        """Return the value, or raise the failure as a ``CallFailed`` that carries this outcome."""
        if self.status == "succeeded":
            return self.value  # type: ignore[return-value]  # None only if the tool returned None
        fault = self.fault
        raise _error_class(fault)(self) from (None if fault is None else fault.cause)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data for ``json.dumps``."""
        return {
            "id": self.id,
            "tool": self.tool,
            "label": self.label,
            "status": str(self.status),
            "value": plain(self.value),
            "missing": plain(self.missing),
            "partial": plain(self.partial),
            "fault": None if self.fault is None else self.fault.to_dict(),
            "attempts": self.attempts,
            "via": self.via,
            "decision": None if self.decision is None else self.decision.to_dict(),
            "duration": self.duration,
            "root": self.root,
            "escalated": self.escalated,
            "explanation": self.explanation.to_dict(),
            **({"repeats": self.repeats} if self.repeats else {}),
            **({} if self.recorded is None else {"recorded": self.recorded}),
            **({} if self.value_known else {"value_known": False}),
        }

    def _fields(self) -> tuple[Any, ...]:
        fault = None if self.fault is None else self.fault._replace(cause=None)
        return (
            self.id, self.tool, self.status, self.value, self.attempts, self.via, self.duration, fault, self.decision,
            self.missing, self.label, self.root, self.escalated,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        """Compare the facts. Live exceptions and explanations do not count."""
        if not isinstance(other, Outcome):
            if type(other) in _VALUES:
                Outcome._on_misuse(
                    self.tool, "an Outcome never equals a value: compare outcome.value, or use outcome.unwrap()"
                )
            return NotImplemented
        mine, others = (self.partial, self.value_known), (other.partial, other.value_known)
        return (*self._fields(), *mine) == (*other._fields(), *others)

    def __bool__(self) -> bool:
        """True, whatever the status. Log a warning about an ``if`` that a failed call would pass."""
        if self.status != "succeeded":
            Outcome._on_misuse(
                self.tool,
                'every Outcome is true, also one that failed: write outcome.status == "succeeded", or outcome is not None',
            )
        return True

    __hash__ = None  # type: ignore[assignment]  # the value may be anything

    def __reduce__(self) -> tuple[Any, ...]:
        texts = None if self._explanation is None else self.explanation
        lost = None if self.value_known else {"_value_lost": True}
        return Outcome, (*self._fields(), texts, self.told, self.recorded, self.partial), lost

    def __repr__(self) -> str:
        parts = [f"{self.id!r}, {self.status}"]
        if self.status == "succeeded":
            parts.append(f"value={_repr(self.value)}" if self.value_known else "value not known")
        if self.missing is not None:
            parts.append(f"missing={_repr(self.missing)}")
        if self.via is not None and self.via != self.tool:
            parts.append(f"via={self.via!r}")
        if self.fault is not None:
            parts.append(f"{self.fault.code}: {self.fault.message!r}")
        if self.root is not None:
            parts.append(f"root={self.root!r}")
        return f"<Outcome {', '.join(parts)}, attempts={self.attempts}>"


point_elsewhere(
    Outcome,
    {
        "error exception": "outcome.fault, which is None for a success",
        "result data output": "outcome.value",
        "get raise_for_status get_or_raise": "outcome.unwrap(), which returns the value or raises",
        "ok success succeeded is_success successful": 'outcome.status == "succeeded"',
        "failed": 'outcome.status != "succeeded"',
        "message text": "outcome.explanation.user, or outcome.fault.message",
    },
)


def succeed(id: str | int, tool: str, value: T, attempts: int, duration: float, label: str) -> Outcome[T]:
    """Make the outcome of a call whose own tool returned the value, at half the cost of ``Outcome(...)``."""
    made: Outcome[T] = _new(Outcome)
    made._id = id
    made.tool = made.via = tool
    made.status = _SUCCEEDED
    made.value = value
    made.attempts = attempts
    made.duration = duration
    made._label = label
    return made


def refuse_alike(shared: Outcome[T], id: int) -> Outcome[T]:
    """Make the outcome of another call that is refused for the same reason. It costs less than ``Outcome(...)``."""
    made: Outcome[T] = _new(Outcome)
    made._id = id
    made.tool = shared.tool
    made.status = shared.status
    made.fault = shared.fault
    made.decision = shared.decision
    made._label = shared._label
    made._explanation = shared._explanation
    return made


class CallFailed(FailsoftError):
    """A guarded call did not succeed. ``outcome`` has the details; ``__cause__`` is the tool's own exception."""

    __module__ = "failsoft.errors"

    # No __init__: it keeps a refusal by an open circuit cheap.

    @property
    def outcome(self) -> Outcome[Any]:
        """The outcome of the call."""
        # An error for a call that was refused at once holds the outcome that all callers share, and the call's number.
        # The call's own outcome is made on first use, because most callers never read it: this saves 3,000 of 13,200
        # instructions.
        if len(self.args) == 2:
            self.args = (refuse_alike(*self.args),)
        outcome: Outcome[Any] = self.args[0]
        return outcome

    def __str__(self) -> str:
        fault = self.outcome.fault
        return f"{self.outcome.tool}: {self.outcome.status if fault is None else fault.message}"

    @property
    def fault(self) -> Fault | None:
        """The failure."""
        return self.outcome.fault

    @property
    def tool(self) -> str:
        """The id of the tool that was called."""
        return self.outcome.tool

    @property
    def retry_after(self) -> float | None:
        """Seconds until calling again can help, if known."""
        return None if self.outcome.fault is None else self.outcome.fault.retry_after


class CircuitOpen(CallFailed):
    """The tool was not run: its circuit is open for ``retry_after`` more seconds."""

    __module__ = "failsoft.errors"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.outcome!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.outcome,), vars(self) or None


class ToolTimeout(CallFailed, TimeoutError):
    """The last attempt exceeded the tool's own timeout."""

    __module__ = "failsoft.errors"


class ToolUnavailable(CallFailed):
    """The tool is not registered, or was found missing."""

    __module__ = "failsoft.errors"


def _error_class(fault: Fault | None) -> type[CallFailed]:
    if fault is None:
        return CallFailed
    if fault.rule == CIRCUIT_OPEN:
        return CircuitOpen
    if is_own_timeout(fault.rule):
        return ToolTimeout
    if fault.category == "tool_unavailable":
        return ToolUnavailable
    return CallFailed


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # too deeply nested, or its own __repr__ fails
        return f"<{type(value).__name__} that cannot be shown>"
