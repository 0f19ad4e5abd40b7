"""What the scripts that write pages of docs/ share: tables, and the parts of a page that are generated.

A page is generated as a whole, or between ``<!-- generated: name, by tools/x_page.py -->`` and ``<!-- end -->``. Each
``tools/*_page.py`` has ``pages()``, which gives the text of every page it knows; ``make docs`` writes them, and a test
compares them with what is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def row(*cells: object) -> str:
    """One line of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(titles: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table."""
    titles = list(titles)
    return "\n".join([row(*titles), "|" + "---|" * len(titles), *(row(*cells) for cells in rows)])


def fill(page: Path, parts: Mapping[str, str]) -> str:
    """The page's text with its generated parts made anew; every part has its place, and every place its part."""
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
