"""Exit status: classify the end of a program.

Rules
-----
- Meanings are looked up in this order: the manifest's ``exit_codes``, sysexits.h, the codes of shells and ``timeout``,
  the program's standard error. Without a match the fault is unknown, which is transient.
- A program that ran may have acted. The effect is unknown unless the status says otherwise. Standard error is a log of
  everything that the program did. A refusal in it may concern a minor request, so its source is ``words``.
- A negative status is the signal that killed the program. By the shells' convention 128 plus the signal means the same.

sysexits.h is used because EX_TEMPFAIL is the established way for a program to say "try again later".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from failsoft.core.classify import classify_failure
from failsoft.core.classify.kinds import KINDS, FaultKind
from failsoft.core.model.fault import Code, Effect, Fault
from failsoft.core.redact.sanitise import sanitise

SHOWN: Final = 2000  # characters kept of the end of standard error


def _transient(code: Code, reason: str, effect: Effect = "unknown") -> FaultKind:
    return FaultKind(code, "transient", "tool_transient", effect, reason)


EXITS: Final[dict[int, tuple[str, FaultKind]]] = {
    64: ("EX_USAGE", KINDS["invalid"]),
    65: ("EX_DATAERR", KINDS["invalid"]),
    66: ("EX_NOINPUT", KINDS["not_found"]),
    67: ("EX_NOUSER", KINDS["not_found"]),
    68: ("EX_NOHOST", KINDS["unknown_host"]),
    69: ("EX_UNAVAILABLE", _transient(Code.UNAVAILABLE, "An unavailable service may recover")),
    70: ("EX_SOFTWARE", KINDS["bug"]._replace(effect="unknown")),
    71: ("EX_OSERR", _transient(Code.RESOURCE_EXHAUSTED, "Local resources may be free on retry")),
    72: ("EX_OSFILE", KINDS["misconfigured"]),
    73: ("EX_CANTCREAT", KINDS["misconfigured"]),
    74: ("EX_IOERR", _transient(Code.UNAVAILABLE, "Input and output may work next time")),
    75: ("EX_TEMPFAIL", _transient(Code.UNAVAILABLE, "The program asks to be tried again", "none")),
    76: ("EX_PROTOCOL", KINDS["garbled"]),
    77: ("EX_NOPERM", KINDS["forbidden"]),
    78: ("EX_CONFIG", KINDS["misconfigured"]),
    124: ("timeout", KINDS["timeout"]),
    126: ("not executable", KINDS["misconfigured"]),
    127: ("not found", KINDS["no_such_tool"]),
}

_SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip

_BELIEVED: Final = {68, 75}  # unknown host, and "try again later": nothing was done
_MAPPED: Final = "The manifest gives this exit status its meaning"
_VALIDATION: Final = {Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.OUT_OF_RANGE}
_OPERATOR: Final = {Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.FAILED_PRECONDITION, Code.UNIMPLEMENTED}


def judge_exit(program: str, status: int, said: object = "", meanings: Mapping[int, Code] | None = None) -> Fault:
    """Return the fault of a program that ended with ``status``; ``said`` is the end of its standard error."""
    tail = sanitise(said).strip()[-SHOWN:]
    name, kind = EXITS.get(status, ("", None))
    rule = f"exit_status: {status}"
    if meanings and status in meanings:
        kind, rule = _meaning(meanings[status]), f"exit_codes: {status}"
    elif status < 0 or 128 < status < 192:
        kind, rule = KINDS["killed"], f"signal: {_signal(status)}"
    message = f"{sanitise(program)} {how_it_ended(status)}{f' ({name})' if name else ''}{f': {tail}' if tail else ''}"
    if kind is None:
        judged = classify_failure(tail) if tail else classify_failure("")
        return judged._replace(message=message, source="words")
    return Fault(*kind[:4], message, kind.reason, rule, source="stated" if status in _BELIEVED else "local")


def _meaning(code: Code) -> FaultKind:
    """Return the kind for a code from the manifest. A transient code says nothing about the effect."""
    if code in _VALIDATION:
        return FaultKind(code, "permanent", "tool_validation", "none", _MAPPED)
    if code in _OPERATOR:
        return FaultKind(code, "permanent", "tool_misconfigured", "none", _MAPPED)
    return _transient(code, _MAPPED, "none" if code is Code.RESOURCE_EXHAUSTED else "unknown")


def _signal(status: int) -> str:
    number = -status if status < 0 else status - 128
    return _SIGNALS.get(number, f"signal {number}")


def how_it_ended(status: int | None) -> str:
    """Describe a status in words."""
    if status is None:
        return "ended in an unknown way"
    if status >= 0:
        return f"ended with exit status {status}"
    return f"was killed by {_signal(status)}" + (" (perhaps for lack of memory)" if status == -9 else "")
