"""Reading bodies: collect codes, messages and statuses from a response body.

Rules
-----
- Only known shapes are read: OpenAI's ``{"error": {"type", "code", "message"}}``, Google's ``{"error": {"status",
  "details"}}``, AWS's ``{"__type"}`` and ``<Code>``, JSON-RPC's ``{"error": {"code"}}``, RFC 9457 ``{"type", "title",
  "detail"}``, GraphQL's ``{"errors": [{"extensions": {"code"}}]}``, Slack's ``{"ok": false, "error": "..."}`` and similar
  ones: a few keys for *code*, a few for *message*, and a few that contain more of both.
- No other key is entered, so user data is not read.
- The number of nodes and characters is bounded. A body that cannot be parsed is read as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from failsoft.core.classify.cache import cached, compiled
from failsoft.core.classify.success_in_body import shows_success
from failsoft.core.startup.named_tuple import NamedTuple

LENGTH = 16_384  # characters of a body that are parsed
_NODES = 60
_CODE_LENGTH = 100

_CODE_KEYS = frozenset(
    "code type status reason error errorcode errortype __type codename errno sqlstate errcode err exception "
    "error_code error_type errorname error_name name title statuscode status_code httpstatus http_status "
    "errorlabels error_subcode errornum quotaid quota_id".split()
)
_MESSAGE_KEYS = frozenset(
    "message msg detail details error errormessage error_message error_description errordescription description title "
    "explanation reason hint errmsg messages text errorinfo".split()
)
_DOORS = frozenset(
    "error errors detail details fault status response extensions root_cause cause caused_by err data innererror "
    "violations problem exception meta body result errordetails error_details faults failure quotafailure parameters writeerrors write_errors writeconcernerrors".split()
)
_STATUS_KEYS = frozenset("status code statuscode status_code httpstatus http_status".split())
_AGAIN_KEYS = frozenset("is_transient retryable retriable is_retryable isretryable".split())  # Graph API and others
_DELAY_KEYS = frozenset(
    "retry_after retryafter retry_after_seconds retrydelay retry_delay retry_after_ms retryafterms".split()
)
_READ = _CODE_KEYS | _MESSAGE_KEYS | _DOORS | _STATUS_KEYS | _AGAIN_KEYS | _DELAY_KEYS

_XML = r"(?i)<(Code|Message|Type|faultcode|faultstring|error|error-code)>([^<]{1,500})</"
_PAIR = r"""(?P<q>["'])(?P<key>[A-Za-z_]{2,20})(?P=q)\s*:\s*(?:(?P<v>["'])(?P<text>.{0,500}?)(?P=v)(?=\s*[,}\]])|(?P<number>-?\d{1,6})\b)"""


class Body(NamedTuple):
    """The evidence in a body."""

    codes: list[str]
    numbers: list[int]
    messages: list[str]
    delays: list[Any]
    retryable: list[bool]  # statements whether a retry may succeed
    page: bool = False  # HTML
    done: bool = False  # the body says that something was done


_SINGLE = frozenset({str, bytes, int, float, bool, type(None)})
_NO_MAPPINGS = _SINGLE | {list, tuple}
EMPTY = Body([], [], [], [], [])


def make_body() -> Body:
    """Return a body without evidence."""
    return Body([], [], [], [], [])


def is_mapping(value: Any) -> bool:
    """True if a value has keys. Fast for the usual types."""
    return isinstance(value, dict) or (type(value) not in _NO_MAPPINGS and isinstance(value, Mapping))


def read_body(raw: Any) -> Body:
    """Read a body: a mapping, a list, or text in JSON, XML or HTML."""
    if isinstance(raw, (bytes, bytearray, memoryview)):
        raw = bytes(raw[:LENGTH]).decode("utf-8", "replace")
    if isinstance(raw, str):
        text = raw[:LENGTH].strip()
        return _read_text(text) if text else EMPTY
    if isinstance(raw, (list, tuple)) or is_mapping(raw):
        return _read_parsed(raw)
    return EMPTY


def _read_parsed(root: Any) -> Body:
    body = make_body()
    _walk(root, body)
    return body._replace(done=True) if shows_success(root) else body


@cached
def _read_text(text: str) -> Body:
    body = make_body()
    if text[0] in "{[":
        import json

        try:
            return _read_parsed(json.loads(text))
        except (ValueError, RecursionError):
            read_pairs(text, body)
        return body
    if text[0] == "<":
        for name, value in compiled(_XML).findall(text):
            _put(name.lower().replace("faultcode", "code").replace("faultstring", "message"), value, body)
        return body if body.codes or body.messages else body._replace(page=is_page(text))
    body.messages.append(text)
    return body


def is_page(text: str) -> bool:
    """True if a text is a web page."""
    start = text[:200].lstrip("\ufeff \t\r\n").lower()
    return start.startswith(("<!doctype html", "<html", "<head", "<body"))


def read_pairs(text: str, body: Body) -> None:
    """Read ``"code": "…"`` pairs from text that only resembles JSON: truncated, or the repr of a dict."""
    for match in compiled(_PAIR).finditer(text):
        number = match["number"]
        _put(match["key"].lower(), int(number) if number else match["text"], body)


def _walk(root: Any, body: Body) -> None:
    nodes, seen = [root], 0
    while nodes and seen < _NODES:
        node = nodes.pop(0)
        seen += 1
        if is_mapping(node):
            for key, value in islice(node.items(), _NODES):
                if not isinstance(key, str) or (name := key.lower()) not in _READ:
                    continue
                if not _has_parts(value):
                    _put(name, value, body)
                elif name in _DOORS:
                    nodes.append(value)
                elif name == "errorlabels":
                    body.codes.extend(label for label in value if isinstance(label, str))
        elif isinstance(node, (list, tuple)):
            nodes.extend(item for item in node[:10] if _has_parts(item))
            body.messages.extend(item for item in node[:10] if isinstance(item, str))


def _has_parts(value: Any) -> bool:
    return type(value) not in _SINGLE and (isinstance(value, (list, tuple)) or is_mapping(value))


def _put(name: str, value: Any, body: Body) -> None:
    if name in _DELAY_KEYS:
        body.delays.append((name, value))
    elif isinstance(value, str):
        if name in _CODE_KEYS and len(value) <= _CODE_LENGTH and " " not in value.strip():
            if value.removeprefix("-").isdigit():
                body.numbers.append(int(value))
            elif value:
                body.codes.append(value)
        elif name in _MESSAGE_KEYS:
            body.messages.append(value)
    elif isinstance(value, bool):
        if name in _AGAIN_KEYS:
            body.retryable.append(value)
    elif isinstance(value, int) and (name in _STATUS_KEYS or name in _CODE_KEYS):
        body.numbers.append(value)
