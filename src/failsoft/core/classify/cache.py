"""Caches for reading texts: services repeat the same errors.

Rules
-----
- Patterns are compiled on first use and kept.
- Only the hash of a text is kept, never the text, which may contain a secret. Other arguments are kept as they are.
- A cache is cleared when it is full. Long texts are not cached, because hashing a megabyte is slow too.

Hashes are used because a response body must not outlive its call. Collisions are negligible: 64 bits, seeded per process.
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
    """Return the compiled pattern, faster than ``re.compile`` does."""
    return re.compile(pattern)


def cached(read: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """Cache the results of ``read``, which must be pure and is called with positional arguments."""
    kept: dict[tuple[object, ...], R] = {}
    missing = object()

    def recall(text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(text) > LENGTH:
            return read(text, *args, **kwargs)
        key = (hash(text), *args)
        result = kept.get(key, missing)  # one lookup: another thread may clear the cache at any time
        if result is missing:
            result = read(text, *args, **kwargs)
            if len(kept) >= KEPT:
                kept.clear()
            kept[key] = result
        return cast("R", result)

    return recall
