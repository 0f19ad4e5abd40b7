"""The taxonomy of failures. Retries, breakers, fallbacks and explanations all follow from it.

Rules
-----
- A ``Fault`` says what the failure is (``code``), whether the same call can succeed later without any change
  (``classification``), who must act (``category``), and whether the tool may have acted (``effect``).
- ``transient`` and ``tool_transient`` always go together.
- The classification follows from the whole fault, not from the code alone: INTERNAL from a remote service is transient,
  INTERNAL from a bug in the tool is permanent.
- ``message`` is already sanitised by ``core.redact.sanitise``. Later code does not sanitise it again.

Why a NamedTuple: every failing attempt makes a fault, and a frozen dataclass costs three times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, get_args

from failsoft.core.model.compared import Shown, doubt_comparison, report_misuse
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.startup.lazy_pattern import lazy_pattern
from failsoft.core.startup.named_tuple import NamedTuple

Classification = Literal["transient", "permanent"]
Category = Literal[
    "tool_unavailable",  # not installed or not registered
    "tool_misconfigured",  # credentials, quota, address: the operator must act
    "tool_transient",  # the same call may work later
    "tool_validation",  # the arguments: the model or the user must act
    "internal_contract_bug",  # failsoft's or the tool's code is wrong
]
Effect = Literal["none", "unknown", "happened"]
Source = Literal[
    "remote",  # the other side: a status, a provider's code, a connection that was never made, a refusal by name
    "local",  # this side: the exception's type, a parser, the operating system
    "words",  # the error text alone
    "disputed",  # parts of the error contradict each other about the effect
    "stated",  # failsoft itself, or the tool's author
]

_WORD_START = lazy_pattern(r"(?<=[a-z])(?=[A-Z])|[-\s]+")


class Code(StrEnum):
    """The gRPC status codes that a failure can have.

    ``Code.Unavailable`` is ``Code.UNAVAILABLE``; ``ErrorStatusCode`` is another name of this class.
    """

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"

    def __eq__(self, other: object) -> bool:
        """Compare as a text. A comparison that is never true, with a number or a misspelt code, is logged."""
        equal = str.__eq__(self, other)
        if equal is not True:
            doubt_comparison("fault.code", other, _CODES, number="fault.http_status")
        return equal

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__

    # CamelCase aliases of the same members
    Cancelled = "CANCELLED"
    Unknown = "UNKNOWN"
    InvalidArgument = "INVALID_ARGUMENT"
    DeadlineExceeded = "DEADLINE_EXCEEDED"
    NotFound = "NOT_FOUND"
    AlreadyExists = "ALREADY_EXISTS"
    PermissionDenied = "PERMISSION_DENIED"
    ResourceExhausted = "RESOURCE_EXHAUSTED"
    FailedPrecondition = "FAILED_PRECONDITION"
    Aborted = "ABORTED"
    OutOfRange = "OUT_OF_RANGE"
    Unimplemented = "UNIMPLEMENTED"
    Internal = "INTERNAL"
    Unavailable = "UNAVAILABLE"
    DataLoss = "DATA_LOSS"
    Unauthenticated = "UNAUTHENTICATED"

    @classmethod
    def _missing_(cls, value: object) -> Code | None:
        """Accept CamelCase (``DeadlineExceeded``) beside gRPC's spelling (``DEADLINE_EXCEEDED``)."""
        if not isinstance(value, str):
            return None
        name = value.rpartition(".")[2]
        name = name if name.isupper() else _WORD_START.sub("_", name)
        return cls.__members__.get(name.upper())


_CODES = tuple(code.value for code in Code)
ErrorStatusCode = Code  # compatibility alias


class ShownClassification(Shown):
    """The classification of a fault, as users see it."""

    __slots__ = ()

    name = "fault.classification"
    known = get_args(Classification)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("temporary", "retryable", "tool_transient"), "transient"),
        **dict.fromkeys(("fatal", "final", "non-retryable", "not retryable"), "permanent"),
    }
    closed = True


class ShownCategory(Shown):
    """The category of a fault, as users see it."""

    __slots__ = ()

    name = "fault.category"
    known = get_args(Category)
    synonyms: ClassVar[Mapping[str, str]] = {
        "transient": "tool_transient",
        "unavailable": "tool_unavailable",
        **dict.fromkeys(("misconfigured", "configuration", "auth"), "tool_misconfigured"),
        **dict.fromkeys(("validation", "invalid", "invalid_argument", "tool_invalid"), "tool_validation"),
        **dict.fromkeys(("bug", "contract_bug", "internal", "internal_error"), "internal_contract_bug"),
    }
    closed = True


class ShownEffect(Shown):
    """The effect of a fault, as users see it."""

    __slots__ = ()

    name = "fault.effect"
    known = get_args(Effect)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("nothing", "no", "no effect", "no_effect", "null"), "none"),
        **dict.fromkeys(("maybe", "possible", "uncertain"), "unknown"),
        **dict.fromkeys(("done", "applied", "yes"), "happened"),
    }
    closed = True

    def __bool__(self) -> bool:
        """True, as every text is. Log a warning about an ``if`` that a call without effect would pass."""
        if str(self) == "none":
            report_misuse("fault.effect", 'every effect is true, also "none": write fault.effect != "none"')
        return True


_CLASSIFICATIONS, _CATEGORIES, _EFFECTS = ShownClassification.every(), ShownCategory.every(), ShownEffect.every()


class Fault(NamedTuple):
    """A classified failure: the result of ``classify`` for an exception or a text."""

    code: Code  # what the failure is
    classification: Classification  # whether the same call can succeed later without any change
    category: Category  # who must act
    effect: Effect  # whether the tool may have acted
    message: str  # the error's own words, sanitised
    reason: str  # why a retry can help, or cannot
    rule: str  # what decided: a row of the tables, or an override
    retry_after: float | None = None  # seconds to wait before the next call, if the service named them
    http_status: int | None = None  # the HTTP status, if there was one
    source: Source = "stated"  # the kind of evidence that decided; ``core.effects.call_effect`` weighs ``effect`` by it
    hint_source: Source = "stated"  # the evidence for ``retry_after``; one from ``words`` holds back only this thread
    cause: BaseException | None = None  # the exception, without its traceback; always the last field

    @property
    def retryable(self) -> bool:
        """True if repeating the call can help. False for a cancelled call: its caller is gone."""
        return self.classification == "transient" and self.code is not Code.CANCELLED

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as plain data. The exception is reduced to its type name."""
        data = self._asdict()
        for name in ("code", "classification", "category", "effect"):
            data[name] = str(data[name])
        data["retryable"] = self.retryable
        data["cause"] = None if self.cause is None else type(self.cause).__qualname__
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fault:
        """Restore a fault from ``to_dict``, without its exception. Unknown keys are ignored."""
        known = {name: data[name] for name in cls._fields if name in data and name != "cause"}
        missing = [name for name in cls._fields if name not in data and name not in cls._field_defaults]
        if missing:
            raise ValueError(f"Fault.from_dict: missing {', '.join(missing)}")
        return cls(**{**known, "code": Code(data["code"])})

    def __repr__(self) -> str:
        """Show all fields; the exception by its type name only, since its own text is not sanitised."""
        fields = [f"{name}={value!r}" for name, value in zip(self._fields[:-1], self[:-1], strict=True)]
        return f"Fault({', '.join(fields)}, cause={None if self.cause is None else type(self.cause).__qualname__})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the exception: many cannot be pickled, some cannot be unpickled."""
        return type(self), (*self[:-1], None)


def show_fault(fault: Fault) -> Fault:
    """Return a fault as users get it. Comparing one of its texts with a word that it never has is logged."""
    code, classification, category, effect, *others = fault
    return Fault._make(
        (
            code,
            _CLASSIFICATIONS.get(classification, classification),
            _CATEGORIES.get(category, category),
            _EFFECTS.get(effect, effect),
            *others,
        )
    )


point_elsewhere(
    Fault,
    {
        "status status_code": "fault.http_status",
        "text error": "fault.message",
        "exception": "fault.cause",
        "kind type": "fault.code or fault.category",
        "transient permanent": "fault.retryable",
    },
)
