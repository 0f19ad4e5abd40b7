"""``rt.ledger``: open cases are listed, resolved once, and answer the same call (ADR 60)."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, OFTEN, ONCE, RESET, Scripted, Takes, records, virtual

from failsoft import LedgerEntry, LedgerError, NothingDone, Outcome, Runtime, Verified
from failsoft.core.conversation.thread_state import DANGLES_FOR
from failsoft.core.model import builtin_faults
from failsoft.runtime.persistence import memory_cases
from failsoft.runtime.persistence.ledger_records import KEPT_FOR
from failsoft.stores.memory import MemoryStore
from failsoft.stores.sqlite.store import SqliteStore

ARGS = {"amount": 4}
CALL: dict[str, Any] = {"id": "c1", "thread": "t"}
KINDS = ("memory", "store", "sqlite")


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Payer]:
    """Make a runtime that pays: without a store, with one in memory, with a file."""
    stores = {"memory": lambda: None, "store": MemoryStore, "sqlite": lambda: SqliteStore(tmp_path / "kept.db")}
    return lambda *steps, **options: Payer(stores[request.param](), *steps, **options)


class Payer:
    """A runtime with a tool that pays, step by step."""

    def __init__(self, store: Any, *steps: Any, record_arguments: bool = False, **options: Any) -> None:
        self.store = store
        kept = {} if store is None else {"store": store}
        self.rt = Runtime(**kept, record_arguments=record_arguments)
        self.script = Scripted(*(steps or (RESET, "paid")))

        async def pay(**arguments: Any) -> Any:
            return await self.script(**arguments)

        self.rt.add(pay, id="pay", **({"idempotent": False, "retry": ONCE, "breaker": OFTEN} | options))

    @property
    def ledger(self) -> Any:
        return self.rt.ledger

    async def pay(self, args: dict[str, Any] = ARGS, **said: Any) -> Outcome[Any]:
        return await self.rt.call("pay", args, **(said or CALL))

    def case(self) -> LedgerEntry:
        (entry,) = self.ledger.unknown()
        return entry  # type: ignore[no-any-return]


def test_a_write_with_an_unknown_effect_is_an_open_case(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        outcome = await payer.pay(id="c1", thread="t", tenant="acme")
        assert outcome.fault is not None
        assert outcome.fault.effect == "unknown"
        case = payer.case()
        assert (case.tool, case.call_id, case.thread, case.tenant) == ("pay", "c1", "t", "acme")
        assert (case.state, case.code, case.idempotency_key, case.turn_id) == ("unknown", "UNAVAILABLE", None, None)
        assert case.begun is not None
        assert case.ended is not None
        assert case.begun <= case.ended
        assert len(case.fingerprint) == 64
        assert case.arguments is None, "recording is off"
        assert json.loads(json.dumps(case.to_dict()))["id"] == case.id
        assert payer.ledger.get(case.id) == payer.ledger.get("c1") == case

    asyncio.run(main())


def test_after_happened_the_same_call_returns_the_value(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        closed = payer.ledger.resolve(payer.case().id, "happened", {"receipt": 7}, by="anna")
        assert (closed.state, closed.value, closed.value_known, closed.resolved_by) == (
            "happened", {"receipt": 7}, True, "anna",
        )  # fmt: skip
        assert payer.ledger.unknown() == []
        for _ in range(2):
            outcome = await payer.pay()
            assert (outcome.status, outcome.value, outcome.value_known) == ("succeeded", {"receipt": 7}, True)
            assert (outcome.attempts, outcome.via) == (0, "ledger")
        assert payer.script.attempts == 1

    asyncio.run(main())


def test_after_happened_without_a_value_the_same_call_has_succeeded(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        payer.ledger.resolve("c1", "happened")
        outcome = await payer.pay()
        assert (outcome.status, outcome.value, outcome.value_known) == ("succeeded", None, False)
        assert payer.script.attempts == 1
        (event,) = [event for event in payer.rt.events() if event.event_type == "CallSucceeded"]
        assert (event.fields["via"], event.fields["value_known"]) == ("ledger", False)

    asyncio.run(main())


def test_after_none_the_same_call_runs(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        assert payer.ledger.resolve("c1", "none").state == "none"
        outcome = await payer.pay()
        assert (outcome.value, outcome.via, payer.script.attempts) == ("paid", "pay", 2)
        assert payer.ledger.unknown() == []

    asyncio.run(main())


def test_other_calls_run(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        payer.ledger.resolve("c1", "happened", "paid by hand")
        for said in ({"id": "c2", "thread": "t"}, {"id": "c1", "thread": "u"}, {"thread": "t"}):
            assert (await payer.pay(**said)).value == "paid"
        assert (await payer.pay({"amount": 5}, **CALL)).value == "paid"

    asyncio.run(main())


def test_blocking_callers_get_the_value_as_well(make: Callable[..., Payer]) -> None:
    payer = make()
    payer.rt.call_sync("pay", ARGS, **CALL)
    payer.ledger.resolve("c1", "happened", 7)
    assert payer.rt.call_sync("pay", ARGS, **CALL).value == 7
    assert payer.script.attempts == 1


@pytest.mark.parametrize("way", ["turn", "plain function", "plan"])
def test_every_route_leaves_and_finds_cases(make: Callable[..., Payer], way: str) -> None:
    async def pay(payer: Payer) -> Outcome[Any]:
        if way == "plan":
            report = await payer.rt.run_plan({"calls": [{"id": "c1", "tool": "pay", "args": ARGS}]})
            return report.outcomes["c1"]
        async with payer.rt.turn(thread="t") as turn:
            if way == "turn":
                return await turn.call("pay", ARGS, id="c1")
            with suppress(Exception):
                await payer.rt.call("pay", ARGS, id="c1")
        return turn.report.outcomes["c1"]

    async def main() -> None:
        payer = make()
        await pay(payer)
        case = payer.case()
        assert case.turn_id
        payer.ledger.resolve(case.id, "happened", 7)
        outcome = await pay(payer)
        assert (outcome.value, outcome.via, payer.script.attempts) == (7, "ledger", 1)

    asyncio.run(main())


def test_a_case_that_is_resolved_while_its_turn_is_open_stays_resolved(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        async with payer.rt.turn(thread="t") as turn:
            await turn.call("pay", ARGS, id="c1")
            payer.ledger.resolve("c1", "happened", 7)
        await payer.rt.flush()
        assert (await payer.pay()).value == 7

    asyncio.run(main())


def test_reads_known_effects_and_successes_leave_no_case(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make("paid", NothingDone("no"))
        payer.rt.add(Scripted(RESET), id="search", read_only=True, retry=ONCE)
        await payer.pay()
        await payer.pay(id="c2")
        await payer.rt.call("search", {}, id="c3", thread="t")
        assert payer.ledger.entries() == []

    asyncio.run(main())


def test_cases_are_listed_by_thread_tenant_and_tool(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make(RESET)
        payer.rt.add(Scripted(RESET), id="book", idempotent=False, retry=ONCE)
        for thread, tenant in (("t", "acme"), ("t", None), ("u", "acme"), (None, None)):
            await payer.pay(id=f"{thread}-{tenant}", **({"thread": thread} if thread else {}), tenant=tenant or "")
        await payer.rt.call("book", ARGS, id="b")

        def ids(**said: Any) -> list[str]:
            return [case.call_id for case in payer.ledger.unknown(**said)]

        assert ids(thread="t") == ["t-acme", "t-None"]
        assert ids(tenant="acme") == ["t-acme", "u-acme"]
        assert ids(thread="u", tenant="acme") == ["u-acme"]
        assert ids(tool="book") == ["b"]
        assert ids(thread="nobody") == []
        assert len(ids()) == 5

    asyncio.run(main())


@pytest.mark.parametrize(
    ("said", "problem", "words"),
    [
        (("nothing", "none"), "unknown_id", "no entry 'nothing'"),
        (("c1", "done"), "verdict", "neither"),
        (("c1", None), "verdict", "neither"),
        (("c1", "none", 3), "value", "has no value"),
        (("c1", "happened", object()), "value", "JSON"),
        (("c1", "happened", {1: 2}), "value", "JSON"),
        ((7, "none"), "unknown_id", "expected the id"),
    ],
)
def test_a_resolution_that_cannot_be_is_refused(
    make: Callable[..., Payer], said: tuple[Any, ...], problem: str, words: str
) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        with pytest.raises(LedgerError, match=words) as raised:
            payer.ledger.resolve(*said)
        assert raised.value.problem == problem
        assert payer.case().state == "unknown"

    asyncio.run(main())


def test_a_case_is_resolved_once(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        case = payer.case()
        payer.ledger.resolve(case.id, "happened", 1, by="anna")
        for verdict in ("happened", "none"):
            with pytest.raises(LedgerError, match="resolved before by anna: happened") as raised:
                payer.ledger.resolve(case.id, verdict)
            assert raised.value.problem == "resolved"
        assert (await payer.pay()).value == 1

    asyncio.run(main())


def test_an_id_of_several_calls_has_to_be_told_apart(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make(RESET)
        await payer.pay(id="c1", thread="t")
        await payer.pay(id="c1", thread="u")
        with pytest.raises(LedgerError, match="2 entries") as raised:
            payer.ledger.resolve("c1", "none")
        assert raised.value.problem == "ambiguous"
        assert payer.ledger.resolve("c1", "none", thread="u").thread == "u"

    asyncio.run(main())


def test_the_resolution_is_an_event(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make()
        await payer.pay()
        case = payer.ledger.resolve("c1", "none", by="password=hunter2secret")
        (event,) = records(payer.rt, "EffectResolved")
        assert (event["tool_id"], event["call_id"], event["entry"]) == ("pay", "c1", case.id)
        assert (event["effect"], event["value_known"], event["thread"]) == ("none", False, "t")
        assert "hunter2" not in json.dumps([event, case.to_dict()])

    asyncio.run(main())


@virtual
async def test_a_call_that_runs_here_is_no_open_case_and_cannot_be_resolved() -> None:
    payer = Payer(MemoryStore(), Takes(5, "paid"))
    task = asyncio.ensure_future(payer.pay())
    await asyncio.sleep(1)
    assert payer.ledger.unknown() == []
    (entry,) = payer.ledger.entries()
    assert (entry.state, entry.running) == ("begun", True)
    with pytest.raises(LedgerError, match="running in this process") as raised:
        payer.ledger.resolve("c1", "none")
    assert raised.value.problem == "running"
    assert (await task).value == "paid"
    assert payer.ledger.entries() == []


@pytest.mark.parametrize("verdict", ["happened", "none"])
@virtual
async def test_a_write_of_a_process_that_died_can_be_resolved(verdict: str) -> None:
    dead = Payer(MemoryStore(), Takes(1000))
    task = asyncio.ensure_future(dead.pay())
    await asyncio.sleep(1)
    after = Payer(dead.store, "paid")
    refused = await after.pay()
    assert refused.fault is not None
    assert refused.fault.rule == builtin_faults.BEGUN_BEFORE
    case = after.case()
    assert (case.state, case.call_id, case.running) == ("begun", "c1", False)
    after.ledger.resolve(case.id, verdict, "by hand" if verdict == "happened" else None)
    third = Payer(dead.store, "paid")
    outcome = await third.pay()
    assert (outcome.value, third.script.attempts) == (("by hand", 0) if verdict == "happened" else ("paid", 1))
    assert third.ledger.unknown() == []
    task.cancel()


@pytest.mark.parametrize("verdict", ["happened", "none"])
@pytest.mark.parametrize("elsewhere", [False, True])
@virtual
async def test_a_call_whose_caller_was_cancelled_can_be_resolved(verdict: str, elsewhere: bool) -> None:
    payer = Payer(MemoryStore(), Takes(1000), "paid")
    task = asyncio.ensure_future(payer.pay())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert (await payer.pay()).status == "failed"
    resolver = Payer(payer.store) if elsewhere else payer
    resolver.ledger.resolve(resolver.case().id, verdict, "by hand" if verdict == "happened" else None)
    outcome = await payer.pay()
    assert outcome.value == ("by hand" if verdict == "happened" else "paid")
    assert payer.script.attempts == (1 if verdict == "happened" else 2)


@virtual
async def test_without_a_store_a_cancelled_write_is_a_case() -> None:
    payer = Payer(None, Takes(1000), "paid")
    task = asyncio.ensure_future(payer.pay())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert (payer.case().state, payer.case().code) == ("unknown", "CANCELLED")
    payer.ledger.resolve("c1", "none")
    assert (await payer.pay()).value == "paid"


@pytest.mark.parametrize("store", [None, MemoryStore])
@virtual
async def test_a_write_that_has_happened_is_answered_while_its_tool_is_down(store: Any) -> None:
    payer = Payer(store and store(), RESET, DOWN, breaker={"failure_threshold": 2})
    await payer.pay()
    payer.ledger.resolve("c1", "happened", 7)
    await payer.pay(id="c2")
    assert payer.rt.health("pay").state == "open"
    assert (await payer.pay()).value == 7
    payer.rt.disable("pay", "maintenance")
    assert (await payer.pay()).value == 7
    assert (await payer.pay(id="c3")).status == "failed"


@virtual
async def test_a_write_that_was_begun_is_unknown_also_while_its_tool_is_down() -> None:
    dead = Payer(MemoryStore(), Takes(1000))
    task = asyncio.ensure_future(dead.pay())
    await asyncio.sleep(1)
    after = Payer(dead.store)
    after.rt.disable("pay")
    outcome = await after.pay()
    assert outcome.fault is not None
    assert (outcome.fault.effect, outcome.attempts) == ("unknown", 0)
    task.cancel()


@virtual
async def test_an_answer_says_nothing_about_the_tool() -> None:
    payer = Payer(MemoryStore(), RESET, RESET, "paid", breaker={"failure_threshold": 2, "timeout": "10s"})
    await payer.pay()
    payer.ledger.resolve("c1", "happened", 7)
    await payer.pay(id="c2")
    await asyncio.sleep(11)
    assert (await payer.pay()).value == 7
    assert (await payer.pay(id="c3")).value == "paid", "the probe's slot is free"
    assert payer.rt.health("pay").state == "closed"


@virtual
async def test_an_open_case_outlives_the_day_for_which_it_prevents_a_replay() -> None:
    wall = asyncio.get_running_loop().time
    dead = Payer(MemoryStore(wall=wall), Takes(1e9))
    task = asyncio.ensure_future(dead.pay())
    await asyncio.sleep(1)
    after = Payer(dead.store, "paid")
    (case,) = after.ledger.unknown()
    task.cancel()
    await asyncio.sleep(DANGLES_FOR)
    assert (await after.pay()).value == "paid"
    assert [(left.id, left.state) for left in after.ledger.unknown()] == [(case.id, "begun")]
    await asyncio.sleep(KEPT_FOR)
    assert after.ledger.entries() == []


@virtual
async def test_a_case_stays_open_after_the_model_was_told() -> None:
    dead = Payer(MemoryStore(), Takes(1000))
    task = asyncio.ensure_future(dead.pay())
    await asyncio.sleep(1)
    after = Payer(dead.store, "paid")
    (case,) = after.ledger.unknown()
    assert len(after.rt.threads["t"].close_dangling()) == 1
    assert [left.id for left in after.ledger.unknown()] == [case.id]
    assert (await after.pay()).value == "paid"
    task.cancel()


@virtual
async def test_the_ledger_in_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(memory_cases, "MOST_CASES", 3)
    payer = Payer(None, RESET)
    with caplog.at_level(logging.WARNING, "failsoft"):
        for number in range(6):
            await payer.pay(id=f"c{number}")
    assert [case.call_id for case in payer.ledger.unknown()] == ["c3", "c4", "c5"]
    assert sum("drops older ones" in record.message for record in caplog.records) == 1


def test_arguments_are_kept_if_recording_is_on_and_secrets_are_masked(make: Callable[..., Payer]) -> None:
    async def main() -> None:
        payer = make(RESET, record_arguments=True)
        await payer.pay({"amount": 4, "to": {"iban": "DE00"}}, id="c1")
        await payer.pay({"amount": 4, "api_key": "hunter2secret", "to": {"password": "s3cr3t-Xy9"}}, id="c2")
        first, second = payer.ledger.unknown()
        assert (first.arguments, first.arguments_masked) == ({"amount": 4, "to": {"iban": "DE00"}}, False)
        assert second.arguments_masked
        assert "hunter2secret" not in json.dumps(second.to_dict())
        assert "s3cr3t-Xy9" not in json.dumps(second.to_dict())
        if payer.store is not None:
            everything = json.dumps(payer.store.find("pending"))
            assert "hunter2secret" not in everything

    asyncio.run(main())


def test_a_store_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        payer = Payer(MemoryStore())
        await payer.pay()

        def hang(*_: Any, **__: Any) -> bool:
            raise TimeoutError

        monkeypatch.setattr(payer.store, "swap", hang)
        with pytest.raises(LedgerError, match="does not answer") as raised:
            payer.ledger.resolve("c1", "none")
        assert raised.value.problem == "store"
        assert payer.case().state == "unknown"

    asyncio.run(main())


def test_a_store_that_cannot_be_read_is_not_an_empty_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        payer = Payer(MemoryStore())
        await payer.pay()

        def fail(*_: Any, **__: Any) -> list[Any]:
            raise OSError("disk")

        monkeypatch.setattr(payer.store, "find", fail)
        for ask in (payer.ledger.unknown, payer.ledger.entries, lambda: payer.ledger.get("c1")):
            with pytest.raises(LedgerError, match="does not answer") as raised:
                ask()
            assert raised.value.problem == "store"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("key", "record"),
    [
        ("~/t/begun/x", {}),
        ("~/t/begun/pay/c9/ff/gg", {}),
        ("~/t/case/z", {}),
        ("~/t/case/z", {"place": "a/b", "state": "unknown"}),
        ("~/t/case/z", {"place": 7, "state": "unknown"}),
        ("~/t/case/z", {"place": "~/t/begun/pay/c3/ff", "state": "weird"}),
        ("~/t/case/z", {"place": "~/t/begun/pay/c3/ff"}),
        ("~/t/case/z", [1, 2]),
    ],
)
def test_a_damaged_record_hides_no_case(key: str, record: Any) -> None:
    async def main() -> None:
        payer = Payer(MemoryStore())
        await payer.pay()
        payer.store.put("pending", key, record)
        assert [entry.call_id for entry in payer.ledger.entries()] == ["c1"]
        payer.ledger.resolve("c1", "none")
        assert payer.ledger.unknown() == []

    asyncio.run(main())


@pytest.mark.parametrize("at", ["yesterday", {}, 1e300, -1e20, True, None])
def test_a_case_with_damaged_fields_is_still_listed(at: Any) -> None:
    async def main() -> None:
        payer = Payer(MemoryStore())
        await payer.pay()
        case = {"place": "~/t/begun/pay/c2/ff", "state": "unknown", "at": at, "n": "x", "resolved": at, "ended": at}
        case |= {"error": 3, "by": {"a": 1}, "args": "q", "turn": 7, "code": [], "key": 1, "same": 2}
        payer.store.put("pending", "~/t/case/z", case)
        assert {entry.call_id for entry in payer.ledger.unknown()} == {"c1", "c2"}

    asyncio.run(main())


def test_an_empty_tenant_or_thread_means_none_and_not_every_one() -> None:
    async def main() -> None:
        payer = Payer(MemoryStore(), RESET, RESET, RESET, RESET)
        for tenant, thread in ((None, None), ("a", "t"), ("a", None), (None, "t")):
            await payer.pay(id=f"{tenant} {thread}", tenant=tenant, thread=thread)

        def listed(**of: str) -> list[str]:
            return [entry.call_id for entry in payer.ledger.unknown(**of)]

        assert listed(tenant="") == ["None None", "None t"]
        assert listed(tenant="a") == ["a t", "a None"]
        assert listed(tenant="a", thread="") == ["a None"]
        assert listed(tenant="", thread="t") == ["None t"]

    asyncio.run(main())


def test_a_store_of_0_1_0_can_be_used_in_one_process() -> None:
    class Old:
        def __init__(self) -> None:
            self.store = MemoryStore()

        def __getattr__(self, name: str) -> Any:
            if name in ("take", "claim", "swap", "breakers"):
                raise AttributeError(name)
            return getattr(self.store, name)

    async def main() -> None:
        payer = Payer(Old())
        await payer.pay()
        payer.ledger.resolve("c1", "happened", 7)
        assert (await payer.pay()).value == 7

    asyncio.run(main())


# --- offers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, MemoryStore])
@pytest.mark.parametrize("verdict", ["happened", "none"])
@virtual
async def test_a_write_that_has_happened_is_no_longer_offered(store: Any, verdict: str) -> None:
    payer = Payer(store and store(), RESET, "paid")
    await payer.pay()
    assert [offer.tool for offer in payer.rt.threads["t"].offers] == ["pay"]
    payer.ledger.resolve("c1", verdict)
    assert len(payer.rt.threads["t"].offers) == (0 if verdict == "happened" else 1)
    again = await payer.rt.threads["t"].retry("pay")
    assert (again.value, payer.script.attempts) == ((None, 1) if verdict == "happened" else ("paid", 2))


# --- verify now --------------------------------------------------------------------------------------------------------


def verifying(answer: Any, asked: list[Any]) -> dict[str, Any]:
    """Options of a tool whose first verify finds nothing out."""

    async def verify(arguments: Any, key: Any, fault: Any) -> Any:
        asked.append(arguments)
        return Verified.unknown("the service is down") if len(asked) == 1 else answer

    return {"verify": verify}


@pytest.mark.parametrize(
    ("answer", "state", "value"),
    [
        (Verified.happened({"receipt": 7}), "happened", {"receipt": 7}),
        (Verified.happened(), "happened", None),
        (Verified.happened(object()), "happened", None),
        (Verified.none(), "none", "paid"),
    ],
)
def test_verify_now_closes_the_case(make: Callable[..., Payer], answer: Verified, state: str, value: Any) -> None:
    async def main() -> None:
        asked: list[Any] = []
        payer = make(record_arguments=True, verify_delay="10ms", **verifying(answer, asked))
        await payer.pay()
        closed = await payer.ledger.verify("c1")
        assert asked == [ARGS, ARGS]
        assert (closed.state, closed.resolved_by) == (state, "verify")
        assert records(payer.rt, "EffectVerified")[-1]["answer"] == state
        assert records(payer.rt, "EffectResolved")[0]["by"] == "verify"
        assert (await payer.pay()).value == value

    asyncio.run(main())


@pytest.mark.parametrize("answer", [Verified.unknown("still down"), "nonsense", None])
def test_verify_now_that_finds_nothing_out_leaves_the_case_open(make: Callable[..., Payer], answer: Any) -> None:
    payer = make(record_arguments=True, verify_delay="10ms", **verifying(answer, []))
    payer.rt.call_sync("pay", ARGS, **CALL)
    assert payer.ledger.verify_sync("c1").is_open
    assert payer.case().state == "unknown"


@pytest.mark.parametrize(
    ("recorded", "args", "options", "given", "problem", "words"),
    [
        (False, ARGS, True, None, "no_arguments", "were not recorded"),
        (True, {"amount": 4, "api_key": "hunter2secret"}, True, None, "no_arguments", "were masked"),
        (True, ARGS, False, None, "no_verify", "pay has no verify"),
        (False, ARGS, True, {"amount": 5}, "no_arguments", "not the arguments of its call"),
    ],
)
def test_verify_now_is_refused_with_the_reason(
    make: Callable[..., Payer], recorded: bool, args: Any, options: bool, given: Any, problem: str, words: str
) -> None:
    asked: list[Any] = []
    said = {"verify_delay": "10ms", **verifying(Verified.none(), asked)} if options else {}
    payer = make(record_arguments=recorded, **said)
    payer.rt.call_sync("pay", args, **CALL)
    before = len(asked)
    with pytest.raises(LedgerError, match=words) as raised:
        payer.ledger.verify_sync("c1", arguments=given)
    assert (raised.value.problem, len(asked)) == (problem, before)
    assert payer.case().state == "unknown"


@pytest.mark.parametrize("store", [None, MemoryStore], ids=["memory", "store"])
def test_verify_now_does_not_believe_none_while_an_abandoned_attempt_may_still_act(store: Any) -> None:
    release, answers = threading.Event(), [Verified.none(), Verified.happened("paid")]
    rt = Runtime(record_arguments=True, **({} if store is None else {"store": store()}))

    @rt.tool(timeout="50ms", verify=lambda *_: answers.pop(0), verify_delay="10ms", retry=ONCE)
    def pay(amount: int) -> str:
        release.wait(30)
        return f"paid {amount}"

    try:
        assert rt.call_sync("pay", {"amount": 1}, **CALL).status == "failed"  # verify was not asked
        assert rt.ledger.verify_sync("c1").is_open
        assert "may still run" in records(rt, "EffectVerified")[-1]["reason"]
        assert rt.ledger.verify_sync("c1").state == "happened"
    finally:
        release.set()


@virtual
async def test_verify_now_does_not_believe_none_while_the_process_that_began_the_write_runs() -> None:
    store, release, begun = MemoryStore(), asyncio.Event(), asyncio.Event()
    one, other = Runtime(store=store, record_arguments=True), Runtime(store=store, record_arguments=True)

    async def pay(amount: int) -> str:
        begun.set()
        await release.wait()
        return f"paid {amount}"

    for rt in (one, other):
        rt.add(pay, id="pay", verify=lambda *_: Verified.none(), verify_delay="10ms")
    running = asyncio.ensure_future(one.call("pay", {"amount": 1}, **CALL))
    await begun.wait()
    assert (await other.ledger.verify("c1")).is_open
    assert "still runs" in records(other, "EffectVerified")[-1]["reason"]
    release.set()
    assert (await running).value == "paid 1"


def test_verify_now_takes_the_arguments_of_the_call(make: Callable[..., Payer]) -> None:
    payer = make(verify_delay="10ms", **verifying(Verified.none(), []))
    payer.rt.call_sync("pay", ARGS, **CALL)
    assert payer.ledger.verify_sync("c1", arguments=ARGS).state == "none"


def test_the_key_that_the_tool_was_sent_is_recorded_and_verify_gets_it(make: Callable[..., Payer]) -> None:
    keys: list[Any] = []

    def verify(arguments: Any, key: Any, fault: Any) -> Verified:
        keys.append(key)
        return Verified.unknown("down") if len(keys) == 1 else Verified.none()

    payer = make(record_arguments=True, verify_key="key", verify_delay="10ms", verify=verify)
    payer.rt.call_sync("pay", ARGS, **CALL)
    assert payer.case().idempotency_key == keys[0]
    payer.ledger.verify_sync("c1")
    assert keys == [keys[0], keys[0]]
