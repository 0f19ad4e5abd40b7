"""Read unquoted YAML words on which all versions of YAML and JSON agree; raise ``ValueError`` for the others.

Numbers, ``true``, ``false`` and ``null`` are those of JSON. Some readers take ``no`` for false, ``1:30`` for 90,
``010`` for 8, or convert dates: these are refused with what to write instead. NaN and infinity are refused too.
"""

from __future__ import annotations

import math
import re
from reprlib import repr as brief

Scalar = str | int | float | bool | None

LONGEST_NUMBER = 300  # digits; the largest float has 309

_CONSTANTS: dict[str, bool | None] = {"null": None, "~": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_NOT_FINITE = re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE)
_BOOLEAN = re.compile(r"yes|no|on|off", re.IGNORECASE)
_CLOCK = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\s].*)?")
_ODD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*_[0-9_.]*)")


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted word."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if len(text) > LONGEST_NUMBER and _FLOAT.fullmatch(text):
        raise ValueError(f"{brief(text)[1:-1]} is too long for a number: put it in quotes if it is a text")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    _refuse_traps(text)
    return text


def resolve_key(text: str) -> str:
    """Return an unquoted key as text. A number stays as it is written."""
    if not text:
        raise ValueError("a key is missing before the colon")
    if text == "<<":
        raise ValueError("<< merges another mapping: write its keys out")
    if text.lower() in _CONSTANTS:
        raise ValueError(f'is not a text: put the key in quotes, "{text}"')
    if not _INTEGER.fullmatch(text):
        _refuse_traps(text)
    return text


def join_surrogates(text: str) -> str:
    """Join the surrogate pairs that JSON escapes leave in a quoted text."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError(f"{ascii(text)[:60]} has half of a surrogate pair: write the whole character") from None


def _refuse_traps(text: str) -> None:
    short = brief(text)[1:-1]
    if not text:
        raise ValueError("has no value: write one, or null, {} or [] if nothing is meant")
    if _BOOLEAN.fullmatch(text):
        raise ValueError(f'{text} is true or false to some readers: write true or false, or "{text}" for the text')
    if _NOT_FINITE.fullmatch(text) or _FLOAT.fullmatch(text):
        raise ValueError(f'{short} is not a finite number: write a number, or "{short}" for the text')
    if _CLOCK.fullmatch(text):
        raise ValueError(f'{short} is a number to some readers: write "1m30s" for a duration, "{short}" for the text')
    if _ODD_NUMBER.fullmatch(text):
        raise ValueError(f'{short} is read differently by some: write a decimal number, or "{short}" for the text')
    if _DATE.fullmatch(text):
        raise ValueError(f'{short} is a date to some readers: write "{short}" for the text')
    if text == "=":
        raise ValueError('= is not a text to some readers: write "="')
