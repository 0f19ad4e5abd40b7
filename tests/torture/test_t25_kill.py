"""T25: kill -9 lost acknowledged events. Here what was acknowledged is on disk, and the file is whole."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.torture.scale import times

from failsoft import Runtime
from failsoft.stores.sqlite.store import SqliteStore

KILLS = times(200, 10)

APPLICATION = """
import asyncio, sys
sys.path[:] = {path!r}
from failsoft import Runtime

async def main():
    rt = Runtime(store="sqlite:///{folder}/store.db", trace="{folder}/trace.jsonl")

    async def search(number):
        if number % 3 == 0:
            raise ValueError("Invalid airport code: XYZ")
        return number

    rt.add(search)
    number = 0
    while True:
        calls = []
        for _ in range(20):
            number += 1
            calls.append(f"call-{{number}}")
            await rt.call("search", {{"number": number}}, id=calls[-1])
        if await rt.flush():
            print(number, flush=True)

asyncio.run(main())
"""


def run_and_kill(folder: Path, after: float) -> int:
    """An application that is killed; how many calls it had acknowledged."""
    code = APPLICATION.format(path=sys.path, folder=folder)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        first = running.stdout.readline()
        assert first, "it has not even begun"
        time.sleep(after)
        running.kill()
        return max(map(int, [first, *running.stdout.read().split()]))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_t25_no_acknowledged_event_is_lost(part: int, tmp_path: Path) -> None:
    source = random.Random(25 + part)
    for number in range(KILLS // 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        acknowledged = run_and_kill(folder, source.uniform(0, 0.05))
        store = SqliteStore(folder / "store.db")
        kept = {event["call_id"] for _, event in store.read(limit=10_000_000)}
        written = (folder / "trace.jsonl").read_text().split("\n")[:-1]  # a line counts once it is ended
        told = {json.loads(line)["call_id"] for line in written}
        for last in range(1, acknowledged + 1):
            assert f"call-{last}" in kept
            assert f"call-{last}" in told
        store.close()
        with closing(sqlite3.connect(folder / "store.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def test_t25_lost_events_are_not_acknowledged(tmp_path: Path) -> None:
    import asyncio

    nowhere = tmp_path / "file"
    nowhere.write_text("not a folder")

    async def main() -> list[bool]:
        rt = Runtime(trace=nowhere / "trace.jsonl")
        rt.add(lambda: 1, id="search", timeout=None)
        await rt.call("search")
        return [await rt.flush(), await rt.flush()]

    assert asyncio.run(main()) == [False, True]  # the second time there was nothing new to lose
