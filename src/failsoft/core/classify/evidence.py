"""Evidence: what one exception or one text offers for its classification.

Reading it never raises: an attribute that raises counts as missing.
"""

from __future__ import annotations

from collections.abc import Sized
from enum import Enum
from itertools import islice
from typing import Any, Final

from failsoft.core.classify.body_reader import EMPTY, Body
from failsoft.core.classify.lookup import TypeFacts

_CODE_LENGTH: Final = 100
_BODY_CODES: Final = 12
_HEADERS: Final = 100
_WORD: Final = 1000  # characters of a header

StatedCode = tuple[str, str | int]  # code space and code


class Evidence:
    """The evidence in one exception or one text."""

    __slots__ = (
        "codes",
        "delays",
        "done",
        "earlier",
        "facts",
        "handled",
        "holders",
        "inner",
        "page",
        "retryable",
        "status",
        "texts",
    )

    def __init__(self, facts: TypeFacts) -> None:
        self.facts = facts  # facts about the type
        self.codes: list[StatedCode] = []  # most significant first
        self.status: int | None = None
        self.texts: list[str] = []  # messages in the body, without the exception's own text
        self.holders: tuple[Any, ...] = ()  # objects that may carry headers
        self.delays: list[tuple[str, Any]] = []  # retry hints in the body
        self.page = False  # the body is a web page
        self.done = False  # the body says that something was done
        self.retryable: bool | None = None  # the error's own statement whether a retry may succeed
        self.inner: list[BaseException] = []  # exceptions that it carries or was raised from
        self.earlier: list[BaseException] = []  # of attempts, or hosts, before the last one
        self.handled: BaseException | None = None  # the exception that was only being handled

    @property
    def adds_nothing(self) -> bool:
        """True if it only repeats the exceptions inside it."""
        return self.facts.wrapper and bool(self.inner or self.handled)

    @property
    def headers(self) -> dict[str, str]:
        """The headers in lower case. Read on demand, because only transient errors need them."""
        for holder in self.holders:
            try:
                if holder and not isinstance(holder, (str, bytes)):
                    pairs = islice(holder.items() if hasattr(holder, "items") else holder, _HEADERS)
                    return {_word(key).lower(): _word(value) for key, value in pairs}
            except Exception:  # not headers
                continue
        return {}

    def add_body(self, body: Body) -> None:
        if body is EMPTY:
            return
        for number in dict.fromkeys(body.numbers[:_BODY_CODES]):
            if is_jsonrpc(number):
                self.codes.append(("jsonrpc", number))
            elif (self.status is None or self.status < 300) and 400 <= number <= 599:
                self.status = number
            else:
                self.codes.append(("provider", str(number)))
        if body.codes:
            self.codes += [("provider", code) for code in dict.fromkeys(body.codes)][:_BODY_CODES]
        self.texts += body.messages
        self.delays += body.delays
        self.page = self.page or body.page
        self.done = self.done or body.done
        if body.retryable:
            self.retryable = body.retryable[0]


def read(subject: Any, name: str) -> Any:
    """Read an attribute; None if reading it fails."""
    try:
        return getattr(subject, name, None)
    except Exception:  # a foreign property may raise anything
        return None


def _word(value: Any) -> str:
    """Return the beginning of a header's name or value. Collections are neither."""
    if isinstance(value, (str, bytes)):
        return str(value[:_WORD])
    return "" if isinstance(value, Sized) else str(value)[:_WORD]


def plain(value: Any) -> int | str | None:
    """Return a code as a plain number or text; an enum by its number, else by its name."""
    if isinstance(value, str):
        if isinstance(value, Enum):
            value = value.value
        value = value.strip()
        if value.isdigit() and len(value) < 7:
            return int(value)
        return value if 0 < len(value) <= _CODE_LENGTH else None
    if isinstance(value, int):
        return None if isinstance(value, bool) else int(value)
    return value.name if isinstance(value, Enum) else None


def is_jsonrpc(number: int) -> bool:
    """True for a code in the range that JSON-RPC and MCP reserve."""
    return -32_800 <= number <= -31_000
