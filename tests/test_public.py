"""The public modules and their names; everything else in failsoft may change at any time."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PINNED = dict(
    line.split(": ", 1) for line in (ROOT / "tests" / "public_modules.txt").read_text().splitlines() if ": " in line
)
ADAPTERS = sorted(path.parent.name for path in (ROOT / "src" / "failsoft" / "adapters").glob("*/__init__.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


USERS = {  # and whom they are for
    "failsoft.testing": "tests of error paths, of stores and of adapters",
    "failsoft.integration": "adapters",
    "failsoft.otel": "programs that trace with OpenTelemetry",
    "failsoft.prometheus": "programs that Prometheus scrapes",
    "failsoft.client": "programs that talk to a daemon",
    "failsoft.stores.ports": "stores",
    "failsoft.stores.url": "programs that read a store",
    "failsoft.analysis.source": "programs that read a trace",
}


def public(module: str) -> bool:
    return module in PINNED or module == "failsoft"


def test_only_these_modules_are_public() -> None:
    """``failsoft`` itself is pinned by tests/public_names.txt."""
    adapters = {f"failsoft.adapters.{name}" for name in ADAPTERS}
    assert {*PINNED} == {*USERS, *adapters}


@pytest.mark.parametrize("module", sorted(PINNED))
def test_a_public_module_has_the_names_that_we_promised(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == PINNED[module].split(), "mend tests/public_modules.txt and CHANGELOG"
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", [*USERS, "failsoft.adapters.*"])
def test_the_rule_is_written_where_users_look(module: str) -> None:
    for page in ("CHANGELOG.md", "ARCHITECTURE.md"):
        assert f"`{module}`" in (ROOT / page).read_text(), page
    assert module.removesuffix(".*") in (ROOT / "docs" / "reference" / "api.md").read_text()


def imported(code: str) -> set[str]:
    """The modules of failsoft that a piece of code imports; code that is no Python on its own imports none."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set(re.findall(r"^\s*(?:from|import) (failsoft[\w.]*)", code, re.MULTILINE))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name for name in names if name.split(".")[0] == "failsoft"}


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documentation_and_examples_import_public_modules_only(path: Path) -> None:
    text = path.read_text()
    blocks = [text] if path.suffix == ".py" else CODE.findall(text)
    assert sorted(name for block in blocks for name in imported(block) if not public(name)) == []
