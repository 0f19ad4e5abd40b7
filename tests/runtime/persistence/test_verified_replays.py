"""A write that was begun before a crash is verified when it is replayed (R53): it never runs twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextvars import Context
from typing import Any

import pytest
from tests.fakes import Scripted, Takes, real, virtual

from failsoft import NothingDone, Runtime, Verified
from failsoft.runtime.persistence import effect_ledger, process_identity
from failsoft.runtime.persistence.process_identity import may_still_run, own_process
from failsoft.stores.memory import MemoryStore
from failsoft.testing import check_driver

CALL: dict[str, Any] = {"id": "c1", "thread": "chat"}


class Asked:
    def __init__(self, answer: Verified) -> None:
        self.answer = answer
        self.questions: list[tuple[Any, Any]] = []

    async def __call__(self, arguments: Any, key: Any, fault: Any) -> Verified:
        self.questions.append((arguments, key))
        assert fault.rule == "begun_before"
        return self.answer


class Verifying:
    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    async def __call__(self, *_: Any) -> Verified:
        return Verified(self.answers.pop(0))  # type: ignore[arg-type]


async def crash(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, **options: Any) -> asyncio.Task[Any]:
    """Begin a write in a runtime of a process that is gone afterwards."""
    monkeypatch.setattr(effect_ledger, "own_process", lambda: f"{process_identity._machine()}/{2**22 + 1}/1")
    rt = Runtime(store=store)
    rt.add(Scripted(Takes(600)), id="pay", idempotent=False, timeout=None, **options)
    task = asyncio.ensure_future(rt.call("pay", {"amount": 4}, **CALL))
    await asyncio.sleep(0.5)
    monkeypatch.setattr(effect_ledger, "own_process", own_process)
    return task


def replay(store: MemoryStore, verify: Any, **options: Any) -> tuple[Runtime, Scripted]:
    rt = Runtime(store=store)
    pay = Scripted("paid")
    rt.add(pay, id="pay", verify=verify, **options)
    return rt, pay


@pytest.mark.parametrize(
    ("answer", "status", "value", "ran"),
    [
        (Verified.happened("receipt"), "succeeded", "receipt", 0),
        (Verified.none(), "succeeded", "paid", 1),
        (Verified.unknown("no answer"), "failed", None, 0),
    ],
    ids=["happened", "none", "unknown"],
)
def test_a_replay_is_verified_with_its_own_arguments(
    answer: Verified, status: str, value: Any, ran: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        verify = Asked(answer)
        rt, pay = replay(store, verify)
        with check_driver():
            outcome = await rt.call("pay", {"amount": 4}, **CALL)
        assert (outcome.status, outcome.value, pay.attempts) == (status, value, ran)
        assert verify.questions == [({"amount": 4}, None)]
        assert rt.health("pay").failure_count == 0
        if status == "failed":
            assert outcome.fault is not None
            assert (outcome.fault.rule, outcome.fault.effect) == ("begun_before", "unknown")
        task.cancel()

    run()


def test_only_one_of_several_replays_may_act_on_none(monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        replays = [replay(store, Asked(Verified.none())) for _ in range(5)]
        outcomes = await asyncio.gather(*(rt.call("pay", {"amount": 4}, **CALL) for rt, _ in replays))
        assert sum(pay.attempts for _, pay in replays) == 1
        assert [outcome.status for outcome in outcomes if outcome.attempts] == ["succeeded"]
        others = [outcome for outcome in outcomes if not outcome.attempts]
        assert all(outcome.status == "failed" or outcome.via == "ledger" for outcome in others)
        assert len(others) == 4
        task.cancel()

    run()


@virtual
async def test_a_write_that_another_living_process_has_begun_is_not_verified() -> None:
    store, verify = MemoryStore(), Asked(Verified.none())
    first = Runtime(store=store)
    first.add(Scripted(Takes(600)), id="pay", idempotent=False, timeout=None)
    task = asyncio.ensure_future(first.call("pay", {"amount": 4}, **CALL))
    await asyncio.sleep(0.5)
    rt, pay = replay(store, verify)
    outcome = await rt.call("pay", {"amount": 4}, **CALL)
    assert (outcome.status, pay.attempts, verify.questions) == ("failed", 0, [])
    (event,) = [event for event in rt.events() if event.event_type == "EffectVerified"]
    assert event.fields["reason"] == "the process that began it still runs"
    task.cancel()


def test_a_replay_is_verified_and_made_with_the_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual
    async def run() -> None:
        store, keys = MemoryStore(), []

        async def hang(amount: int, reference: str) -> None:
            keys.append(reference)
            await asyncio.sleep(600)

        async def pay(amount: int, reference: str) -> str:
            keys.append(reference)
            return "paid"

        verify = Asked(Verified.none())
        monkeypatch.setattr(effect_ledger, "own_process", lambda: f"{process_identity._machine()}/{2**22 + 1}/1")
        first = Runtime(store=store)
        first.add(hang, id="pay", verify=verify, verify_key="reference", timeout=None)
        task = asyncio.ensure_future(first.call("pay", {"amount": 4}, **CALL))
        await asyncio.sleep(0.5)
        rt = Runtime(store=store)
        rt.add(pay, id="pay", verify=verify, verify_key="reference")
        assert (await rt.call("pay", {"amount": 4}, **CALL)).value == "paid"
        assert keys == [keys[0]] * 2
        assert verify.questions[0][1] == keys[0]
        task.cancel()

    run()


def test_a_process_is_recognised() -> None:
    here = {"run": "other", "process": own_process(), "at": 0.0}
    assert may_still_run(here, "me", 0.0, 1.0) == "the process that began it still runs"
    assert may_still_run({**here, "run": "me"}, "me", 0.0, 1.0) == "an attempt of this process may still run"
    assert may_still_run({}, "me", 0.0, 1.0) == "the same call has just begun"
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    machine = own_process().partition("/")[0]
    assert may_still_run({**here, "process": f"{machine}/{ended.pid}/1"}, "me", 0.0, 1.0) is None
    assert may_still_run({**here, "process": f"{machine}/{os.getpid()}/1"}, "me", 0.0, 1.0) is None  # another start
    for process in ("elsewhere/1/1", ""):
        assert may_still_run({**here, "process": process}, "me", 1.0, 1.0) == "it may still run on another machine"
        assert may_still_run({**here, "process": process}, "me", 1.1, 1.0) is None


# --- a further replay ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_turn", [False, True], ids=["outside turns", "in turns"])
@pytest.mark.parametrize("first", [Verified.happened("receipt"), Verified.none()], ids=["happened", "none"])
@pytest.mark.parametrize("then", [Verified.happened("receipt"), Verified.none(), Verified.unknown()])
def test_a_replay_that_ended_is_not_made_again_whatever_verify_says_then(
    first: Verified, then: Verified, in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(rt: Runtime) -> Any:
        if not in_turn:
            return await rt.call("pay", {"amount": 4}, **CALL)
        async with rt.turn(thread="chat") as turn:
            return await turn.call("pay", {"amount": 4}, id="c1")

    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        rt, pay = replay(store, Asked(first))
        assert (await call(rt)).status == "succeeded"
        paid = pay.attempts
        for other in (rt, replay(store, Asked(then))[0], replay(store, Asked(then))[0]):
            with check_driver():
                outcome = await call(other)
            assert (outcome.status, outcome.attempts) == ("succeeded", 0)
            assert other.ledger.unknown() == []
        assert outcome.value_known is (then.answer == "happened")
        assert outcome.value == ("receipt" if outcome.value_known else None)
        assert pay.attempts == paid
        task.cancel()

    run()


def test_a_replay_that_ended_unknown_stops_further_ones_and_one_without_effect_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @virtual
    async def run(error: Exception, ran: int, status: str) -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        rt = Runtime(store=store)
        rt.add(Scripted(error), id="pay", verify=Verifying("none", "unknown"), retry={"max_attempts": 1})
        assert (await rt.call("pay", {"amount": 4}, **CALL)).status == "failed"
        other, pay = replay(store, Asked(Verified.unknown()))
        outcome = await other.call("pay", {"amount": 4}, **CALL)
        assert (pay.attempts, outcome.status) == (ran, status)
        if not ran:
            assert outcome.fault is not None
            assert (outcome.fault.rule, outcome.fault.effect) == ("begun_before", "unknown")
            (case,) = other.ledger.unknown()
            other.ledger.resolve(case.id, "none")
            assert (await other.call("pay", {"amount": 4}, **CALL)).value == "paid"
        task.cancel()

    run(ValueError("no receipt in the answer"), 0, "failed")
    run(NothingDone("no money"), 1, "succeeded")


def test_none_is_not_believed_about_a_call_that_ended_before_its_turn_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        monkeypatch.setattr(effect_ledger, "own_process", lambda: f"{process_identity._machine()}/{2**22 + 1}/1")
        first = Runtime(store=store)
        first.add(Scripted("paid"), id="pay", idempotent=False)
        async with first.turn(thread="chat") as turn:
            assert (await turn.call("pay", {"amount": 4}, id="c1")).value == "paid"
            monkeypatch.setattr(effect_ledger, "own_process", own_process)
            rt, pay = replay(store, Asked(Verified.none()))
            replayed = rt.call("pay", {"amount": 4}, **CALL)
            outcome = await asyncio.get_running_loop().create_task(replayed, context=Context())
        assert (pay.attempts, outcome.status) == (0, "failed")
        assert outcome.fault is not None
        assert outcome.fault.reason.endswith("not verified: the earlier call ended, and not without effect")

    run()


def test_closing_dangling_calls_lets_a_replayed_call_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        rt, _ = replay(store, Asked(Verified.none()))
        assert (await rt.call("pay", {"amount": 4}, **CALL)).value == "paid"
        assert rt.threads["chat"].dangling == []
        rt.threads["chat"].close_dangling()
        assert (await rt.call("pay", {"amount": 4}, **CALL)).attempts == 1
        task.cancel()

    run()


class Unconfirmed(MemoryStore):
    """A store that makes changes and does not confirm them in time."""

    def swap(self, *args: Any, **options: Any) -> bool:
        super().swap(*args, **options)
        raise TimeoutError


@pytest.mark.parametrize("first", ["happened", "none"])
def test_a_replay_whose_record_is_not_confirmed_does_not_stop_further_ones(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @virtual
    async def run() -> None:
        store = Unconfirmed()
        task = await crash(store, monkeypatch)
        rt, pay = replay(store, Verifying(first))
        outcome = await rt.call("pay", {"amount": 4}, **CALL)
        assert outcome.status == ("succeeded" if first == "happened" else "failed")
        monkeypatch.setattr(Unconfirmed, "swap", MemoryStore.swap)
        other, again = replay(store, Verifying("unknown"))
        assert (await other.call("pay", {"amount": 4}, **CALL)).status == "succeeded"
        assert (pay.attempts, again.attempts) == (0, int(first == "none"))
        task.cancel()

    run()


@pytest.mark.parametrize("first", ["happened", "none"])
@real
async def test_a_replay_that_is_cancelled_leaves_what_verify_has_found(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapping, go_on, swap = threading.Event(), threading.Event(), MemoryStore.swap

    def swap_slowly(*args: Any, **options: Any) -> bool:
        swapping.set()
        go_on.wait(5)
        return swap(*args, **options)

    store = MemoryStore()
    task = await crash(store, monkeypatch)
    monkeypatch.setattr(MemoryStore, "swap", swap_slowly)
    rt, pay = replay(store, Verifying(first), verify_delay="1ms")
    replayed = asyncio.ensure_future(rt.call("pay", {"amount": 4}, **CALL))
    await asyncio.to_thread(swapping.wait, 5)
    replayed.cancel()
    await asyncio.wait([replayed])
    go_on.set()
    for attempts in (int(first == "none"), 0):  # the second replay finds the end of the first
        other, again = replay(store, Verifying("unknown"), verify_delay="1ms")
        assert (await other.call("pay", {"amount": 4}, **CALL)).status == "succeeded"
        assert (pay.attempts, again.attempts) == (0, attempts)
        await other.close()
    await rt.close()
    task.cancel()


def test_a_replay_after_one_without_effect_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        refused = Runtime(store=store)
        refused.add(Scripted(NothingDone("no money")), id="pay", verify=Verifying("none"), retry={"max_attempts": 1})
        assert (await refused.call("pay", {"amount": 4}, **CALL)).status == "failed"
        paid = []
        for _ in range(3):
            rt, pay = replay(store, Asked(Verified.unknown()))
            assert (await rt.call("pay", {"amount": 4}, **CALL)).status == "succeeded"
            paid.append(pay.attempts)
        assert paid == [1, 0, 0]
        task.cancel()

    run()


def test_a_write_that_ends_unknown_in_a_turn_stays_recorded_if_the_store_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        monkeypatch.setattr(effect_ledger, "own_process", lambda: f"{process_identity._machine()}/{2**22 + 1}/1")
        first = Runtime(store=store)
        first.add(Scripted(ValueError("no receipt")), id="pay", idempotent=False)
        async with first.turn(thread="chat") as turn:
            with monkeypatch.context() as broken:
                broken.setattr(MemoryStore, "swap", lambda *_, **__: time_out())
                assert (await turn.call("pay", {"amount": 4}, id="c1")).status == "failed"
            monkeypatch.setattr(effect_ledger, "own_process", own_process)
            rt = Runtime(store=store)
            pay = Scripted("paid")
            rt.add(pay, id="pay", idempotent=False)
            replayed = rt.call("pay", {"amount": 4}, **CALL)
            outcome = await asyncio.get_running_loop().create_task(replayed, context=Context())
        assert (pay.attempts, outcome.status) == (0, "failed")
        assert {case.call_id for case in rt.ledger.unknown()} == {"c1"}

    run()


def time_out() -> bool:
    raise TimeoutError


# --- fallbacks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["fallback", "policy"])
@pytest.mark.parametrize("answer", [Verified.none(), Verified.happened("receipt")], ids=["none", "happened"])
def test_none_is_not_believed_about_a_call_that_a_fallback_may_have_made(
    answer: Verified, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = [
        {
            "name": "elsewhere",
            "when": {"tool": "pay"},
            "then": {"strategy": "alternative_tool", "tool": "pay_elsewhere"},
        }
    ]
    manifest: dict[str, Any] = {} if other == "fallback" else {"policies": policies}
    options: dict[str, Any] = {"fallbacks": ["pay_elsewhere"]} if other == "fallback" else {}

    @virtual
    async def run() -> None:
        store = MemoryStore()
        monkeypatch.setattr(effect_ledger, "own_process", lambda: f"{process_identity._machine()}/{2**22 + 1}/1")
        before = Runtime(manifest, store=store)
        acts = Scripted(Takes(600))
        before.add(Scripted("never"), id="pay", verify=Asked(answer), **options)
        before.add(acts, id="pay_elsewhere", idempotent=False, timeout=None)
        before.disable("pay", "maintenance")
        task = asyncio.ensure_future(before.call("pay", {"amount": 4}, **CALL))
        await asyncio.sleep(0.5)
        assert acts.attempts == 1
        monkeypatch.setattr(effect_ledger, "own_process", own_process)
        rt, pay, again = Runtime(manifest, store=store), Scripted("paid"), Scripted("paid elsewhere")
        rt.add(pay, id="pay", verify=Asked(answer), **options)
        rt.add(again, id="pay_elsewhere", idempotent=False)
        outcome = await rt.call("pay", {"amount": 4}, **CALL)
        assert (pay.attempts, again.attempts) == (0, 0)
        assert (outcome.status == "succeeded") is (answer.answer == "happened")
        if outcome.fault is not None:
            assert "another tool may have done it" in outcome.fault.reason
        task.cancel()

    run()


def test_a_replay_does_not_act_on_none_after_another_replay_has_acted_and_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @virtual
    async def run() -> None:
        store = MemoryStore()
        task = await crash(store, monkeypatch)
        fast, pay = replay(store, Asked(Verified.none()))

        async def answer_late(*_: Any) -> Verified:
            assert (await fast.call("pay", {"amount": 4}, **CALL)).value == "paid"
            return Verified.none()  # true when the question was asked

        slow, again = replay(store, answer_late)
        outcome = await slow.call("pay", {"amount": 4}, **CALL)
        assert (pay.attempts, again.attempts, outcome.status) == (1, 0, "succeeded")
        assert (outcome.via, outcome.value_known) == ("ledger", False)
        task.cancel()

    run()
