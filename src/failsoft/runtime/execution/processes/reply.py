"""The reply of a process as one value, and the faults of the process itself.

A tool's own exception is ``Reply.error`` of kind ``error``, and is classified like any other. An error with a ``fault``
(``WorkerError``, ``CommandError``) is already classified.
"""

from __future__ import annotations

from typing import Any, Literal

from failsoft.core.model.fault import Code, Fault
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.startup.named_tuple import NamedTuple

ReplyKind = Literal[
    "value",
    "error",  # the tool raised, or its command failed
    "timeout",  # ended at its deadline
    "late",  # it ended by itself, but after its deadline: the effect happened
    "crashed",  # the process died during the call
    "unsendable",  # an argument or the result cannot be sent
    "missing",  # the module, function or program does not exist
    "cancelled",  # the workers were closed during the call
]


class Reply(NamedTuple):
    """The result of one attempt in a process."""

    kind: ReplyKind
    value: Any = None
    error: Exception | None = None
    pid: int | None = None
    killed: bool = False
    started: float | None = None  # monotonic time at which a process got the call; None: none did
    duration: float = 0.0  # seconds from ``started`` to the end


class WorkerError(Exception):
    """A call in a worker process failed for a reason that is not the tool's own exception."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fault,)


class CommandError(WorkerError):
    """A program failed: by its exit status or its output, or because it could not be started."""


def crashed(what: str, status: int | None, *, ran: bool) -> WorkerError:
    from failsoft.core.classify.exit_status import how_it_ended  # start-up: few tools run in a process

    return WorkerError(
        Fault(
            Code.ABORTED,
            "transient",
            "tool_transient",
            "unknown" if ran else "none",
            f"{what}: its process {how_it_ended(status)}{'' if ran else ' before it could be called'}",
            "The next call gets a new process",
            "worker_crashed",
        )
    )


def confused(what: str, why: str) -> WorkerError:
    return WorkerError(
        Fault(
            Code.ABORTED,
            "transient",
            "tool_transient",
            "unknown",
            f"{what}: its process was ended, because {sanitise(why)}",
            "The next call gets a new process",
            "worker_confused",
        )
    )


def not_started(what: str, error: OSError) -> WorkerError:
    return WorkerError(
        Fault(
            Code.RESOURCE_EXHAUSTED,
            "transient",
            "tool_transient",
            "none",
            f"{what}: no process can be started: {sanitise(error.strerror or error)}",
            "File descriptors, processes and memory may be free again later",
            "worker_not_started",
        )
    )


def never_ready(what: str, seconds: float) -> WorkerError:
    return WorkerError(
        Fault(
            Code.UNAVAILABLE,
            "transient",
            "tool_transient",
            "none",
            f"{what}: its process was not ready within {seconds:g} s",
            "A process that starts slowly may be faster next time",
            "worker_not_ready",
        )
    )


def unsendable(what: str, why: str, *, ran: bool) -> WorkerError:
    return WorkerError(
        Fault(
            Code.INTERNAL,
            "permanent",
            "internal_contract_bug",
            "happened" if ran else "none",
            f"{what}: {sanitise(why)}",
            "What cannot be sent to a process cannot be sent on retry either",
            "worker_unsendable",
        )
    )


def missing(what: str, error: Exception) -> WorkerError:
    return WorkerError(
        Fault(
            Code.NOT_FOUND,
            "permanent",
            "tool_unavailable",
            "none",
            f"{what} cannot be imported in a worker: {sanitise(f'{type(error).__name__}: {error}')}",
            "A missing tool stays missing on retry",
            "worker_import",
            cause=error,
        )
    )
