"""The event stream as JSON lines in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from failsoft.core.plain import plain
from failsoft.observe.events import Event


def write_to(path: str | Path) -> Callable[[Sequence[Event]], None]:
    """A sink that appends every event as one line."""
    place = Path(path)

    def consume(batch: Sequence[Event]) -> None:
        lines = "".join(json.dumps(plain(event.to_dict()), ensure_ascii=False) + "\n" for event in batch)
        with place.open("a", encoding="utf-8") as file:
            file.write(lines)

    return consume
