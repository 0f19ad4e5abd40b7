"""Writes are recorded in the store before they start; a replay of one that never ended is reported, and not run (R52)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, OFTEN, ONCE, Scripted, Takes, real, records, virtual
from tests.runtime.execution.processes import fake_tools

from failsoft import CallFailed, Outcome, Runtime
from failsoft.core.conversation.thread_state import DANGLES_FOR
from failsoft.core.model import builtin_faults
from failsoft.errors import ManifestError
from failsoft.runtime.persistence import effect_ledger
from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import key_of
from failsoft.stores.sqlite.store import SqliteStore

TEXT = "It may already have taken effect: check before calling again."
ARGS = {"amount": 4}


class Dies(BaseException):
    """The process ends here, as far as its store can tell."""


class Teller:
    """A runtime on a store, with a tool that pays. ``seen`` is what the store had each time it ran."""

    def __init__(self, store: Any, *steps: Any, **options: Any) -> None:
        self.store = store
        self.rt = Runtime(store=store, **options)
        self.seen: list[list[str]] = []
        self.running = asyncio.Event()
        self.script = Scripted(*(steps or ("paid",)))

        async def pay(**arguments: Any) -> Any:
            self.seen.append(begun(store))
            self.running.set()
            return await self.script(**arguments)

        self.pay = self.rt.add(pay, id="pay", idempotent=False, retry=ONCE, breaker=OFTEN)

    async def script_of(self, arguments: dict[str, Any]) -> Any:
        return await self.script(**arguments)

    async def die(self, **said: Any) -> None:
        """Begin a call, and never come to its end."""
        self.script.steps = (Takes(1000),)
        self.task = asyncio.ensure_future(self.rt.call("pay", ARGS, **said))
        await self.running.wait()


def begun(store: MemoryStore | SqliteStore) -> list[str]:
    return [key for key, _ in store.find("pending") if "/begun/" in key]


def refused(outcome: Outcome[Any]) -> bool:
    fault = outcome.fault
    if fault is None or fault.rule != builtin_faults.BEGUN_BEFORE:
        return False
    assert (outcome.status, outcome.attempts, fault.effect, outcome.recorded) == ("failed", 0, "unknown", None)
    assert TEXT in outcome.explanation.model
    return True


@pytest.mark.parametrize(
    "said",
    [{"id": "c1"}, {"thread": "t"}, {"id": "c1", "thread": "t", "tenant": "acme"}, {"id": "pay-1"}],
    ids=["id", "thread", "both", "an id that looks counted"],
)
@virtual
async def test_a_write_is_recorded_while_it_runs(said: dict[str, str]) -> None:
    teller = Teller(MemoryStore())
    outcome = await teller.rt.call("pay", ARGS, **said)  # type: ignore[misc]  # only texts
    assert (outcome.value, outcome.recorded) == ("paid", True)
    ((record,),) = teller.seen
    assert record.startswith(key_of(said.get("tenant"), said.get("thread"), "begun", "pay", said.get("id", "pay-")))
    assert begun(teller.store) == []


@virtual
async def test_reads_and_calls_without_thread_and_id_are_not_recorded() -> None:
    teller = Teller(MemoryStore())
    assert (await teller.rt.call("pay", ARGS)).recorded is None
    assert await teller.pay(amount=4) == "paid"
    teller.rt.add(teller.pay, id="search", read_only=True, idempotent=None)
    teller.rt.add(Scripted("fine"), id="step")
    for tool in ("search", "step"):
        assert (await teller.rt.call(tool, {}, id="c1", thread="t")).recorded is None
    assert teller.seen == [[], [], []]


@virtual
async def test_a_write_that_is_recognised_by_its_name_is_recorded() -> None:
    rt = Runtime(store=MemoryStore())
    rt.add(Scripted("sent"), id="send_email")
    assert (await rt.call("send_email", {}, id="c1")).recorded is True


@virtual
async def test_the_record_of_a_failed_write_is_removed() -> None:
    teller = Teller(MemoryStore(), DOWN, "paid")
    assert (await teller.rt.call("pay", ARGS, id="c1", thread="t")).recorded is True
    assert begun(teller.store) == []
    assert (await Teller(teller.store).rt.call("pay", ARGS, id="c1", thread="t")).value == "paid"


@pytest.mark.parametrize("thread", [None, "t"])
@virtual
async def test_a_replay_in_another_process_is_reported_and_not_run(thread: str | None) -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread=thread)
    for _ in range(3):  # however often it is restarted
        after = Teller(dead.store)
        assert refused(await after.rt.call("pay", ARGS, id="c1", thread=thread))
        assert after.seen == []
    dead.task.cancel()


@pytest.mark.parametrize(
    "other",
    [{"id": "c2"}, {"thread": "u"}, {"tenant": "acme"}, {"args": {"amount": 5}}, {"id": None}],
    ids=["id", "thread", "tenant", "arguments", "no id"],
)
@virtual
async def test_a_call_with_another_identity_runs(other: dict[str, Any]) -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread="t")
    said = {"args": ARGS, "id": "c1", "thread": "t"} | other
    after = Teller(dead.store)
    args = said.pop("args")
    said = {name: value for name, value in said.items() if value}
    assert (await after.rt.call("pay", args, **said)).value == "paid"
    dead.task.cancel()


@virtual
async def test_a_replay_in_a_process_that_was_already_running_is_reported() -> None:
    store = MemoryStore()
    beside = Teller(store)
    dead = Teller(store)
    await dead.die(id="c1", thread="t")
    assert refused(await beside.rt.call("pay", ARGS, id="c1", thread="t"))
    dead.task.cancel()


@virtual
async def test_a_caller_that_calls_again_and_again_is_stopped_until_the_write_is_resolved() -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread="t")
    after, beside = Teller(dead.store), Teller(dead.store)
    for _ in range(4):
        assert refused(await after.rt.call("pay", ARGS, id="c1", thread="t"))
        assert refused(await beside.rt.call("pay", ARGS, id="c1", thread="t"))
    assert after.rt.threads["t"].dangling == []  # its caller has been told
    assert (await after.rt.call("pay", ARGS, id="c2", thread="t")).value == "paid"
    assert after.rt.threads["t"].close_dangling() == begun(dead.store) == []
    assert (await after.rt.call("pay", ARGS, id="c1", thread="t")).value == "paid"
    dead.task.cancel()


@virtual
async def test_a_write_that_was_begun_before_is_stopped_for_a_day() -> None:
    dead = Teller(MemoryStore(wall=asyncio.get_running_loop().time))
    await dead.die(id="c1")
    dead.task.cancel()
    after = Teller(dead.store)
    await asyncio.sleep(DANGLES_FOR - 60)
    assert refused(await after.rt.call("pay", ARGS, id="c1"))
    await asyncio.sleep(120)
    assert (await after.rt.call("pay", ARGS, id="c1")).value == "paid"


@virtual
async def test_a_duplicate_that_was_stopped_does_not_end_the_record_of_the_first() -> None:
    teller = Teller(MemoryStore())
    await teller.die(id="c1", thread="t")
    for _ in range(3):
        assert refused(await teller.rt.call("pay", ARGS, id="c1", thread="t"))
    assert teller.rt.threads["t"].close_dangling() == []
    assert len(begun(teller.store)) == len(teller.seen) == 1
    teller.task.cancel()


@virtual
async def test_a_write_that_ended_in_a_turn_that_crashed_dangles_and_can_be_resolved() -> None:
    dead = Teller(MemoryStore())
    async with dead.rt.turn(thread="t") as turn:
        await turn.call("pay", ARGS, id="c1")
        after = Teller(dead.store)
        thread = after.rt.threads["t"]
        assert [call.call_id for call in thread.dangling] == ["c1"]
        call = after.rt.call("pay", ARGS, id="c1", thread="t")
        assert refused(await asyncio.get_running_loop().create_task(call, context=Context()))
        thread.close_dangling()
        call = after.rt.call("pay", ARGS, id="c1", thread="t")
        assert (await asyncio.get_running_loop().create_task(call, context=Context())).value == "paid"


@virtual
async def test_a_call_that_was_cancelled_keeps_its_record() -> None:
    teller = Teller(MemoryStore())
    await teller.die(id="c1")
    teller.task.cancel()
    await asyncio.wait([teller.task])
    assert len(begun(teller.store)) == 1
    assert refused(await Teller(teller.store).rt.call("pay", ARGS, id="c1"))
    for _ in range(3):
        assert refused(await teller.rt.call("pay", ARGS, id="c1"))


class Undecided:
    """An Error Handler that takes its time."""

    async def handle(self, report: Any) -> None:
        await asyncio.sleep(100)


RETRIES = {"name": "again", "when": {"tool": "pay"}, "then": {"strategy": "retry"}, "even_if_effect_unknown": True}


@pytest.mark.parametrize(
    "options", [{"error_handler": Undecided()}, {"policies": [RETRIES]}], ids=["asking a handler", "before a retry"]
)
@virtual
async def test_a_call_that_is_cancelled_after_an_unknown_effect_keeps_its_record(options: dict[str, Any]) -> None:
    store = MemoryStore()
    rt, pay = Runtime(store=store, **options), Scripted(ConnectionResetError(104, "Connection reset by peer"))
    rt.add(pay, id="pay", idempotent=False, retry={"initial_delay": "800ms"})
    task = asyncio.ensure_future(rt.call("pay", ARGS, id="c1", thread="chat"))
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait([task])
    (event,) = records(rt, "CallCancelled")
    assert event["effect"] == "unknown"
    assert [case.call_id for case in rt.ledger.unknown()] == ["c1"]
    replay = Runtime(store=store)
    replay.add(pay, id="pay", idempotent=False)
    outcome = await replay.call("pay", ARGS, id="c1", thread="chat")
    assert (pay.attempts, outcome.status) == (1, "failed")
    assert [call.call_id for call in rt.threads["chat"].dangling] == ["c1"]


@real
async def test_a_call_that_is_cancelled_while_it_leaves_its_case_leaves_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, goes, swap = threading.Event(), threading.Event(), MemoryStore.swap

    def swap_slowly(*args: Any, **options: Any) -> bool:
        asked.set()
        goes.wait(5)
        return swap(*args, **options)

    monkeypatch.setattr(MemoryStore, "swap", swap_slowly)
    teller = Teller(MemoryStore(), ConnectionResetError(104, "Connection reset by peer"))
    task = asyncio.ensure_future(teller.rt.call("pay", ARGS, id="c1"))
    await asyncio.to_thread(asked.wait, 5)
    task.cancel()
    await asyncio.wait([task])
    goes.set()
    (event,) = records(teller.rt, "CallCancelled")
    assert event["effect"] == "unknown"
    await teller.rt.close()
    assert len(teller.store.find("pending")) == 1


@virtual
async def test_a_call_that_is_cancelled_while_it_waits_for_its_record_leaves_none() -> None:
    store = Slow(MemoryStore())
    teller = Teller(store)
    task = asyncio.ensure_future(teller.rt.call("pay", ARGS, id="c1"))
    await asyncio.to_thread(store.asked.wait)
    task.cancel()
    await asyncio.wait([task])
    store.goes.set()
    for _ in range(200):
        await asyncio.to_thread(time.sleep, 0.01)
        if store.answered and not begun(store.store):
            break
    assert (begun(store.store), teller.seen) == ([], [])
    assert (await Teller(store).rt.call("pay", ARGS, id="c1")).value == "paid"


@virtual
async def test_a_turn_keeps_the_records_of_its_calls_until_it_ends() -> None:
    teller = Teller(MemoryStore())
    async with teller.rt.turn(thread="t") as turn:
        assert (await turn.call("pay", ARGS, id="c1")).value == "paid"
        again = Teller(teller.store)
        assert refused(await again.rt.call("pay", ARGS, id="c1", thread="t"))  # the framework may not know its answer
        assert again.rt.threads["t"].dangling == []
        call = teller.rt.call("pay", ARGS, id="c1", thread="t")
        elsewhere = asyncio.get_running_loop().create_task(call, context=Context())
        assert (await elsewhere).value == "paid"  # here it is known
    assert begun(teller.store) == []
    assert turn.report.outcomes["c1"].recorded is True


@virtual
async def test_guarded_functions_plans_and_counted_calls_of_a_turn_are_recorded() -> None:
    teller = Teller(MemoryStore())
    async with teller.rt.turn(thread="t") as turn:
        await teller.pay(amount=4)
        turn.call("pay", ARGS)
    assert [outcome.recorded for outcome in turn.report.outcomes.values()] == [True, True]
    report = await teller.rt.run_plan({"calls": [{"id": "p", "tool": "pay", "args": ARGS}]})
    assert report.outcomes["p"].recorded is True
    assert [len(seen) for seen in teller.seen] in ([1, 1, 1], [1, 2, 1], [2, 2, 1])
    assert begun(teller.store) == []


@virtual
async def test_a_call_reported_as_without_effect_never_runs_after_its_turn() -> None:
    store = Slow(MemoryStore())
    teller = Teller(store)
    async with teller.rt.turn(thread="t", timeout="100ms") as turn:
        turn.call("pay", ARGS, id="c1")
    outcome = turn.report.outcomes["c1"]
    assert outcome.fault is not None
    store.goes.set()
    await asyncio.sleep(5)
    if outcome.fault.effect == "none":
        assert teller.seen == []


@virtual
async def test_a_recorded_write_is_not_made_by_a_fallback() -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread="t")
    rt = Runtime(store=dead.store)
    other = Scripted("paid")
    rt.add(other, id="other", idempotent=False)
    rt.add(Scripted("paid"), id="pay", idempotent=False, fallbacks=["other"])
    assert refused(await rt.call("pay", ARGS, id="c1", thread="t"))
    assert other.attempts == 0
    dead.task.cancel()


@virtual
async def test_a_fallback_does_not_make_a_call_whose_own_tool_was_begun_and_is_cut_off_now() -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread="t")
    rt = Runtime(store=dead.store)
    other = Scripted("paid")
    rt.add(other, id="other", idempotent=False)
    rt.add(Scripted(DOWN), id="pay", idempotent=False, fallbacks=["other"], breaker={"failure_threshold": 1})
    assert (await rt.call("pay", {"amount": 0}, retry=ONCE)).via == "other"
    assert rt.health("pay").state == "open"
    assert refused(await rt.call("pay", ARGS, id="c1", thread="t"))
    assert other.attempts == 1
    dead.task.cancel()


@virtual
async def test_dangling_calls_outside_of_turns_are_listed_and_closed() -> None:
    dead = Teller(MemoryStore())
    await dead.die(id="c1", thread="t")
    after = Teller(dead.store)
    thread = after.rt.threads["t"]
    (call,) = thread.dangling
    assert (call.call_id, call.tool, call.turn_id) == ("c1", "pay", "")
    assert TEXT in call.text
    assert thread.close_dangling() == [call]
    assert thread.dangling == begun(dead.store) == []
    assert (await Teller(dead.store).rt.call("pay", ARGS, id="c1", thread="t")).value == "paid"
    dead.task.cancel()


def test_blocking_callers_are_recorded_and_stopped_alike(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "kept.db")
    seen: list[int] = []

    def make() -> Runtime:
        rt = Runtime(store=store)
        rt.add(lambda amount: seen.append(len(begun(store))) or amount, id="pay", idempotent=False)
        rt.add(lambda amount: seen.append(len(begun(store))) or amount, id="slow", idempotent=False, timeout=None)

        def fail(amount: int) -> None:
            raise Dies

        rt.add(fail, id="fail", idempotent=False, timeout=None)
        return rt

    rt = make()
    for tool in ("pay", "slow"):
        outcome = rt.call_sync(tool, ARGS, id="c1")
        assert (outcome.value, outcome.recorded) == (4, True)
    assert seen == [1, 1]
    with pytest.raises(Dies):
        rt.call_sync("fail", ARGS, id="c2")
    assert refused(make().call_sync("fail", ARGS, id="c2"))
    assert begun(store) != []
    store.close()


def test_a_tool_in_a_worker_process_is_recorded_by_its_caller(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "kept.db")
    rt = Runtime(store=store)
    rt.add(fake_tools.echo, id="pay", idempotent=False, isolation="process")
    outcome = rt.call_sync("pay", {"value": 4}, id="c1")
    assert (outcome.value, outcome.recorded) == (4, True)
    outcome = asyncio.run(rt.call("pay", {"value": 4}, id="c1"))
    assert (outcome.value, outcome.recorded) == (4, True)
    store.close()


# --- stores in trouble -------------------------------------------------------------------------------------------------


class Slow:
    """A store that answers claims only after it is released."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked, self.goes = threading.Event(), threading.Event()
        self.answered = False

    def claim(self, kind: Any, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float) -> Any:
        self.asked.set()
        self.goes.wait(20)
        try:
            return self.store.claim(kind, values, ttl=ttl, timeout=timeout)
        finally:
            self.answered = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class Broken(MemoryStore):
    def claim(self, *_: Any, **__: Any) -> Any:
        raise OSError("disk full")


@pytest.mark.parametrize("make", [lambda: Slow(MemoryStore()), Broken], ids=["slow", "broken"])
@real
async def test_a_store_that_does_not_answer_is_waited_for_half_a_second(make: Callable[[], Any]) -> None:
    teller = Teller(make())
    began = time.monotonic()
    outcome = await teller.rt.call("pay", ARGS, id="c1")
    assert time.monotonic() - began < 2
    assert (outcome.value, outcome.recorded) == ("paid", False)
    assert outcome.to_dict()["recorded"] is False
    (event,) = records(teller.rt, "NotRecorded")
    assert (event["call_id"], event["tool_id"], event["refused"]) == ("c1", "pay", False)
    if isinstance(teller.store, Slow):
        teller.store.goes.set()


def test_a_slow_store_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_ledger, "PATIENCE", 60.0)

    async def run() -> None:
        store = Slow(MemoryStore())
        task = asyncio.ensure_future(Teller(store).rt.call("pay", ARGS, id="c1"))
        await asyncio.to_thread(store.asked.wait, 30)
        assert (store.asked.is_set(), store.answered, task.done()) == (True, False, False)  # the event loop runs
        store.goes.set()
        assert (await task).recorded is True

    asyncio.run(run())


@pytest.mark.parametrize("blocking", [False, True])
def test_a_runtime_that_requires_its_store_refuses_writes_it_cannot_record(blocking: bool) -> None:
    teller = Teller(Broken(), store_required=True)
    if blocking:
        outcome = teller.rt.call_sync("pay", ARGS, id="c1")
    else:
        outcome = asyncio.run(teller.rt.call("pay", ARGS, id="c1"))
    assert outcome.fault is not None
    assert (outcome.fault.rule, outcome.fault.effect, outcome.attempts) == ("not_recorded", "none", 0)
    assert outcome.fault.retryable
    assert teller.seen == []
    assert records(teller.rt, "NotRecorded")[0]["refused"] is True
    assert teller.rt.health("pay").state == "closed"
    with pytest.raises(CallFailed, match="could not be recorded"):
        outcome.unwrap()


class Full(MemoryStore):
    """It can be read, but nothing can be written any more."""

    def claim(self, *_: Any, **__: Any) -> Any:
        raise OSError("disk full")


@pytest.mark.parametrize("required", [False, True])
@virtual
async def test_a_replay_is_recognised_by_a_store_that_can_only_be_read(required: bool) -> None:
    store = Full()
    before = Teller(MemoryStore())
    await before.die(id="c1", thread="t")
    for key, value in before.store.find("pending"):
        store.put("pending", key, value)
    after = Teller(store, store_required=required)
    assert refused(await after.rt.call("pay", ARGS, id="c1", thread="t"))
    assert after.seen == []
    other = await after.rt.call("pay", ARGS, id="c2", thread="t")
    assert (other.status, other.recorded) == (("failed", False) if required else ("succeeded", False))
    before.task.cancel()


@virtual
async def test_a_value_is_returned_by_a_store_that_can_only_be_read() -> None:
    before = Teller(MemoryStore())
    await before.die(id="c1")
    operator = Runtime(store=before.store)
    (entry,) = operator.ledger.entries()
    operator.ledger.resolve(entry.id, "happened", "paid then")
    store = Full()
    for key, value in before.store.find("pending"):
        store.put("pending", key, value)
    after = Teller(store)
    assert (await after.rt.call("pay", ARGS, id="c1")).value == "paid then"
    assert after.seen == []
    before.task.cancel()


@real
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_replay_is_recognised_while_another_process_locks_the_file(tmp_path: Path, blocking: bool) -> None:
    dead, after = (Teller(SqliteStore(tmp_path / "kept.db")) for _ in range(2))
    await dead.die(id="c1")
    with closing(sqlite3.connect(tmp_path / "kept.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        if blocking:
            outcome = await asyncio.to_thread(after.rt.call_sync, "pay", ARGS, id="c1")
        else:
            outcome = await after.rt.call("pay", ARGS, id="c1")
        other.execute("ROLLBACK")
    assert refused(outcome)
    assert after.seen == []
    dead.task.cancel()


class Hung(MemoryStore):
    """Its reads and claims wait for ``released``."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.readers: set[int] = set()

    def claim(self, *_: Any, **__: Any) -> Any:
        self.released.wait()
        raise OSError("the share is gone")

    def get(self, kind: Any, key: str) -> Any:
        self.readers.add(threading.get_ident())
        self.released.wait()
        return super().get(kind, key)


@real
async def test_a_store_that_hangs_costs_one_thread_however_many_writes_wait() -> None:
    store = Hung()
    rt = Runtime(store=store)
    rt.add(Scripted(*["sent"] * 20), id="send_email")
    try:
        outcomes = await asyncio.gather(*(rt.call("send_email", {}, id=f"c{number}") for number in range(20)))
        assert {outcome.recorded for outcome in outcomes} == {False}
        assert len(store.readers) == 1
    finally:
        store.released.set()


@real
async def test_replays_are_recognised_after_a_store_has_hung() -> None:
    store = Hung()
    before, after = Teller(MemoryStore()), Teller(store)
    await before.die(id="c1")
    for key, value in before.store.find("pending"):
        store.put("pending", key, value)
    try:
        assert (await after.rt.call("pay", ARGS, id="c2")).recorded is False
    finally:
        store.released.set()
    assert refused(await after.rt.call("pay", ARGS, id="c1"))
    before.task.cancel()


def test_a_runtime_cannot_require_a_store_that_it_has_not_got() -> None:
    with pytest.raises(ManifestError, match="store_required"):
        Runtime(store_required=True)


@real
async def test_many_writes_share_their_transactions(tmp_path: Path) -> None:
    store, claims = SqliteStore(tmp_path / "kept.db"), []
    claim = store.claim

    def count(kind: Any, values: Mapping[str, Any], **said: Any) -> Any:
        claims.append(len(values))
        return claim(kind, values, **said)

    store.claim = count  # type: ignore[method-assign]  # the store's own, watched
    teller = Teller(store)
    outcomes = await asyncio.gather(*(teller.rt.call("pay", ARGS, id=f"c{n}") for n in range(100)))
    assert all(outcome.recorded for outcome in outcomes)
    assert sum(claims) == 100
    assert len(claims) < 20
    store.close()


@virtual
async def test_only_one_of_several_identical_writes_runs() -> None:
    teller = Teller(MemoryStore(), Takes(1, "paid"))
    outcomes = await asyncio.gather(*(teller.rt.call("pay", ARGS, id="c1") for _ in range(5)))
    assert sorted(map(refused, outcomes)) == [False, True, True, True, True]
    assert len(teller.seen) == 1


def test_the_ledger_waits_as_long_as_it_says() -> None:
    assert effect_ledger.PATIENCE == 0.5


@virtual
async def test_two_calls_of_one_run_that_share_an_id_both_run() -> None:
    teller = Teller(MemoryStore(), Takes(1, "paid"))
    async with teller.rt.turn(thread="t") as turn:
        runs = [teller.rt.run("book", ARGS, {"book": teller.script_of}, id="call_0") for _ in range(2)]
        assert [outcome.value for outcome in await asyncio.gather(*runs)] == ["paid", "paid"]
    assert [outcome.recorded for outcome in turn.report.outcomes.values()] == [True, True]
    assert begun(teller.store) == []


@virtual
async def test_a_call_that_its_turn_has_renamed_is_known_by_the_id_that_it_was_given() -> None:
    dead = Teller(MemoryStore(), "paid", Takes(1000))
    async with dead.rt.turn(thread="t", timeout="5s"):
        await dead.rt.run("book", {"amount": 1}, {"book": dead.script_of}, id="call_0")
        task = asyncio.ensure_future(dead.rt.run("book", ARGS, {"book": dead.script_of}, id="call_0"))
        await asyncio.sleep(1)
        after = Teller(dead.store)
        replay = after.rt.run("book", ARGS, {"book": after.script_of}, id="call_0", thread="t")
        assert refused(await asyncio.get_running_loop().create_task(replay, context=Context()))
    await task


@virtual
async def test_a_run_that_was_freed_ends_its_records_without_a_call_that_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effect_ledger, "IDLE_SECONDS", 0.05)

    class Run:
        pass

    teller, run = Teller(MemoryStore()), Run()
    turn = teller.rt.agent_run(run, thread="t")
    await teller.rt.run("book", ARGS, {"book": teller.script_of}, turn=turn, id="c1", thread="t")
    assert len(begun(teller.store)) == 1
    del run, turn
    for _ in range(100):
        await asyncio.to_thread(time.sleep, 0.02)
        if not begun(teller.store):
            break
    assert begun(teller.store) == []


@virtual
async def test_a_recorded_call_that_the_deadline_cuts_off_says_so() -> None:
    teller = Teller(MemoryStore(), Takes(10, "late"))
    async with teller.rt.turn(thread="t", timeout="2s") as turn:
        turn.call("pay", ARGS, id="c1")
    outcome = turn.report.outcomes["c1"]
    assert (outcome.status, outcome.recorded) == ("timed_out", True)
    assert len(begun(teller.store)) == 1  # its tool still runs
    await asyncio.sleep(20)
    assert begun(teller.store) == []


@virtual
async def test_a_call_that_the_deadline_cancels_is_over() -> None:
    teller = Teller(MemoryStore(), Takes(10, "late"))
    async with teller.rt.turn(thread="t", timeout="2s", on_timeout="cancel") as turn:
        turn.call("pay", ARGS, id="c1")
    assert turn.report.outcomes["c1"].status == "timed_out"
    await asyncio.sleep(1)
    await teller.rt.flush()
    assert begun(teller.store) == []
