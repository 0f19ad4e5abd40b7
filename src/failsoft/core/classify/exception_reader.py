"""Reading exceptions: collect evidence from the attributes that libraries use.

Rules
-----
- Only attributes listed in ``tables.code_spaces`` are read, once each. An attribute that raises counts as missing.
- Nothing is called except gRPC's ``code()`` and ``trailing_metadata()``. A response's body is used only if it has already
  been read (``_content``, ``_body``); properties that would read from a socket are not touched.
- A code belongs to a *space* (``sqlstate``, ``errno``, ``jsonrpc``, ...), and each space has its table.

Attributes are found by name, because importing forty client libraries for ``isinstance`` is too slow, and their
attributes change less often than their class trees.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from failsoft.core.classify.body_reader import is_mapping, is_page, read_body
from failsoft.core.classify.evidence import Evidence, is_jsonrpc, plain, read
from failsoft.core.classify.lookup import TypeFacts, facts_of
from failsoft.core.classify.tables.code_spaces import (
    AGAIN,
    BODIES,
    CLIENTS,
    CODES,
    INNER,
    NEVER,
    RESPONSES,
    SDKS,
    STATUSES,
)
from failsoft.core.classify.tables.errnos import LOOKUP
from failsoft.core.classify.tables.http import STATUS
from failsoft.core.startup.named_tuple import NamedTuple

_BREADTH: Final = 8
_ARGS: Final[Any] = BaseException.args
_FRAMES: Final = 64
_OWN_WORD: Final = frozenset((*AGAIN, *NEVER))


class Roles(NamedTuple):
    """The evidence attributes of an exception, grouped by their meaning, in the order of the tables."""

    responses: list[str]
    statuses: list[str]
    codes: list[tuple[str, str]]
    bodies: list[str]
    inner: list[str]


@lru_cache(maxsize=512)  # exceptions of one class have the same attributes
def roles_of(names: frozenset[str]) -> Roles:
    """Group attributes by their meaning."""
    return Roles(
        [name for name in RESPONSES if name in names],
        [name for name in STATUSES if name in names],
        [row for row in CODES if row[0] in names],
        [name for name in BODIES if name in names],
        [name for name in INNER if name in names],
    )


def gather(error: BaseException) -> Evidence:
    """Collect the evidence of one exception, without that of its causes."""
    facts = facts_of(type(error))
    evidence = Evidence(facts)
    if isinstance(error, OSError):
        _gather_errno(error, evidence)
    carried = _attributes(error, facts)
    roles = roles_of(frozenset(carried))
    if carried or facts.spaces or facts.mail:
        _gather_carried(error, carried, roles, evidence)
    _gather_inner(error, carried, roles, evidence)
    if evidence.status is None and facts.claims is not None and not evidence.codes:
        evidence.status = facts.claims
    return evidence


def _attributes(error: BaseException, facts: TypeFacts) -> dict[str, Any]:
    """Return the listed attributes that the exception has."""
    own = read(error, "__dict__")
    names = facts.attributes
    if own:
        names = names | facts.wanted.intersection(own)
    found: dict[str, Any] = {}
    for name in names:
        value = read(error, name)
        if value is not None:
            found[name] = value
    return found


def _gather_carried(error: BaseException, carried: Mapping[str, Any], roles: Roles, evidence: Evidence) -> None:
    facts = evidence.facts
    for path, space in facts.spaces:
        _add_own(_follow(error, path), space, evidence)
    if facts.mail:
        _gather_mail(carried, evidence)
    own = bool(evidence.codes)  # then ``code`` is the library's own number, not an HTTP status
    response = carried[roles.responses[0]] if roles.responses else None
    if roles.statuses or response is not None:
        _gather_status(carried, roles.statuses, response, evidence, own=own)
    for name, space in roles.codes:
        if not (own and name == "code"):
            _add_code(carried[name], space, evidence)
    if response is not None and not carried.get("body"):
        evidence.add_body(read_body(_body_of(response)))
    if roles.bodies:
        _gather_bodies(carried, roles.bodies, evidence)
    if "doc" in carried:
        _gather_document(error, carried["doc"], evidence)
    if "retry_after" in carried or "details" in carried:
        _gather_delays(carried, evidence)
    if not _OWN_WORD.isdisjoint(carried):
        said = [name in AGAIN for name in _OWN_WORD if carried.get(name) is True]
        evidence.retryable = any(said) if said else evidence.retryable
    evidence.holders = _holders(error, carried, response, facts)


def _follow(error: BaseException, path: str) -> Any:
    """Return the value of a path such as ``error.code``, ``args[0]``, ``args[0][:3]`` or gRPC's ``code()``."""
    value: Any = error
    if path.endswith("[:3]"):
        value = _follow(error, path.removesuffix("[:3]"))
        return value[:3] if isinstance(value, str) else None
    for part in path.split("."):
        name = part.removesuffix("()").removesuffix("[0]")
        value = read(value, name)
        if part.endswith("()"):
            try:
                value = value()
            except Exception:  # a foreign method may raise anything
                return None
        elif part.endswith("[0]"):
            value = value[0] if isinstance(value, tuple) and value else None
    return value


def _add_own(value: Any, space: str, evidence: Evidence) -> None:
    """Add a code of a library's own space."""
    code = value if space == "sqlstate" and isinstance(value, str) else plain(value)  # 08001 is not a number
    if code is not None:
        evidence.codes.append((space, code))


def _add_code(value: Any, space: str, evidence: Evidence) -> None:
    code = value if space == "sqlstate" and isinstance(value, str) else plain(value)
    if isinstance(code, str):
        if " " not in code:
            evidence.codes.append((space, code))
    elif code is not None and code != evidence.status:
        evidence.codes.append(("jsonrpc" if is_jsonrpc(code) else space, code))


def _gather_errno(error: OSError, evidence: Evidence) -> None:
    facts = evidence.facts
    if isinstance(error, FileNotFoundError) and _starts_program(error):
        evidence.codes.append(("exit", 127))
    number = read(error, "errno")
    name = None
    if isinstance(number, int):
        if facts.lookup:
            name = LOOKUP.get(number)
        elif not facts.tls:  # a TLS error's errno is OpenSSL's, where 1 is not EPERM
            name = errno.errorcode.get(number)
    if name:
        evidence.codes.append(("errno", name))
    if facts.tls and isinstance(reason := read(error, "reason"), str):
        evidence.codes.append(("provider", reason))


def _starts_program(error: BaseException) -> bool:
    """True if a program could not be started: then the program is missing, not one of the caller's files."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == "_execute_child"  # subprocess.Popen


def _gather_mail(carried: Mapping[str, Any], evidence: Evidence) -> None:
    """Read SMTP replies: one, or one per recipient. The enhanced code (RFC 3463) is more precise than the reply code."""
    replies: list[Any] = [
        (carried.get("smtp_code", carried.get("code")), carried.get("smtp_error", carried.get("message", "")))
    ]
    recipients = carried.get("recipients")
    if isinstance(recipients, dict):
        replies += islice(dict.values(recipients), _BREADTH)
    for reply in replies:
        code, text = (*reply, "", "")[:2] if isinstance(reply, tuple) else (None, "")
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if isinstance(code, int):
            if code >= 500 and text.startswith("5."):
                evidence.codes.append(("enhanced", text.split(maxsplit=1)[0]))
            evidence.codes.append(("smtp", code))


def _gather_status(
    carried: Mapping[str, Any], statuses: list[str], response: Any, evidence: Evidence, *, own: bool
) -> None:
    if isinstance(response, dict):  # botocore
        metadata = response.get("ResponseMetadata")
        status = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
        if isinstance(status, int):
            evidence.status = status
            return
    for name in statuses:
        if not (own and name == "code"):
            value = plain(carried[name])
            if isinstance(value, int) and 100 <= value <= 599 and (name != "code" or value < 400 or value in STATUS):
                evidence.status = value
                return
    if response is not None:
        for name in STATUSES[:2]:
            value = plain(read(response, name))
            if isinstance(value, int) and 100 <= value <= 599:
                evidence.status = value
                return


def _gather_bodies(carried: Mapping[str, Any], names: list[str], evidence: Evidence) -> None:
    for name in names:
        raw = carried[name]
        if isinstance(raw, list) or is_mapping(raw):
            evidence.add_body(read_body(raw))
        elif isinstance(raw, (bytes, str)):
            if name != "error" and raw:
                evidence.add_body(read_body(raw))
        elif name == "error" and not isinstance(raw, BaseException):  # an object with the usual fields
            fields = {key: plain(read(raw, key)) for key in ("code", "message", "type", "status")}
            evidence.add_body(read_body(fields))


def _gather_document(error: BaseException, document: Any, evidence: Evidence) -> None:
    """Read the text that a json.JSONDecodeError could not parse."""
    if isinstance(document, str):
        if is_page(document):
            evidence.page = True
        elif _reads_response(error):
            evidence.codes.append(("answer", "not JSON"))


def _gather_delays(carried: Mapping[str, Any], evidence: Evidence) -> None:
    if "retry_after" in carried:
        evidence.delays.append(("retry_after", carried["retry_after"]))
    details = carried.get("details")
    for detail in details[:_BREADTH] if isinstance(details, (list, tuple)) else ():
        wait = read(detail, "retry_delay")  # a google.rpc.RetryInfo message
        seconds, nanos = read(wait, "seconds"), read(wait, "nanos")
        if isinstance(seconds, int):
            evidence.delays.append(("retry_delay", seconds + (nanos / 1e9 if isinstance(nanos, int) else 0.0)))


def _reads_response(error: BaseException) -> bool:
    """True if the traceback shows that a response could not be parsed, rather than the caller's own text."""
    trace, steps = error.__traceback__, 0
    while trace is not None and steps < _FRAMES:
        package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package in SDKS or (package in CLIENTS and trace.tb_frame.f_code.co_name == "json"):
            return True
        trace, steps = trace.tb_next, steps + 1
    return False


def _body_of(response: Any) -> Any:
    """Return a response's body if it has already been read."""
    if is_mapping(response):
        return response
    for name in ("_content", "_body", "data"):
        if name == "data" and type(response).__module__.startswith("urllib3"):
            continue  # would read from the socket
        raw = read(response, name)
        if raw and (isinstance(raw, (bytes, str)) or is_mapping(raw)):
            return raw
    return None


def _holders(error: BaseException, carried: Mapping[str, Any], response: Any, facts: TypeFacts) -> tuple[Any, ...]:
    """Return the objects that may carry headers."""
    sent: Any = None
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        sent = metadata.get("HTTPHeaders") if isinstance(metadata, dict) else None
    elif response is not None:
        sent = read(response, "headers")
    elif facts.package == "grpc":
        sent = _follow(error, "trailing_metadata()")
    return (carried.get("headers"), carried.get("response_headers"), sent)


def _gather_inner(error: BaseException, carried: Mapping[str, Any], roles: Roles, evidence: Evidence) -> None:
    args = _ARGS.__get__(error)  # a subclass may hide them
    candidates = [arg for arg in args[:_BREADTH] if type(arg) is not str]
    if carried:
        candidates += [carried[name] for name in roles.inner]
        if "last_attempt" in carried:  # tenacity
            candidates.append(read(carried["last_attempt"], "_exception"))
        kwargs = carried.get("kwargs")  # botocore
        if isinstance(kwargs, dict):
            candidates.append(kwargs.get("error"))
    if candidates:
        several = [_several(candidate) for candidate in candidates]
        evidence.inner = [tries[-1] for tries in several if tries and isinstance(tries[-1], BaseException)]
        evidence.earlier = [one for tries in several for one in tries[:-1] if isinstance(one, BaseException)]
    if error.__cause__ is not None:
        evidence.inner.append(error.__cause__)
    elif not error.__suppress_context__:
        evidence.handled = error.__context__


def _several(value: Any) -> list[Any]:
    """Return the errors of several attempts, the first ones and the last one; that of a single attempt alone."""
    if isinstance(value, dict) and value:  # a subclass may have values without end
        value = [*islice(dict.values(value), _BREADTH), next(reversed(dict.values(value)))]
    return [*value[:_BREADTH], value[-1]] if isinstance(value, (list, tuple)) and value else [value]
