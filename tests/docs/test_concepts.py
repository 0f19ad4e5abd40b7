"""The pages of docs/concepts are true: their code runs and prints what they say, their manifests load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failsoft.core.manifest import load

PAGES = sorted((Path(__file__).parents[2] / "docs" / "concepts").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
BLOCKS = [(page.stem, *found.groups()) for page in PAGES for found in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize(
    ("code", "shown"),
    [pytest.param(code, shown, id=page) for page, language, code, shown in BLOCKS if language == "python"],
)
def test_code_prints_what_the_page_shows(code: str, shown: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "page", "exec", dont_inherit=True), {"__name__": "page"})
    assert capsys.readouterr().out == (shown or "")


@pytest.mark.parametrize(
    "text", [pytest.param(code, id=page) for page, language, code, _ in BLOCKS if language == "yaml"]
)
def test_manifests_load(text: str) -> None:
    assert load(text).name == "manifest"


def test_there_are_pages() -> None:
    assert {language for _, language, _, _ in BLOCKS} == {"python", "yaml"}
