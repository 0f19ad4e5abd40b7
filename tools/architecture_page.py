"""Write the packages of ARCHITECTURE.md from their docstrings: ``python -m tools.architecture_page``."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from tools.pages import DOCS, fill, write

ROOT = DOCS.parent
PAGE = ROOT / "ARCHITECTURE.md"
SOURCE = ROOT / "src" / "failsoft"


def rooms() -> list[str]:
    """The top-level packages, from top to bottom, in the order of the import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["failsoft"])
    return [name for layer in layers for name in re.findall(r"\w+", layer) if (SOURCE / name / "__init__.py").exists()]


def packages() -> list[Path]:
    """Every package of failsoft, each below the package that contains it."""
    order = ["", *rooms()]
    found = [path.parent for path in SOURCE.rglob("__init__.py")]
    return sorted(found, key=lambda path: (order.index(named(path).partition("/")[0]), named(path)))


def named(package: Path) -> str:
    """The path of a package inside failsoft, empty for failsoft itself."""
    return "/".join(package.relative_to(SOURCE).parts)


def paragraph(package: Path) -> str:
    """The prose at the top of a package's docstring, as one paragraph: everything before a heading or an example."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    prose = takewhile(lambda part: not part.startswith(" ") and "\n---" not in part, text.split("\n\n"))
    return " ".join(" ".join(prose).split()).replace("``", "`")


def parts() -> Iterator[str]:
    for package in packages():
        name = named(package)
        link = f"[{name or 'failsoft'}]({package.relative_to(ROOT).as_posix()})"
        yield f"**{link}**: {paragraph(package)}" if "/" in name else f"### {link}\n\n{paragraph(package)}"


def pages() -> dict[Path, str]:
    return {PAGE: fill(PAGE, {"packages": "\n\n".join(parts())})}


if __name__ == "__main__":
    write(pages())
