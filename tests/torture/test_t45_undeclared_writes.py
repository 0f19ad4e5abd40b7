"""T45: a write that nobody had declared was repeated, and only the log knew. Here it is recognised, and texts warn."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.fakes import OFTEN, virtual
from tests.torture.scale import times

from failsoft import CallFailed, Runtime
from failsoft.adapters.plain import run_tool_calls

WRITES = """pay send_email book_flight create_order transferMoney CancelBooking mcp__shop__place_order bank.transfer
get_or_create_user search_and_replace read_and_mark mark_as_read check_in check_out_guest findOneAndUpdate
orders/create-refund list_add set_status unfollow_user resend_invoice reschedule_meeting bulk_delete user_delete
charge_card issue_refund post_tweet reply_to_thread withdraw_funds lockDoors start_engine submit_form run_job
upload_file git_commit log_out add_to_cart purchase_ticket approve_request""".split()
READS = """get_weather list_orders search_flights findUser mcp__shop__read_order bank.get_balance check_inventory
describe_table order_search count_rows lookup_rate GetObject calculate_tax users/list""".split()
WAYS = ("call", "function", "turn", "framework", "model")
WARNED = "may have gone through all the same"


class Service:
    """Carries out the request and loses the answer."""

    def __init__(self, seed: int) -> None:
        self.done = 0
        self.random = random.Random(seed)

    async def act(self) -> str:
        self.done += 1
        mishap = self.random.choice(("slow", "reset", "garbled", "502", "local"))
        if mishap == "slow":
            await asyncio.sleep(60)
        if mishap == "reset":
            raise ConnectionResetError(104, "Connection reset by peer")
        if mishap == "garbled":
            raise EOFError("the answer ended in the middle")
        if mishap == "502":
            raise RuntimeError("Bad gateway (502)")
        raise ValueError("the answer has no receipt")


async def use(rt: Runtime, name: str, tool: Any, way: str) -> Any:
    """Call a tool that was only registered, in one of the ways there are; its outcome."""
    fallback = {"fallbacks": ["other"], "timeout": "5s", "breaker": OFTEN}
    if way == "framework":
        rt.declare(name, **fallback)
        return await rt.run(name, {}, {name: lambda _: tool()})
    guarded = rt.add(tool, id=name, **fallback)
    if way == "call":
        return await rt.call(name)
    if way == "function":
        with pytest.raises(CallFailed) as caught:
            await guarded()
        return caught.value.outcome
    async with rt.turn() as turn:
        if way == "model":
            asked = {"id": "it", "type": "function", "function": {"name": name, "arguments": "{}"}}
            await run_tool_calls(rt, [asked])
        else:
            turn.call(name, id="it")
    return turn.report.outcomes["it"]


@pytest.mark.parametrize("way", WAYS)
@virtual
async def test_t45_an_undeclared_write_is_made_once_and_said_to_be_uncertain(way: str) -> None:
    for number in range(times(1_000, 120)):
        name = WRITES[number % len(WRITES)]
        rt = Runtime()
        service, other = Service(number), Service(-number)
        rt.add(other.act, id="other", read_only=True)
        outcome = await use(rt, name, service.act, way)
        assert (service.done, other.done) == (1, 0), name
        assert outcome.status == "failed"
        assert outcome.fault.effect == "unknown"
        told = outcome.explanation
        assert "taken effect" in told.model
        assert "taken effect" in told.operator
        quoted = outcome.fault.category in ("tool_unavailable", "internal_contract_bug")
        assert (WARNED in told.user) is not quoted


@virtual
async def test_t45_the_message_of_a_turn_names_the_writes_to_check() -> None:
    for number, name in enumerate(WRITES):
        rt = Runtime()
        rt.add(Service(number).act, id=name, label="it", timeout="5s")
        async with rt.turn() as turn:
            turn.call(name)
        assert turn.report.message.endswith("Please check whether it went through before trying again.")


@pytest.mark.parametrize("way", WAYS)
@virtual
async def test_t45_a_read_is_repeated_and_warns_of_nothing(way: str) -> None:
    for number, name in enumerate(READS):
        rt = Runtime()
        service, other = Service(number), Service(-number)
        service.random = random.Random(0)
        service.random.choice = lambda _: "reset"  # type: ignore[method-assign,assignment]
        rt.add(other.act, id="other", read_only=True, retry={"max_attempts": 1})
        outcome = await use(rt, name, service.act, way)
        assert (service.done, other.done) == (5, 1), name
        assert "taken effect" not in outcome.explanation.model
        assert WARNED not in outcome.explanation.user


@pytest.mark.parametrize(("undeclared", "done"), [("recognise", 5), ("as_specified", 5), ("never_repeat", 1)])
@virtual
async def test_t45_a_tool_that_says_nothing_is_repeated_as_specified_and_the_model_is_told(
    undeclared: Any, done: int
) -> None:
    rt = Runtime(undeclared=undeclared)
    service = Service(0)
    service.random.choice = lambda _: "reset"  # type: ignore[method-assign,assignment]
    rt.add(service.act, id="oracle")
    outcome = await rt.call("oracle")
    assert service.done == done
    assert ("more than once" in outcome.explanation.model) is (done > 1)
    assert "taken effect" in outcome.explanation.model


@pytest.mark.parametrize("undeclared", ["recognise", "as_specified", "never_repeat"])
@pytest.mark.parametrize("way", ["framework", "registered", "model"])
@virtual
async def test_t45_a_tool_that_says_nothing_is_made_once_if_a_model_asks_for_it(way: str, undeclared: Any) -> None:
    for number in range(times(1_000, 40)):
        rt = Runtime(undeclared=undeclared)
        service, other = Service(number), Service(-number)
        rt.add(other.act, id="other")
        if way == "registered":
            rt.add(service.act, id="oracle", fallbacks=["other"], timeout="5s", breaker=OFTEN)
            outcome = await rt.run("oracle", {}, {"oracle": lambda _, act=service.act: act()})
        else:
            outcome = await use(rt, "oracle", service.act, way)
        assert (service.done, other.done) == (1, 0)
        assert outcome.fault.effect == "unknown"
        assert "may already have taken effect" in outcome.explanation.model
        assert "more than once" not in outcome.explanation.model
