"""Exceptions as libraries make them, without the libraries: a class is known by its package and its name."""

from __future__ import annotations

import random
import re
from re import _constants as op  # type: ignore[attr-defined]  # the one way to walk a pattern
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any


def error_type(qualified: str, *bases: type[BaseException], **attributes: Any) -> type[Exception]:
    """``error_type("httpx.ReadTimeout")``: a class of that package and name."""
    module, _, name = qualified.rpartition(".")
    return type(name, bases or (Exception,), {"__module__": module, **attributes})  # type: ignore[return-value]


def make(qualified: str, *args: Any, **attributes: Any) -> Exception:
    """An instance of such a class, with these attributes."""
    error = error_type(qualified)(*args)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


class Response:
    """An error as HTTP clients raise it: with status, headers and a body that has been read."""

    def __init__(self, status: int, body: Any = b"", headers: dict[str, str] | None = None) -> None:
        self.status_code = status
        self._content = body
        self.headers = headers or {}


def http_error(status: int, body: Any = b"", headers: dict[str, str] | None = None, text: str = "") -> Exception:
    return make("acme.ApiError", text, response=Response(status, body, headers))


def samples(pattern: str, count: int, seed: int = 1) -> set[str]:
    """Texts that the pattern fits, made by walking it."""
    tree, compiled, chance = parser.parse(pattern), re.compile(pattern), random.Random(seed)
    found = {_sample(tree, chance) for _ in range(count)}
    return {text for text in found if compiled.search(text)}


_CLASSES = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "q", "CATEGORY_SPACE": " ", "CATEGORY_NOT_SPACE": "q"}


def _sample(tree: Any, chance: random.Random) -> str:
    made = []
    for code, value in tree:
        if code is op.LITERAL:
            made.append(chr(value))
        elif code is op.ANY:
            made.append(chance.choice("q "))
        elif code is op.IN:
            made.append(_choose(value, chance))
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, part = value
            made += [_sample(part, chance) for _ in range(chance.randint(least, min(most, least + 2)))]
        elif code is op.SUBPATTERN:
            made.append(_sample(value[3], chance))
        elif code is op.BRANCH:
            made.append(_sample(chance.choice(value[1]), chance))
    return "".join(made)


def _choose(options: Any, chance: random.Random) -> str:
    if options[0][0] is op.NEGATE:
        return "q"
    code, value = chance.choice(options)
    if code is op.LITERAL:
        return chr(value)
    if code is op.RANGE:
        return chr(chance.randint(*value))
    return _CLASSES.get(str(value), ":")
