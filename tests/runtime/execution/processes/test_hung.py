"""T6: tools that hang are dead at their deadline, with everything that they have started, and nothing is left.

``FAILSOFT_HUNG=1000`` runs as many hung calls; by default a few of each kind.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import Bench, eventually, family, has_grown, holdings, is_running

from failsoft.runtime.execution.processes.pool import Workers
from failsoft.runtime.execution.processes.reply import Reply
from failsoft.runtime.execution.processes.target import target_of

HUNG = int(os.environ.get("FAILSOFT_HUNG", "36"))
DEADLINE = 0.1  # long enough for every kind to be well under way
ABREAST = 4


@pytest.mark.parametrize("hangs", fake_tools.STUCK, ids=lambda tool: tool.__name__)
def test_a_tool_that_hangs_is_dead_at_its_deadline(bench: Bench, tmp_path: Path, hangs: Callable[..., Any]) -> None:
    mark = tmp_path / "mark"
    bench.run(fake_tools.echo, 1)
    start = time.monotonic()
    reply = bench.run(hangs, str(mark), timeout=0.4)
    took = time.monotonic() - start
    assert (reply.kind, reply.killed) == ("timeout", True)
    assert took < 1.0
    assert bench.run(fake_tools.echo, 1).value == 1
    marks = mark.read_text().split("\n")
    assert "begun" in marks
    assert "ended" not in marks
    children = [int(line.split()[1]) for line in marks if line.startswith("child")]
    for pid in (reply.pid or 0, *children):
        assert eventually(lambda: not is_running(pid), 2), (hangs.__name__, pid)  # noqa: B023


@pytest.mark.slow
def test_hung_calls_leak_no_threads_processes_or_descriptors(tmp_path: Path) -> None:
    """No thread, no process, no descriptor more; and the calls in between are answered."""
    workers = Workers(limit=ABREAST + 1)
    echo = target_of(fake_tools.echo)
    late: list[float] = []
    following: list[float] = []

    async def hang(number: int) -> Reply:
        target = target_of(fake_tools.STUCK[number % len(fake_tools.STUCK)])
        reply = await workers.run(target, (str(tmp_path / f"{number}"),), {}, timeout=DEADLINE)
        late.append(reply.duration - DEADLINE)
        start = time.monotonic()
        assert (await workers.run(echo, (number,), {}, timeout=20)).value == number
        following.append(time.monotonic() - start)
        return reply

    async def lane(numbers: range) -> set[str]:
        return {(await hang(number)).kind for number in numbers}

    async def warm_up() -> None:
        await asyncio.gather(*(workers.run(echo, (0,), {}, timeout=20) for _ in range(ABREAST + 1)))
        await asyncio.sleep(0.3)

    async def main() -> None:
        await warm_up()
        before, held = family(workers), holdings()
        kinds = await asyncio.gather(*(lane(range(first, HUNG, ABREAST)) for first in range(ABREAST)))
        assert set().union(*kinds) == {"timeout"}
        await warm_up()
        assert eventually(lambda: len(family(workers)) == len(before))
        assert not has_grown(held)
        assert workers.counts.kills == HUNG
        assert len(workers._workers) <= ABREAST + 1

    try:
        asyncio.run(main())
    finally:
        workers.close()
    assert "ended" not in "".join(path.read_text() for path in tmp_path.iterdir())
    print(  # seen with -s
        f"{HUNG} hung calls: late by {statistics.median(late) * 1e3:.1f} ms (worst {max(late) * 1e3:.1f}), "
        f"next call after {statistics.median(following) * 1e3:.1f} ms (worst {max(following) * 1e3:.1f})"
    )
