"""``failsoft trace``: list, show, tail, export, replay, prune."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fakes import AUTH, DOWN, RESET, Scripted

from failsoft import Runtime
from failsoft.surfaces.cli import cli

MANIFEST = """
version: 1
policies:
  - {name: mind the down, when: {tool: down}, then: fail_gracefully}
"""


def invoke(*args: str) -> Result:
    result = CliRunner().invoke(cli, ["trace", *args])
    assert "Traceback" not in result.output, result.output
    return result


def data(*args: str) -> Any:
    result = invoke(*args, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)


@pytest.fixture
def store(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/kept.db"

    async def play() -> None:
        (tmp_path / "failsoft.yaml").write_text(MANIFEST)
        async with Runtime(tmp_path / "failsoft.yaml", store=address) as rt:
            rt.add(Scripted(RESET, "fine"), id="search", read_only=True, retry={"initial_delay": "1ms"})
            rt.add(Scripted(DOWN), id="down", retry={"max_attempts": 1})
            rt.add(Scripted(AUTH), id="auth")
            rt.add(Scripted("fine"), id="plain")
            async with rt.turn(id="one", thread="chat") as one:
                one.call("search")
                one.call("auth")
            async with rt.turn(id="two") as two:
                two.call("down")
            for _ in range(10):
                await rt.call("plain")

    asyncio.run(play())
    return address


def test_list_shows_turns_with_status_and_duration(store: str) -> None:
    turns = data("list", "--store", store)
    assert [(turn["turn_id"], turn["thread"], turn["ended"]) for turn in turns] == [
        ("two", None, True),
        ("one", "chat", True),
    ]
    shown = invoke("list", "--store", store).stdout
    assert "1/2 ok" in shown
    assert "0/1 ok" in shown
    assert shown.splitlines()[0].split() == "turn began (UTC) took status calls where the time went".split()
    assert shown.splitlines()[1].startswith("two ")
    assert "failures" in shown
    assert [turn["turn_id"] for turn in data("list", "--limit", "1", "--store", store)] == ["two"]


def test_show_draws_a_turn_and_lists_its_events(store: str) -> None:
    shown = invoke("show", "one", "--store", store)
    assert shown.exit_code == 0
    assert "search-1: search failed: Connection reset by peer; trying again in" in shown.stdout
    assert "Where the time went" in shown.stdout
    told = data("show", "one", "--store", store)
    assert told["events"][0]["event_type"] == "TurnStarted"
    assert {row["id"] for row in told["waterfall"]["rows"]} == {"search-1", "auth-1"}
    assert invoke("show", "three", "--store", store).exit_code == 1


def test_tail_shows_the_latest_events(store: str) -> None:
    latest = data("tail", "-n", "3", "--store", store)
    assert [event["tool_id"] for event in latest] == ["plain"] * 3
    everything = data("tail", "-n", "100000", "--store", store)
    assert len(everything) > len(latest)
    assert data("tail", "-n", str(len(everything) + 1), "--store", store) == everything
    lines = invoke("tail", "-n", "11", "--store", store).stdout.splitlines()
    assert len(lines) == 11
    assert "two  TurnEnded" in lines[0]
    assert lines[1].endswith(": ok")
    assert data("tail", "-n", "0", "--store", store) == []


def test_tail_follows_new_events_until_it_is_stopped(store: str, tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "failsoft", "trace", "tail", "-f", "-n", "1", "--json", "--store", store],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        assert program.stdout is not None
        assert program.stderr is not None
        first = json.loads(program.stdout.readline())

        async def more() -> None:
            async with Runtime(store=store) as rt, rt.turn(id="three"):
                pass

        asyncio.run(more())
        next_one = json.loads(program.stdout.readline())
        program.terminate()
    assert first["tool_id"] == "plain"
    assert (next_one["turn_id"], next_one["event_type"]) == ("three", "TurnStarted")


def test_export_writes_events_or_a_page(store: str, tmp_path: Path) -> None:
    lines = invoke("export", "one", "--store", store).stdout
    assert {json.loads(line)["turn_id"] for line in lines.splitlines()} == {"one"}
    everything = invoke("export", "all", "--store", store).stdout.splitlines()
    assert len(everything) > 10 + len(lines.splitlines())
    (tmp_path / "one.jsonl").write_text(lines)
    from_file = data("show", "--trace", str(tmp_path / "one.jsonl"))
    assert from_file == data("show", "one", "--store", store)
    page = tmp_path / "one.html"
    told = data("export", "one", "-o", str(page), "--store", store)
    assert (told["format"], told["file"], told["events"]) == ("html", str(page), len(lines.splitlines()))
    assert page.read_text().startswith("<!doctype html>")
    assert (
        invoke("export", "one", "-o", str(page), "--store", store).stderr == f"The waterfall of one written to {page}\n"
    )
    assert "Connection reset by peer" in page.read_text()
    assert invoke("export", "one", "--format", "html", "--store", store).stdout == page.read_text()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("export", "all", "--format", "html"), "an HTML page shows one turn"),
        (("export", "--json"), "name one with --output"),
        (("export", "-o", "/no/such/place.html"), "There is no directory /no/such: make it, or name another place."),
        (("export", "-o", "/tmp"), "It is a directory: name a file."),
        (("prune",), "name what to delete"),
        (("prune", "--older-than", "30"), "--older-than"),
        (("prune", "--size", "much"), "--size"),
    ],
)
def test_wrong_use_is_answered_with_a_hint(store: str, args: tuple[str, ...], said: str) -> None:
    result = invoke(*args, "--store", store)
    assert (result.exit_code, said in result.output) == (2, True)


def test_replay_repeats_recorded_decisions(store: str, tmp_path: Path) -> None:
    told = data("replay", "one", "--store", store)
    assert (told["same"], told["different"], told["not_recorded"]) == (True, 0, 0)
    assert {decision["recorded"]["strategy"] for decision in told["decisions"]} == {"retry", "escalate"}
    assert "2 of 2 decisions came out the same" in invoke("replay", "one", "--store", store).stdout
    shown = invoke("replay", "two", "--store", store)
    assert (shown.exit_code, "policy 'mind the down' is not available" in shown.stdout) == (0, True)
    with_book = data("replay", "two", "--manifest", str(tmp_path / "failsoft.yaml"), "--store", store)
    assert (with_book["same"], with_book["not_recorded"]) == (True, 0)


def test_replay_says_where_decisions_differ(store: str, tmp_path: Path) -> None:
    lines = invoke("export", "one", "--store", store).stdout.replace('"decision": "retry"', '"decision": "escalate"')
    (tmp_path / "changed.jsonl").write_text(lines)
    result = invoke("replay", "--trace", str(tmp_path / "changed.jsonl"))
    assert result.exit_code == 1
    assert "different  search-1: escalate: " in result.stdout
    assert "now retry: Transient error" in result.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delay_ms": 99_999.0}, r"search-\d: retry after 99999 ms: Transient.*; now retry after \d+ ms: Transient"),
        ({"alternative": "other"}, r"search-\d: retry with other: Transient.*; now retry with no tool: Transient"),
        ({"reason": "so"}, r"search-\d: retry: so; now retry: Transient"),
    ],
    ids=["delay", "tool", "reason"],
)
def test_replay_says_what_is_different(store: str, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    events = [json.loads(line) for line in invoke("export", "one", "--store", store).stdout.splitlines()]
    next(event for event in events if event.get("decision") == "retry").update(change)
    (tmp_path / "changed.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    result = invoke("replay", "--trace", str(tmp_path / "changed.jsonl"))
    assert result.exit_code == 1
    assert re.search(said, result.stdout), result.stdout


def test_cascades_are_replayed_as_well(tmp_path: Path) -> None:
    rt = Runtime(trace=tmp_path / "trace.jsonl")
    rt.add(Scripted(AUTH), id="bad")
    rt.add(Scripted("fine"), id="good")

    async def play() -> None:
        async with rt, rt.turn() as turn:
            bad = turn.call("bad", id="bad")
            turn.call("good", {"a": bad}, id="skips")
            turn.call("good", {"a": bad}, id="runs", defaults={"a": 1})

    asyncio.run(play())
    told = data("replay", "--trace", str(tmp_path / "trace.jsonl"))
    assert (told["same"], told["not_recorded"], len(told["decisions"])) == (True, 0, 1)
    assert [(each["call_id"], each["now"]) for each in told["cascades"]] == [
        ("skips", "skip"),
        ("runs", "substitute"),
    ]
    changed = (tmp_path / "trace.jsonl").read_text().replace('"required": null', '"required": true')
    (tmp_path / "changed.jsonl").write_text(changed)
    result = invoke("replay", "--trace", str(tmp_path / "changed.jsonl"))
    assert result.exit_code == 1
    assert "different  skips: skip: bad failed; now escalate: bad failed" in result.stdout
    assert "2 of 3 decisions came out the same, 1 different, 0 not recorded" in result.stdout


def test_a_file_that_is_no_store_is_not_pruned(tmp_path: Path) -> None:
    (tmp_path / "diary.db").write_text("dear diary " * 100)
    result = invoke("prune", "--most", "1", "--store", f"sqlite:///{tmp_path}/diary.db")
    assert (result.exit_code, "cannot be pruned" in result.stderr) == (1, True)
    assert (tmp_path / "diary.db").read_text().startswith("dear diary")


def test_prune_deletes_old_events(store: str, tmp_path: Path) -> None:
    assert data("prune", "--older-than", "1h", "--store", store)["dropped"] == 0
    assert data("prune", "--most", "12", "--store", store)["dropped"] > 0
    assert len(data("tail", "-n", "100", "--store", store)) == 12
    assert data("prune", "--size", "1MB", "--store", store)["dropped"] == 0
    time.sleep(0.01)
    assert "12 events deleted" in invoke("prune", "--older-than", "1ms", "--store", store).stdout
    with closing(sqlite3.connect(tmp_path / "kept.db")) as connection:
        assert connection.execute("SELECT count(*) FROM event").fetchone() == (0,)
    assert invoke("list", "--store", store).stdout.startswith("There are no turns")


def test_recorded_turns_show_the_labels_of_tools(tmp_path: Path) -> None:
    async def play() -> None:
        rt = Runtime(trace=tmp_path / "trace.jsonl")
        rt.add(lambda: "Ritz", id="hotel_search", label="hotel finder", read_only=True)
        rt.add(lambda: "AF", id="flight_search", read_only=True)
        async with rt.turn(id="in-a-turn") as turn:
            turn.call("hotel_search")
            turn.call("flight_search")
        run = rt.agent_run(play)
        assert run is not None
        await rt.run("hotel_search", {}, {"hotel_search": lambda _: asyncio.sleep(0, "Ritz")}, turn=run)
        rt.end_agent_run(play)
        await rt.close()

    asyncio.run(play())
    listed = CliRunner().invoke(cli, ["trace", "list", "--json", "--trace", str(tmp_path / "trace.jsonl")])
    turns = re.findall(r'"turn_id": "([^"]+)"', listed.output)
    assert len(turns) == 2
    for turn in turns:
        shown = CliRunner().invoke(cli, ["trace", "show", turn, "--trace", str(tmp_path / "trace.jsonl")]).output
        assert "hotel finder" in shown
    assert (
        "flight search"
        in CliRunner().invoke(cli, ["why", "in-a-turn", "--trace", str(tmp_path / "trace.jsonl")]).output
    )


@pytest.mark.parametrize("labels", [3, ["x"], {"a": 3}])
def test_labels_that_failsoft_does_not_write_are_refused(labels: object, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    ended = {"event_type": "TurnEnded", "turn_id": "t", "timestamp": "2025-11-06T10:33:25.100Z", "labels": labels}
    path.write_text(json.dumps(ended) + "\n")
    result = CliRunner().invoke(cli, ["why", "--trace", str(path)])
    assert result.exit_code == 2
    assert "labels" in result.output
