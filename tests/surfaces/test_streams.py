"""Standard output that is closed, full, cut off, or knows no box: one clear line at most, never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from failsoft.analysis.waterfall.terminal import CRITICAL, FALLBACK, FORMS, SIGNS
from failsoft.surfaces.cli import cli
from failsoft.surfaces.cli.streams import is_utf8, prepare

WHY = ("why", "--trace", "example")
FAILSOFT = (sys.executable, "-m", "failsoft")


def run(*args: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return subprocess.run(
        [*FAILSOFT, *args], stdout=stdout, stderr=subprocess.PIPE, env={**env, **environment}, check=False, timeout=60
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [WHY, ("classify", "503", "--json"), ("check", "-h")],
    ids=" ".join,
)
def test_a_reader_that_leaves(args: tuple[str, ...]) -> None:
    there, here = os.pipe()
    os.close(there)
    done = run(*args, stdout=here)
    os.close(here)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_a_turn_finishes_even_if_standard_output_is_closed(tmp_path: Path) -> None:
    (tmp_path / "marking.py").write_text(
        "import time, pathlib\n\ndef first():\n    time.sleep(0.3)\n\ndef last(x):\n    pathlib.Path('done').touch()\n"
    )
    functions = "first: {entrypoint: {function: 'marking:first'}}, last: {entrypoint: {function: 'marking:last'}}"
    (tmp_path / "failsoft.yaml").write_text(f"defaults: {{idempotent: false}}\ntools: {{{functions}}}")
    (tmp_path / "plan.yaml").write_text("calls: [{id: a, tool: first}, {tool: last, args: {x: {$ref: a}}}]")
    there, here = os.pipe()
    os.close(there)
    done = subprocess.run(
        [*FAILSOFT, "run", "plan.yaml"], stdout=here, stderr=subprocess.PIPE, cwd=tmp_path, check=False
    )
    os.close(here)
    assert (done.returncode, done.stderr) == (141, b"")
    assert (tmp_path / "done").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("args", [WHY, (*WHY, "--json")], ids=["words", "json"])
def test_a_full_disk_is_reported_in_one_line(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(*args, stdout=full.fileno())
    assert (done.returncode, done.stderr) == (
        1,
        b"failsoft: standard output could not be written: No space left on device\n",
    )


@pytest.mark.slow
def test_output_that_is_closed() -> None:
    command = " ".join([*FAILSOFT, *WHY])
    done = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp437"])
def test_drawings_use_only_characters_of_the_encoding(encoding: str) -> None:
    shown = run("trace", "show", "--trace", "example", PYTHONIOENCODING=encoding)
    whole = run("trace", "show", "--trace", "example", PYTHONIOENCODING="utf-8")
    assert (shown.returncode, shown.stderr) == (0, b"")
    text, drawn = shown.stdout.decode(encoding), whole.stdout.decode()
    assert "?" not in text
    assert [len(line) for line in text.splitlines()] == [len(line) for line in drawn.splitlines()]


def test_every_sign_of_a_picture_has_a_plain_one_and_they_differ() -> None:
    prepare()
    signs = [CRITICAL, FALLBACK, *SIGNS.values(), *(char for pair in FORMS.values() for char in pair)]
    plain = {sign: sign.encode("ascii", "failsoft.nearest") for sign in signs}
    assert b"?" not in plain.values()
    bodies = {plain[body] for body, _ in FORMS.values()}
    assert len(bodies) == len({body for body, _ in FORMS.values()})


@pytest.mark.slow
def test_errors_are_written_in_the_encoding_of_the_terminal() -> None:
    done = run("check", "caf\u00e9 \u2192", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode("ascii").startswith("failsoft: ")
    assert b"caf? >" in done.stderr


@pytest.mark.slow
def test_data_is_never_changed() -> None:
    told = run(*WHY, "--json", PYTHONIOENCODING="ascii")
    whole = run(*WHY, "--json", PYTHONIOENCODING="utf-8")
    assert json.loads(told.stdout) == json.loads(whole.stdout)
    exports = [
        run("trace", "export", "--trace", "example", "--format", "html", PYTHONIOENCODING=name).stdout
        for name in ("ascii", "utf-8")
    ]
    assert exports[0] == exports[1]


@pytest.mark.parametrize(("encoding", "good"), [("utf-8", True), ("UTF8", True), ("ascii", False), ("no such", False)])
def test_only_utf8_counts_as_able_to_encode_everything(encoding: str, good: bool) -> None:
    class Stream:
        pass

    stream = Stream()
    assert is_utf8(stream)  # it does not say, so it takes texts
    stream.encoding = encoding  # type: ignore[attr-defined]
    assert is_utf8(stream) is good


@pytest.mark.slow
@pytest.mark.parametrize("args", [WHY, ("trace", "show", "--trace", "example")], ids=["why", "show"])
def test_narrow_terminals_raise_no_error(args: tuple[str, ...]) -> None:
    for columns in ("40", "20"):
        done = run(*args, COLUMNS=columns, PYTHONIOENCODING="utf-8")
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_colours_are_asked_for_or_not_shown() -> None:
    ansi = re.compile(rb"\x1b\[")
    assert ansi.search(run(*WHY, FORCE_COLOR="1").stdout)
    assert not ansi.search(
        run(*WHY, FORCE_COLOR="1", NO_COLOR="1").stdout.replace(b"\x1b[1m", b"").replace(b"\x1b[0m", b"")
    )
    assert not ansi.search(run(*WHY).stdout)


@pytest.mark.parametrize("args", [WHY, ("trace", "show", "--trace", "example"), ("classify", "503")], ids=" ".join)
def test_no_line_ends_in_blanks(args: tuple[str, ...]) -> None:
    lines = CliRunner().invoke(cli, args).stdout.splitlines()
    assert len(lines) > 4
    assert [line for line in lines if line != line.rstrip()] == []
