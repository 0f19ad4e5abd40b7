"""The trace file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, records, virtual

from failsoft import Runtime


def written(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@virtual
async def test_the_stream_goes_to_a_file_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with Runtime(trace=path) as rt:
        rt.add(Scripted(INVALID), id="search")
        rt.add(Scripted("fine"), id="good")
        await rt.call("search", id="übel")
        await rt.call("good")
        assert await rt.flush()
        expected = records(rt)
    assert written(path)[: len(expected)] == expected
    assert {record["event_type"] for record in expected} >= {"ToolError", "CallFailed", "CallSucceeded"}


@virtual
async def test_a_file_that_was_emptied_but_for_a_line_end_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n")
    async with Runtime(trace=path) as rt:
        rt.add(Scripted("fine"), id="good")
        await rt.call("good")
        assert await rt.flush()
    assert '"event_type":"CallSucceeded"' in path.read_text().replace(" ", "")


@virtual
async def test_plain_successes_are_written_as_they_would_be_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rt = Runtime(trace=path)
    odd = 'a "tool"\n\ud800 ü'
    for id in ("search", odd):
        rt.add(Scripted("fine"), id=id)
    rt.add(Scripted(DOWN), id="broken", retry=ONCE)
    async with rt.turn(id="turn") as turn:
        for _ in range(10):
            turn.call("search")
    for tool in (odd, "search", "broken", "search"):
        for _ in range(10):
            await asyncio.sleep(0.1234567)
            await rt.call(tool)
            await rt.call(tool, id="named\ud800")
    assert await rt.flush()
    assert written(path) == records(rt)
    await rt.close()


def test_a_program_that_ends_without_closing_has_its_events_written(tmp_path: Path) -> None:
    script = """
        import asyncio
        from failsoft import Runtime

        def work():
            rt = Runtime(trace="trace.jsonl")
            rt.add(lambda: 1, id="search", timeout=None)
            asyncio.run(rt.call("search"))

        work()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, cwd=tmp_path, env=where, check=True, timeout=60)
    assert len(written(tmp_path / "trace.jsonl")) == 1


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("nowhere/trace.jsonl", "there is no directory {folder}/nowhere: make it, or name another place"),
        ("file/trace.jsonl", "there is no directory {folder}/file: make it, or name another place"),
        (".", "it is a directory: name a file in it"),
    ],
)
@virtual
async def test_an_unwritable_trace_file_is_reported_once_and_calls_go_on(
    place: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt = Runtime(trace=tmp_path / place)
        told = [record.getMessage() for record in caplog.records]
        reason = why.format(folder=tmp_path)
        assert told == [f"trace: {tmp_path / place} cannot be written ({reason}); calls go on without it"]
        rt.add(Scripted(INVALID, "fine"), id="search")
        assert (await rt.call("search")).status == "failed"
        assert (await rt.call("search")).value == "fine"
        assert not await rt.flush()
        await rt.close()
        assert len(caplog.records) == 1


def test_a_full_disk_is_reported_when_a_write_fails(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt = Runtime(trace="/dev/full")
        assert caplog.records == []
        rt.add(lambda: 1, id="search", timeout=None)
        assert asyncio.run(rt.call("search")).value == 1  # type: ignore[arg-type]
        assert not asyncio.run(rt.flush())
    (record,) = caplog.records
    assert record.getMessage() == (
        "trace: /dev/full cannot be written (No space left on device); calls go on without it"
    )


@virtual
async def test_a_program_that_goes_elsewhere_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rt = Runtime(trace="trace.jsonl")
    rt.add(Scripted("fine"), id="search")
    (tmp_path / "elsewhere").mkdir()
    os.chdir("elsewhere")
    await rt.call("search")
    assert await rt.flush()
    assert len(written(tmp_path / "trace.jsonl")) == 1
    await rt.close()


def test_a_pipe_without_a_reader_does_not_block_the_runtime(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "pipe")
    with caplog.at_level(logging.WARNING, "failsoft"):
        Runtime(trace=tmp_path / "pipe")
    assert caplog.records == []
