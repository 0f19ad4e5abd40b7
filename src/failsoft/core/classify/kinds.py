"""Kinds of failure: each maps to a code, a category, an effect and a reason.

Rules
-----
- A table row names the kind (``refused``). This module says what follows from it.
- ``effect`` is ``none`` if the request certainly did nothing: never sent, rejected, rolled back. It is ``unknown`` if the
  request was sent and its effect cannot be known.
- ``reason`` uses the specification's wording where there is one.

About forty kinds serve about a thousand rows. A rule such as "a full disk is the operator's to fix" is written once and
holds for errno, SQLSTATE, Redis and English text alike.
"""

from __future__ import annotations

from typing import NamedTuple

from failsoft.core.model.fault import Category, Classification, Code, Effect


class FaultKind(NamedTuple):
    """The properties of a kind of failure."""

    code: Code
    classification: Classification
    category: Category
    effect: Effect
    reason: str


def _transient(code: Code, effect: Effect, reason: str) -> FaultKind:
    return FaultKind(code, "transient", "tool_transient", effect, reason)


def _operator(code: Code, reason: str, effect: Effect = "none") -> FaultKind:
    return FaultKind(code, "permanent", "tool_misconfigured", effect, reason)


def _caller(code: Code, reason: str, effect: Effect = "none") -> FaultKind:
    return FaultKind(code, "permanent", "tool_validation", effect, reason)


def _bug(code: Code, reason: str) -> FaultKind:
    return FaultKind(code, "permanent", "internal_contract_bug", "none", reason)


def _missing(code: Code, reason: str) -> FaultKind:
    return FaultKind(code, "permanent", "tool_unavailable", "none", reason)


_TIMEOUT = "Network timeouts are temporary"
_INPUT = "Invalid input won't change on retry"
_RATE = "Rate limits reset over time"
_AUTH = "Auth won't change on retry"

KINDS: dict[str, FaultKind] = {
    # Transient, and nothing happened: never sent, rejected, or rolled back
    "rate_limited": _transient(Code.RESOURCE_EXHAUSTED, "none", _RATE),
    "per_minute": _transient(Code.RESOURCE_EXHAUSTED, "none", _RATE),
    "unavailable": _transient(Code.UNAVAILABLE, "none", "An unavailable service comes back"),
    "overloaded": _transient(Code.UNAVAILABLE, "none", "Overload passes"),
    "refused": _transient(Code.UNAVAILABLE, "none", "A refused connection was never used; the service may come back"),
    "unreachable": _transient(Code.UNAVAILABLE, "none", "Network routes come back"),
    "name_lookup_failed": _transient(Code.UNAVAILABLE, "none", "The name server may answer next time"),
    "connect_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "lookup_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "statement_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", "A statement that timed out was rolled back"),
    "pool_exhausted": _transient(Code.RESOURCE_EXHAUSTED, "none", "Connections come free again"),
    "local_limit": _transient(Code.RESOURCE_EXHAUSTED, "none", "Local resources come free again"),
    "conflict": _transient(Code.ABORTED, "none", "The other transaction ends"),
    "in_progress": _transient(Code.ABORTED, "none", "What is in progress comes to its end"),
    "request_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "query_cancelled": _transient(Code.CANCELLED, "none", "A statement that was interrupted was rolled back"),
    "locked": _transient(Code.ABORTED, "none", "Locks are released"),
    "busy": _transient(Code.UNAVAILABLE, "none", "A busy service comes free"),
    # Transient, but the request was sent: its effect is unknown
    "timeout": _transient(Code.DEADLINE_EXCEEDED, "unknown", _TIMEOUT),
    "tool_timeout": _transient(Code.DEADLINE_EXCEEDED, "unknown", "Timeout is temporary"),
    "disconnected": _transient(Code.UNAVAILABLE, "unknown", "A lost connection can be made again"),
    "broken_stream": _transient(Code.UNAVAILABLE, "unknown", "Overload passes; the answer had begun"),
    "bad_gateway": _transient(Code.UNAVAILABLE, "unknown", "Gateway failures are temporary"),
    "server_error": _transient(Code.INTERNAL, "unknown", "Server errors are often temporary"),
    "garbled": _transient(Code.DATA_LOSS, "unknown", "The answer was damaged on its way"),
    "killed": _transient(Code.ABORTED, "unknown", "A process that was killed may live next time"),
    "aborted": _transient(Code.ABORTED, "unknown", "An operation that was aborted may end well next time"),
    "cancelled": _transient(Code.CANCELLED, "unknown", "The caller has left"),
    "unknown": _transient(Code.UNKNOWN, "unknown", "Nothing is known about this error; a retry is the safer default"),
    # Permanent: the caller must act
    "invalid": _caller(Code.INVALID_ARGUMENT, _INPUT),
    "too_large": _caller(Code.INVALID_ARGUMENT, "Input that is too large stays too large"),
    "out_of_range": _caller(Code.OUT_OF_RANGE, _INPUT),
    "not_found": _caller(Code.NOT_FOUND, "What does not exist won't appear on retry"),
    "exists": _caller(Code.ALREADY_EXISTS, "What exists already is still there on retry"),
    "stale": _caller(Code.ABORTED, "The same stale version won't match on retry"),
    "conflict_state": _caller(Code.ABORTED, "The conflict won't go away by itself"),
    "constraint": _caller(Code.FAILED_PRECONDITION, "The same data breaks the same constraint"),
    "refused_mail": _caller(Code.FAILED_PRECONDITION, "The same mail is refused again"),
    "precondition": _caller(Code.FAILED_PRECONDITION, "The state must change first"),
    "unsupported": _caller(Code.UNIMPLEMENTED, "An unsupported operation stays unsupported"),
    "blocked_content": _caller(Code.INVALID_ARGUMENT, "The same content is refused again"),
    "declined": _caller(Code.FAILED_PRECONDITION, "The same payment is declined again"),
    "own_limit": _caller(Code.FAILED_PRECONDITION, "A limit that was set on purpose stays"),
    # Permanent: the operator must act
    "unauthenticated": _operator(Code.UNAUTHENTICATED, _AUTH),
    "forbidden": _operator(Code.PERMISSION_DENIED, _AUTH),
    "own_budget": _operator(Code.RESOURCE_EXHAUSTED, "A budget that was set on purpose stays"),
    "quota": _operator(Code.RESOURCE_EXHAUSTED, "A used-up quota does not refill by itself"),
    "certificate": _operator(Code.FAILED_PRECONDITION, "A certificate that is not trusted stays so"),
    "unknown_host": _operator(Code.NOT_FOUND, "A host name that does not exist won't appear on retry"),
    "misconfigured": _operator(Code.FAILED_PRECONDITION, "The configuration must change first"),
    "unknown_model": _operator(Code.NOT_FOUND, "A model that does not exist won't appear on retry"),
    "storage_full": _operator(Code.RESOURCE_EXHAUSTED, "Space must be freed first"),
    "read_only": _operator(Code.FAILED_PRECONDITION, "What is read-only stays read-only"),
    "wrong_address": _operator(Code.NOT_FOUND, "A web page answers where an API was due: the address is wrong"),
    "wrong_place": _operator(Code.FAILED_PRECONDITION, "The address leads somewhere else"),
    "no_such_database": _operator(Code.NOT_FOUND, "A database that does not exist won't appear on retry"),
    "corrupt": _operator(Code.DATA_LOSS, "Damaged data stays damaged"),
    "not_json": _operator(Code.INTERNAL, "A page came where data was due: wrong address or login", "unknown"),
    # Permanent: the tool is missing
    "no_such_tool": _missing(Code.NOT_FOUND, "A missing tool stays missing on retry"),
    "no_such_method": _missing(Code.UNIMPLEMENTED, "A missing method stays missing on retry"),
    "not_implemented": _missing(Code.UNIMPLEMENTED, "What is not implemented stays so on retry"),
    # Permanent: a bug in failsoft or in the tool's contract
    "bug": _bug(Code.INTERNAL, "A bug stays a bug on retry"),
    "contract": _bug(Code.INVALID_ARGUMENT, "A request that breaks the contract breaks it again"),
}
