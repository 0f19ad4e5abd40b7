"""Validators for the frozen values that users make: options, policies, entry points.

Each raises ``ValueError`` with the field, what is wrong, and what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from reprlib import repr as brief
from typing import Any, NoReturn, TypeVar, get_args

from failsoft.core.model.durations import seconds
from failsoft.core.model.fault import Code
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.sizes import size
from failsoft.core.startup.lazy_pattern import lazy_pattern

T = TypeVar("T")

IMPORT_PATH = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"  # also used in the manifest's schema

_IMPORT_PATH = lazy_pattern(IMPORT_PATH)


def fill(options: object, name: str, value: object) -> None:
    """Set a field of a frozen value while it is made."""
    object.__setattr__(options, name, value)


def refuse(name: str, value: object, why: str) -> NoReturn:
    """Raise ``ValueError`` about a field's value."""
    raise ValueError(f"{name}: {brief(value)} {why}") from None


def whole(name: str, value: object, *, least: int, most: float = math.inf) -> None:
    """Require a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        default = ": write one, or leave it out for the default" if value is None else ""
        refuse(name, value, f"is not a whole number {_within(least, most)}{default}")


def number(name: str, value: object, *, least: float, most: float = math.inf) -> None:
    """Require a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most or value == math.inf:
        refuse(name, value, f"is not a finite number {_within(least, most)}")


def flag(name: str, value: object) -> None:
    """Require true or false."""
    if not isinstance(value, bool):
        refuse(name, value, "is neither true nor false")


def word(name: str, value: object) -> None:
    """Require a text that is not empty."""
    if not value or not isinstance(value, str):
        refuse(name, value, "is not a text with something in it")


def one_of(name: str, value: object, literal: object) -> None:
    """Require one of the words in a ``Literal``."""
    words = get_args(literal)
    if value not in words:
        refuse(name, value, f"is not one of {', '.join(words)}{did_you_mean(str(value), words)}")


def texts(name: str, value: object, *, like: str) -> tuple[str, ...]:
    """Require a list of texts. A single text is refused: it would be split into letters."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        several = tuple(value)
        if all(isinstance(one, str) for one in several):
            return several
    refuse(name, value, f"is not a list of texts: write {like}")


def several(name: str, value: object, kind: type[T], *, like: str = "") -> tuple[T, ...]:
    """Require a list of ``kind``. ``like`` is another accepted form, for the error message."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        of_what = "" if kind is object else f" of {kind.__name__}"
        refuse(name, value, f"is not a list{of_what}: put it in brackets")
    found = tuple(value)
    for one in found:
        if not isinstance(one, kind):
            expected = f"{kind.__name__} or {like}" if like else kind.__name__
            named = getattr(one, "__name__", "") if like == "a tool's id" else ""
            instead = f': write "{named}"' if named else ""
            raise ValueError(f"{name}: expected {expected}, got {brief(one)}{instead}")  # noqa: TRY004 - all checks raise ValueError
    return found


# Other names of these errors: HTTP statuses, names of exceptions
_OTHER_NAMES = {
    Code.DEADLINE_EXCEEDED: "408 504 timeout timedout readtimeout connecttimeout",
    Code.UNAVAILABLE: "502 503 serviceunavailable badgateway connection connectionreset connectionrefused network",
    Code.RESOURCE_EXHAUSTED: "429 ratelimit ratelimited ratelimitexceeded toomanyrequests throttled quotaexceeded",
    Code.INTERNAL: "500 internalserver server",
    Code.INVALID_ARGUMENT: "400 422 badrequest invalidinput validation value",
    Code.UNAUTHENTICATED: "401 unauthorized unauthorised authentication auth",
    Code.PERMISSION_DENIED: "403 forbidden permission",
    Code.NOT_FOUND: "404 filenotfound missing",
    Code.ABORTED: "409 conflict",
}
_CODES = {name: code for code, names in _OTHER_NAMES.items() for name in names.split()}


def read_code(value: Any) -> Code:
    """Read an error code in any spelling."""
    try:
        return Code(value)
    except ValueError:
        name = value.__name__ if isinstance(value, type) else str(value)
        plain = name.lower().replace("_", "").replace(" ", "").removesuffix("error").removesuffix("exception")
        if plain in _CODES:
            raise ValueError(f"{brief(value)} is not an error code: write {_CODES[plain]}") from None
        close = did_you_mean(name.upper(), Code)
        raise ValueError(f"{brief(value)} is not an error code like UNAVAILABLE or NOT_FOUND{close}") from None


def code(name: str, value: object) -> Code:
    """Read a field's error code."""
    try:
        return read_code(value)
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def codes(name: str, value: object) -> tuple[Code, ...]:
    """Read a field's list of error codes."""
    return tuple(code(name, one) for one in texts(name, value, like="[UNAVAILABLE, INTERNAL]"))


def duration(options: object, name: str, *, zero: bool = False) -> None:
    """Read the duration in a field, and replace it by seconds."""
    try:
        fill(options, name, seconds(getattr(options, name), zero=zero))
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def byte_size(options: object, name: str, *, least: int) -> None:
    """Read the size in a field, and replace it by bytes."""
    try:
        fill(options, name, size(getattr(options, name), least=least))
    except ValueError as wrong:
        raise ValueError(f"{name}: {wrong}") from None


def import_path(name: str, value: object) -> None:
    """Require a path like ``package.module:name``."""
    if not (isinstance(value, str) and _IMPORT_PATH.fullmatch(value)):
        refuse(name, value, 'is not an import path: write "package.module:name"')
    module, _, inside = value.partition(":")
    if module.endswith(".py"):
        refuse(name, value, f'names a file: write the module, "{module.removesuffix(".py")}:{inside}"')


def _within(least: float, most: float) -> str:
    return f"of at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
