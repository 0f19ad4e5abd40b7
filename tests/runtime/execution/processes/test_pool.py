"""Worker processes: how they run calls, and how they end."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import gc
import importlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import Bench, eventually, family, has_grown, holdings, is_running

from failsoft.core.model.entrypoint import Command
from failsoft.core.model.options import Isolation
from failsoft.errors import ManifestError
from failsoft.runtime.execution.processes import pool, wire, worker
from failsoft.runtime.execution.processes.process_handle import Supervisor
from failsoft.runtime.execution.processes.readiness import Blocking
from failsoft.runtime.execution.processes.remote_error import RemoteError
from failsoft.runtime.execution.processes.reply import Reply, WorkerError
from failsoft.runtime.execution.processes.target import Target, parse, target_of
from failsoft.runtime.execution.waiting import run_blocking

HERE = fake_tools.__name__

Make = Callable[..., Bench]


def fault_of(reply: Reply) -> Any:
    assert isinstance(reply.error, WorkerError)
    return reply.error.fault


# --- a call ----------------------------------------------------------------------------------------------------------


def test_a_value_comes_back(bench: Bench) -> None:
    before = time.monotonic()
    reply = bench.run(fake_tools.echo, {"to": ["PAR"]}, twice=True)
    assert (reply.kind, reply.value) == ("value", ({"to": ["PAR"]}, {"to": ["PAR"]}))
    assert reply.started is not None
    assert before <= reply.started <= reply.started + reply.duration <= time.monotonic()
    assert not reply.killed


def test_a_tool_runs_in_another_process(bench: Bench) -> None:
    reply = bench.run(fake_tools.pid)
    assert reply.value == reply.pid != os.getpid()


def test_one_worker_serves_call_after_call(bench: Bench) -> None:
    assert len({bench.run(fake_tools.pid).value for _ in range(10)}) == 1


def test_a_coroutine_function_works_too(bench: Bench) -> None:
    assert bench.run(fake_tools.echo_async, "x").value == "x"


def test_the_guard_does_not_run_in_the_worker(bench: Bench) -> None:
    assert bench.run(fake_tools.doubly_wrapped, 1).value == ["decorated", 1]
    assert bench.run(fake_tools.wrapped_outside, 1).value == 1


def test_large_values_cross_in_both_directions(bench: Bench) -> None:
    payload = os.urandom(9_000_000)
    assert bench.run(fake_tools.echo, payload).value == payload


def test_on_an_event_loop_it_is_the_same(bench: Bench) -> None:
    payload = os.urandom(3_000_000)

    async def main() -> list[Reply]:
        run = bench.workers.run
        return [
            await run(target_of(fake_tools.echo), (payload,), {}, timeout=20),
            await run(target_of(fake_tools.fails), ("value",), {}, timeout=20),
            await run(target_of(fake_tools.pause), (20,), {}, timeout=0.05),
            await run(target_of(fake_tools.exits), (), {}, timeout=20),
            await run(target_of(fake_tools.echo), ("after",), {}, timeout=None),
        ]

    replies = asyncio.run(main())
    assert [reply.kind for reply in replies] == ["value", "error", "timeout", "crashed", "value"]
    assert (replies[0].value, replies[4].value) == (payload, "after")


def test_an_exception_raised_in_a_worker_is_returned(bench: Bench) -> None:
    reply = bench.run(fake_tools.fails, "not_found")
    assert reply.kind == "error"
    assert isinstance(reply.error, fake_tools.NotFound)
    reply = bench.run(fake_tools.fails, "refused")
    assert isinstance(reply.error, RemoteError)
    assert reply.error.response.status_code == 503  # type: ignore[attr-defined]


def test_the_traceback_begins_with_the_tool(bench: Bench) -> None:
    error = bench.run(fake_tools.fails, "value").error
    assert error is not None
    lines = error.__notes__[0].splitlines()
    assert f"worker process {bench.run(fake_tools.pid).value}" in lines[0]
    assert "fake_tools.py" in lines[1]


def test_a_library_that_only_the_tool_knows(bench: Bench) -> None:
    error = bench.run(fake_tools.fails_unloaded).error
    assert type(error).__name__ == "LibraryError"
    assert error.status_code == 429  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["exit", "interrupt"])
def test_a_tool_that_exits_is_an_error_and_the_worker_stays(bench: Bench, name: str) -> None:
    before = bench.run(fake_tools.pid).value
    assert bench.run(fake_tools.fails, name).kind == "error"
    assert bench.run(fake_tools.pid).value == before


def test_an_argument_that_cannot_be_sent_is_named(bench: Bench) -> None:
    reply = bench.run(fake_tools.echo, threading.Lock())
    assert reply.kind == "unsendable"
    fault = fault_of(reply)
    assert f"{HERE}:echo: argument value (lock) cannot be pickled" in fault.message
    assert (fault.classification, fault.category, fault.effect) == ("permanent", "internal_contract_bug", "none")


def test_a_result_that_cannot_be_sent_says_so_and_the_worker_stays(bench: Bench) -> None:
    before = bench.run(fake_tools.pid).value
    reply = bench.run(fake_tools.returns_a_lock)
    assert reply.kind == "unsendable"
    assert "the result (lock) cannot be pickled" in fault_of(reply).message
    assert fault_of(reply).effect == "happened"
    assert bench.run(fake_tools.megabytes, 70).kind == "unsendable"
    assert bench.run(fake_tools.pid).value == before


@pytest.mark.parametrize("path", ["no_such_module:f", f"{HERE}:no_such_function", f"{HERE}:Box.nothing"])
def test_a_target_that_is_not_there_is_unavailable(bench: Bench, path: str) -> None:
    reply = bench.workers.run_blocking(parse(path), (), {}, timeout=20)
    assert reply.kind == "missing"
    fault = fault_of(reply)
    assert f"{path} cannot be imported in a worker" in fault.message
    assert (fault.category, fault.effect) == ("tool_unavailable", "none")


def test_a_worker_has_its_own_surroundings(bench: Bench) -> None:
    found = bench.run(fake_tools.surroundings).value
    assert found["session"] == found["group"] == found["pid"]
    assert found["stdin"] == ""
    assert found["main_thread"]
    assert found["threads"] == 1
    assert found["blocked"] == []
    assert found["fds"] <= 5  # three streams, the socket, the directory being listed
    assert found["child_sigterm"] == "True"


def test_a_worker_starts_where_the_application_is_now(
    fresh: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fresh(spare=0)
    made.run(fake_tools.echo, 1)
    (tmp_path / "later_tools.py").write_text(
        "import os\ndef here():\n    return os.getcwd(), os.environ.get('REGION')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGION", "eu")
    monkeypatch.syspath_prepend(tmp_path)
    made.run(fake_tools.exits)  # the next call needs a new worker
    reply = made.workers.run_blocking(parse("later_tools:here"), (), {}, timeout=20)
    assert reply.value == (str(tmp_path), "eu")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_process_group_do_not_end_a_worker(bench: Bench, number: int) -> None:
    assert bench.run(fake_tools.signal_self, number).value == "lived on"


# --- context and logging ---------------------------------------------------------------------------------------------


def test_declared_context_variables_reach_the_tool(bench: Bench) -> None:
    declared = Isolation(kind="process", context=[f"{HERE}:REQUEST"])

    def inside() -> list[Any]:
        before = bench.run_with(declared, fake_tools.request).value
        fake_tools.REQUEST.set("chat-42")
        return [before, bench.run_with(declared, fake_tools.request).value, bench.run(fake_tools.request).value]

    assert contextvars.copy_context().run(inside) == ["none", "chat-42", "none"]


def test_context_variables_set_by_a_tool_do_not_outlast_its_call(bench: Bench) -> None:
    assert bench.run(fake_tools.set_request, "leak").value == "leak"
    assert bench.run(fake_tools.request).value == "none"


def test_an_object_that_is_not_a_context_variable_is_rejected(bench: Bench) -> None:
    with pytest.raises(ManifestError, match="not a ContextVar"):
        bench.run_with(Isolation(kind="process", context=[f"{HERE}:NOT_A_VARIABLE"]), fake_tools.request)


def test_logging_goes_on_here(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    reply = bench.run(fake_tools.say, "one", "two")
    assert reply.kind == "value"
    assert [record.getMessage() for record in caplog.records] == ["said one", "said two"]
    record = caplog.records[0]
    assert (record.name, record.levelname, record.funcName) == ("tests.isolation.tool", "WARNING", "say")
    assert record.process == reply.pid
    assert record.odd.startswith("<unlocked")  # type: ignore[attr-defined]


def test_a_logged_exception_comes_as_text(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.run(fake_tools.say_error)
    assert "ValueError: logged" in (caplog.records[0].exc_text or "")


def test_the_levels_set_here_hold_there_and_here(fresh: Make, caplog: pytest.LogCaptureFixture) -> None:
    fake_tools.log.setLevel(logging.ERROR)
    try:
        quiet = fresh(spare=0)
        quiet.run(fake_tools.say, "nobody wants this")
        assert caplog.records == []
        fake_tools.log.setLevel(logging.NOTSET)
        quiet.run(fake_tools.say, "nor this: the worker has started")
        assert caplog.records == []
    finally:
        fake_tools.log.setLevel(logging.NOTSET)


def test_a_handler_that_raises_does_not_break_the_call(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise RuntimeError("a filter that raises")

    fake_tools.log.addFilter(refuse)
    try:
        assert bench.run(fake_tools.say, "one").kind == "value"
    finally:
        fake_tools.log.removeFilter(refuse)


# --- time ------------------------------------------------------------------------------------------------------------


def test_starting_a_worker_is_not_tool_time(fresh: Make) -> None:
    shares = []
    for _ in range(3):  # the best counts: other programs use this machine too
        began = time.monotonic()
        reply = fresh().run(fake_tools.pause, 0.0, timeout=30)
        assert reply.kind == "value"
        shares.append(reply.duration / (time.monotonic() - began))
    assert min(shares) < 0.5


def test_at_the_deadline_the_worker_is_dead(bench: Bench) -> None:
    before = bench.workers.counts
    start = time.monotonic()
    reply = bench.run(fake_tools.pause, 30, timeout=0.1)
    assert time.monotonic() - start < 1
    assert (reply.kind, reply.killed) == ("timeout", True)
    assert 0.1 <= reply.duration < 0.6
    assert reply.pid is not None
    assert eventually(lambda: not is_running(reply.pid or 0), 1)
    assert bench.run(fake_tools.pid).value != reply.pid
    after = bench.workers.counts
    assert (after.kills, after.respawns) == (before.kills + 1, before.respawns + 1)


def test_an_answer_that_is_late_is_not_a_value(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller was away while the tool ended, after its deadline: the answer says so itself."""

    async def main() -> Reply:
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, time.sleep, 0.5)
        return await bench.workers.run(target_of(fake_tools.pause), (0.2,), {}, timeout=0.1)

    assert asyncio.run(main())[:4:3] == ("late", bench.run(fake_tools.pid).value)


def test_an_answer_in_time_counts_however_late_it_is_read(bench: Bench) -> None:
    async def main() -> Reply:
        asyncio.get_running_loop().call_later(0.02, time.sleep, 0.5)
        return await bench.workers.run(target_of(fake_tools.pause), (0.1,), {}, timeout=0.45)

    assert asyncio.run(main()).kind == "value"


def test_the_deadline_is_real_time_on_a_virtual_loop(bench: Bench) -> None:
    class Frozen(asyncio.SelectorEventLoop):
        outside = 0

        def time(self) -> float:
            return 1000.0

        def failsoft_outside(self, change: int) -> None:
            Frozen.outside += change
            seen.append(Frozen.outside)

    seen: list[int] = []
    loop = Frozen()
    try:
        run = bench.workers.run
        reply = loop.run_until_complete(run(target_of(fake_tools.pause), (30,), {}, timeout=0.1))
        assert reply.kind == "timeout"
        assert loop.run_until_complete(run(target_of(fake_tools.echo), (1,), {}, timeout=20)).value == 1
    finally:
        loop.close()
    assert seen == [1, 0, 1, 0]


def test_cancelling_kills_the_attempt(bench: Bench) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(bench.workers.run(target_of(fake_tools.pause), (30,), {}, timeout=None))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    pid = bench.run(fake_tools.pid).value
    kills = bench.workers.counts.kills
    asyncio.run(main())
    assert eventually(lambda: not is_running(pid), 1)
    assert bench.workers.counts.kills == kills + 1
    assert bench.run(fake_tools.echo, 1).value == 1


# --- how many --------------------------------------------------------------------------------------------------------


def test_a_spare_worker_stands_ready(fresh: Make) -> None:
    made = fresh(spare=1)
    made.run(fake_tools.pid)
    assert made.workers.counts[:2] == (2, 0)
    assert eventually(lambda: len(family(made.workers)) == 3)


def test_calls_run_side_by_side_up_to_the_limit(fresh: Make, tmp_path: Path) -> None:
    made = fresh(spare=0, limit=3)
    made.run(fake_tools.echo, 1)
    with ThreadPoolExecutor(9) as threads:
        jobs = [threads.submit(made.run, fake_tools.wait_for, str(tmp_path / "go"), timeout=60) for _ in range(9)]
        assert eventually(lambda: made.workers.counts.waiting == 6, 30)
        assert made.workers.counts[:2] == (3, 3)
        (tmp_path / "go").touch()
        replies = [job.result() for job in jobs]
    assert {reply.kind for reply in replies} == {"value"}
    assert len({reply.pid for reply in replies}) == 3


def test_waiting_in_line_is_not_tool_time_and_a_kill_frees_a_place(fresh: Make) -> None:
    made = fresh(spare=0, limit=1)
    made.run(fake_tools.echo, 1)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(made.run, fake_tools.pause, 30, timeout=0.3)
        assert eventually(lambda: made.workers.counts.busy == 1)
        second = threads.submit(made.run, fake_tools.pause, 0.0, timeout=0.25)
        assert first.result().kind == "timeout"
        assert second.result().kind == "value"


def test_a_cancelled_waiter_frees_its_place_in_the_queue(fresh: Make) -> None:
    made = fresh(spare=0, limit=1)
    made.run(fake_tools.echo, 1)
    run, pause = made.workers.run, target_of(fake_tools.pause)

    async def main() -> list[Any]:
        first = asyncio.ensure_future(run(pause, (0.2,), {}, timeout=5))
        await asyncio.sleep(0.05)
        leaver = asyncio.ensure_future(run(pause, (0,), {}, timeout=5))
        third = asyncio.ensure_future(run(pause, (0,), {}, timeout=5))
        await asyncio.sleep(0.05)
        assert made.workers.counts.waiting == 2
        leaver.cancel()
        return await asyncio.gather(first, leaver, third, return_exceptions=True)

    first, leaver, third = asyncio.run(main())
    assert (first.kind, type(leaver), third.kind) == ("value", asyncio.CancelledError, "value")
    assert made.workers.counts[:3] == (1, 0, 0)


def test_a_waiter_cancelled_as_it_gets_a_worker_gives_the_worker_back(fresh: Make) -> None:
    made = fresh(spare=0, limit=1)
    made.run(fake_tools.echo, 1)
    run, pause = made.workers.run, target_of(fake_tools.pause)

    async def main() -> None:
        first = asyncio.ensure_future(run(pause, (0.1,), {}, timeout=5))
        await asyncio.sleep(0.02)
        leaver = asyncio.ensure_future(run(pause, (0,), {}, timeout=5))
        first.add_done_callback(lambda _: leaver.cancel())  # the worker has just been handed over
        with pytest.raises(asyncio.CancelledError):
            await leaver

    asyncio.run(main())
    counts = made.workers.counts
    assert (counts.busy, counts.waiting) == (0, 0)
    assert counts.alive + counts.kills == 1  # by Python's version it is given back before it was used, or killed in use
    assert made.run(fake_tools.echo, 1).value == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_interrupted_waiter_does_not_block_the_others(fresh: Make) -> None:
    """The line must not be a ``concurrent.futures.Future``: its Condition would stay held, and the workers' lock too."""
    made = fresh(spare=0, limit=1)
    made.run(fake_tools.echo, 1)
    number, came = 0, True

    def interrupt(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal left
        name = frame.f_code.co_filename
        if not name.endswith(("/threading.py", "/readiness.py", "/_base.py")):
            return interrupt if "failsoft" in name else None
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return interrupt

    while came:
        number += 1
        left, came = number, False
        with ThreadPoolExecutor(1) as threads:
            busy = threads.submit(made.run, fake_tools.pause, 0.2)
            assert eventually(lambda: made.workers.counts.busy == 1)
            try:
                sys.settrace(interrupt)
                made.run(fake_tools.echo, 1)
            except KeyboardInterrupt:
                came = True
            finally:
                sys.settrace(None)
            assert busy.result(10).kind == "value"
            assert threads.submit(made.run, fake_tools.echo, 2).result(10).value == 2
    assert number > 5
    assert made.workers.counts.waiting == 0


def test_idle_workers_are_ended(fresh: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, gate = fresh(spare=1, limit=5), tmp_path / "gate"
    made.run(fake_tools.echo, 1)
    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(made.run, fake_tools.wait_for, str(gate)) for _ in range(4)]
        grown = eventually(lambda: made.workers.counts.alive == 5, 20)
        gate.touch()
    assert grown
    assert [call.result().kind for call in running] == ["value"] * 4
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
    for _ in range(6):
        made.run(fake_tools.echo, 1)
    assert made.workers.counts.alive == 1


def test_many_loops_and_threads_share_the_workers(fresh: Make) -> None:
    made = fresh(limit=4)

    def on_a_loop(number: int) -> set[int]:
        async def main() -> set[int]:
            run, echo = made.workers.run, target_of(fake_tools.echo)
            replies = await asyncio.gather(*(run(echo, (number * 100 + i,), {}, timeout=20) for i in range(20)))
            return {reply.value for reply in replies}

        return asyncio.run(main())

    def blocking(number: int) -> set[int]:
        return {made.run(fake_tools.echo, number * 100 + i).value for i in range(20)}

    with ThreadPoolExecutor(6) as threads:
        jobs = [(n, threads.submit(on_a_loop if n % 2 else blocking, n)) for n in range(6)]
        for number, job in jobs:
            assert job.result() == {number * 100 + i for i in range(20)}


# --- replaced --------------------------------------------------------------------------------------------------------


def test_a_worker_serves_only_so_many_calls(bench: Bench) -> None:
    few = Isolation(kind="process", max_calls=2)
    made = Bench()
    try:
        pids = [made.run_with(few, fake_tools.pid).value for _ in range(6)]
        assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4] == pids[5]
        assert made.workers.counts.kills == 0
        assert eventually(lambda: not is_running(pids[0]))
    finally:
        made.workers.close()


def test_a_worker_that_has_grown_is_replaced(bench: Bench) -> None:
    limit = Isolation(kind="process", max_memory="400MB")
    pids = [bench.run_with(limit, fake_tools.hold, 5).value for _ in range(2)]
    assert pids[0] == pids[1]
    grown = bench.run_with(limit, fake_tools.hold, 100).value
    assert bench.run_with(limit, fake_tools.pid).value == grown
    smaller = Isolation(kind="process", max_memory="60MB")
    assert bench.run_with(smaller, fake_tools.pid).value == grown
    assert bench.run_with(smaller, fake_tools.pid).value != grown


def test_allocating_too_much_is_an_error_and_the_worker_is_replaced(bench: Bench) -> None:
    limit = Isolation(kind="process", max_memory="150MB")
    before = bench.run(fake_tools.pid).value
    reply = bench.run_with(limit, fake_tools.eats_memory)
    assert reply.kind == "error"
    assert isinstance(reply.error, MemoryError)
    assert bench.run(fake_tools.pid).value != before


@pytest.mark.parametrize("wait", [0.0, 0.1])
def test_an_idle_worker_that_died_is_not_used(bench: Bench, wait: float) -> None:
    """Also when it has only just died, and its supervisor has not even noticed."""
    for _ in range(10):
        pid = bench.run(fake_tools.pid).value
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: not is_running(pid))  # noqa: B023
        time.sleep(wait)
        reply = bench.run(fake_tools.pid)
        assert reply.kind == "value"
        assert reply.value != pid


# --- the end ---------------------------------------------------------------------------------------------------------


def test_close_ends_everything_and_calls_under_way_hear_of_it() -> None:
    threads_and_files = holdings()
    made = Bench(limit=2)
    made.run(fake_tools.echo, 1)
    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(made.run, fake_tools.pause, 30) for _ in range(3)]
        assert eventually(lambda: made.workers.counts[:3] == (2, 2, 1))
        assert eventually(lambda: len(family(made.workers)) >= 3)  # a worker is counted before it is there
        below = family(made.workers)
        made.workers.close()
        assert not any(map(is_running, below))
        replies = [job.result() for job in jobs]
    assert [reply.kind for reply in replies] == ["cancelled"] * 3
    assert sorted(reply.killed for reply in replies) == [False, True, True]
    assert not has_grown(threads_and_files)
    assert made.run(fake_tools.echo, 1).kind == "cancelled"  # one that was on its way
    made.workers.close()


def test_close_under_an_event_loop() -> None:
    made = Bench()

    async def main() -> Reply:
        task = asyncio.ensure_future(made.workers.run(target_of(fake_tools.pause), (30,), {}, timeout=None))
        await asyncio.sleep(0.3)
        made.workers.close()
        return await asyncio.wait_for(task, 5)

    assert asyncio.run(main()).kind == "cancelled"


def test_workers_that_are_forgotten_end() -> None:
    held = holdings()
    made = Bench()
    made.run(fake_tools.echo, 1)
    below = family(made.workers)
    assert len(below) >= 2
    del made
    gc.collect()
    assert eventually(lambda: not any(map(is_running, below)), 2)
    assert not has_grown(held)


def test_nothing_is_started_before_it_is_needed() -> None:
    made = Bench()
    assert family(made.workers) == set()
    made.workers.close()
    assert made.workers.counts.started == 0


def test_modules_for_declaring_tools_are_preloaded_for_all_workers(fresh: Make) -> None:
    importlib.import_module("failsoft.config.manifest")
    made = fresh()
    assert made.run(fake_tools.is_loaded, "failsoft.config.manifest").value is True
    assert made.run(fake_tools.is_loaded, "tests.runtime.execution.processes.fake_library").value is False


def test_workers_can_be_prepared(fresh: Make) -> None:
    made = fresh(spare=2)
    made.workers.prepare(target_of(fake_tools.echo), parse("no_such_module:f"))
    assert made.workers.counts[:2] == (2, 0)
    assert made.run(fake_tools.echo, 1).value == 1
    assert made.workers.run_blocking(parse("no_such_module:f"), (), {}, timeout=5).kind == "missing"


def test_a_killed_supervisor_is_replaced(fresh: Make) -> None:
    made = fresh()
    pid = made.run(fake_tools.pid).value
    supervisor = made.workers._supervisor.pid
    assert supervisor is not None
    below = family(made.workers)
    assert pid in below
    os.kill(supervisor, signal.SIGKILL)
    assert eventually(lambda: not any(map(is_running, below)), 2)  # the kernel kills its children
    assert eventually(
        lambda: made.run(fake_tools.pid).kind == "value"
    )  # a call may still meet a worker that died with it
    assert made.workers._supervisor.pid != supervisor


def test_a_supervisor_killed_under_a_call(fresh: Make) -> None:
    made = fresh()
    made.run(fake_tools.pid)
    supervisor = made.workers._supervisor.pid
    assert supervisor is not None
    timer = threading.Timer(0.1, os.kill, (supervisor, signal.SIGKILL))
    timer.start()
    reply = made.run(fake_tools.pause, 30)
    timer.join()
    assert reply.kind == "crashed"
    assert "ended in an unknown way" in fault_of(reply).message
    assert made.run(fake_tools.echo, 1).value == 1


def test_the_supervisor_outlives_the_thread_that_started_it(fresh: Make) -> None:
    made = fresh()
    pids = []
    thread = threading.Thread(target=lambda: pids.append(made.run(fake_tools.pid).value))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert made.run(fake_tools.pid).value == pids[0]


def test_a_forked_child_starts_over(fresh: Make) -> None:
    """T24: the workers are the parent's; the child gets its own, at once, and harms nothing."""
    made = fresh()
    pid = made.run(fake_tools.pid).value
    made.workers._lock.acquire()  # as another thread may, in the moment of the fork
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            started = time.monotonic()
            found = made.run(fake_tools.pid).value
            os.write(writer, f"{found} {time.monotonic() - started}".encode())
            made.workers.close()
        finally:
            os._exit(0)
    made.workers._lock.release()
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    found, took = os.read(reader, 100).decode().split()
    os.close(reader)
    assert int(found) != pid
    assert float(took) < 30  # not until the end of ``start_timeout``
    assert made.run(fake_tools.pid).value == pid


def refuse(*_: Any) -> Any:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_process_that_cannot_be_started_is_a_fault(fresh: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh()
    with monkeypatch.context() as full:
        full.setattr(Supervisor, "worker", refuse)
        full.setattr(Supervisor, "command", refuse)
        replies = [made.run(fake_tools.pid), made.workers.run_command_blocking(Command(argv=["cat"]), {}, timeout=20)]
        full.setattr(os, "pipe", refuse)
        replies.append(made.workers.run_command_blocking(Command(argv=["cat"]), {}, timeout=20))
    for reply in replies:
        fault = fault_of(reply)
        assert (fault.code, fault.effect, fault.rule) == ("RESOURCE_EXHAUSTED", "none", "worker_not_started")
        assert "Too many open files" in fault.message
    assert made.run(fake_tools.pid).kind == "value"


def test_a_spare_worker_that_cannot_be_started_harms_no_call(fresh: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh(spare=3, limit=4)
    process = run_blocking(made.workers.take(Blocking()))
    assert process is not None
    made.workers.give_back(process)  # starts the others
    monkeypatch.setattr(Supervisor, "worker", refuse)
    made.workers._limit += 4
    made.workers._spare += 4
    assert made.run(fake_tools.pid).kind == "value"
    assert made.run(fake_tools.pause, 20, timeout=0.1).kind == "timeout"  # its worker is killed, and not replaced
    assert made.run(fake_tools.pid).kind == "value"


def test_calls_in_line_end_if_the_last_worker_cannot_be_replaced(fresh: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh(spare=0, limit=1)
    made.run(fake_tools.pid)
    monkeypatch.setattr(Supervisor, "worker", refuse)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(made.run, fake_tools.pause, 20, timeout=0.5)
        eventually(lambda: made.workers.counts.busy == 1)
        second = threads.submit(made.run, fake_tools.pid)
        assert first.result(20).kind == "timeout"
        assert fault_of(second.result(20)).rule == "worker_not_started"


def test_a_tool_called_at_import_fails_with_advice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "importing", True)
    with pytest.raises(RuntimeError, match='under `if __name__ == "__main__":`'):
        bench.run(fake_tools.echo, 1)


def test_a_start_that_takes_too_long_is_given_up(fresh: Make) -> None:
    made = fresh(spare=0, start_timeout=0.001)
    reply = made.run(fake_tools.echo, 1)
    assert (reply.kind, reply.killed, reply.started) == ("crashed", True, None)
    assert "was not ready within 0.001 s" in fault_of(reply).message
    assert fault_of(reply).effect == "none"


def test_a_module_that_kills_its_worker_spoils_no_other_tool(
    fresh: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly_tools.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = fresh()
    for deadly in [Target("deadly_tools", "f")] * 3:
        reply = made.workers.run_blocking(deadly, (), {}, timeout=5)
        assert reply.kind == "crashed"
        assert "ended with exit status 9 before it could be called" in fault_of(reply).message
        assert fault_of(reply).effect == "none"
        assert made.run(fake_tools.echo, 1).value == 1


def test_a_prepared_module_that_kills_its_worker_spoils_no_other_tool(
    fresh: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly_tools.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = fresh()
    made.workers.prepare(Target("deadly_tools", "f"))
    assert made.run(fake_tools.echo, 1).value == 1
    assert made.workers.run_blocking(Target("deadly_tools", "f"), (), {}, timeout=5).kind == "crashed"


def test_arguments_that_cannot_be_loaded_there(bench: Bench) -> None:
    class Here:
        def __reduce__(self) -> Any:
            return (__import__, ("no_such_module_at_all",))

    reply = bench.run(fake_tools.echo, Here())
    assert reply.kind == "unsendable"
    assert "the arguments cannot be loaded in a worker" in fault_of(reply).message


def test_a_result_that_cannot_be_loaded_here(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fake_tools, "Box")
    reply = bench.run(fake_tools.boxed)
    assert reply.kind == "unsendable"
    assert "the result cannot be loaded here" in fault_of(reply).message
    assert fault_of(reply).effect == "happened"


def test_the_limit_holds_for_both_directions() -> None:
    assert wire.LIMIT == 64_000_000
