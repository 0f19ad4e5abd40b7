"""Tool timeouts on an event loop, and cancellations from outside (R8, R27, T2, T3, T7, T8, T14)."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, phrases, real, records, virtual

from failsoft import CallFailed, Runtime, ToolTimeout
from failsoft.runtime.execution.stepping import step

Make = Callable[[Runtime, Any], Callable[[], Awaitable[Any]]]


def by_name(rt: Runtime, guarded: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: rt.call(guarded)


def by_function(rt: Runtime, guarded: Any) -> Callable[[], Awaitable[Any]]:
    async def call() -> Any:
        try:
            return await guarded()
        except CallFailed as failed:
            return failed.outcome

    return call


both = pytest.mark.parametrize("way", [by_name, by_function])


@virtual
async def test_an_attempt_that_an_interrupt_has_left_in_its_queue_disturbs_no_deadline() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Takes(1), Takes(100)), id="search", timeout="2s", retry=ONCE)
    await search()
    queue = rt._engine.toolbox.tools["search"].queue
    over = step(asyncio.sleep(0, "a value"), [None])
    for _ in over:
        pass
    queue.live[over] = (0.0, None, 1)
    with pytest.raises(ToolTimeout) as late:
        await search()
    assert late.value.outcome.duration == pytest.approx(2)
    assert not queue.live
    assert rt.running() == []


# --- the tool's own deadline -------------------------------------------------------------------------------------------


@both
@virtual
async def test_a_tool_is_cancelled_at_its_deadline(way: Make) -> None:
    rt = Runtime()
    search = Scripted(Takes(100))
    outcome = await way(rt, rt.add(search, id="search", timeout="2s", retry=ONCE))()
    assert outcome.fault.message == "Tool timeout after 2s"
    assert (outcome.duration, search.ended[0] - search.started[0]) == (pytest.approx(2), pytest.approx(2))
    assert records(rt, "AttemptAbandoned") == []


@both
@virtual
async def test_no_cancellation_is_pending_after_a_handled_timeout(way: Make) -> None:
    rt = Runtime()
    call = way(rt, rt.add(Scripted(Takes(100)), id="search", timeout="2s", retry={"max_attempts": 3}))
    task = asyncio.current_task()
    assert task is not None
    for _ in range(3):
        await call()
        assert task.cancelling() == 0
    async with asyncio.timeout(5):
        await asyncio.sleep(1)  # a task with a leftover cancellation would not get this far


@both
@virtual
async def test_a_tool_that_swallows_its_cancellation_is_abandoned_and_reported(way: Make) -> None:
    rt = Runtime()
    ended: list[float] = []
    loop = asyncio.get_running_loop()

    async def stubborn() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(50)
        ended.append(loop.time())
        return "too late"

    began = loop.time()
    outcome = await way(rt, rt.add(stubborn, timeout="2s", retry=ONCE))()
    assert loop.time() - began == pytest.approx(2)
    assert (outcome.status, outcome.value) == ("failed", None)
    assert outcome.fault.code == "DEADLINE_EXCEEDED"
    assert "stubborn did not let itself be cancelled" in phrases(rt)
    assert rt.metrics("stubborn")["orphaned_count"] == 1
    await asyncio.sleep(100)
    assert ended == [pytest.approx(began + 52)]  # it went on by itself
    assert rt.metrics("stubborn")["success_count"] == 0


@both
@virtual
async def test_a_value_that_comes_on_cancellation_is_never_a_success(way: Make) -> None:
    rt = Runtime()

    async def late() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return "too late"

    outcome = await way(rt, rt.add(late, timeout="2s"))()
    assert (outcome.status, outcome.attempts) == ("failed", 1)  # undeclared: not repeated, it has acted
    assert (outcome.fault.message, outcome.fault.effect) == ("Tool timeout after 2s", "happened")


@both
@real
async def test_a_tool_that_blocks_the_loop_is_reported_with_its_name(way: Make) -> None:
    rt = Runtime()

    async def blocks() -> str:
        time.sleep(0.1)  # noqa: ASYNC251 - that is the point
        return "late"

    outcome = await way(rt, rt.add(blocks, timeout="50ms"))()
    assert (outcome.status, outcome.fault.effect) == ("failed", "happened")
    (record,) = records(rt, "LoopBlocked")
    assert "The event loop was blocked while blocks ran" in record["message"]
    assert record["blocked_ms"] >= 100


@virtual
async def test_a_tool_without_a_timeout_has_all_the_time_it_wants() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(100_000, "flights")), id="search", timeout=None)
    assert await guarded() == "flights"
    assert (await rt.call("search")).value == "flights"


@virtual
async def test_many_deadlines_are_each_exact() -> None:
    rt = Runtime()
    search = Scripted(Takes(100))
    guarded = rt.add(search, id="search", timeout="5s", retry=ONCE, breaker={"failure_threshold": 1000})

    async def one(after: float) -> float:
        await asyncio.sleep(after)
        began = asyncio.get_running_loop().time()
        with pytest.raises(ToolTimeout):
            await guarded()
        return asyncio.get_running_loop().time() - began

    lasted = await asyncio.gather(*(one(number / 7) for number in range(50)))
    assert lasted == pytest.approx([5.0] * 50)


@virtual
async def test_a_value_in_the_last_moment_counts() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(1.999, "flights")), id="search", timeout="2s", retry=ONCE)
    assert await guarded() == "flights"
    await asyncio.sleep(10)
    assert rt.metrics("search")["timeout_count"] == 0


@virtual
async def test_timeouts_and_task_groups_inside_a_tool_keep_working() -> None:
    rt = Runtime()

    async def inner_timeout() -> str:
        try:
            async with asyncio.timeout(1):
                await asyncio.sleep(10)
        except TimeoutError:
            return "handled"
        return "never"

    async def group() -> list[int]:
        async def number(n: int) -> int:
            await asyncio.sleep(n)
            return n

        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(number(n)) for n in range(3)]
        return [task.result() for task in made]

    assert await rt.add(inner_timeout, timeout="5s")() == "handled"
    assert await rt.add(group, timeout="5s")() == [0, 1, 2]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@virtual
async def test_a_task_group_inside_a_tool_is_cancelled_with_it() -> None:
    rt = Runtime()
    cancelled: list[int] = []

    async def group() -> None:
        async def forever(n: int) -> None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                cancelled.append(n)
                raise

        async with asyncio.TaskGroup() as tasks:
            for n in range(3):
                tasks.create_task(forever(n))

    outcome = await rt.call(rt.add(group, timeout="2s", retry=ONCE))
    assert outcome.fault is not None
    assert outcome.fault.code == "DEADLINE_EXCEEDED"
    await asyncio.sleep(1)
    assert sorted(cancelled) == [0, 1, 2]


async def _waits() -> None:
    await asyncio.sleep(60)


async def _takes_its_time() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(5)


async def _swallows() -> str:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    return "a value"


async def _makes_another_error_of_it() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise ConnectionResetError("closed") from None


@both
@pytest.mark.parametrize("then", [0, 60])
@pytest.mark.parametrize("child", [_waits, _takes_its_time, _swallows, _makes_another_error_of_it])
@virtual
async def test_the_caller_is_answered_also_if_what_the_tool_waits_for_keeps_the_cancellation_to_itself(
    way: Make, child: Callable[[], Coroutine[Any, Any, Any]], then: float
) -> None:
    rt, ended = Runtime(), asyncio.Event()

    async def tool() -> None:
        try:
            await asyncio.gather(child(), asyncio.gather(child()))
            await asyncio.sleep(then)
        finally:
            ended.set()

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    outcome = await way(rt, rt.add(tool, timeout="2s", retry=ONCE))()
    assert (outcome.fault.message, outcome.fault.rule) == ("Tool timeout after 2s", "tool_timeout")
    assert (loop.time(), task.cancelling(), records(rt, "LoopBlocked")) == (2, 0, [])
    assert len(records(rt, "AttemptAbandoned")) == (child is _takes_its_time), "the others end at once"
    await asyncio.sleep(200)
    assert ended.is_set()
    assert task.cancelling() == 0


@both
@virtual
async def test_a_tool_goes_on_by_itself_whose_child_has_swallowed_the_cancellation(way: Make) -> None:
    rt, seen = Runtime(), list[str]()

    async def tool() -> None:
        seen.append(await asyncio.create_task(_swallows()))
        for _ in range(100):
            await asyncio.sleep(0)
        await asyncio.sleep(60)
        seen.append("and more")

    outcome = await way(rt, rt.add(tool, timeout="2s", retry=ONCE))()
    assert outcome.fault.message == "Tool timeout after 2s"
    assert asyncio.get_running_loop().time() == 2
    assert "tool did not let itself be cancelled" in phrases(rt)
    await asyncio.sleep(200)
    assert seen == ["a value", "and more"]


@both
@virtual
async def test_a_caller_that_is_cancelled_does_not_wait_for_the_tools_children_after_the_deadline(way: Make) -> None:
    rt = Runtime()

    async def child() -> None:
        for _ in range(4):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def tool() -> None:
        await asyncio.create_task(child())

    call = way(rt, rt.add(tool, timeout="2s", retry=ONCE))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await call()
    assert not isinstance(caught.value, CallFailed)
    assert asyncio.get_running_loop().time() == 2


@both
@virtual
async def test_the_outer_of_two_simultaneous_deadlines_decides_across_runtimes(way: Make) -> None:
    rt, other = Runtime(), Runtime()
    inner = other.add(_waits, id="inner", timeout="2s", retry=ONCE)

    async def tool() -> None:
        await inner()

    outcome = await way(rt, rt.add(tool, timeout="2s", retry=ONCE))()
    assert outcome.fault.rule == "tool_timeout"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


# --- cancellation from outside -----------------------------------------------------------------------------------------


@both
@virtual
async def test_the_callers_cancellation_is_neutral(way: Make) -> None:
    rt = Runtime()
    search = Scripted(DOWN, Takes(100))
    guarded = rt.add(search, id="search", retry=ONCE, breaker={"failure_threshold": 2})
    await way(rt, guarded)()
    for _ in range(20):
        task = asyncio.create_task(way(rt, guarded)())  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert rt.health("search").state == "closed"
    assert rt.health("search").failure_count == 1
    assert rt.metrics("search")["cancelled_count"] == 20
    assert rt.metrics("search")["error_count"] == 1


@both
@virtual
async def test_an_outer_timeout_is_neutral(way: Make) -> None:
    rt = Runtime()
    call = way(rt, rt.add(Scripted(Takes(100)), id="search", breaker={"failure_threshold": 1}))
    for _ in range(3):
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(1):
                await call()
        assert not isinstance(caught.value, CallFailed)
    assert rt.health("search").state == "closed"
    assert rt.metrics("search")["timeout_count"] == 0
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@both
@virtual
async def test_an_outer_timeout_in_the_moment_of_the_tools_own_wins(way: Make) -> None:
    rt = Runtime()
    call = way(rt, rt.add(Scripted(Takes(100)), id="search", timeout="2s", retry=ONCE))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(2):
            await call()
            await asyncio.sleep(10)
    assert not isinstance(caught.value, CallFailed)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def _times_out() -> None:
    async with asyncio.timeout(2):
        await asyncio.sleep(60)


async def _fails() -> None:
    with anyio.fail_after(2):
        await asyncio.sleep(60)


async def _moves_on() -> str:
    with anyio.move_on_after(2):
        await asyncio.sleep(60)
    return "moved on"


async def _goes_on() -> None:
    await _moves_on()
    await asyncio.sleep(60)


async def _tidies() -> None:
    async with asyncio.timeout(2):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)


async def _tidies_shielded() -> None:
    with anyio.move_on_after(2):
        try:
            await asyncio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(1)


class Timer:
    """A timeout of an unknown origin."""

    async def __aenter__(self) -> None:
        self.whom = asyncio.current_task()
        assert self.whom is not None
        asyncio.get_running_loop().call_later(2, self.whom.cancel)

    async def __aexit__(self, *error: object) -> bool:
        assert self.whom is not None
        return self.whom.uncancel() == 0


async def _has_a_timer() -> None:
    async with Timer():
        await asyncio.sleep(60)
    await asyncio.sleep(60)


@both
@pytest.mark.parametrize("tool", [_times_out, _fails, _moves_on, _goes_on, _tidies, _tidies_shielded, _has_a_timer])
@virtual
async def test_a_timeout_inside_a_tool_at_its_own_deadline_leaves_no_cancellation(
    way: Make, tool: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    rt = Runtime()
    outcome = await way(rt, rt.add(tool, id="tool", timeout="2s", retry=ONCE))()
    task = asyncio.current_task()
    assert task is not None
    assert (outcome.fault.message, task.cancelling()) == ("Tool timeout after 2s", 0)
    assert asyncio.get_running_loop().time() == 2
    await asyncio.sleep(5)
    assert task.cancelling() == 0


@both
@virtual
async def test_an_outer_timeout_wins_also_over_one_inside_what_the_tool_iterates_over(way: Make) -> None:
    rt = Runtime()

    async def items() -> AsyncIterator[int]:
        async with asyncio.timeout(2):
            await asyncio.sleep(60)
        yield 1

    async def tool() -> list[int]:
        return [item async for item in items()]

    call = way(rt, rt.add(tool, timeout="2s", retry=ONCE))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(2):
            await call()
            await asyncio.sleep(60)
    assert not isinstance(caught.value, CallFailed)
    task = asyncio.current_task()
    assert task is not None
    assert (task.cancelling(), asyncio.get_running_loop().time()) == (0, 2)


@both
@virtual
async def test_a_caller_that_is_cancelled_waits_no_longer_than_the_tools_deadline(way: Make) -> None:
    rt, tidied = Runtime(), asyncio.Event()

    async def tidy() -> None:
        for _ in range(4):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        tidied.set()

    call = way(rt, rt.add(tidy, timeout="2s", retry=ONCE))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await call()
    assert not isinstance(caught.value, CallFailed)
    assert asyncio.get_running_loop().time() == 2
    assert [record["message"] for record in records(rt, "AttemptAbandoned")] == ["tidy did not let itself be cancelled"]
    assert len(records(rt, "CallCancelled")) == 1
    await asyncio.wait_for(tidied.wait(), 200)


@both
@pytest.mark.parametrize("fails", [False, True])
@virtual
async def test_a_callers_cancellation_counts_whatever_its_tool_makes_of_it_at_the_deadline(
    way: Make, fails: bool
) -> None:
    rt = Runtime()

    async def tool() -> str:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        if fails:
            raise LookupError("cancelled twice")
        return "too late"

    call = way(rt, rt.add(tool, timeout="2s", retry=ONCE))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await call()
    assert not isinstance(caught.value, CallFailed)
    assert asyncio.get_running_loop().time() == 2
    assert [kind for record in records(rt) if (kind := record["event_type"]) != "CallRunning"] == ["CallCancelled"]


async def _in_a_turn(rt: Runtime) -> None:
    async with rt.turn() as turn:
        await turn.call("tidy")


async def _in_its_body(rt: Runtime) -> None:
    async with rt.turn():
        await rt.call("tidy")


async def _in_a_tool(rt: Runtime) -> None:
    async def outer() -> None:
        await rt.call("tidy")

    await rt.add(outer, id="outer")()


@pytest.mark.parametrize("fails", [0, 1])  # a further attempt is made elsewhere
@pytest.mark.parametrize("call", [_in_a_turn, _in_its_body, _in_a_tool, lambda rt: rt.call("tidy")])
@virtual
async def test_a_tool_that_a_cancelled_caller_leaves_is_reported_once(
    call: Callable[[Runtime], Coroutine[Any, Any, None]], fails: int
) -> None:
    rt = Runtime()
    steps = ["down", "well"] * fails + ["down"] * fails + ["stubborn"]

    async def tidy() -> None:
        step = steps.pop(0)
        if step == "down":
            raise ConnectionRefusedError(step)
        for _ in range(4 * (step == "stubborn")):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    rt.add(tidy, timeout="2s", read_only=True, retry={"initial_delay": "1ms"})
    if fails:
        await rt.call("tidy")  # what it raises is known then
    task = asyncio.create_task(call(rt))
    await asyncio.sleep(1)
    assert steps == []
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await asyncio.sleep(1.5)
    assert [record["tool_id"] for record in records(rt, "AttemptAbandoned")] == ["tidy"]


@virtual
async def test_a_cancelled_probe_returns_its_slot() -> None:
    rt = Runtime()
    search = Scripted(DOWN, Takes(100), "flights")
    rt.add(search, id="search", timeout="200s", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    await rt.call("search")
    await asyncio.sleep(10)
    probe = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(1)
    assert (await rt.call("search")).attempts == 0
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert rt.health("search").state == "half_open"
    assert (await rt.call("search")).value == "flights"


@virtual
async def test_cancelling_while_a_retry_waits_ends_the_call() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="search", retry={"initial_delay": "10s", "max_delay": "10s", "max_total_time": "1m"})
    task = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(60)
    assert search.attempts == 1


# --- what is no failure at all -----------------------------------------------------------------------------------------


class Exit(BaseException):
    """Something that only its own catcher understands."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Exit])
@pytest.mark.parametrize("way", [by_name, by_function])
def test_base_exceptions_pass_unchanged(way: Make, error: type[BaseException]) -> None:
    raised = error("now")
    rt = Runtime()

    async def ends() -> None:
        await asyncio.sleep(0)
        raise raised

    call = way(rt, rt.add(ends, breaker={"failure_threshold": 1}))

    async def main() -> None:
        await call()

    with pytest.raises(error) as caught:
        asyncio.run(main())
    assert caught.value is raised
    assert rt.health("ends").state == "closed"
    assert rt.metrics("ends")["error_count"] == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Exit])
@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
def test_base_exceptions_pass_unchanged_from_blocking_tools(limit: str | None, error: type[BaseException]) -> None:
    raised = error("now")
    rt = Runtime()

    def ends() -> None:
        raise raised

    guarded = rt.add(ends, timeout=limit, breaker={"failure_threshold": 1})
    with pytest.raises(error) as caught:
        guarded()
    assert caught.value is raised
    with pytest.raises(error):
        asyncio.run(rt.call("ends"))  # type: ignore[arg-type]
    assert rt.health("ends").state == "closed"


# --- references --------------------------------------------------------------------------------------------------------


@virtual
async def test_a_deadline_holds_in_the_cleaning_up_after_a_cancellation() -> None:
    rt = Runtime()
    tidy = rt.add(Scripted(Takes(100)), id="tidy", timeout="1s", retry=ONCE)
    met: list[BaseException] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            try:
                await tidy()
            except BaseException as error:
                met.append(error)
            raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [type(error) for error in met] == [ToolTimeout], "the cancellation from before is not one of the tool"


@virtual
async def test_an_abandoned_attempt_holds_neither_its_callers_task_nor_its_context() -> None:
    rt, woken = Runtime(), asyncio.Event()
    value: ContextVar[Any] = ContextVar("value")

    class Kept:
        """Something of the caller's."""

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await woken.wait()

    guarded = rt.add(stubborn, timeout="1s", retry=ONCE)

    async def call() -> None:
        with pytest.raises(ToolTimeout):
            await guarded()

    async def plain() -> None:
        value.set(Kept())
        seen.append(weakref.ref(value.get()))
        await rt.add(slow, id="slow", timeout="1h")()

    async def slow() -> None:
        await asyncio.sleep(1)

    seen: list[weakref.ref[Any]] = []
    for work in (call, plain):
        task = asyncio.create_task(work())
        seen.append(weakref.ref(task))
        await task
        del task
    await asyncio.sleep(0)  # until then the loop holds what has woken this one
    gc.collect()
    assert [held() for held in seen] == [None] * 3
    woken.set()
