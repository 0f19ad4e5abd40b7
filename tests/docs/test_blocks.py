"""Every code block of README.md and docs/ is true: it runs, and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.blocks import PAGES, ROOT, Block, PageRun, all_blocks, fits, named, outside, read_blocks
from tests.docs.stages import STAGES

MOST_EXCUSES = 8  # blocks that are not run; each says why

WITH_BLOCKS = [page for page in PAGES if read_blocks(page)]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("FAILSOFT_STORE", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    stage = STAGES.get(named(page))
    run = PageRun({} if stage is None else stage(monkeypatch), silent=page.parent != ROOT)
    try:
        for block in read_blocks(page):
            run.run(block)
    finally:
        run.close()
    assert run.unused == set(), "files that no command of the page uses"


def test_few_blocks_are_excused() -> None:
    excused = [f"{block.place}: {block.excuse}" for _, block in all_blocks() if block.excuse is not None]
    assert len(excused) <= MOST_EXCUSES, excused


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_block_escapes(page: Path) -> None:
    """Fences that are indented, of tildes or of four backticks would not be seen; nor would HTML."""
    assert re.findall(r"^\s*(?:```|~~~|<pre)", outside(page), re.MULTILINE) == []


def test_every_stage_has_its_page() -> None:
    assert {*STAGES} <= {named(page) for page in WITH_BLOCKS}


def test_many_blocks_run() -> None:
    assert sum(block.excuse is None for _, block in all_blocks()) >= 90


# --- the reader of pages can fail ------------------------------------------------------------------------------------


def block(language: str, text: str, shown: str | None = None, excuse: str | None = None) -> Block:
    return Block("page:1", language, text, shown, excuse, generated=False)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (block("python", "print(1)\n", "2\n"), "prints\n1"),
        (block("python", "print(1)\n"), "does not show"),
        (block("console", "$ failsoft --version\nfailsoft 9.9.9\n"), "prints"),
        (block("console", "$ failsoft nonsense\n"), "exit code 2"),
        (block("console", "$ failsoft nonsense\n…\n$ echo $?\n1\n"), "gives 2"),
        (block("console", "$ rm -rf x\n"), "nobody knows"),
        (block("console", '$ pip install "failsoft[nonsense]"\n'), "nonsense"),
        (block("console", '$ pip install ".[nonsense]"\n'), "nonsense"),
        (block("", "something\n"), "say what this is"),
        (block("text", "a picture\n"), "is not run"),
        (block("mermaid", "graph TD\n"), "is not run"),
    ],
    ids=["output", "unshown", "command", "exit", "echo", "stranger", "extra", "clone", "bare", "text", "picture"],
)
def test_a_wrong_block_is_noticed(wrong: Block, match: str) -> None:
    run = PageRun({}, silent=True)
    try:
        with pytest.raises(AssertionError, match=match):
            run.run(wrong)
    finally:
        run.close()


def test_broken_manifests_and_code_are_noticed() -> None:
    run = PageRun({}, silent=True)
    try:
        for wrong in (block("yaml", "tools: {a: {timeout: 3}}\n"), block("python", "await nothing()\n")):
            with pytest.raises(Exception, match=r"timeout|nothing"):
                run.run(wrong)
    finally:
        run.close()


def test_ellipses_line_breaks_and_timings_may_differ_as_declared() -> None:
    assert fits("a … c\n", "a b\nb c\n", "to the letter")
    assert not fits("a … c\n", "a b d\n", "to the letter")
    assert not fits("a b\n", "a\nb\n", "to the letter")
    assert fits("a\nb\n", "a b\n", "in other lines")
    assert not fits("took 0.5 s\n", "took 0.6 s\n", "in other lines")
    assert fits("┃ a ▒▒✗█  took 0.5 s\n", "┃ a ▒✗███  took\n0.6 s\n", "loosely")
    assert not fits("a took 0.5 s\n", "b took 0.5 s\n", "loosely")


# --- links -----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to."""
    headings = re.findall(r"^#+ (.+)$", outside(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", outside(page)):
        found = anchors(page if not target else (page.parent / target).resolve())
        assert anchor in found, f"{target}#{anchor}"


def test_pictures_are_shown_and_small() -> None:
    pages = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    pictures = sorted((ROOT / "docs" / "assets").iterdir())
    assert [path.name for path in pictures if f"assets/{path.name})" not in pages] == []
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []
