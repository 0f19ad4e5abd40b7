"""Names in src/ follow the glossary, and the documentation avoids phrases that have to be read twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from tokenize import COMMENT, generate_tokens

import pytest
from click.testing import CliRunner
from tools.cli_page import walk

from failsoft.surfaces.cli import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "failsoft"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")

# --- names -----------------------------------------------------------------------------------------------------------

EMPTY_WORDS = {"helper", "helpers", "manager", "processor", "util", "utils"}  # docs/development/style.md, "Names"

# Names that are not ours to change, each with its reason.
ALLOWED = {
    "Dangling": "public: rt.threads[key].dangling",
    "dangling": "public: rt.threads[key].dangling",
    "close_dangling": "public: rt.threads[key].close_dangling()",
    "explain_dangling": "public: failsoft.integration",
    "left": "public: turn.left()",
    "told": "public: report.told",
    "OutsideEngineError": "a durable engine",
    "is_engine_toolset": "a durable engine",
    "refuse_engine_toolsets": "a durable engine",
    "_kill_orphans": "orphan processes, as operating systems call them",
    "_shadow": "an entry of a manifest that shadows another",
}


def definitions(module: Path) -> Iterator[str]:
    yield module.stem
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def forbidden_words() -> set[str]:
    rows = re.findall(r"^\| \*\*.*\|([^|]*)\|$", GLOSSARY, re.MULTILINE)
    return {word for cell in rows for word in re.findall(r"`(\w+)`", cell)}


def test_the_glossary_has_words_to_avoid() -> None:
    assert {"way", "quick", "orphan", "tell"} <= forbidden_words()


def test_names_use_the_words_of_the_glossary() -> None:
    names = {name for module in SOURCE.rglob("*.py") for name in definitions(module)}
    found = {name for name in names if words(name) & (forbidden_words() | EMPTY_WORDS)}
    assert found - ALLOWED.keys() == set(), "docs/glossary.md has the word to use instead"
    assert ALLOWED.keys() - found == set(), "gone: take these out of ALLOWED"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("_tellSuccess", {"tell", "success"}), ("HTTPError", {"http", "error"}), ("run_way", {"run", "way"})],
)
def test_names_are_split_into_words(name: str, expected: set[str]) -> None:
    assert words(name) == expected


# --- phrases ---------------------------------------------------------------------------------------------------------

PHRASES = re.compile(
    r"\b(st(?:ands?|ood) in for|in vain|whose move|taken for|brought (?:a|no) value|left behind|somebody|nobody"
    r"|of its own choice|dearest|untold|too little to part|look(?:s|ed)? over|rehomed|of which (?:it is|nothing is known)|told apart|thereby|whereof|afresh|whatever becomes of|(?:is|are) is|caller (?:has |had )?left|by whom|for whom|is no \w+Options)\b",
    re.IGNORECASE,
)
RIDDLE = re.compile(r"(What|Who|Whose|Where|Of|Whether)\b")


PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "tests/corpus/README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
BY_HAND = [page for page in PAGES if "<!-- Written by" not in page.read_text(encoding="utf-8")]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """A page without code, words in code font, and generated parts."""
    text = re.sub(r"<!-- generated: [^\n]* -->\n(?s:.*?)<!-- end -->", "", text)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"`[^`\n]*`", "``", text).split())


def phrases(text: str) -> list[str]:
    return [text[max(0, hit.start() - 30) : hit.end() + 30] for hit in PHRASES.finditer(text)]


@pytest.mark.parametrize("page", BY_HAND, ids=named)
def test_pages_are_in_plain_english(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name in ("glossary.md", "style.md"):  # they list what not to write
        text = re.sub(r"^\|.*\|$", "", text, flags=re.MULTILINE)
    assert phrases(prose(text)) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_tables_have_one_row_per_line(page: Path) -> None:
    """A table whose lines were joined is shown as one paragraph."""
    joined = re.findall(r"^.*\S.*\| \|?---.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert joined == []


def test_the_newest_section_of_the_changelog_is_in_plain_english() -> None:
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert phrases(prose(newest)) == []


@pytest.mark.parametrize("command", ["", *(name for name, _ in walk(cli))])
def test_help_texts_are_in_plain_english(command: str) -> None:
    text = " ".join(CliRunner().invoke(cli, [*command.split(), "--help"]).output.split())
    assert phrases(text) == []


def docstrings() -> Iterator[tuple[str, str]]:
    for module in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                yield named(module), ast.get_docstring(node) or ""


def test_docstrings_begin_with_an_imperative_or_a_noun() -> None:
    assert [(module, text.splitlines()[0]) for module, text in docstrings() if RIDDLE.match(text)] == []


def test_comments_are_in_plain_english() -> None:
    found = []
    for module in sorted(SOURCE.rglob("*.py")):
        with module.open(encoding="utf-8") as source:
            comments = [token.string for token in generate_tokens(source.readline) if token.type == COMMENT]
        found += [(named(module), phrase) for phrase in phrases(" ".join(comment.lstrip("# ") for comment in comments))]
    assert found == []


def test_docstrings_are_in_plain_english() -> None:
    assert [(module, found) for module, text in docstrings() if (found := phrases(prose(text)))] == []


@pytest.mark.parametrize(
    "text",
    [
        "It stands in for the other.",
        "Somebody has to look.",
        "a call that brought no value",
        "left behind",
        "told apart",
        "a word that it never is is logged",
        "the caller had left",
    ],
)
def test_phrases_are_found(text: str) -> None:
    assert phrases(text)
