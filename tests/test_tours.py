"""Every command that a tour shows works, and prints what the tour says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakes import Scripted

from failsoft import Runtime
from failsoft.surfaces.cli import cli

DOCS = Path(__file__).parents[1] / "docs"
TOURS = sorted(DOCS.glob("tour-*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    texts = [tour.read_text() for tour in TOURS]
    return [found for text in texts for block in BLOCK.findall(text) for found in COMMAND.findall(block)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a store that has a turn in it."""
    monkeypatch.chdir(tmp_path)
    for name in ("FAILSOFT_STORE", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    async def play() -> None:
        async with Runtime(store="sqlite:///failsoft.db") as rt:
            rt.add(Scripted("fine"), id="search")
            async with rt.turn() as turn:
                turn.call("search")

    asyncio.run(play())
    return tmp_path


def test_there_are_tours() -> None:
    assert len(commands()) >= 8


@pytest.mark.parametrize(("command", "shown"), commands(), ids=[command for command, _ in commands()])
def test_a_command_works_and_prints_what_is_shown(command: str, shown: str, here: Path) -> None:
    name, *args = command.split()
    assert name == "failsoft"
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 0, result.output
    printed = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip("\n")
    for part in re.split(r"^…$", shown, flags=re.MULTILINE):  # what a tour leaves out
        assert part.strip("\n") in printed
