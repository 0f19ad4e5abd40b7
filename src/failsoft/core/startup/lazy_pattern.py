"""Patterns that are compiled on first use: importing failsoft compiles none."""

from __future__ import annotations

import re
from typing import Any, cast


class LazyPattern:
    """A compiled pattern, or what is needed to make it. Has every attribute of ``re.Pattern``."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern and keep the attribute, so that it is found without this method from now on."""
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled on first use. ``re.sub`` and the like do not take it; its methods do the same."""
    return cast("re.Pattern[str]", LazyPattern(text, flags))
