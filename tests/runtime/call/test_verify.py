"""``verify`` finds out what became of a write whose effect is unknown (R53)."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import time
from typing import Any

import pytest
from tests.fakes import DOWN, NOT_FOUND, OFTEN, RESET, Scripted, Takes, real, virtual

from failsoft import ManifestError, NothingDone, Outcome, Runtime, Verified
from failsoft.analysis.replay import replay_cascades
from failsoft.core.model.partial import Partial
from failsoft.testing import check_driver


class Answers:
    """A ``verify`` that plays one answer per question, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, Any, Any]] = []

    async def __call__(self, arguments: Any, key: Any, fault: Any) -> Any:
        self.asked.append((arguments, key, fault))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Takes):
            await asyncio.sleep(answer.seconds)
            answer = answer.then
        if isinstance(answer, BaseException):
            raise answer
        return answer


def records(rt: Runtime, kind: str) -> list[dict[str, Any]]:
    return [event.to_dict() for event in rt.events() if event.event_type == kind]


async def call(steps: tuple[Any, ...], verify: Any, **options: Any) -> tuple[Outcome[Any], Scripted, Runtime]:
    rt = Runtime()
    pay = Scripted(*steps)
    rt.add(pay, id="pay", verify=verify, **options)
    with check_driver():
        return await rt.call("pay", {}), pay, rt


@virtual
async def test_what_happened_is_a_success_with_the_value_that_was_found() -> None:
    verify = Answers(Verified.happened("receipt 7"))
    outcome, pay, rt = await call((RESET, "paid again"), verify)
    assert (outcome.status, outcome.value, outcome.via) == ("succeeded", "receipt 7", "verify")
    assert (outcome.attempts, pay.attempts, outcome.value_known) == (1, 1, True)
    assert outcome.unwrap() == "receipt 7"
    assert outcome.duration == pytest.approx(1.0)  # verify_delay
    assert rt.health("pay").failure_count == 1  # the breaker counts the failed attempt all the same
    (event,) = records(rt, "EffectVerified")
    assert (event["answer"], event["attempt"], event["delay_ms"]) == ("happened", 1, 1000.0)
    assert records(rt, "CallSucceeded")[0]["via"] == "verify"
    assert records(rt, "ToolError")[0]["decision"] == "verified"
    assert rt.metrics("pay")["error_count"] == rt.metrics("pay")["success_count"] == 1


@virtual
async def test_what_happened_without_a_value_is_a_success_whose_value_is_not_known() -> None:
    outcome, _, _ = await call((RESET,), Answers(Verified.happened()))
    assert (outcome.status, outcome.value, outcome.value_known) == ("succeeded", None, False)
    again = pickle.loads(pickle.dumps(outcome))
    assert again == outcome
    assert not again.value_known
    assert outcome.to_dict()["value_known"] is False
    assert "value not known" in repr(outcome)


@virtual
async def test_none_lets_a_transient_failure_be_retried_and_time_for_verify_does_not_count() -> None:
    verify = Answers(Verified.none())
    outcome, pay, rt = await call((RESET, RESET, RESET, RESET, "paid"), verify, breaker=OFTEN)
    assert (outcome.value, outcome.via, pay.attempts, len(verify.asked)) == ("paid", "pay", 5, 4)
    assert [event["attempt"] for event in records(rt, "EffectVerified")] == [1, 2, 3, 4]


@virtual
async def test_none_after_the_last_attempt_means_no_effect() -> None:
    outcome, _, _ = await call((RESET,), Answers(Verified.none()), retry={"max_attempts": 2})
    assert outcome.fault is not None
    assert (outcome.status, outcome.attempts, outcome.fault.effect) == ("failed", 2, "none")
    assert "It had no effect." in outcome.explanation.model


@pytest.mark.parametrize(
    ("answer", "status"), [(Verified.none(), "succeeded"), (Verified.unknown(), "failed")], ids=["none", "unknown"]
)
@virtual
async def test_a_permanent_failure_goes_to_a_fallback_only_after_none(answer: Verified, status: str) -> None:
    rt = Runtime()
    other = Scripted("paid elsewhere")
    rt.add(Scripted(ValueError("cannot parse the answer")), id="pay", verify=Answers(answer), fallbacks=["pay_other"])
    rt.add(other, id="pay_other", idempotent=False)
    outcome = await rt.call("pay")
    assert (outcome.status, other.attempts) == (status, int(status == "succeeded"))


class Nonsense:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Verified.unknown("the ledger is closed"), "the ledger is closed"),
        (RuntimeError("password=hunter2hunter2"), "verify raised RuntimeError"),
        (asyncio.CancelledError(), "verify cancelled itself"),
        (None, "verify returned nothing"),
        (True, "verify returned bool"),
        ("happened", "verify returned str"),
        (Nonsense(), "verify returned Nonsense"),
        (Verified.none, "verify returned method"),
        (Takes(11, Verified.none()), "verify gave no answer within 10s"),
    ],
    ids=["unknown", "raises", "cancelled", "nothing", "bool", "text", "no repr", "method", "slow"],
)
@virtual
async def test_a_verify_that_fails_leaves_the_effect_unknown(answer: Any, reason: str) -> None:
    outcome, pay, rt = await call((RESET, "paid again"), Answers(answer), fallbacks=["other"])
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.effect, pay.attempts) == ("failed", "unknown", 1)
    (event,) = records(rt, "EffectVerified")
    assert (event["answer"], event["reason"][: len(reason)]) == ("unknown", reason)
    assert "hunter2" not in str([*records(rt, "ToolError"), event]) + outcome.explanation.operator
    assert outcome.decision is not None
    assert reason in outcome.decision.reason


@pytest.mark.filterwarnings("error::RuntimeWarning")
@virtual
async def test_a_verify_that_returns_a_coroutine_leaves_the_effect_unknown_without_a_warning() -> None:
    async def late() -> Verified:
        return Verified.none()

    async def verify(*_: Any) -> Any:
        return late()

    outcome, pay, _ = await call((RESET, "paid again"), verify)
    assert outcome.fault is not None
    assert (outcome.fault.effect, pay.attempts) == ("unknown", 1)
    gc.collect()


@pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), NOT_FOUND], ids=["refused", "404"])
@virtual
async def test_it_is_not_asked_about_a_failure_without_effect(error: Exception) -> None:
    verify = Answers(Verified.happened("paid"))
    await call((error,), verify)
    assert verify.asked == []


@virtual
async def test_giving_verify_makes_an_undeclared_tool_a_write() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="get_ticket", verify=Answers(None))
    info = rt.tools["get_ticket"]
    assert (info.effect, info.effect_source, info.effect_reason) == ("write", "declared", "verify is given")
    assert rt._engine.toolbox.tools["get_ticket"].is_write


@virtual
async def test_it_is_asked_within_the_turns_time_or_not_at_all() -> None:
    rt = Runtime()
    verify = Answers(Verified.happened("paid"))
    rt.add(Scripted(RESET), id="pay", verify=verify, verify_delay="5s")
    async with rt.turn(timeout="4s") as turn:
        handle = turn.call("pay")
    assert verify.asked == []
    assert handle.outcome is not None
    assert handle.outcome.fault is not None
    assert (handle.outcome.status, handle.outcome.fault.effect) == ("failed", "unknown")
    assert records(rt, "EffectVerified")[0]["reason"] == "the turn's time is up"


@virtual
async def test_a_turn_that_ends_while_verify_is_asked_reports_an_unknown_effect() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET), id="pay", verify=Answers(Takes(8, Verified.none())), verify_delay="1s")
    async with rt.turn(timeout="4s") as turn:
        handle = turn.call("pay")
    assert handle.outcome is not None
    assert handle.outcome.fault is not None
    assert (handle.outcome.attempts, handle.outcome.fault.effect) == (1, "unknown")
    assert turn.report.duration == pytest.approx(4.0)


@virtual
async def test_the_call_is_listed_as_being_verified() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET), id="pay", verify=Answers(Verified.happened(1)))
    running = asyncio.ensure_future(rt.call("pay"))
    await asyncio.sleep(0.5)
    (listed,) = rt.running()
    assert (listed.waits_for, listed.attempt) == ("verify", 1)
    await running


@real
async def test_it_is_not_asked_while_a_thread_still_runs_the_tool() -> None:
    rt = Runtime()
    verify, end = Answers(Verified.none()), threading.Event()
    rt.add(lambda: end.wait(20), id="pay", verify=verify, verify_delay="0s", timeout="50ms")
    outcome = await rt.call("pay")
    end.set()
    assert verify.asked == []
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"
    assert records(rt, "EffectVerified")[0]["reason"] == "the attempt still runs"


@virtual
async def test_it_is_not_asked_while_a_task_of_the_attempt_may_act() -> None:
    rt = Runtime()
    verify, tasks = Answers(Verified.none()), []

    @rt.tool(idempotent=False)
    async def transfer() -> None:
        await asyncio.sleep(60)

    @rt.tool(verify=verify)
    async def pay() -> None:
        tasks.append(asyncio.ensure_future(rt.call("transfer")))
        await asyncio.sleep(0.1)
        raise RESET

    outcome = await rt.call("pay")
    assert verify.asked == []
    assert outcome.attempts == 1
    tasks[0].cancel()


@virtual
async def test_none_is_not_believed_if_a_task_of_the_attempt_acts_meanwhile() -> None:
    rt = Runtime()
    tasks, transfers = [], []

    @rt.tool(idempotent=False)
    async def transfer() -> None:
        transfers.append(1)

    async def later() -> None:
        await asyncio.sleep(2)
        await rt.call("transfer")

    @rt.tool(verify=Answers(Takes(3, Verified.none())))
    async def pay() -> None:
        tasks.append(asyncio.ensure_future(later()))
        raise RESET

    outcome = await rt.call("pay")
    assert (outcome.attempts, transfers) == (1, [1])
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@virtual
async def test_calls_that_verify_makes_say_nothing_about_the_effect() -> None:
    rt = Runtime()

    @rt.tool
    async def frobnicate() -> str:
        return "nothing found"

    async def verify(arguments: Any, key: Any, fault: Any) -> Verified:
        assert (await rt.call("frobnicate")).value == "nothing found"
        return Verified.none()

    pay = Scripted(RESET, "paid")
    rt.add(pay, id="pay", verify=verify)
    outcome = await rt.call("pay", id="c1")
    assert (outcome.value, pay.attempts) == ("paid", 2)
    assert [event["parent_id"] for event in records(rt, "CallSucceeded") if event["tool_id"] == "frobnicate"] == ["c1"]


@pytest.mark.parametrize(
    ("answer", "effect"),
    [(Verified.none(), "none"), (Verified.unknown(), "unknown"), (Verified.happened(), "unknown")],
    ids=["none", "unknown", "happened"],
)
@virtual
async def test_the_call_around_knows_what_was_found_out(answer: Verified, effect: str) -> None:
    rt = Runtime()
    rt.add(Scripted(RESET), id="pay", verify=Answers(answer), retry={"max_attempts": 1})

    @rt.tool(idempotent=False)
    async def order() -> Any:
        await rt.call("pay")
        raise NothingDone("sold out")

    outcome = await rt.call("order")
    assert outcome.fault is not None
    assert outcome.fault.effect == effect


@virtual
async def test_it_needs_no_slot_of_its_tool() -> None:
    rt = Runtime()
    pay = Scripted(RESET, "paid")
    rt.add(pay, id="pay", verify=Answers(Takes(8, Verified.happened(1))), concurrency=1)
    first = asyncio.ensure_future(rt.call("pay"))
    await asyncio.sleep(2)
    assert (await rt.call("pay")).value == "paid"
    assert not first.done()
    await first


@pytest.mark.parametrize("plain", [False, True], ids=["async", "sync"])
def test_callers_that_block_get_the_same_answers(plain: bool) -> None:
    rt = Runtime()
    asked = []

    def verify(arguments: Any, key: Any, fault: Any) -> Verified:
        asked.append((arguments, threading.current_thread() is threading.main_thread()))
        return Verified.happened(arguments["amount"])

    async def verify_async(arguments: Any, key: Any, fault: Any) -> Verified:
        return verify(arguments, key, fault)

    @rt.tool(verify=verify if plain else verify_async, verify_delay="1ms")
    def pay(amount: int, currency: str = "EUR") -> int:
        raise RESET

    with check_driver():
        assert rt.call_sync("pay", {"amount": 5}).via == "verify"
        assert pay(6) == 6
    assert [arguments for arguments, _ in asked] == [
        {"amount": 5, "currency": "EUR"},
        {"amount": 6, "currency": "EUR"},
    ]
    if plain:
        assert not any(main for _, main in asked)


def test_a_sync_verify_that_hangs_is_left_after_its_timeout() -> None:
    rt = Runtime()
    end = threading.Event()

    def verify(arguments: Any, key: Any, fault: Any) -> Verified:
        end.wait(20)
        return Verified.none()

    rt.add(Scripted(RESET), id="pay", verify=verify, verify_delay="0s", verify_timeout="100ms")
    began = time.monotonic()
    outcome = rt.call_sync("pay", {})
    assert time.monotonic() - began < 5
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"
    end.set()


# --- the key ----------------------------------------------------------------------------------------------------------


@virtual
async def test_verify_key_names_a_parameter_that_gets_one_key_per_call() -> None:
    rt = Runtime()
    verify, sent = Answers(Verified.none()), []

    async def pay(amount: int, reference: str) -> str:
        sent.append(reference)
        if len(sent) < 3:
            raise RESET
        return "paid"

    rt.add(pay, verify=verify, verify_key="reference")
    await rt.call("pay", {"amount": 1})
    assert len(sent) == 3
    assert len(set(sent)) == 1
    assert [key for _, key, _ in verify.asked] == sent[:2]
    assert verify.asked[0][0] == {"amount": 1, "reference": sent[0]}
    await rt.call("pay", {"amount": 1}, idempotency_key="mine")
    await rt.call("pay", {"amount": 1, "reference": "given"})
    assert sent[3:] == ["mine", "given"]
    assert "reference" not in str(rt.tools["pay"].schema)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"verify": "get_order"}, "verify: 'get_order' is not a function"),
        ({"verify": 3}, "verify: 3 is not a function"),
        ({"verify": lambda arguments: None}, "is not a function verify"),
        ({"verify": Answers(None), "read_only": True}, "verify: a tool that is read_only is repeated"),
        ({"verify": Answers(None), "idempotent": True}, "verify: a tool that is idempotent is repeated"),
        ({"verify": Answers(None), "idempotency_key": "key"}, "with verify_key"),
        ({"verify_key": "key"}, "verify_key: there is no verify"),
        ({"verify": Answers(None), "verify_key": "reference"}, "verify_key: the function has no parameter"),
        ({"verify": Answers(None), "verify_delay": 1}, "verify_delay: "),
        ({"verify": Answers(None), "verify_delay": "-1s"}, "verify_delay: "),
        ({"verify": Answers(None), "verify_timeout": "0s"}, "verify_timeout: "),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    async def pay(key: str = "") -> None: ...

    for more in ({}, {"retry": {"max_attempts": 2}}):
        with pytest.raises(ManifestError) as refused:
            Runtime().add(pay, **options, **more)
        assert problem in str(refused.value)


# --- calls that depend on it ------------------------------------------------------------------------------------------


async def order(answer: Verified, required: bool | None = None, **options: Any) -> tuple[Runtime, Any, dict[str, Any]]:
    rt = Runtime()
    rt.add(Scripted(RESET), id="pay", verify=Answers(answer))
    rt.add(Scripted("sent"), id="send_receipt", idempotent=False, **options)
    rt.add(Scripted("thanked"), id="thank", idempotent=False)
    async with rt.turn(id="t1") as turn:
        paid = turn.call("pay")
        sent = turn.call("send_receipt", {"receipt": paid}, required=required)
        thanked = turn.call("thank", depends_on=[paid])
        await paid
        later = turn.call("send_receipt", {"receipt": paid}, id="later")
        also = turn.call("thank", depends_on=[paid], id="also")
    handles = {"pay": paid, "sent": sent, "thanked": thanked, "later": later, "also": also}
    return rt, turn.report, {name: handle.outcome for name, handle in handles.items()}


@virtual
async def test_calls_that_need_a_lost_value_are_treated_as_after_a_failure() -> None:
    rt, report, ended = await order(Verified.happened())
    assert {name: outcome.status for name, outcome in ended.items()} == {
        "pay": "succeeded",
        "sent": "skipped",
        "thanked": "succeeded",
        "later": "skipped",
        "also": "succeeded",
    }
    assert ended["sent"].root == ended["pay"].id
    assert "whose result is lost" in ended["sent"].explanation.model
    assert "Do not call pay again" in ended["sent"].explanation.model
    assert "went through" in ended["sent"].explanation.user
    assert "didn’t work" not in report.message
    assert "because the result of pay is lost" in report.message
    assert records(rt, "TurnEnded")[0]["succeeded"] == 3
    assert ended["pay"].id not in report.results
    again = replay_cascades(records(rt, "CallSkipped") + [event.to_dict() for event in rt.events()])
    assert all(cascade.same for cascade in again)


@virtual
async def test_calls_that_need_a_value_that_was_found_get_it() -> None:
    _, _, ended = await order(Verified.happened("receipt 7"))
    assert {outcome.status for outcome in ended.values()} == {"succeeded"}


@virtual
async def test_defaults_and_required_apply_to_a_lost_value() -> None:
    _, _, ended = await order(Verified.happened(), defaults={"receipt": "none yet"})
    assert ended["sent"].status == ended["later"].status == "succeeded"
    _, report, ended = await order(Verified.happened(), required=True)
    assert (ended["sent"].status, ended["sent"].escalated) == ("skipped", True)
    assert len(report.escalations) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Verified.happened(3), "a check found that it took effect. Do not call it again."),
        (Verified.happened(), "Its result is lost. Do not call it again"),
        (Verified.none(), "It had no effect."),
        (Verified.unknown(), "It may already have taken effect"),
    ],
    ids=["happened", "lost", "none", "unknown"],
)
@virtual
async def test_the_model_is_told_what_was_found_out(answer: Verified, words: str) -> None:
    outcome, _, _ = await call((RESET,), Answers(answer), retry={"max_attempts": 1})
    assert words in outcome.explanation.model
    warned = "may have gone through" in outcome.explanation.user
    assert warned is (answer.answer == "unknown")


def test_a_tool_that_streams_cannot_be_verified() -> None:
    async def stream() -> Any:
        yield 1

    with pytest.raises(ManifestError, match="verify: the tool streams"):
        Runtime().add(stream, verify=Answers(None))


# --- by another tool --------------------------------------------------------------------------------------------------

READ_BACK = {
    "tool": "get_order",
    "arguments": {"order_id": "$order_id"},
    "happened_if": {"status": "paid"},
    "none_if": {"$failed": "NOT_FOUND"},
    "value": "$match.receipt",
}


@pytest.mark.parametrize(
    ("found", "status", "value", "attempts"),
    [
        ({"status": "paid", "receipt": 7}, "succeeded", 7, 1),
        (NOT_FOUND, "succeeded", "paid", 2),
        ({"status": "open"}, "failed", None, 1),
        (RESET, "failed", None, 1),
    ],
    ids=["happened", "none", "neither", "the read fails"],
)
@pytest.mark.parametrize("manifest", [False, True], ids=["code", "manifest"])
@virtual
async def test_a_tool_that_reads_can_be_asked(
    found: Any, status: str, value: Any, attempts: int, manifest: bool
) -> None:
    rt = Runtime(manifest={"tools": {"pay": {"verify": READ_BACK}}}) if manifest else Runtime()
    reader, paying = Scripted(found), Scripted(RESET, "paid")

    async def pay(order_id: int) -> Any:
        return await paying()

    rt.add(pay, **({} if manifest else {"verify": READ_BACK}))
    rt.add(reader, id="get_order", read_only=True)
    with check_driver():
        outcome = await rt.call("pay", {"order_id": 3}, id="c1")
    assert (outcome.status, outcome.value, outcome.attempts) == (status, value, attempts)
    children = [event.to_dict() for event in rt.events() if event.tool_id == "get_order"]
    assert {child.get("parent_id") for child in children} == {"c1"}


@pytest.mark.parametrize(
    ("reader", "reason"),
    [({}, "get_order is not known to read"), (None, "there is no tool get_order; did you mean get_orders?")],
    ids=["a write", "missing"],
)
@virtual
async def test_only_a_tool_that_is_known_to_read_is_asked(reader: Any, reason: str) -> None:
    rt = Runtime()
    read = Scripted({"status": "paid"})
    rt.add(read, id="get_orders" if reader is None else "get_order", idempotent=False)

    async def pay(order_id: int) -> Any:
        raise RESET

    rt.add(pay, verify=READ_BACK)
    await rt.call("pay", {"order_id": 3})
    assert read.attempts == 0
    assert records(rt, "EffectVerified")[0]["reason"].startswith(reason)


def test_a_verify_that_refers_to_no_argument_is_refused() -> None:
    async def pay(orderid: int) -> None: ...

    with pytest.raises(ManifestError, match="verify: the function has no parameter 'order_id'; did you mean orderid"):
        Runtime().add(pay, verify=READ_BACK)


# --- answers that must not be believed --------------------------------------------------------------------------------


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class OwnBaseError(BaseException):
    pass


@pytest.mark.parametrize("error", [UnprintableError(), OwnBaseError("password=hunter2")])
def test_a_verify_that_raises_anything_leaves_the_effect_unknown(error: BaseException) -> None:
    @virtual
    async def run() -> None:
        outcome, pay, rt = await call((RESET, "paid again"), Answers(error))
        assert outcome.fault is not None
        assert (outcome.fault.effect, pay.attempts) == ("unknown", 1)
        (event,) = records(rt, "EffectVerified")
        assert event["reason"].startswith(f"verify raised {type(error).__name__}")
        assert "hunter2" not in str([one.to_dict() for one in rt.events()])

    run()


FINDS = {"tool": "find", "happened_if": {"status": "paid"}, "none_if": [[], {"$failed": "INVALID_ARGUMENT"}]}


async def read_back_with(find: Any, **options: Any) -> tuple[Outcome[Any], Scripted, str]:
    rt = Runtime()
    pay = Scripted(RESET, "paid again")
    rt.add(find, id="find", read_only=True, retry={"max_attempts": 1}, **options)
    rt.add(Scripted([]), id="cache", read_only=True)
    rt.add(pay, id="pay", verify=FINDS, verify_timeout="60s")
    outcome = await rt.call("pay", {})
    return outcome, pay, records(rt, "EffectVerified")[0].get("reason", "")


async def find_by(order: int) -> Any:
    raise AssertionError("it cannot be called without an order")


@pytest.mark.parametrize(
    ("find", "options", "reason"),
    [
        (Scripted(Partial([], missing=["eu"])), {}, "only a part of the answer was there"),
        (Scripted(DOWN), {"fallbacks": ["cache"]}, "cache was read in place of find"),
        (find_by, {}, "find failed: INVALID_ARGUMENT"),
    ],
    ids=["part", "fallback", "never ran"],
)
def test_none_is_not_believed_if_the_reading_tool_has_not_read_everything_itself(
    find: Any, options: dict[str, Any], reason: str
) -> None:
    @virtual
    async def run() -> None:
        outcome, pay, said = await read_back_with(find, **options)
        assert outcome.fault is not None
        assert (outcome.fault.effect, pay.attempts) == ("unknown", 1)
        assert said.startswith(reason)

    run()


@virtual
async def test_what_a_part_of_the_answer_shows_has_happened() -> None:
    outcome, pay, _ = await read_back_with(Scripted(Partial([{"status": "paid"}], missing=["eu"])))
    assert (outcome.status, outcome.via, pay.attempts) == ("succeeded", "verify", 1)
