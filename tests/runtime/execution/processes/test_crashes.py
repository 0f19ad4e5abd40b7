"""T11: a tool that kills its worker fails alone; the next call works, every time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import Bench

from failsoft.core.model.options import Isolation
from failsoft.runtime.execution.processes.reply import WorkerError

CRASHES = int(os.environ.get("FAILSOFT_CRASHES", "100"))
LIMITED = Isolation(kind="process", max_memory="100MB")

DEADLY: dict[str, tuple[Callable[..., Any], Isolation, str]] = {
    "segfault": (fake_tools.segfaults, Isolation(kind="process"), "crashed"),
    "exit": (fake_tools.exits, Isolation(kind="process"), "crashed"),
    "memory limit": (fake_tools.eats_memory, LIMITED, "error"),
    "unpicklable": (fake_tools.returns_a_lock, Isolation(kind="process"), "unsendable"),
    "SIGKILL": (fake_tools.kills_itself, Isolation(kind="process"), "crashed"),
}


@pytest.mark.slow
def test_the_next_call_works_each_time(bench: Bench) -> None:
    for number in range(CRASHES):
        fn, options, kind = list(DEADLY.values())[number % len(DEADLY)]
        assert bench.run_with(options, fn).kind == kind
        assert bench.run(fake_tools.echo, number).value == number


@pytest.mark.parametrize(
    ("fn", "args", "said"),
    [
        (fake_tools.segfaults, (), "was killed by SIGSEGV"),
        (fake_tools.aborts, (), "was killed by SIGABRT"),
        (fake_tools.exits, (3,), "ended with exit status 3"),
        (fake_tools.exits, (0,), "ended with exit status 0"),
        (fake_tools.kills_itself, (), "was killed by SIGKILL (perhaps for lack of memory)"),
        (fake_tools.dies_sending, (), "ended with exit status 5"),
    ],
)
def test_the_fault_says_how_it_died(bench: Bench, fn: Callable[..., Any], args: tuple[Any, ...], said: str) -> None:
    crashes = bench.workers.counts.crashes
    reply = bench.run(fn, *args)
    assert reply.kind == "crashed"
    assert not reply.killed
    assert isinstance(reply.error, WorkerError)
    fault = reply.error.fault
    assert fault.message.endswith(f"{fn.__name__}: its process {said}")
    assert (fault.classification, fault.effect) == ("transient", "unknown")
    assert bench.workers.counts.crashes == crashes + 1


def test_a_tool_that_stops_the_supervisor_does_not_keep_later_calls_from_a_worker() -> None:
    bench = Bench(start_timeout=2.0)
    try:
        assert bench.run(fake_tools.stops_the_supervisor).value == "stopped"
        for _ in range(2):  # each needs another worker
            assert bench.run(fake_tools.kills_itself).kind == "crashed"
        assert bench.run(fake_tools.stops_the_supervisor).value == "stopped"
        began = time.monotonic()
    finally:
        bench.workers.close()
    assert time.monotonic() - began < 1.5  # a stopped process is killed after two seconds
