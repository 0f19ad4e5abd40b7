r"""Escapes: decode escaped characters (``%3D``, ``\u0026``, ``\"``, ``&quot;``) to find secrets behind them.

Rules
-----
- Printable ASCII, blanks and line ends are decoded at any depth: ``%2526`` is ``&``.
- A ``%20`` before a short word is kept: no secret can follow, and most addresses contain one.
- An escaped terminal colour (``\x1b[31m``) becomes a blank.
- Each decoded character knows its position in the original, so that a secret found in one is masked in the other.

Without decoding every pattern would need a variant for each of the six spellings of ``&``.
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
    """A decoded text; ``places[i]`` is the original position of character ``i``, and the last entry the original end."""

    text: str
    places: list[int]


def unescape(text: str) -> Unescaped | None:
    """Decode a text; None if it contains no escapes."""
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
