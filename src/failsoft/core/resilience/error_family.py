"""Error families: group errors by their text, ignoring the parts that vary.

Rules
-----
- Quoted values, addresses, hosts, paths, numbers and ids (words with a digit, hexadecimal words) are masked. A list of
  masked parts counts as one part. The remaining text must match exactly.
- The status code is part of the family: the same text under another code is another family.
- Only the first ``LENGTH`` characters count. The text must already be sanitised.

The match is exact, not fuzzy, because a family decides about retries: two errors that look alike may need different
handling. Numbers and names are masked because they are what varies between reports of one cause.
"""

from __future__ import annotations

import re
from functools import cache

from failsoft.core.model.fault import Fault

LENGTH = 400

_MASKED = r"""
      (?P<value> "[^"\n]*" | “[^“”\n]*” | «[^«»\n]*» | `[^`\n]*` | (?<!\w)'[^'\n]*'(?!\w) )
    | (?P<url>   \b[a-z][a-z0-9+.-]{0,15}://[^\s"'<>]+ )
    | (?P<mail>  (?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,64}(?:\.[\w-]{1,64})* )
    | (?P<path>  (?<![\w.])(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/][\w.@~+=-]+)+[\\/]? )
    | (?P<host>  (?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[a-z0-9_-]{1,63}\.){1,8}[a-z]{2,24})(?::\d+)?(?![\w(]|\.\w) )
    | (?P<n>     (?<!\w)[-+]?\w*\d(?:[\w-]|[.,:]\d)* | \b[0-9a-fA-F]{8,}\b )
"""
_LIST = r"(<\w+>)(?:[\s,;]+\1)+"


def fingerprint(fault: Fault) -> str:
    """Return the family of an error as readable text."""
    return family_of(fault.code, fault.message)


def family_of(code: str, message: str) -> str:
    """Return the family of a sanitised error text under its code."""
    varying, repeated = _patterns()
    masked = varying.sub(lambda found: f"<{found.lastgroup}>", message[:LENGTH])
    text = repeated.sub(r"\1", " ".join(masked.split()))
    return f"{code}: {text[:LENGTH]}"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_MASKED, re.VERBOSE), re.compile(_LIST)  # compiled on first use: it is slow
