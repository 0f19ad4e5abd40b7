"""``failsoft why``: from a store and from a trace file."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inline_snapshot import snapshot
from tests.fakes import DOWN, RESET, Scripted, Takes
from tools import record_example

from failsoft import Runtime
from failsoft.surfaces.cli import cli

EVIL = "\x1b[31m<script>[red]\u202e"


def invoke(*args: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, args, input=stdin)
    assert "Traceback" not in result.output, result.output
    return result


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Two turns, the second with a hostile error."""
    address = f"sqlite:///{tmp_path}/kept.db"

    async def play() -> None:
        async with Runtime(store=address) as rt:
            rt.add(Scripted(RESET, "fine"), id="search", read_only=True, retry={"initial_delay": "1ms"})
            rt.add(Scripted(Takes(0.05, RuntimeError(EVIL))), id="bad", retry={"max_attempts": 1})
            rt.add(Scripted(DOWN), id="down", retry={"max_attempts": 1})
            async with rt.turn(id="turn-one", thread="chat") as one:
                one.call("search")
            async with rt.turn(id="turn-two") as two:
                two.call("bad", id=f"call {EVIL}")
                two.call("down")

    asyncio.run(play())
    return address


def test_the_example_is_explained() -> None:
    result = invoke("why", "--trace", "example")
    assert result.exit_code == 0
    assert "\n".join(line.rstrip() for line in result.stdout.splitlines()) == snapshot("""\
turn-40s  2025-11-06T10:32:45.000Z  40.1 s  thread chat-42

Where the time went
  40.1 s: 17.1 s in 2 failed attempts of web search, 6.0 s waiting to try again, 9.0 s useful
  (summarise, web search), 8.0 s outside tools.

  failed attempts     17.1 s   43%  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
  waiting to retry     6.0 s   15%  ╱╱╱╱╱╱
  useful               9.0 s   22%  █████████
  outside tools        8.0 s   20%  ░░░░░░░░

  All calls together took 32.9 s: 17.1 s in 2 failed attempts, 6.0 s waiting to try again, 9.8 s
  useful. Most was lost to web search: 23.1 s in 2 failed attempts and the waits between them.

Calls
    weather             ok              worked 0.8 s
  ┃ web search  search  ok, 3 attempts  timed out 15.0 s · waited 2.0 s · failed 2.1 s · waited
                                        4.0 s · worked 3.0 s
  ┃ summarise  summary  ok              worked 6.0 s

The biggest loss
  web search: 23.1 s in 2 failed attempts and their waits, in search
  error       DEADLINE_EXCEEDED, transient: Tool timeout after 15s
  decided     Transient error + circuit closed + retries available
  memory      seen in 7 episodes; retries worked 6 of 6 times

What would help
  • web_search works in 3.0 s when it works, and 1 attempt waited 15.0 s for nothing:
  `timeout: 5s` saves 10.0 s of 40.1 s.
""")


def test_the_example_is_what_its_recorder_records() -> None:
    assert record_example.record() == record_example.PLACE.read_text()


def test_the_last_turn_of_a_store_and_any_other(store: str) -> None:
    assert json.loads(invoke("why", "--store", store, "--json").stdout)["turn_id"] == "turn-two"
    one = json.loads(invoke("why", "one", "--store", store, "--json").stdout)
    assert (one["turn_id"], one["thread"], one["ended"]) == ("turn-one", "chat", True)
    assert one["loss"]["known"]["text"] == "seen in 1 episode; retries worked 1 of 1 times"
    assert "memory      seen in 1 episode" in invoke("why", "one", "--store", store).stdout


def test_one_attempt_has_no_waits(store: str) -> None:
    assert re.search(r"in 1 failed attempt, in \S", invoke("why", "--store", store).stdout)


def test_the_store_can_be_said_by_the_environment(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_STORE", store)
    assert invoke("why").stdout.startswith("turn-two")


def test_without_options_the_store_in_this_directory_is_read(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILSOFT_STORE", raising=False)
    nothing = invoke("why")
    assert nothing.exit_code == 2
    assert "there is no store at failsoft.db" in nothing.stderr
    assert "or a trace file with --trace" in nothing.stderr
    assert "--trace" not in invoke("trace", "prune", "--most", "1").stderr  # it has no such option
    assert not Path("failsoft.db").exists()  # looking makes none
    Path("kept.db").rename("failsoft.db")
    assert invoke("why").exit_code == 0


def test_hostile_text_does_nothing_to_a_terminal(store: str) -> None:
    result = CliRunner().invoke(cli, ["why", "--store", store], env={"FORCE_COLOR": "1"}, color=True)
    assert "<script>[red]" in result.stdout
    assert "\u202e" not in result.stdout
    assert "\x1b[31m<script" not in result.stdout


@pytest.mark.parametrize(
    ("turn", "said"), [("three", "there is no turn 'three'"), ("turn", "2 turns have 'turn' in their ids")]
)
def test_a_turn_that_is_not_there(store: str, turn: str, said: str) -> None:
    result = invoke("why", turn, "--store", store)
    assert (result.exit_code, said in result.stderr) == (1, True)
    assert f"failsoft trace list --store {store}\n" in result.stderr


def test_a_path_in_the_place_of_an_address() -> None:
    result = invoke("why", "--store", "kept.db")
    assert (result.exit_code, "Try: --store sqlite:///kept.db\n" in result.stderr) == (2, True)


def test_errors_in_a_trace_file_are_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    result = invoke("why", "--trace", str(tmp_path / "broken.jsonl"))
    assert f"{tmp_path}/broken.jsonl:1: this line is not an event" in result.stderr
    result = invoke("why", "--trace", "example", "nope")
    assert "Try: failsoft trace list --trace example\n" in result.stderr


@pytest.mark.parametrize("address", ["memory:", "nonsense", "sqlite:"])
def test_a_store_that_cannot_be_looked_at(address: str) -> None:
    result = invoke("why", "--store", address)
    assert result.exit_code == 2
    assert f"failsoft: {address} keeps no events" in result.stderr or "failsoft: --store: " in result.stderr


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "diary.db").write_text("dear diary " * 100)
    result = invoke("why", "--store", f"sqlite:///{tmp_path}/diary.db")
    assert result.exit_code == 2
    assert result.stderr == (
        f"failsoft: {tmp_path}/diary.db cannot be read as a store: "
        "the file is not failsoft's and is left as it is: name another one\n"
        "Name yours with --store or FAILSOFT_STORE, or a trace file with --trace.\n"
    )
    assert (tmp_path / "diary.db").read_text().startswith("dear diary")


def test_trace_files_can_be_explained(tmp_path: Path) -> None:
    lines = record_example.PLACE.read_text()
    assert invoke("why", "--trace", "-", stdin=lines).exit_code == 0
    cut = invoke("why", "--trace", "-", stdin=lines[:-30])
    assert cut.exit_code == 0  # its writer was killed in the last line
    assert "Not ended" in cut.stdout
    for text, said in (
        ("{nonsense\n{}\n", ":1: this line is not JSON"),
        ('{"a": 1}\n', ":1: this line is not an event"),
    ):
        wrong = invoke("why", "--trace", "-", stdin=text)
        assert (wrong.exit_code, said in wrong.stderr) == (2, True)
    (tmp_path / "kept.db").write_bytes(b"SQLite format 3\0\n")
    store = invoke("why", "--trace", str(tmp_path / "kept.db"))
    assert (store.exit_code, f"Try: --store sqlite:///{tmp_path / 'kept.db'}" in store.stderr) == (2, True)
    none = invoke("why", "--trace", "-", stdin="")
    assert (none.exit_code, "there are no turns" in none.stderr) == (1, True)
    assert invoke("why", "--trace", str(tmp_path / "missing")).exit_code == 2


@pytest.mark.parametrize("width", [40, 56, 72, 80, 100, 120])
def test_a_result_is_never_cut(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal would hide that a write may have acted."""
    monkeypatch.setenv("COLUMNS", str(width))
    address = f"sqlite:///{tmp_path}/kept.db"

    async def play() -> None:
        async with Runtime(store=address) as rt:
            rt.add(Scripted(Takes(0.01, TimeoutError("late"))), id="book_table_for_guests", idempotent=False)
            async with rt.turn() as turn:
                turn.call("book_table_for_guests", id="call_0a8f7c6e5d4b3a29")

    asyncio.run(play())
    shown = " ".join(invoke("why", "--store", address).stdout.partition("Calls")[2].split())
    assert "DEADLINE_EXCEEDED, may have acted" in shown
    assert "book table for guests" in shown
    listed = invoke("trace", "list", "--store", address).stdout.splitlines()
    assert "status" in listed[0]
    assert all(len(line) <= width for line in listed)


@pytest.mark.parametrize("id", ["call_0a8f7c6e5d4b3a2918f7e6d5c4b3a291", "table"])
def test_the_cause_of_a_skipped_call_is_readable(id: str, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/kept.db"

    async def play() -> None:
        async with Runtime(store=address) as rt:
            rt.add(Scripted(ValueError("no")), id="book_table", label="the table booking", read_only=True)
            rt.add(Scripted("x"), id="confirm", read_only=True)
            async with rt.turn() as turn:
                turn.call("confirm", {"table": turn.call("book_table", id=id)})

    asyncio.run(play())
    cause = "table" if id == "table" else "the table booking"
    assert f"skipped: {cause} failed" in " ".join(invoke("why", "--store", address).stdout.split())
