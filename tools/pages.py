"""Helpers for the scripts that write pages of docs/: tables, and the generated parts of a page.

A page is generated as a whole, or between ``<!-- generated: name, by tools/x_page.py -->`` and ``<!-- end -->``. Each
``tools/*_page.py`` has ``pages()``, which returns the text of every page it generates. ``make docs`` writes the pages,
and a test compares them with the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def row(*cells: object) -> str:
    """Format one line of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(titles: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Format a table."""
    titles = list(titles)
    return "\n".join([row(*titles), "|" + "---|" * len(titles), *(row(*cells) for cells in rows)])


def fill(page: Path, parts: Mapping[str, str]) -> str:
    """Replace the generated parts of a page. Every part must have a place, and every place a part."""
    text = page.read_text(encoding="utf-8")
    for name, made in parts.items():
        place = re.compile(rf"(<!-- generated: {re.escape(name)}, [^\n]* -->\n)(?s:.*?)(<!-- end -->)")
        text, found = place.subn(lambda match, made=made: f"{match[1]}\n{made.strip()}\n\n{match[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"{page}: {found} places for the generated part {name!r}, there must be one")
    return text


def write(made: Mapping[Path, str]) -> None:
    """Write the pages."""
    for page, text in made.items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
