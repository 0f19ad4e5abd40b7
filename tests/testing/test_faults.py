from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.testing import FaultPlan, HttpError, virtual_time


def search(city: str, *, limit: int = 3) -> list[str]:
    """Find flights."""
    return [city] * limit


async def search_async(city: str) -> list[str]:
    return [city]


def played(plan: FaultPlan, times: int) -> list[str]:
    tool = plan.wrap(search)
    results = []
    for _ in range(times):
        try:
            results.append("".join(tool("P", limit=1)))
        except Exception as error:
            results.append(f"{type(error).__name__}: {error}")
    return results


def test_each_call_takes_the_next_step_and_the_last_one_stays() -> None:
    assert played(FaultPlan("timeout, 503, ok"), 4) == [
        "TimeoutError: Connection timeout",
        "HttpError: 503 Service Unavailable",
        "P",
        "P",
    ]
    assert played(FaultPlan("ok, timeout"), 3)[2] == "TimeoutError: Connection timeout"


def test_then_replaces_the_last_step() -> None:
    assert played(FaultPlan("boom*2", then="ok"), 4) == ["RuntimeError: boom", "RuntimeError: boom", "P", "P"]


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ("timeout", TimeoutError, "Connection timeout"),
        ("refused", ConnectionRefusedError, "[Errno 111] Connection refused"),
        ("reset", ConnectionResetError, "[Errno 104] Connection reset by peer"),
        ("dns", socket.gaierror, "[Errno -2] Name or service not known"),
        ("invalid", ValueError, "Invalid input"),
        ("boom", RuntimeError, "boom"),
        ("auth", HttpError, "401 Unauthorized"),
        ("rate_limit", HttpError, "429 Too Many Requests"),
        ("503", HttpError, "503 Service Unavailable"),
        ("499", HttpError, "499 Client Error"),
        ("599", HttpError, "599 Server Error"),
    ],
)
def test_every_word_is_a_known_failure(word: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        FaultPlan(word).wrap(search)("PAR")
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_statuses_carry_what_a_client_would_find() -> None:
    for script in ("429(retry_after=2)", "rate_limit(2)", " 429 ( retry_after = 2 ) "):
        with pytest.raises(HttpError) as caught:
            FaultPlan(script).wrap(search)("PAR")
        assert caught.value.status_code == 429
        assert caught.value.headers == {"retry-after": "2"}
    assert HttpError(503).headers == {}
    copy = pickle.loads(pickle.dumps(HttpError(429, 1.5)))
    assert (copy.status_code, copy.headers, str(copy)) == (429, {"retry-after": "1.5"}, "429 Too Many Requests")


def test_lists_take_exceptions_and_callables() -> None:
    own = KeyError("city")
    plan = FaultPlan([own, TimeoutError, "503", lambda city, limit: [city, "cached"], "ok"])
    assert played(plan, 5) == [
        "KeyError: 'city'",
        "TimeoutError: ",
        "HttpError: 503 Service Unavailable",
        "Pcached",
        "P",
    ]
    assert [taken.step for taken in plan.log] == ["KeyError", "TimeoutError", "503", "<lambda>", "ok"]


def test_one_exception_raised_often_does_not_grow() -> None:
    own = KeyError("city")
    tool = FaultPlan([own]).wrap(search)
    for _ in range(5):
        with pytest.raises(KeyError) as caught:
            tool("PAR")
        assert caught.value is own
    depth = 0
    trace = own.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    assert depth == 2  # this test and the plan


@pytest.mark.parametrize(
    "script",
    [
        "tiemout",
        "timeout,, ok",
        "200",
        "600",
        "ok(1)",
        "slow",
        "slow(x)",
        "slow(-1)",
        "429(soon)",
        "ok ok",
        "boom*",
        "(1)",
    ],
)
def test_unknown_words_are_refused_with_the_known_ones(script: str) -> None:
    with pytest.raises(ValueError) as caught:
        FaultPlan(script)
    assert "is not a step: write one of 429(retry_after=2), auth, boom" in str(caught.value)


def test_other_mistakes_are_refused() -> None:
    for empty in ("", []):
        with pytest.raises(ValueError, match="at least one step"):
            FaultPlan(empty)
    with pytest.raises(ValueError, match="is not a step"):
        FaultPlan([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="is not a step"):
        FaultPlan("ok", then="okay")
    for rates in ({"timeout": -0.1}, {"timeout": 0.6, "503": 0.5}, {"timeout": float("nan")}):
        with pytest.raises(ValueError, match="probabilities"):
            FaultPlan.seeded(1, rates)
    with pytest.raises(ValueError, match="is not a step"):
        FaultPlan.seeded(1, {"tiemout": 0.1})

    def stream() -> Any:
        yield 1

    async def astream() -> Any:
        yield 1

    for tool in (stream, astream):
        with pytest.raises(TypeError, match="not the generator"):
            FaultPlan("ok").wrap(tool)


def test_seeded_plans_repeat_themselves() -> None:
    def steps(seed: int) -> list[str]:
        plan = FaultPlan.seeded(seed, {"timeout": 0.2, "503": 0.1})
        played(plan, 2000)
        return [taken.step for taken in plan.log]

    first = steps(1)
    assert first == steps(1) != steps(2)
    counts = Counter(first)
    assert counts.keys() == {"timeout", "503", "ok"}
    assert 320 < counts["timeout"] < 480
    assert 140 < counts["503"] < 260


def test_the_log_has_steps_times_and_arguments() -> None:
    plan = FaultPlan("timeout, slow(2), ok")
    tool = plan.wrap(search_async)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await tool("PAR")
        await asyncio.sleep(5)
        assert await tool("ROM") == ["ROM"]
        assert await tool(city="BER") == ["BER"]

    with virtual_time() as clock:
        clock.run(main())
    assert plan.calls == 3
    assert [tuple(taken) for taken in plan.log] == [
        ("timeout", 0.0, ("PAR",), {}),
        ("slow(2)", 5.0, ("ROM",), {}),
        ("ok", 7.0, (), {"city": "BER"}),
    ]


def test_slow_in_blocking_code_is_virtual_too() -> None:
    with virtual_time() as clock:
        assert FaultPlan("slow(60)").wrap(search)("PAR", limit=1) == ["PAR"]
        assert clock.time() == 60.0


def test_signatures_are_kept() -> None:
    plan = FaultPlan("ok")
    assert inspect.signature(plan.wrap(search)) == inspect.signature(search)
    assert plan.wrap(search).__name__ == "search"
    assert plan.wrap(search).__doc__ == "Find flights."
    assert inspect.iscoroutinefunction(plan.wrap(search_async))
    assert not inspect.iscoroutinefunction(plan.wrap(search))
    half = functools.partial(search, limit=1)
    assert inspect.signature(plan.wrap(half)) == inspect.signature(half)
    assert plan.wrap(half)("PAR") == ["PAR"]
    assert inspect.iscoroutinefunction(plan.wrap(functools.partial(search_async, "PAR")))


def test_callable_objects_and_methods() -> None:
    class Tool:
        async def __call__(self, city: str) -> str:
            return city

        def find(self, city: str) -> str:
            return city

    plan = FaultPlan("ok")
    assert asyncio.run(plan.wrap(Tool())("PAR")) == "PAR"
    assert plan.wrap(Tool().find)("PAR") == "PAR"
    assert plan.calls == 2


def test_an_async_callable_may_take_the_tools_place() -> None:
    plan = FaultPlan([search_async, lambda city: [city, "plain"]])
    tool = plan.wrap(search_async)

    async def main() -> None:
        assert await tool("PAR") == ["PAR"]
        assert await tool("PAR") == ["PAR", "plain"]

    asyncio.run(main())


def test_hang_hangs_until_it_is_cancelled_or_released() -> None:
    plan = FaultPlan("hang*2, ok")
    tool = plan.wrap(search_async)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tool("PAR"), 3600)
        hung = asyncio.ensure_future(tool("ROM"))
        await asyncio.sleep(3600)
        assert not hung.done()
        plan.release()
        assert await hung == ["ROM"]

    with virtual_time() as clock:
        clock.run(main())
    plan.release()  # nothing hangs any more


def test_hang_in_a_thread_is_released() -> None:
    plan = FaultPlan("hang")
    results: list[list[str]] = []
    thread = threading.Thread(target=lambda: results.append(plan.wrap(search)("PAR", limit=1)), daemon=True)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    plan.release()
    thread.join(5)
    assert results == [["PAR"]]


def test_threads_take_each_step_once() -> None:
    plan = FaultPlan("timeout*50", then="ok")
    tool = plan.wrap(search)

    def call(_: int) -> bool:
        try:
            tool("PAR")
        except TimeoutError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(call, range(80))) == {False: 50, True: 30}


@pytest.mark.parametrize("tool", [search, search_async], ids=["sync", "async"])
def test_a_guarded_function_meets_the_plan_too(tool: Any) -> None:
    guarded, plan = Runtime().add(tool, idempotent=False), FaultPlan("reset, 503, ok")
    with virtual_time() as clock:
        rt = Runtime()
        rt.add(plan.wrap(guarded), id="search")
        first = clock.run(rt.call("search", {"city": "PAR"}))
        again = clock.run(rt.call("search", {"city": "PAR"}))
    assert (first.status, first.attempts) == ("failed", 1)  # what it was declared to do has come along
    assert (again.status, again.attempts, plan.calls) == ("succeeded", 2, 3)


def test_a_function_wrapped_by_a_fault_plan_runs_in_this_process() -> None:
    """A worker would find the function by its name, and no plan."""
    plan = FaultPlan("503, ok")
    rt = Runtime({"tools": {"search": {"isolation": "process", "read_only": True}}})
    rt.add(plan.wrap(search))
    outcome = rt.call_sync("search", {"city": "PAR"})
    assert (outcome.value, outcome.attempts, plan.calls) == (["PAR"] * 3, 2, 2)
    assert rt.workers.started == 0
