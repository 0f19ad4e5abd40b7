"""What went wrong, in one taxonomy that drives everything else.

Rules
-----
- A ``Fault`` is a value: what the failure is (``code``), whether the same call can succeed later with nobody changing
  anything (``classification``), whose move it is (``category``), and whether the tool may have acted (``effect``).
- ``transient`` and ``tool_transient`` always go together (LABELS, category).
- The classification follows from the whole fault, not from the code alone (R12): INTERNAL from a remote service is
  transient, INTERNAL from a bug in the tool is permanent.
- ``message`` has been through ``core.redact.sanitise.sanitise`` before it gets here; nothing downstream sanitises again.

Why a NamedTuple: a fault is made on every failing attempt, and a frozen dataclass costs three times as much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, NamedTuple

Classification = Literal["transient", "permanent"]
Category = Literal[
    "tool_unavailable",  # not installed, not registered: nobody can use it here
    "tool_misconfigured",  # credentials, quota, address: the operator's move
    "tool_transient",  # the same call may work later
    "tool_validation",  # the arguments: the model's or the user's move
    "internal_contract_bug",  # our own or the tool's code is wrong
]
Effect = Literal["none", "unknown", "happened"]
Source = Literal[
    "remote",  # the other side: a status, a provider's code, a connection that was never made, a refusal by name
    "local",  # this side: the exception's type, a parser, the operating system
    "words",  # the text alone
    "disputed",  # parts of the error contradict each other about the effect
    "stated",  # failsoft itself, or the author of the tool
]

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])|[-\s]+")


class Code(StrEnum):
    """The gRPC status codes that a failure can have (S-layers' thirteen and three more).

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

    # S-layers' spelling: aliases of the same members
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
        """Accept S-layers' spelling (``DeadlineExceeded``) beside gRPC's (``DEADLINE_EXCEEDED``)."""
        if not isinstance(value, str):
            return None
        name = value.rpartition(".")[2]
        name = name if name.isupper() else _WORD_START.sub("_", name)
        return cls.__members__.get(name.upper())


ErrorStatusCode = Code  # S-layers' name for it


class Fault(NamedTuple):
    """One failure, understood: what ``classify`` makes of an exception or a text."""

    code: Code  # what it is
    classification: Classification  # whether the same call can succeed later, with nobody changing anything
    category: Category  # whose move it is
    effect: Effect  # whether the tool may have acted
    message: str  # the error's own words, sanitised
    reason: str  # why repeating can help, or cannot
    rule: str  # what decided: the row of the tables, the override
    retry_after: float | None = None  # seconds after which the service wants to be asked again
    http_status: int | None = None  # where there was one
    source: Source = "stated"  # what kind of evidence decided: ``core.effects.call_effect`` weighs ``effect`` by it
    hint_source: Source = (
        "stated"  # where ``retry_after`` comes from: one that is only ``words`` holds back this thread
    )
    cause: BaseException | None = None  # the exception, without its traceback; always the last field

    @property
    def retryable(self) -> bool:
        """Whether the same call can help. A cancelled call is transient, but its caller has left (R16)."""
        return self.classification == "transient" and self.code is not Code.CANCELLED

    def to_dict(self) -> dict[str, Any]:
        """The fault as plain data: everything but the live exception, whose type name stays."""
        data = self._asdict()
        data["code"] = self.code.value
        data["retryable"] = self.retryable
        data["cause"] = None if self.cause is None else type(self.cause).__qualname__
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fault:
        """The fault that ``to_dict`` described, without its exception. Unknown keys are ignored."""
        known = {name: data[name] for name in cls._fields if name in data and name != "cause"}
        return cls(**{**known, "code": Code(data["code"])})

    def __repr__(self) -> str:
        """All fields, but of the live exception its type name: its own words are not sanitised (T17)."""
        said = [f"{name}={value!r}" for name, value in zip(self._fields[:-1], self[:-1], strict=True)]
        return f"Fault({', '.join(said)}, cause={None if self.cause is None else type(self.cause).__qualname__})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the live exception: many cannot be pickled, some cannot be loaded again."""
        return type(self), (*self[:-1], None)
