"""A problem in a file or in a mapping of options, and its position."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from failsoft.errors import ManifestError

Path = tuple[str | int, ...]
Severity = Literal["error", "warning"]

MOST = 100  # problems listed in one error
_LONGEST_KEY = 60
_PLACE = re.compile(r"(.*):([0-9]+):([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake and its correction. Its text is ``file:line:column: field: message``."""

    message: str
    field: str = ""
    name: str = ""  # the file, or the owner of the options
    line: int = 0  # line and column count from 1; 0: not a file
    column: int = 0
    severity: Severity = "error"

    @classmethod
    def at(cls, place: str, field: str, message: str, severity: Severity) -> Problem:
        """Make a problem from a place given as text."""
        known = _PLACE.fullmatch(place)
        name, line, column = known.groups() if known else (place, 0, 0)
        return cls(message, field, name, int(line), int(column), severity)

    @property
    def place(self) -> str:
        """The known part of ``file:line:column``."""
        return f"{self.name}:{self.line}:{self.column}" if self.line else self.name

    def __str__(self) -> str:
        line = ": ".join(part for part in (self.place, self.field, self.message) if part)
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)  # any text


def name_field(path: Path) -> str:
    """Format a path: ``tools.search.fallbacks[0].tool``."""
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f"{'.' if shown else ''}{part[:_LONGEST_KEY]}"
    return shown


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise all problems together, in the order of the file, if there are any."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column))
    if ordered:
        more = [f"... and {len(ordered) - MOST} more"] if len(ordered) > MOST else []
        raise ManifestError(*map(str, ordered[:MOST]), *more)
