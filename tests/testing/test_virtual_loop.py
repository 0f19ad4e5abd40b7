"""The loop with a virtual clock: it skips timers and waits for real work."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from failsoft.runtime.execution import clock as clocks
from failsoft.testing import Deadlock, VirtualClock, virtual_time

HOUR = 3600.0


def run(main: Callable[[VirtualClock], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    with virtual_time(**options) as clock:
        return clock.run(main(clock))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


# --- timers --------------------------------------------------------------------------------------------------------


def test_waiting_costs_no_real_time_and_is_exact() -> None:
    async def main(clock: VirtualClock) -> list[float]:
        seen = []
        for seconds in (HOUR, 0.1, 0.2, 30 * 24 * HOUR, 1e-9):
            before = clock.time()
            await asyncio.sleep(seconds)
            seen.append(clock.time() == before + seconds)
        return seen

    with within(2):
        assert run(main) == [True] * 5


def test_timers_run_in_their_order_and_at_their_time() -> None:
    async def main(clock: VirtualClock) -> list[tuple[str, float]]:
        seen = []

        async def nap(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, clock.time()))

        await asyncio.gather(nap("c", 3), nap("a", 0.5), nap("b", 1.25), nap("never early", 1.25 + 1e-12))
        return seen

    assert run(main) == [("a", 0.5), ("b", 1.25), ("never early", 1.25 + 1e-12), ("c", 3.0)]


@pytest.mark.parametrize("start", [0.0, 0.1 + 0.2, 1e7, 1e9])
def test_a_timer_that_sets_itself_again_until_its_time_has_come_ends(start: float) -> None:
    async def main(clock: VirtualClock) -> int:
        clock.advance(start)
        loop = asyncio.get_running_loop()
        until = start + 0.1 + 0.2
        done = asyncio.Event()
        turns = 0

        def look() -> None:
            nonlocal turns
            turns += 1
            left = until - clock.time()
            if left > 0 and turns < 100:
                loop.call_later(left, look)
            else:
                done.set()

        loop.call_later(0.3 - 1e-10, look)
        await done.wait()
        assert clock.time() >= until
        return turns

    assert run(main) < 10


def test_nested_timeouts_fire_in_order() -> None:
    async def main(clock: VirtualClock) -> list[float]:
        seen = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(3):
                        await asyncio.sleep(HOUR)
                seen.append(clock.time())
                await asyncio.sleep(HOUR)
        seen.append(clock.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        seen.append(clock.time())
        return seen

    assert run(main) == [3.0, 10.0, 15.0]


def test_task_groups_run_in_virtual_time() -> None:
    async def fail(after: float) -> None:
        await asyncio.sleep(after)
        raise ValueError(after)

    async def main(clock: VirtualClock) -> float:
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(HOUR))
                group.create_task(fail(60))
        return clock.time()

    assert run(main) == 60.0


def test_cancelled_timers_are_not_waited_for() -> None:
    async def main(clock: VirtualClock) -> float:
        handles = [asyncio.get_running_loop().call_later(HOUR, lambda: None) for _ in range(200)]
        for handle in handles:
            handle.cancel()
        await asyncio.sleep(1)
        return clock.time()

    assert run(main) == 1.0


# --- threads -------------------------------------------------------------------------------------------------------


def test_a_thread_is_waited_for_and_costs_no_virtual_time() -> None:
    async def main(clock: VirtualClock) -> tuple[object, float]:
        timer = asyncio.ensure_future(asyncio.sleep(HOUR))
        work = asyncio.ensure_future(asyncio.to_thread(time.sleep, 0.05))
        done, _ = await asyncio.wait([timer, work], return_when=asyncio.FIRST_COMPLETED)
        assert done == {work}
        before = clock.time()
        await timer
        return before, clock.time()

    with within(5):
        assert run(main) == (0.0, HOUR)


def test_timers_come_due_in_real_time_while_a_thread_works() -> None:
    async def main(clock: VirtualClock) -> float:
        go = threading.Event()
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(go.wait), 0.1)
        assert time.monotonic() - start >= 0.09
        go.set()
        return clock.time()

    with within(5):
        assert run(main) == 0.1


def test_an_abandoned_thread_is_not_waited_for() -> None:
    async def main(clock: VirtualClock) -> float:
        go = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(go.wait))
        await asyncio.sleep(0)
        work.cancel()
        await asyncio.sleep(HOUR)
        go.set()
        return clock.time()

    with within(5):
        assert run(main) == HOUR


def test_time_waited_before_a_timer_was_set_does_not_count_towards_it() -> None:
    async def main(_: VirtualClock) -> float:
        go = threading.Event()
        other = asyncio.ensure_future(asyncio.to_thread(go.wait))  # keeps time real
        await asyncio.to_thread(time.sleep, 0.15)
        start = time.monotonic()
        await asyncio.sleep(0.1)
        took = time.monotonic() - start
        go.set()
        await other
        return took

    assert run(main) >= 0.09


def test_an_executor_of_ones_own() -> None:
    async def main(clock: VirtualClock) -> float:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, time.sleep, 0.03)
        return clock.time()

    assert run(main) == 0.0


def test_threads_that_end_late_are_waited_for_at_the_end() -> None:
    """``asyncio.run`` shuts its executor down, under a timer of five minutes in newer Pythons."""
    ended = []

    async def main(clock: VirtualClock) -> None:
        work = asyncio.ensure_future(asyncio.to_thread(lambda: (time.sleep(0.3), ended.append(True))))
        await asyncio.sleep(0.01)
        work.cancel()

    with virtual_time(grace=0.05) as clock:
        clock.run(main(clock))
        assert ended
        assert clock.time() < 1


def test_outside_work_is_what_its_owner_says() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        loop = asyncio.get_running_loop()
        order: list[str] = []
        answer = loop.create_future()

        def work() -> None:
            time.sleep(0.05)
            order.append("work")
            loop.call_soon_threadsafe(answer.set_result, None)
            clocks.outside_finished(loop)

        clocks.outside_started(loop)
        threading.Thread(target=work).start()
        loop.call_later(HOUR, order.append, "timer")
        await answer
        await asyncio.sleep(HOUR)
        return order

    assert run(main) == ["work", "timer"]


def test_time_continues_if_outside_work_never_reports_its_end() -> None:
    async def main(clock: VirtualClock) -> float:
        loop = asyncio.get_running_loop()
        clocks.outside_started(loop)
        threading.Timer(0.05, clocks.outside_finished, [loop]).start()
        await asyncio.sleep(HOUR)
        return clock.time()

    with within(5):
        assert run(main) == HOUR


def test_outside_work_is_ignored_on_ordinary_loops() -> None:
    async def main() -> None:
        clocks.outside_started(asyncio.get_running_loop())
        clocks.outside_finished(asyncio.get_running_loop())

    asyncio.run(main())


def test_a_thread_may_move_the_clock() -> None:
    async def main(clock: VirtualClock) -> float:
        await asyncio.wait_for(asyncio.to_thread(clocks.current().sleep, 60), HOUR)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(lambda: (clock.sleep(60), time.sleep(0.2))), 30)
        return clock.time()

    with within(5):
        assert run(main) == 120.0


# --- sockets and processes -----------------------------------------------------------------------------------------


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def test_sockets_work_and_no_timer_overtakes_them() -> None:
    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def main(clock: VirtualClock) -> list[bytes]:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            answers = await asyncio.wait_for(asyncio.gather(*(ask(port) for _ in range(5))), HOUR)
        assert clock.time() < 60
        before = clock.time()
        await asyncio.sleep(HOUR)  # nothing is registered any more
        assert clock.time() == before + HOUR
        return answers

    with within(10):
        assert run(main) == [b"hello\n"] * 5


def test_while_a_socket_is_open_time_is_real() -> None:
    async def main(clock: VirtualClock) -> float:
        async with await asyncio.start_server(echo, "127.0.0.1", 0):
            start = time.monotonic()
            await asyncio.sleep(0.1)
            return time.monotonic() - start

    assert run(main) >= 0.09


@pytest.mark.parametrize("piped", [True, False])
def test_processes_are_waited_for(piped: bool) -> None:
    async def main(clock: VirtualClock) -> tuple[int, bool]:
        pipe = asyncio.subprocess.PIPE if piped else None
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import time; time.sleep(0.1)", stdout=pipe
        )
        code = await asyncio.wait_for(process.wait(), HOUR)
        return code, clock.time() < 60

    assert run(main) == (0, True)


# --- nothing can happen any more -----------------------------------------------------------------------------------


def test_a_deadlock_is_reported_with_what_waits() -> None:
    async def wait_for_ever(event: Awaitable[object]) -> None:
        await event

    async def main(_: VirtualClock) -> None:
        await asyncio.sleep(5)
        forgotten = asyncio.create_task(wait_for_ever(asyncio.Event().wait()), name="forgotten")
        await asyncio.wait([forgotten])

    with within(5), pytest.raises(Deadlock) as caught:
        run(main, grace=0.05)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("Still waiting:")
    assert any(line.startswith("  forgotten: test_a_dead") and "wait_for_ever" in line for line in lines)
    assert any(__file__ in line and ".main" in line for line in lines)


def test_a_foreign_thread_may_still_call_within_the_grace() -> None:
    async def main(_: VirtualClock) -> str:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        threading.Timer(0.1, lambda: loop.call_soon_threadsafe(answer.set_result, "called")).start()
        return await answer

    assert run(main, grace=5.0) == "called"


def test_a_deadlock_in_a_running_loop() -> None:
    async def main() -> None:
        with virtual_time(grace=0.05):
            await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        asyncio.run(main())


def test_the_speed_of_a_thread_does_not_change_the_order_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.testing.virtual_loop._HEAD_START", 60.0)

    async def main(clock: VirtualClock) -> tuple[list[str], float]:
        order: list[str] = []
        asyncio.get_running_loop().call_later(0.001, order.append, "timer")
        await asyncio.to_thread(time.sleep, 0.05)
        order.append("thread")
        ended = clock.time()
        await asyncio.sleep(1)
        return order, ended

    assert run(main) == (["thread", "timer"], 0.0)
