"""The code blocks of a page, and what running a page means.

Rules
-----
- The blocks of a page run from top to bottom, in one empty directory and one namespace, as a reader would try them.
- ``python`` is run. Its output is the ``text`` block right below it, long lines wrapped; there is none if it prints
  nothing.
  ``await`` may stand outside of functions, as in ``python -m asyncio``.
- A block that begins with ``# name.py`` is that file: it is saved, and some command below has to use it.
- ``yaml`` is a manifest, or a plan if it has ``calls``; it is loaded, and saved if it begins with ``# name.yaml``.
- ``console`` has commands after ``$ ``, each with what it prints (of Python programs that end well: not their log). An exit code other than 0 is shown by ``$ echo $?``.
- ``…`` stands for what is left out. Times, dates, ids and bars of a command's output may differ; what is read from the
  recorded example may not. ``pip`` and ``make`` are not run: what they name has to exist.
- What cannot be run says why, in the line above: ``<!-- not run: why -->``. Pictures are generated, or marked so.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, NamedTuple

import yaml
from click.testing import CliRunner

from failsoft.config.manifest import load, load_plan
from failsoft.surfaces.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

How = Literal["to the letter", "in other lines", "loosely"]

_FENCE = re.compile(r"^```(?P<language>.*)\n(?P<text>(?s:.*?))^```$", re.MULTILINE)
_NOT_RUN = re.compile(r"<!-- not run: (?P<why>[^\n]+?) -->\n+\Z")
_GENERATED = re.compile(r"<!-- generated: [^\n]* -->\n(?s:.*?)<!-- end -->")
_FILE = re.compile(r"# (?P<name>[\w.-]+\.(?:py|yaml))\n")
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_INSTALL = re.compile(r"(make(?: [a-z-]+)?|(?:python -m )?pip install .*|git clone .*)\s*(?:#.*)?")
_SHELL = set("|<>&;$`*")
# What a command of a page may see of the environment: the rest (CI, PYTEST_…, COLUMNS) changes what programs print.
_READERS_OWN = {"HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}
_BARS = "█▒╱▆▓░┄≈✗!▶◆╳○┃"
_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?|\b\d\d:\d\d:\d\d\.\d+"), "<when>"),
    (re.compile(r"\b\d+(\.\d+)? ?m?s\b"), "<time>"),
    (re.compile(r"\bturn-[0-9a-f]{12}\b"), "<turn>"),
    (re.compile(r"\bpid \d+|\b[\d.]+[kM]?B\b"), "<number>"),
    (re.compile(rf"[\s{_BARS}]+"), " "),
    (re.compile(r"(<time> )+"), "<time> "),
)


class Block(NamedTuple):
    """One fenced block."""

    place: str  # page:line
    language: str
    text: str
    shown: str | None  # the text block right below a python block
    excuse: str | None  # why it is not run
    generated: bool  # a test compares it with what the code says

    @property
    def file(self) -> str | None:
        found = _FILE.match(self.text)
        return found["name"] if found else None


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page; a ``text`` block below a python block belongs to it."""
    text = page.read_text(encoding="utf-8")
    generated = [found.span() for found in _GENERATED.finditer(text)]
    blocks: list[Block] = []
    end = 0
    for found in _FENCE.finditer(text):
        between, end = text[end : found.start()], found.end()
        place = f"{named(page)}:{text.count(chr(10), 0, found.start()) + 1}"
        language, body = found["language"].strip(), found["text"]
        above = blocks[-1] if blocks else None
        if language == "text" and above and above.language == "python" and not between.strip() and not above.file:
            blocks[-1] = above._replace(shown=body)
            continue
        excuse = _NOT_RUN.search(between)
        inside = any(start < found.start() < stop for start, stop in generated)
        blocks.append(Block(place, language, body, None, excuse["why"] if excuse else None, inside))
    return blocks


def outside(page: Path) -> str:
    """The text of a page outside of its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def fits(shown: str, printed: str, how: How) -> bool:
    """True if the page shows the printed output; ``…`` matches anything."""
    tidy = {"to the letter": _strip, "in other lines": _join, "loosely": _loosen}[how]
    pattern = ".*".join(re.escape(tidy(part)) for part in shown.split("…"))
    return re.fullmatch(rf"\s*{pattern}\s*", tidy(printed), re.DOTALL) is not None


def _strip(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def _join(text: str) -> str:
    return " ".join(text.split())


def _loosen(text: str) -> str:
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return text.strip()


class PageRun:
    """Runs a page's blocks in the current directory."""

    def __init__(self, names: dict[str, Any], *, silent: bool) -> None:
        self.names = {"__name__": "page", **names}
        self.silent = silent  # what a block prints has to be shown
        self.files: dict[str, str] = {}  # that were saved
        self.used: set[str] = set()  # by a command, or by a file that is used
        self.status = 0
        self.runner = asyncio.Runner()

    def close(self) -> None:
        self.runner.close()

    def run(self, block: Block) -> None:
        """Run one block; AssertionError: the page is not true."""
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
            self.files[block.file] = block.text
        if block.excuse is not None:
            return
        known = {"python": self._python, "yaml": self._yaml, "console": self._console, "json": self._json}
        if block.language in known:
            known[block.language](block)
        elif block.language in ("", "sh"):
            for line in block.text.splitlines():
                assert _INSTALL.fullmatch(line), f"{block.place}: say what this is (python, console …), or <!-- not run"
                check_install(line, block.place)
        else:
            assert block.generated, f"{block.place}: a {block.language} block is not run: generate it, or say why"

    def _python(self, block: Block) -> None:
        if block.file is not None:
            compile(block.text, block.file, "exec", dont_inherit=True)
            return
        code = compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with redirect_stdout(io.StringIO()) as printed:
            if code.co_flags & inspect.CO_COROUTINE:
                self.runner.run(FunctionType(code, self.names)())
            else:
                exec(code, self.names)
        output = printed.getvalue()
        if block.shown is not None:
            assert fits(block.shown, output, "in other lines"), f"{block.place} prints\n{output}"
        elif self.silent:
            assert not output, f"{block.place} prints what the page does not show:\n{output}"

    def _yaml(self, block: Block) -> None:
        data = yaml.safe_load(block.text)
        (load_plan if isinstance(data, dict) and "calls" in data else load)(block.text, name=block.place)

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _console(self, block: Block) -> None:
        commands = _COMMAND.findall(block.text)
        assert commands, f"{block.place}: no command: it begins with '$ '"
        for number, (command, shown) in enumerate(commands):
            if _INSTALL.fullmatch(command):
                check_install(command, block.place)
                continue
            if command == "echo $?":
                assert int(shown) == self.status, f"{block.place}: {command} gives {self.status}"
                continue
            output = self._execute(command)
            told = number + 1 < len(commands) and commands[number + 1][0] == "echo $?"
            assert told or self.status == 0, f"{block.place}: {command} ends with exit code {self.status}:\n{output}"
            if shown.strip():
                how: How = "to the letter" if "--trace example" in command else "loosely"
                assert fits(shown, output, how), f"{block.place}: {command} prints\n{output}"
            self._use(command)

    def _use(self, text: str) -> None:
        """Note the files that a command names, and those that they name."""
        named = {file for file in self.files if re.search(rf"\b{re.escape(Path(file).stem)}\b", text)}
        for file in named - self.used:
            self.used.add(file)
            self._use(self.files[file])

    @property
    def unused(self) -> set[str]:
        """Python files that no block has run."""
        return {file for file in self.files if file.endswith(".py")} - self.used

    def _execute(self, command: str) -> str:
        program, *args = shlex.split(command)
        if program == "failsoft" and not _SHELL & {*command}:
            result = CliRunner().invoke(cli, args)
            self.status = result.exit_code
            return result.output
        assert program in ("failsoft", "python", "pytest", "cat"), f"{command}: nobody knows how to check this"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name in _READERS_OWN}
        ended = subprocess.run(
            ["sh", "-c", command],
            # langsmith's pytest plugin warns on Python 3.14 when it is loaded
            env={**kept, "PATH": path, "PYTEST_ADDOPTS": "-p no:langsmith_plugin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        self.status = ended.returncode
        # A program that ended well has written nothing to standard error but its log, whose place in the output varies.
        return ended.stdout if program == "python" and not ended.returncode else ended.stdout + ended.stderr


def check_install(command: str, place: str) -> None:
    """Check that targets of ``make`` and ``pip install`` exist, without running them."""
    word, *rest = shlex.split(command, comments=True)
    if word == "make":
        targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {*rest} <= {*targets}, f"{place}: {command}"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for named_extras in re.findall(r"(?:failsoft|\.)\[([\w,-]+)\]", command):
        assert {*named_extras.split(",")} <= {*extras}, f"{place}: {command}"


def all_blocks() -> Iterator[tuple[Path, Block]]:
    for page in PAGES:
        for block in read_blocks(page):
            yield page, block
