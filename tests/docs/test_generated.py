"""Generated pages in docs/ agree with the code, and every public name is documented."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tools import api_page, cli_page, manifest_words

import failsoft
from failsoft import testing
from failsoft.config.manifest import load, load_plan
from failsoft.core.model import builtin_faults
from failsoft.surfaces.cli import cli

ROOT = Path(__file__).parents[2]
WRITERS = sorted(path.stem for path in (ROOT / "tools").glob("*_page.py"))
PAGES = [name for name in WRITERS if hasattr(importlib.import_module(f"tools.{name}"), "pages")]
EXAMPLES = list(manifest_words.examples())


@pytest.mark.parametrize("writer", PAGES)
def test_pages_are_up_to_date(writer: str) -> None:
    for page, text in importlib.import_module(f"tools.{writer}").pages().items():
        assert page.read_text(encoding="utf-8") == text, f"{page.relative_to(ROOT)}: run make docs"


def test_generating_the_cli_page_does_not_change_the_commands() -> None:
    cli_page.pages()
    for name, _ in cli_page.walk(cli):
        assert CliRunner().invoke(cli, [*name.split(), "-h"]).exit_code == 0, f"{name} -h"


def test_make_docs_runs_them_all() -> None:
    assert "tools/*_page.py" in (ROOT / "Makefile").read_text()
    assert {"api_page", "architecture_page", "cli_page", "manifest_page", "metrics_page", "tables_page"} <= {*PAGES}


@pytest.mark.parametrize(("name", "plan", "file"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_the_example_of_every_option_loads(name: str, plan: bool, file: dict[str, Any]) -> None:
    assert (load_plan if plan else load)(file)


def test_every_public_name_is_in_the_reference() -> None:
    told = {module: {*names} for _, module, _, names in api_page.ROOMS if module not in ("", "failsoft")}
    everything = {name for _, module, _, names in api_page.ROOMS if module == "failsoft" for name in names}
    assert everything == {*failsoft.__all__}
    assert told["failsoft.testing"] == {*testing.__all__}


def test_every_public_name_has_a_docstring_worth_reading() -> None:
    for name in failsoft.__all__:
        text = inspect.getdoc(getattr(failsoft, name)) or ""
        assert len(text.split()) >= 5, f"{name}: {text!r}"
        assert not text.startswith(f"{name}("), f"{name} has only the docstring that Python makes"


def test_every_fault_of_failsofts_own_is_in_the_trouble_page() -> None:
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    known = {value for name, value in vars(builtin_faults).items() if name == str(value).upper()}
    assert rows == known
