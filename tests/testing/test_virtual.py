"""``virtual_time`` as its users meet it: around a loop, inside one, and without."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from failsoft import Runtime
from failsoft.runtime.execution import clock as clocks
from failsoft.testing import virtual_time

HOUR = 3600.0


async def sleep_and_tell(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return asyncio.get_running_loop().time()


def test_loops_made_inside_virtual_time_are_virtual() -> None:
    with virtual_time() as clock:
        assert asyncio.run(sleep_and_tell(HOUR)) == HOUR
        assert asyncio.run(sleep_and_tell(1)) == clock.time() == HOUR + 1  # one clock for all the loops in the body


def test_around_a_runner_and_a_loop_of_ones_own() -> None:
    with virtual_time() as clock:
        with asyncio.Runner() as runner:
            assert runner.run(sleep_and_tell(HOUR)) == HOUR
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(sleep_and_tell(HOUR)) == 2 * HOUR
        loop.close()
        assert clock.time() == 2 * HOUR


def test_run_runs_a_coroutine_in_virtual_time() -> None:
    with virtual_time() as clock:
        assert clock.run(sleep_and_tell(HOUR)) == HOUR


def test_run_outside_of_its_body_is_refused() -> None:
    with virtual_time() as clock:
        pass
    with pytest.raises(RuntimeError, match="inside its own"):
        clock.run(sleep_and_tell(1))


@pytest.mark.parametrize("form", ["with", "async with"])
def test_inside_a_running_loop(form: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        early = loop.time()
        if form == "with":
            with virtual_time() as clock:
                assert await sleep_and_tell(HOUR) == clock.time() == HOUR
        else:
            async with virtual_time() as clock:
                assert await sleep_and_tell(HOUR) == clock.time() == HOUR
        assert early <= loop.time() < early + 60  # real again
        assert loop._clock_resolution == time.get_clock_info("monotonic").resolution  # type: ignore[attr-defined]
        assert not {"time", "call_at", "run_in_executor", "failsoft_outside"} & vars(loop).keys()

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < 5


def test_timers_keep_their_remaining_time_when_time_becomes_virtual_and_real() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        fired: list[tuple[str, float]] = []
        loop.call_later(10, lambda: fired.append(("before", loop.time())))
        with virtual_time():
            loop.call_later(1800, lambda: fired.append(("within", loop.time())))
            late = loop.call_later(HOUR + 0.05, fired.append, ("after", 0.0))
            await asyncio.sleep(HOUR)
        assert [(name, round(at)) for name, at in fired] == [("before", 10), ("within", 1800)]
        assert 0 < late.when() - loop.time() <= 0.051
        await asyncio.sleep(0.1)
        assert fired[-1] == ("after", 0.0)

    asyncio.run(main())


def test_twice_on_one_loop_is_refused() -> None:
    async def main() -> None:
        with virtual_time(), pytest.raises(RuntimeError, match="already"), virtual_time():
            pass

    asyncio.run(main())
    with virtual_time() as clock:

        async def inside() -> None:
            with pytest.raises(RuntimeError, match="already"):
                virtual_time().__enter__()
            assert clocks.current() is clock.functions

        clock.run(inside())


def test_a_loop_that_is_not_asyncios_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        pass

    monkeypatch.setattr(asyncio, "get_running_loop", Other)
    with pytest.raises(TypeError, match=r"Other: use it around asyncio\.run\(\)"):
        virtual_time().__enter__()
    assert clocks.current() is clocks.SYSTEM


def test_nested_bodies_have_clocks_of_their_own() -> None:
    with virtual_time() as outer:
        asyncio.run(sleep_and_tell(5))
        with virtual_time() as inner:
            assert asyncio.run(sleep_and_tell(1)) == inner.time() == 1.0
        assert outer.time() == 5.0
        assert asyncio.run(sleep_and_tell(1)) == 6.0


def test_everything_is_as_before_afterwards() -> None:
    before = asyncio.new_event_loop, asyncio.events.new_event_loop
    with pytest.raises(ZeroDivisionError), virtual_time():
        assert (asyncio.new_event_loop, asyncio.events.new_event_loop) != before
        _ = 1 / 0
    assert (asyncio.new_event_loop, asyncio.events.new_event_loop) == before
    assert clocks.current() is clocks.SYSTEM
    start = time.monotonic()
    asyncio.run(asyncio.sleep(0.05))
    assert time.monotonic() - start >= 0.045


def test_two_threads_do_not_meet_each_others_clock() -> None:
    before = asyncio.new_event_loop
    inside = threading.Barrier(3)
    results: dict[str, float] = {}

    def in_virtual_time(name: str, seconds: float) -> None:
        with virtual_time():
            inside.wait()
            results[name] = asyncio.run(sleep_and_tell(seconds))
            inside.wait()

    threads = [threading.Thread(target=in_virtual_time, args=item) for item in [("a", HOUR), ("b", 2 * HOUR)]]
    for thread in threads:
        thread.start()
    inside.wait()
    loop = asyncio.new_event_loop()
    assert not hasattr(loop, "failsoft_outside")  # this thread has no part in it
    loop.close()
    inside.wait()
    for thread in threads:
        thread.join()
    assert results == {"a": HOUR, "b": 2 * HOUR}
    assert asyncio.new_event_loop is before


def test_a_runtime_lives_by_the_virtual_clock() -> None:
    assert clocks.current() == clocks.Clock(time.monotonic, time.time, time.sleep)
    with virtual_time() as clock:
        monotonic, wall, sleep = clocks.current()
        sleep(90)
        assert clock.time() == monotonic() == 90.0
        assert datetime.fromtimestamp(wall(), UTC) == datetime(2025, 11, 5, 10, 32, 15, tzinfo=UTC)
        assert clocks.current() is clocks.current()

        async def main() -> tuple[float, float]:
            await asyncio.sleep(10)
            return await asyncio.gather(asyncio.to_thread(monotonic), asyncio.to_thread(clocks.current().monotonic))

        assert asyncio.run(main()) == [100.0, 100.0]
    assert monotonic() == 100.0  # who holds on to it can still ask
    assert clocks.current() is clocks.SYSTEM


def test_the_day_can_be_chosen() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    with virtual_time(start=start) as clock:
        assert clock.wall() == start.timestamp()
        assert clock.time() == 0.0


def test_advance_runs_the_timers_that_become_due() -> None:
    async def main() -> None:
        seen: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(2, seen.append, "b")
        loop.call_later(1, seen.append, "a")
        loop.call_later(60, seen.append, "c")
        clock.advance(30)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert seen == ["a", "b"]
        assert loop.time() == 30.0

    with virtual_time() as clock:
        clock.run(main())


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan")])
def test_time_does_not_run_backwards(seconds: float) -> None:
    with virtual_time() as clock:
        with pytest.raises(ValueError, match="go backwards"):
            clock.advance(seconds)
        with pytest.raises(ValueError, match="go backwards"):
            clock.sleep(seconds)


@pytest.mark.parametrize("inside", [True, False])
def test_a_runtime_made_outside_of_virtual_time_is_warned_about(inside: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def wait(rt: Runtime) -> None:
        rt.add(asyncio.sleep, id="wait")
        await rt.call("wait", {"delay": 1})

    before = Runtime()
    with virtual_time() as clock:
        clock.run(wait(Runtime() if inside else before))
    assert ("was made outside of virtual_time()" in caplog.text) is not inside


def _async_tool() -> Runtime:
    rt = Runtime()
    rt.add(sleep_and_tell, id="slow", read_only=True)
    return rt


def _async_tool_for_a_function() -> Runtime:
    rt = _async_tool()

    @rt.tool(id="search", read_only=True, timeout=None, retry={"max_attempts": 1}, fallbacks=["slow"])
    def search(seconds: float) -> float:
        raise ConnectionRefusedError

    return rt


@pytest.mark.parametrize(("make", "tool"), [(_async_tool, "slow"), (_async_tool_for_a_function, "search")])
def test_callers_that_block_live_by_the_clock_of_the_moment(make: Callable[[], Runtime], tool: str) -> None:
    before = max(len(_loops()), 1)  # that of real time stays, others' too
    for _ in range(2):
        with virtual_time() as clock:
            rt = make()
            for times in (1, 2):
                assert rt.call_sync(tool, {"seconds": 20}).value == clock.time() == 20 * times
                time.sleep(0.01)  # no time passes while no caller waits, even if a timer is left
    began = time.monotonic()
    assert make().call_sync(tool, {"seconds": 0.05}).status == "succeeded"
    assert time.monotonic() - began >= 0.05
    until = time.monotonic() + 5
    while len(_loops()) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(_loops()) <= before


def _loops() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "failsoft loop"]
