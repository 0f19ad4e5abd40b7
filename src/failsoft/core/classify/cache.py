"""Recalling what was read before: the same service says the same thing a thousand times.

Rules
-----
- Patterns are compiled when they are first needed, and kept.
- Only the hash of a text is kept, never the text: there may be a secret in it. What else is asked for is kept as it is.
- So many results, and no more; then all are forgotten. Long texts are read anew: hashing a megabyte takes its time too.

Why hashes: an answer's body must not outlive the call that it came with, and two texts of one hash (64 bits, seeded
anew in every process) will not be met.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

KEPT: Final = 1024
LENGTH: Final = 4096

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=128)
def compiled(pattern: str) -> re.Pattern[str]:
    """``re.compile``, with a shorter way to what it keeps."""
    return re.compile(pattern)


def recalled(read: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """``read`` with a memory. It must be pure, and is called by position."""
    kept: dict[tuple[object, ...], R] = {}
    missing = object()

    def recall(text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(text) > LENGTH:
            return read(text, *args, **kwargs)
        key = (hash(text), *args)
        result = kept.get(key, missing)  # in one step: another thread may make room at any moment
        if result is missing:
            result = read(text, *args, **kwargs)
            if len(kept) >= KEPT:
                kept.clear()
            kept[key] = result
        return cast("R", result)

    return recall
