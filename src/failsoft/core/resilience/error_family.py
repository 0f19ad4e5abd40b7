"""Which errors are of one family: the text without what changes from one time to the next.

Rules
-----
- Quoted values, addresses, hosts, paths, numbers and ids (words with a digit in them, hexadecimal words) are
  masked; a list of them counts as one. What is left must be equal, letter by letter.
- The status code stands in front: the same words under another code are another family.
- Only the first ``LENGTH`` characters are looked at. The text has been sanitised before.

Why exact and not "similar": a family decides about retries, and two errors that merely look alike may need different
cures. A mask that is too coarse merges families, one that is too fine never sees the same one twice; numbers and names
are what differs between two reports of one cause.
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
    """The family of an error, as readable text."""
    return family_of(fault.code, fault.message)


def family_of(code: str, message: str) -> str:
    """The family of a sanitised error text under its code."""
    varying, repeated = _patterns()
    masked = varying.sub(lambda found: f"<{found.lastgroup}>", message[:LENGTH])
    text = repeated.sub(r"\1", " ".join(masked.split()))
    return f"{code}: {text[:LENGTH]}"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_MASKED, re.VERBOSE), re.compile(_LIST)  # not before there is an error: compiling takes its time
