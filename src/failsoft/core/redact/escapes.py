r"""Text whose characters were written out (``%3D``, ``\u0026``, ``\"``, ``&quot;``), as what it stands for.

Rules
-----
- Printable ASCII, blanks and line ends are read back, however often they were written out: ``%2526`` is ``&``.
- A ``%20`` before a short word stays: nothing hides behind it, and most addresses have one.
- A colour that was written out (``\x1b[31m``) is a blank.
- Every character knows its place in the text, so that what is found in the one is masked in the other.

Why: ``\u0026key=`` is a query to whoever reads it, and each pattern that knew the six ways to write ``&`` would be
six patterns.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HEX = r"(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
_ESCAPE = re.compile(
    rf"""(?x)
    % (?:25)* (?P<percent> 20(?=%|[A-Z]{{3}}|[\w.~+/=%:$-]{{13}}) | (?!20){_HEX} )
    | (?<!\\) \\++ (?: (?:u00|x) (?P<code> {_HEX} ) | (?P<end> (?:r\\+)?n ) | [rtbfv] | (?P<mark> ["'/&] )
      | (?:x1[bB]|u001[bB]|033|e) \[ [\d;]{{0,16}} m )
    | & (?:amp;)* (?: (?P<name> amp|quot|apos|lt|gt ) | \#x0?(?P<hexadecimal> {_HEX} ) | \#0?(?P<decimal> \d\d\d?) ) ;
    """
)
_NAMES = {"amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}


class Unescaped(NamedTuple):
    """A text as what it stands for; ``places[i]`` is where the character ``i`` of it was, the last one its end."""

    text: str
    places: list[int]


def unescape(text: str) -> Unescaped | None:
    """What the text stands for, or None where nothing is written out."""
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for found in _ESCAPE.finditer(text):
        parts += text[done : found.start()], _read(found)
        places += range(done, found.start() + 1)
        done = found.end()
    if not parts:
        return None
    places += range(done, len(text) + 1)
    return Unescaped("".join([*parts, text[done:]]), places)


def _read(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind is None:
        return " "
    said = found[kind]
    if kind == "end":
        return "\n"
    if kind == "mark":
        return said
    if kind == "name":
        return _NAMES[said]
    code = int(said, 10 if kind == "decimal" else 16)
    return "\n" if code == 10 else chr(max(code, 32))
