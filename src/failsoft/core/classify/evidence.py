"""Reading exceptions: what an exception carries, found by the names that libraries really use.

Rules
-----
- Only the attributes listed here are read, each guarded: one that raises is one that is not there.
- Nothing is called but gRPC's ``code()`` and ``details()``. A response's body is taken where it has been read already
  (``_content``, ``_body``); properties that would read from a socket are left alone.
- A code belongs to a *space* (``sqlstate``, ``errno``, ``jsonrpc``, ...), and each space has its table.

Why by name: importing forty client libraries to call ``isinstance`` is out of the question, and their attributes have
been stable for longer than their class trees.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from failsoft.core.classify.body import Body, is_page, read_body
from failsoft.core.classify.lookup import TypeFacts, facts_of
from failsoft.core.classify.tables.errnos import LOOKUP
from failsoft.core.classify.tables.spaces import SPACES

_CODE_LENGTH = 100
_DEPTH = 16
_BREADTH = 8

_STATUS_NAMES = ("status_code", "status", "http_status", "code", "response_code", "http_code")
_BODY_NAMES = ("body", "json_body", "response_body", "data", "error", "content", "details", "errors", "text")
_RESPONSE_BODY_NAMES = ("_content", "_body", "data")
_INNER_NAMES = (
    "reason",  # urllib3, urllib
    "orig",  # sqlalchemy
    "os_error",  # aiohttp
    "inner_exception",  # azure
    "original_exception",  # pymysql, litellm
    "original_error",  # graphql-core
    "cause",  # google-api-core
    "last_exception",
    "exc",  # celery
    "exceptions",  # pika
    "errors",  # elastic-transport, paramiko, cassandra
)


class Evidence:
    """What one exception, or one text, brings forward."""

    __slots__ = ("codes", "delays", "facts", "headers", "page", "status", "texts")

    def __init__(self, facts: TypeFacts) -> None:
        self.facts = facts  # what the type alone says
        self.codes: list[tuple[str, str | int]] = []  # (space, code), the most telling first
        self.status: int | None = None
        self.texts: list[str] = []  # messages of the body; the exception's own text is not among them
        self.headers: Mapping[str, str] = {}
        self.delays: list[tuple[str, Any]] = []  # what the body says about when to come back
        self.page = False  # a web page came back

    def add_body(self, body: Body) -> None:
        for number in body.numbers:
            if -32_800 <= number <= -31_000:
                self.codes.append(("jsonrpc", number))
            elif (self.status is None or self.status < 300) and 400 <= number <= 599:
                self.status = number
            else:
                self.codes.append(("provider", str(number)))
        self.codes += [("provider", code) for code in body.codes]
        self.texts += body.messages
        self.delays += body.delays
        self.page = self.page or body.page


def read(subject: Any, name: str) -> Any:
    """An attribute, or None: what reading it does must not matter."""
    try:
        return getattr(subject, name, None)
    except Exception:  # a property of somebody else's class
        return None


def plain(value: Any) -> int | str | None:
    """A code as a plain number or text; an enum by its number, else by its name."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        value = value.strip()
        if value.isdigit() and len(value) < 7:
            return int(value)
        return value if 0 < len(value) <= _CODE_LENGTH else None
    return None


def gather(error: BaseException) -> Evidence:
    """Everything that one exception carries, without those it came from."""
    facts = facts_of(type(error))
    evidence = Evidence(facts)
    if isinstance(error, OSError):
        if isinstance(error, FileNotFoundError) and _starts_program(error):
            evidence.codes.append(("exit", 127))
        _gather_errno(error, evidence)
    if facts.builtin and not read(error, "__dict__"):
        return evidence
    for attribute, space in facts.spaces:
        _gather_own(error, attribute, space, evidence)
    if facts.mail:
        _gather_mail(error, evidence)
    own = bool(evidence.codes)
    response = read(error, "response") or read(error, "resp") or read(error, "raw_response") or read(error, "meta")
    _gather_status(error, response, evidence, own=own)
    _gather_codes(error, evidence, own=own)
    _gather_bodies(error, response, evidence)
    _gather_headers(error, response, evidence)
    return evidence


def _starts_program(error: BaseException) -> bool:
    """Whether a program was to be started: then it is the program that is missing, not a file of the caller's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == "_execute_child"  # subprocess.Popen


def _gather_errno(error: OSError, evidence: Evidence) -> None:
    number = read(error, "errno")
    name = None
    if isinstance(number, int):
        if evidence.facts.lookup:
            name = LOOKUP.get(number)
        elif not evidence.facts.tls:  # its errno is OpenSSL's, and 1 is not EPERM
            name = errno.errorcode.get(number)
    if name:
        evidence.codes.append(("errno", name))
    if evidence.facts.tls and isinstance(reason := read(error, "reason"), str):
        evidence.codes.append(("provider", reason))


def _gather_own(error: BaseException, attribute: str, space: str, evidence: Evidence) -> None:
    if attribute == "args[0]":
        args = read(error, "args")
        value = args[0] if isinstance(args, tuple) and args else None
    else:
        value = error
        for part in attribute.split("."):
            value = read(value, part.removesuffix("()"))
            if part.endswith("()"):
                value = _call(value)
    code = plain(value)
    if code is not None:
        evidence.codes.append((space, code))


def _call(method: Any) -> Any:
    try:
        return method()
    except Exception:  # somebody else's method
        return None


def _gather_status(error: BaseException, response: Any, evidence: Evidence, *, own: bool) -> None:
    if isinstance(response, Mapping):  # botocore
        metadata = response.get("ResponseMetadata")
        status = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
        evidence.status = status if isinstance(status, int) else None
    for holder in (error, response):
        if holder is None or evidence.status is not None:
            break
        for name in _STATUS_NAMES:
            if own and name == "code":
                continue
            value = plain(read(holder, name))
            if isinstance(value, int) and 100 <= value <= 599:
                evidence.status = value
                break


def _gather_codes(error: BaseException, evidence: Evidence, *, own: bool) -> None:
    for attribute, space in SPACES[""]:
        if own and attribute == "code":
            continue
        if (
            attribute == "code"
            and evidence.status is not None
            and "aiohttp.ClientResponseError" in evidence.facts.names
        ):
            continue  # deprecated there, and says so when it is read
        value = read(error, attribute)
        code = value if space == "sqlstate" and isinstance(value, str) else plain(value)
        if isinstance(code, str) and " " not in code:
            evidence.codes.append((space, code))
        elif isinstance(code, int) and code != evidence.status:
            evidence.codes.append(("jsonrpc" if -32_800 <= code <= -31_000 else space, code))


def _gather_bodies(error: BaseException, response: Any, evidence: Evidence) -> None:
    if isinstance(response, Mapping):
        evidence.add_body(read_body(response))
    elif response is not None:
        for name in _RESPONSE_BODY_NAMES:
            if name == "data" and type(response).__module__.startswith("urllib3"):
                continue  # would read from the socket
            raw = read(response, name)
            if isinstance(raw, (bytes, str, Mapping)) and raw:
                evidence.add_body(read_body(raw))
                break
    for name in _BODY_NAMES:
        raw = read(error, name)
        if isinstance(raw, (Mapping, list)) or (name != "error" and isinstance(raw, (bytes, str)) and raw):
            evidence.add_body(read_body(raw))
        elif name == "error" and raw is not None and not isinstance(raw, BaseException):
            evidence.add_body(read_body({key: plain(read(raw, key)) for key in ("code", "message", "type", "status")}))
    document = read(error, "doc")  # json.JSONDecodeError
    if isinstance(document, str) and is_page(document):
        evidence.page = True
    stderr = read(error, "stderr")
    if isinstance(stderr, (bytes, str)) and stderr:
        evidence.add_body(read_body(stderr))


def _gather_mail(error: BaseException, evidence: Evidence) -> None:
    """SMTP replies: one, or one for each recipient. The enhanced code (RFC 3463) says more than the reply's number."""
    replies: list[Any] = [
        (read(error, "smtp_code") or read(error, "code"), read(error, "smtp_error") or read(error, "message"))
    ]
    recipients = read(error, "recipients")
    if isinstance(recipients, dict):
        replies += list(recipients.values())[:_BREADTH]
    for reply in replies:
        code, text = (*reply, "", "")[:2] if isinstance(reply, tuple) else (None, "")
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if isinstance(code, int):
            if code >= 500 and text.startswith("5."):
                evidence.codes.append(("enhanced", text.split(maxsplit=1)[0]))
            evidence.codes.append(("smtp", code))


def _gather_headers(error: BaseException, response: Any, evidence: Evidence) -> None:
    holders: list[Any] = [read(error, "headers"), read(error, "response_headers")]
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        holders.append(metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None)
    elif response is not None:
        holders.append(read(response, "headers"))
    for holder in holders:
        if holder:
            try:
                pairs = list(holder.items() if hasattr(holder, "items") else holder)[:100]
                evidence.headers = {str(key).lower(): str(value) for key, value in pairs}
            except Exception:  # no headers after all
                continue
            return


def inner(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """What the exception carries or was raised from; True where it was only being handled at the time."""
    args = read(error, "args")
    for value in args[:_BREADTH] if isinstance(args, tuple) else ():
        if isinstance(value, BaseException):
            yield value, False
    for name in _INNER_NAMES:
        value = read(error, name)
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, (list, tuple)) and value:
            value = value[-1]
        if isinstance(value, BaseException):
            yield value, False
    attempt = read(error, "last_attempt")  # tenacity
    if isinstance(failure := read(attempt, "_exception"), BaseException):
        yield failure, False
    kwargs = read(error, "kwargs")  # botocore
    if isinstance(kwargs, dict) and isinstance(failure := kwargs.get("error"), BaseException):
        yield failure, False
    if error.__cause__ is not None:
        yield error.__cause__, False
    elif error.__context__ is not None and not error.__suppress_context__:
        yield error.__context__, True
