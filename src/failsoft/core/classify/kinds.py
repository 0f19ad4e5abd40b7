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

from failsoft.core.model.fault import Category, Classification, Code, Effect
from failsoft.core.startup.named_tuple import NamedTuple


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
    "unavailable": _transient(Code.UNAVAILABLE, "none", "An unavailable service may recover"),
    "overloaded": _transient(Code.UNAVAILABLE, "none", "Overload passes"),
    "refused": _transient(Code.UNAVAILABLE, "none", "Nothing was sent; the service may recover"),
    "unreachable": _transient(Code.UNAVAILABLE, "none", "Network failures are temporary"),
    "name_lookup_failed": _transient(Code.UNAVAILABLE, "none", "The name server may answer next time"),
    "connect_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "lookup_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "statement_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", "A statement that timed out was rolled back"),
    "pool_exhausted": _transient(Code.RESOURCE_EXHAUSTED, "none", "A connection may be free on retry"),
    "local_limit": _transient(Code.RESOURCE_EXHAUSTED, "none", "Local resources may be free on retry"),
    "conflict": _transient(Code.ABORTED, "none", "The other transaction may have ended on retry"),
    "in_progress": _transient(Code.ABORTED, "none", "The operation in progress may have ended on retry"),
    "request_timeout": _transient(Code.DEADLINE_EXCEEDED, "none", _TIMEOUT),
    "query_cancelled": _transient(Code.CANCELLED, "none", "An interrupted statement was rolled back"),
    "locked": _transient(Code.ABORTED, "none", "The lock may be released on retry"),
    "busy": _transient(Code.UNAVAILABLE, "none", "A busy service may be free on retry"),
    # Transient, but the request was sent: its effect is unknown
    "timeout": _transient(Code.DEADLINE_EXCEEDED, "unknown", _TIMEOUT),
    "tool_timeout": _transient(Code.DEADLINE_EXCEEDED, "unknown", "Timeout is temporary"),
    "disconnected": _transient(Code.UNAVAILABLE, "unknown", "A lost connection can be reopened"),
    "broken_stream": _transient(Code.UNAVAILABLE, "unknown", "Overload is temporary; the response had begun"),
    "bad_gateway": _transient(Code.UNAVAILABLE, "unknown", "Gateway failures are temporary"),
    "server_error": _transient(Code.INTERNAL, "unknown", "Server errors are often temporary"),
    "garbled": _transient(Code.DATA_LOSS, "unknown", "The response was damaged in transit"),
    "killed": _transient(Code.ABORTED, "unknown", "A killed process may survive on retry"),
    "aborted": _transient(Code.ABORTED, "unknown", "An aborted operation may succeed on retry"),
    "cancelled": _transient(Code.CANCELLED, "unknown", "The caller has left"),
    "unknown": _transient(Code.UNKNOWN, "unknown", "Nothing is known about this error; a retry is the safer default"),
    # Permanent: the caller must act
    "invalid": _caller(Code.INVALID_ARGUMENT, _INPUT),
    "too_large": _caller(Code.INVALID_ARGUMENT, "Input that is too large stays too large"),
    "out_of_range": _caller(Code.OUT_OF_RANGE, _INPUT),
    "not_found": _caller(Code.NOT_FOUND, "What does not exist won't appear on retry"),
    "exists": _caller(Code.ALREADY_EXISTS, "What already exists won't disappear on retry"),
    "stale": _caller(Code.ABORTED, "The same stale version won't match on retry"),
    "conflict_state": _caller(Code.ABORTED, "The conflict won't go away by itself"),
    "constraint": _caller(Code.FAILED_PRECONDITION, "The same data breaks the same constraint"),
    "refused_mail": _caller(Code.FAILED_PRECONDITION, "The same mail is refused again"),
    "precondition": _caller(Code.FAILED_PRECONDITION, "The state must change first"),
    "unsupported": _caller(Code.UNIMPLEMENTED, "An unsupported operation stays unsupported"),
    "blocked_content": _caller(Code.INVALID_ARGUMENT, "The same content is refused again"),
    "declined": _caller(Code.FAILED_PRECONDITION, "The same payment is declined again"),
    "own_limit": _caller(Code.FAILED_PRECONDITION, "A limit set on purpose won't change on retry"),
    # Permanent: the operator must act
    "unauthenticated": _operator(Code.UNAUTHENTICATED, _AUTH),
    "forbidden": _operator(Code.PERMISSION_DENIED, _AUTH),
    "own_budget": _operator(Code.RESOURCE_EXHAUSTED, "A budget set on purpose won't change on retry"),
    "quota": _operator(Code.RESOURCE_EXHAUSTED, "A used-up quota does not refill by itself"),
    "certificate": _operator(Code.FAILED_PRECONDITION, "An untrusted certificate stays untrusted on retry"),
    "unknown_host": _operator(Code.NOT_FOUND, "A host name that does not exist won't appear on retry"),
    "misconfigured": _operator(Code.FAILED_PRECONDITION, "The configuration must change first"),
    "unknown_model": _operator(Code.NOT_FOUND, "A model that does not exist won't appear on retry"),
    "storage_full": _operator(Code.RESOURCE_EXHAUSTED, "Space must be freed first"),
    "read_only": _operator(Code.FAILED_PRECONDITION, "What is read-only stays read-only"),
    "wrong_address": _operator(Code.NOT_FOUND, "A web page came instead of an API response: the address is wrong"),
    "wrong_place": _operator(Code.FAILED_PRECONDITION, "The address redirects elsewhere"),
    "no_such_database": _operator(Code.NOT_FOUND, "A database that does not exist won't appear on retry"),
    "corrupt": _operator(Code.DATA_LOSS, "Damaged data stays damaged"),
    "not_json": _operator(Code.INTERNAL, "A web page came instead of data: wrong address or login", "unknown"),
    # Permanent: the tool is missing
    "no_such_tool": _missing(Code.NOT_FOUND, "A missing tool stays missing on retry"),
    "no_such_method": _missing(Code.UNIMPLEMENTED, "A missing method stays missing on retry"),
    "not_implemented": _missing(Code.UNIMPLEMENTED, "A missing feature stays missing on retry"),
    # Permanent: a bug in failsoft or in the tool's contract
    "bug": _bug(Code.INTERNAL, "A bug won't go away on retry"),
    "contract": _bug(Code.INVALID_ARGUMENT, "A request that breaks the contract will break it again"),
}
