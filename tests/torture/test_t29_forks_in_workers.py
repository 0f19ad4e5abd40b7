"""T29: a tool forked in its worker, and later calls got other calls' results. Here each call gets its own, or a fault."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import ONCE
from tests.torture import forking_tools
from tests.torture.scale import times

from failsoft import Outcome, Runtime
from failsoft.core.model.options import Isolation
from failsoft.runtime.execution.processes import wire

CALLS = times(1_000, 200)
FORKS = times(50, 20)
HONEST = (
    "fork_and_return",
    "fork_and_return_first",
    "fork_and_return_later",
    "fork_and_raise",
    "fork_and_exit",
    "fork_unseen",
    "fork_twice",
    "fork_from_a_thread",
    "fork_and_log",
    "use_multiprocessing",
    "use_pools",
    "fork_and_terminate",
    "fork_in_a_coroutine",
)  # the worker itself answers as it should
FATAL = ("fork_and_hang", "fork_and_die")
LIARS = ("answer_another_call", "answer_as_another", "send_too_much")
LATE_LIARS = ("answer_twice", "answer_after_the_end", "send_half_a_frame")
NEVER = {"failure_threshold": 1_000_000}
JSON = {"process": {"values": "json"}}
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def rt() -> Iterator[Runtime]:
    runtime = Runtime()
    for name in ("echo", *HONEST, *FATAL, *LIARS, *LATE_LIARS):
        limit = "300ms" if name == "fork_and_hang" else "20s"
        runtime.add(getattr(forking_tools, name), isolation="process", timeout=limit, retry=ONCE, breaker=NEVER)
    yield runtime
    asyncio.run(runtime.close())


def is_right(outcome: Outcome[Any], number: int) -> bool:
    """The call's own value, or a fault that does not claim that nothing happened."""
    if outcome.status == "succeeded":
        return bool(outcome.value == number)
    return outcome.value is None and outcome.fault is not None and outcome.fault.effect != "none"


@pytest.mark.parametrize("name", HONEST)
def test_t29_a_fork_does_not_answer(rt: Runtime, name: str) -> None:
    for number in range(1, 6):
        assert rt.call_sync(name, {"number": number}).value == number
        assert [rt.call_sync("echo", {"number": 100 + later}).value for later in range(5)] == [100, 101, 102, 103, 104]


@pytest.mark.parametrize("name", [*FATAL, *LIARS])
def test_t29_a_worker_that_cannot_be_trusted_is_ended(rt: Runtime, name: str) -> None:
    for number in range(1, 4):
        outcome = rt.call_sync(name, {"number": number})
        assert outcome.status == "failed", outcome
        assert outcome.fault is not None
        assert outcome.fault.effect == "unknown"
        assert [rt.call_sync("echo", {"number": 100 + later}).value for later in range(5)] == [100, 101, 102, 103, 104]


@pytest.mark.parametrize("name", LATE_LIARS)
def test_t29_unrequested_answers_reach_no_call(rt: Runtime, name: str) -> None:
    for number in range(1, 21):
        assert is_right(rt.call_sync(name, {"number": number}), number)
        time.sleep(number % 3 / 40)
        for later in range(20):
            assert is_right(rt.call_sync("echo", {"number": 100 + later}), 100 + later)


@pytest.mark.parametrize("callers", [1, 8])
def test_t29_no_call_gets_a_wrong_result(rt: Runtime, callers: int) -> None:
    source = random.Random(29)
    plan = [*(source.choice((*HONEST, *FATAL, *LIARS, *LATE_LIARS)) for _ in range(FORKS)), *["echo"] * (CALLS - FORKS)]
    source.shuffle(plan)
    wrong: list[tuple[str, int, Outcome[Any]]] = []
    failed: list[str] = []

    async def caller(mine: int) -> None:
        for number in range(1 + mine, CALLS + 1, callers):
            name = plan[number - 1]
            outcome: Outcome[Any] = await rt.call(name, {"number": number})
            if not is_right(outcome, number):
                wrong.append((name, number, outcome))
            if outcome.status != "succeeded":
                failed.append(name)

    async def main() -> None:
        await asyncio.gather(*map(caller, range(callers)))

    asyncio.run(main())
    assert wrong == []
    spoilt = [name for name in failed if name not in (*FATAL, *LIARS)]  # by a thread of an earlier call
    assert len(spoilt) <= sum(name in LATE_LIARS for name in plan)


@pytest.mark.parametrize("how", ["interrupt", "exit", "cancel", "close"])
@pytest.mark.parametrize("blocking", [True, False])
def test_t29_a_value_that_raises_when_it_is_loaded_is_a_fault(how: str, blocking: bool) -> None:
    rt = Runtime()
    rt.add(forking_tools.value_that_raises, isolation="process", retry=ONCE)
    rt.add(forking_tools.echo, isolation="process")
    rt.add(forking_tools.error_that_exits, isolation="process", retry=ONCE)
    rt.add(forking_tools.log_that_exits, isolation="process", retry=ONCE)

    async def main() -> list[Outcome[Any]]:
        return [
            await rt.call("value_that_raises", {"how": how}),
            await rt.call("error_that_exits"),
            await rt.call("log_that_exits", {"number": 2}),
            await rt.call("echo", {"number": 1}),
        ]

    def sync() -> list[Outcome[Any]]:
        return [
            rt.call_sync("value_that_raises", {"how": how}),
            rt.call_sync("error_that_exits"),
            rt.call_sync("log_that_exits", {"number": 2}),
            rt.call_sync("echo", {"number": 1}),
        ]

    value, error, logged, echo = sync() if blocking else asyncio.run(main())
    assert value.fault is not None
    assert (value.status, value.fault.effect, value.fault.rule) == ("failed", "happened", "worker_unsendable")
    assert error.fault is not None
    assert type(error.fault.cause).__name__ == "FailsToLoad"
    assert (logged.value, echo.value) == (2, 1)
    asyncio.run(rt.close())


def test_t29_ctrl_c_while_a_value_is_loaded_is_not_swallowed() -> None:
    pressed = []

    def load(content: bytes) -> str:
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        return "value"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            wire.unpickle(b"", load)
    finally:
        signal.signal(signal.SIGINT, before)


# --- values: json -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict() -> Iterator[Runtime]:
    runtime = Runtime()
    for tool in (
        forking_tools.echo, forking_tools.give, forking_tools.give_odd, forking_tools.give_part, forking_tools.fail,
        forking_tools.write_pickles, forking_tools.write_one_pickle, forking_tools.write_json,
        forking_tools.log_something, forking_tools.value_that_raises,
    ):  # fmt: skip
        runtime.add(tool, isolation=JSON, retry=ONCE, timeout="10s", breaker=NEVER)
    yield runtime
    asyncio.run(runtime.close())


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, "é\ud800", [1, [2]], {"a": {"b": None}}, {"$type": "bytes", "is": 1}]
)
def test_t29_json_values_arrive_unchanged(strict: Runtime, value: Any) -> None:
    assert strict.call_sync("give", {"value": value}).value == value


def test_t29_tuples_arrive_as_lists(strict: Runtime) -> None:
    assert strict.call_sync("give", {"value": (1, (2, "a"))}).value == [1, [2, "a"]]


@pytest.mark.parametrize("name", forking_tools.ODD)
def test_t29_results_that_are_not_json_are_reported(strict: Runtime, name: str) -> None:
    outcome = strict.call_sync("give_odd", {"name": name})
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.rule, outcome.fault.effect) == ("failed", "worker_unsendable", "happened")
    assert "the result" in outcome.fault.message
    assert strict.call_sync("echo", {"number": 3}).value == 3


def test_t29_errors_and_parts_cross_as_json(strict: Runtime) -> None:
    failed = strict.call_sync("fail", {"text": "the service is down"})
    assert failed.fault is not None
    assert (failed.fault.http_status, failed.fault.classification) == (503, "transient")
    cause: Any = failed.fault.cause
    assert (type(cause).__name__, cause.body, str(cause)) == ("ValueError", b"\x00\xff", "the service is down")
    part = strict.call_sync("give_part")
    assert (part.status, part.value, part.missing) == ("succeeded", ["page 1"], ["page 2"])


def test_t29_log_records_cross_as_json(strict: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert strict.call_sync("log_something", {"number": 7}).value == 7
    record = next(one for one in caplog.records if one.name == "tests.torture.forking")
    assert record.getMessage() == "said 7"
    assert "lock" in vars(record)["odd"]


@pytest.mark.parametrize("kind", [wire.READY, wire.VALUE, wire.ERROR, wire.UNSENDABLE, wire.MISSING, wire.LOG, 77])
def test_t29_with_json_nothing_is_unpickled(strict: Runtime, kind: int, tmp_path: Path) -> None:
    made = tmp_path / "made"
    outcome = strict.call_sync("write_one_pickle", {"kind": kind, "path": str(made)})
    assert outcome.status == "failed"
    assert strict.call_sync("write_pickles", {"path": str(made)}).status == "failed"
    assert strict.call_sync("value_that_raises", {"how": "exit"}).status == "failed"
    assert strict.call_sync("echo", {"number": 3}).value == 3
    assert not made.exists()


def test_t29_without_json_a_hostile_pickle_is_loaded(tmp_path: Path) -> None:
    made = tmp_path / "made"
    rt = Runtime()
    rt.add(forking_tools.write_one_pickle, isolation="process", retry=ONCE, timeout="5s")
    rt.call_sync("write_one_pickle", {"kind": wire.VALUE, "path": str(made)})
    assert made.exists()
    asyncio.run(rt.close())


FAULT = {
    "code": "UNAVAILABLE", "classification": "transient", "category": "tool_transient", "effect": "none",
    "message": "m", "reason": "r", "rule": "x", "retry_after": None, "http_status": None, "cause": None,
}  # fmt: skip
ERROR: dict[str, Any] = {
    "types": ["a.B"], "text": "t", "attributes": {}, "traceback": "", "fault": None, "pickled": None, "cause": None,
    "context": None, "suppress_context": False, "leaves": [],
}  # fmt: skip
HOSTILE: list[tuple[int, Any]] = [
    *((kind, what) for kind in (wire.VALUE, wire.ERROR, wire.UNSENDABLE, wire.MISSING, wire.READY, wire.LOG)
      for what in (None, 1, "x", [], [1], [0.0, False], {}, [[], [], []], ["x", 1, {}], [0.0, False, None])),
    *((wire.ERROR, [0.0, False, {**ERROR, **odd}]) for odd in (
        {"types": ["\0"]}, {"types": 3}, {"types": ["\ud800.x"]}, {"types": []}, {"text": 3}, {"attributes": {"fault": 1}},
        {"attributes": {"__class__": 1, "args": 3, "add_note": 1}}, {"attributes": {"a": {"$type": "system", "is": 1}}},
        {"attributes": {"a": {"$type": "datetime", "is": "x"}}}, {"fault": {}}, {"fault": {**FAULT, "code": "X"}},
        {"fault": {**FAULT, "effect": "maybe"}}, {"fault": {**FAULT, "retry_after": "x"}},
        {"leaves": [{}]}, {"leaves": [ERROR]}, {"cause": 3}, {"traceback": None}, {"pickled": "AAAA"},
    )),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "said"), HOSTILE)
def test_t29_hostile_json_is_a_fault(strict: Runtime, kind: int, said: Any) -> None:
    outcome = strict.call_sync("write_json", {"kind": kind, "text": json.dumps(said)})
    assert outcome.status == "failed"
    assert outcome.fault is not None
    assert strict.call_sync("echo", {"number": 3}).value == 3


@pytest.mark.parametrize("text", ["[" * 100_000, "", "{", "\x00", '[0.0, false, {"value": ' + "[" * 5_000, "NaN"])
def test_t29_malformed_json_is_a_fault(strict: Runtime, text: str) -> None:
    assert strict.call_sync("write_json", {"kind": wire.VALUE, "text": text}).status == "failed"
    assert strict.call_sync("echo", {"number": 3}).value == 3


def test_t29_the_two_kinds_of_workers_share_no_process() -> None:
    rt = Runtime()
    rt.add(forking_tools.echo, id="plain", isolation="process")
    rt.add(forking_tools.echo, id="strict", isolation=Isolation(kind="process", values="json"))
    pids: dict[str, set[Any]] = {"plain": set(), "strict": set()}
    rt.subscribe(lambda event: None)
    for number in range(20):
        for name, seen in pids.items():
            assert rt.call_sync(name, {"number": number}).value == number
            seen.add(rt.workers.alive)
    workers = rt._engine.places.workers
    assert workers._others is not None
    ours, others = ({one.pid for one in pool._workers if one.pid} for pool in (workers, workers._others))
    assert ours
    assert others
    assert not ours & others
    assert rt.workers.started == workers._started + workers._others._started
    asyncio.run(rt.close())
    assert rt.workers.alive == 0


def test_t29_threads_that_fork_while_others_call(rt: Runtime) -> None:
    stop = threading.Event()

    def fork() -> None:
        while not stop.is_set():
            rt.call_sync("fork_and_return_later", {"number": 1})

    forking = threading.Thread(target=fork)
    forking.start()
    try:
        assert [rt.call_sync("echo", {"number": n}).value for n in range(100)] == list(range(100))
    finally:
        stop.set()
        forking.join()
