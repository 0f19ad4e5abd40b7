r"""Wrapped secrets: follow a secret over the ends of its lines.

Rules
-----
- A secret that ends with its line continues if the next line begins with a piece of a token. A backslash, an indentation
  or the sign of a comment or quotation may stand between the two.
- A piece has letters, and digits, alternating capitals, or five consonants in a row. It is not made of words, and not a
  date.
- A token whose first piece is too short to be recognised is searched in the text without line ends.
- In a text with more pieces than any message, every piece continues, so that no text takes long.

Terminals, mail programs, YAML and PEM writers wrap at fixed widths, in the middle of a token.
"""

from __future__ import annotations

from failsoft.core.redact.secret_formats import Marks, compiled, find_joined
from failsoft.core.redact.spoken import is_shuffled, is_wordy

_LINE_END = r"[ \t]{0,4}\\?\n[ \t]{0,32}(?:[>|#*][ \t]{0,8})?"
_PIECE = r"(?P<piece>(?=[\w+/-]{4})[\w+/.~-]++={0,2})(?=[\s\"'`,;)\]}>\\]|\Z)"
_NEXT = _LINE_END + _PIECE
_JOINT = rf"(?<=[\w.+/-]){_LINE_END}(?=[A-Za-z+/_.-]{{0,24}}\d|[\w+/-]{{16}}){_PIECE}"
_DATE_OR_CLASS = r"[\dTZ:+./-]+|(?:[A-Z][a-z]+){2,}"
_NO_WORD = r"(?=[\s\S]{0,64}[A-Z])[\s\S]{0,64}(?:(?i:[bcdfghjklmnpqrstvwxz]){5}|[a-z][A-Z]{2,12}[a-z][A-Z])"
_MOST = 200  # pieces that are judged, in one text


def find_wrapped(text: str, spans: list[tuple[int, int]], tokens: dict[str, Marks]) -> list[tuple[int, int]]:
    """Return the spans of the pieces that follow a secret, and of tokens whose first piece is too short."""
    judged = 0
    begun = [*_find_begun(text, tokens)]
    known = {end for _, end in (*spans, *begun)}
    found: list[tuple[int, int]] = []
    for first in known:
        end = first
        while (following := compiled(_NEXT).match(text, end)) is not None:
            judged += 1
            if judged < _MOST and not _continues(following["piece"]):
                break
            end = following.end()
            if end in known:
                break
        if end > first:
            found.append((first, end))
    return begun + found


def _find_begun(text: str, tokens: dict[str, Marks]) -> list[tuple[int, int]]:
    """Return the spans of tokens up to the end of their second piece."""
    parts: list[str] = []
    joints: list[tuple[int, int, int]] = []  # position in the joined text; start and end of the piece in the original
    done = size = 0
    for joint in compiled(_JOINT).finditer(text):
        parts.append(text[done : joint.start()])
        size += joint.start() - done
        joints.append((size, *joint.span("piece")))
        done = joint.start("piece")
    if not parts:
        return []
    joined = "".join([*parts, text[done:]])
    matches = sorted(span for form in find_joined(tokens, joined) for span in form.find(joined))
    found: list[tuple[int, int]] = []
    place = judged = moved = 0
    for start, end in matches:
        while place < len(joints) and joints[place][0] <= start:
            moved = joints[place][1] - joints[place][0]
            place += 1
        if place == len(joints):
            break
        at, first, last = joints[place]
        if end <= at:
            continue
        judged += 1
        if judged >= _MOST or _continues(text[first:last]):
            found.append((start + moved, last))
    return found


def _continues(piece: str) -> bool:
    """True if a word at the beginning of a line can be nothing but the rest of a token."""
    core = piece.rstrip(".=")
    if not any(map(str.isalpha, core)) or compiled(_DATE_OR_CLASS).fullmatch(core):
        return False
    if len(core) >= 8 and not core.isupper() and not core.islower() and compiled(_NO_WORD).match(core):
        return True
    return (any(map(str.isdigit, core)) or is_shuffled(core)) and not is_wordy(core)
