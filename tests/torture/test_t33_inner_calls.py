"""T33: a write made inside a tool was unknown to the call around it, which was repeated.

Here the outer effect is unknown, however the inner call was made and whatever became of it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import OFTEN, virtual
from tests.runtime.execution.processes.fake_tools import pays_inside, sends_two_orders

from failsoft import CallFailed, NothingDone, Override, Runtime, in_thread
from failsoft.adapters.plain import run_tool_calls

REFUSED = ConnectionRefusedError(111, "Connection refused")
RETRY: Any = {"max_attempts": 4, "initial_delay": "20ms", "jitter_percent": 0, "budget": False}


class World:
    """A runtime with a write (`pay`) in several forms, and the list of payments."""

    def __init__(self, declared: dict[str, Any]) -> None:
        self.rt = rt = Runtime()
        self.paid: list[str] = []
        self.kept: set[asyncio.Task[Any]] = set()

        @rt.tool(**declared)
        async def pay() -> str:
            self.paid.append("at once")
            return "paid"

        @rt.tool(**declared)
        async def pay_slowly() -> str:
            await asyncio.sleep(0.005)
            self.paid.append("slowly")
            return "paid"

        @rt.tool(**declared)
        async def pay_and_stumble() -> str:
            self.paid.append("stumbled")
            raise KeyError("receipt")

        @rt.tool(**declared)
        def pay_blocking() -> str:
            self.paid.append("blocking")
            return "paid"

        self.pay, self.pay_slowly, self.stumble, self.blocking = pay, pay_slowly, pay_and_stumble, pay_blocking

    def leave(self, running: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(running)
        self.kept.add(task)
        task.add_done_callback(self.kept.discard)


async def later(seconds: float, running: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    await asyncio.sleep(seconds)
    await running()


async def calls_it(world: World) -> None:
    await world.pay()


async def calls_it_by_name(world: World) -> None:
    await world.rt.call("pay")


async def meets_its_bug(world: World) -> None:
    with contextlib.suppress(Exception):
        await world.stumble()


async def calls_one_that_blocks(world: World) -> None:
    await asyncio.to_thread(world.blocking)


async def opens_a_turn(world: World) -> None:
    async with world.rt.turn() as turn:
        turn.call("pay")


async def opens_a_turn_in_a_turn(world: World) -> None:
    async with world.rt.turn(), world.rt.turn() as turn:
        turn.call("pay")


async def runs_what_a_model_asks_for(world: World) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    async with world.rt.turn():
        await run_tool_calls(world.rt, [asked], timeout="5s")


async def leaves_a_task_that_has_ended(world: World) -> None:
    world.leave(world.pay())
    await asyncio.sleep(0.002)


async def leaves_a_task_that_runs(world: World) -> None:
    world.leave(world.pay_slowly())
    await asyncio.sleep(0.001)


async def leaves_a_task_that_has_not_begun(world: World) -> None:
    world.leave(world.pay_slowly())


async def leaves_a_task_in_a_task(world: World) -> None:
    async def wrapper() -> None:
        await asyncio.gather(world.pay_slowly(), asyncio.sleep(0))

    world.leave(wrapper())


async def leaves_a_turn(world: World) -> None:
    async def wrapper() -> None:
        async with world.rt.turn() as turn:
            turn.call("pay_slowly")

    world.leave(wrapper())


async def leaves_an_os_thread(world: World) -> None:
    threading.Thread(target=in_thread(world.blocking)).start()


async def uses_an_executor(world: World) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        await asyncio.get_running_loop().run_in_executor(pool, in_thread(world.blocking))


WAYS = (
    calls_it,
    calls_it_by_name,
    meets_its_bug,
    calls_one_that_blocks,
    opens_a_turn,
    opens_a_turn_in_a_turn,
    runs_what_a_model_asks_for,
    leaves_a_task_that_has_ended,
    leaves_a_task_that_runs,
    leaves_a_task_that_has_not_begun,
    leaves_a_task_in_a_task,
    leaves_a_turn,
    leaves_an_os_thread,
    uses_an_executor,
)
INNER = {"undeclared": {}, "declared": {"idempotent": False}}


@pytest.mark.parametrize("declared", INNER)
@pytest.mark.parametrize("how", ["guarded", "by name", "in a turn", "in a turn's body"])
@pytest.mark.parametrize("way", WAYS)
def test_t33_what_an_inner_call_did_is_known_to_the_call_around_it(way: Any, how: str, declared: str) -> None:
    async def run() -> tuple[Any, list[str]]:
        world = World({**INNER[declared], "retry": {"max_attempts": 1}})
        rt = world.rt

        @rt.tool(idempotent=False, retry=RETRY, breaker=OFTEN)
        async def travel() -> None:
            await way(world)
            raise REFUSED

        outcome = await outcome_of(rt, travel, how)
        await asyncio.sleep(0.05)
        return outcome, world.paid

    outcome, paid = asyncio.run(run())
    assert len(paid) == 1
    assert outcome.fault.effect == "unknown"
    assert "may already have taken effect" in outcome.explanation.model


async def outcome_of(rt: Runtime, tool: Any, how: str) -> Any:
    if how == "by name":
        return await rt.call(tool)
    if how == "guarded":
        with pytest.raises(Exception, match=tool.__name__) as failed:
            await tool()
        return failed.value.outcome  # type: ignore[attr-defined]
    async with rt.turn() as turn:
        if how == "in a turn":
            turn.call(tool, id="it")
        else:
            with contextlib.suppress(Exception):
                await tool()
    return next(one for one in turn.report.outcomes.values() if one.tool == tool.__name__)


@pytest.mark.parametrize("declared", INNER)
@pytest.mark.parametrize("how", ["guarded", "by name", "in a turn", "blocking"])
def test_t33_the_first_attempt_of_an_undeclared_tool_knows_its_inner_calls(how: str, declared: str) -> None:
    world = World({**INNER[declared], "retry": {"max_attempts": 1}})
    rt = world.rt
    attempts: list[int] = []

    @rt.tool(retry={"max_attempts": 1})
    async def travel() -> None:
        attempts.append(1)
        if len(attempts) < 3:
            await world.pay()
        raise REFUSED

    @rt.tool(timeout=None, retry={"max_attempts": 1})
    def travel_blocking() -> None:
        world.blocking()
        raise REFUSED

    if how == "blocking":
        with pytest.raises(Exception, match="travel_blocking") as failed:
            travel_blocking()
        outcomes = [failed.value.outcome]  # type: ignore[attr-defined]
    else:
        outcomes = [asyncio.run(outcome_of(rt, travel, how)) for _ in range(2)]
    assert [outcome.fault.effect for outcome in outcomes] == ["unknown"] * len(outcomes)
    if how in ("guarded", "by name"):
        assert asyncio.run(outcome_of(rt, travel, how)).fault.effect == "none"  # it has called nobody this time


GUESSED: dict[str, dict[str, Any]] = {
    "travel": {},
    "get_weather": {},
}  # nothing is known of one, the other reads by its name
WRITES: dict[str, dict[str, Any]] = {
    "declared": {"idempotent": False},
    "recognised": {},
    "a new key each time": {"idempotency_key": "key"},
}


def world_of_writes(declared: dict[str, Any], paid: list[str | None]) -> tuple[Runtime, Any]:
    rt = Runtime()

    async def pay(key: str | None = None) -> None:
        paid.append(key)

    return rt, rt.add(pay, **declared)


@pytest.mark.parametrize("error", [REFUSED, ConnectionResetError(104, "reset")])
@pytest.mark.parametrize("how", ["guarded", "by name", "in a turn"])
@pytest.mark.parametrize("declared", WRITES)
@pytest.mark.parametrize("outer", GUESSED)
def test_t33_a_tool_that_declares_nothing_does_not_repeat_the_write_inside_it(
    outer: str, declared: str, how: str, error: Exception
) -> None:
    paid: list[str | None] = []
    rt, pay = world_of_writes(WRITES[declared], paid)
    others: list[str] = []

    async def tool() -> None:
        await pay()
        raise error

    async def send_money() -> None:
        others.append("sent")

    tool.__name__ = outer
    rt.add(send_money)
    guarded = rt.add(tool, id=outer, retry=RETRY, breaker=OFTEN, fallbacks=["send_money"])
    outcome = asyncio.run(outcome_of(rt, guarded, how))
    assert (len(paid), others) == (1, [])
    assert outcome.fault.effect == "unknown"
    assert "may have gone through" in outcome.explanation.user


@pytest.mark.parametrize("way", ["awaited", "in a task", "in a turn", "two deep", "still running"])
def test_t33_a_write_inside_is_known_however_it_was_made(way: str) -> None:
    paid: list[str | None] = []
    rt, pay = world_of_writes({"idempotent": False}, paid)
    kept: list[asyncio.Task[Any]] = []

    @rt.tool
    async def get_prices() -> None:
        await pay()

    async def pay_later() -> None:
        await asyncio.sleep(0.05)
        paid.append(None)

    later = rt.add(pay_later, idempotent=False)

    @rt.tool(retry=RETRY, breaker=OFTEN)
    async def travel() -> None:
        if way == "in a task":
            await asyncio.create_task(pay())
        elif way == "in a turn":
            async with rt.turn() as turn:
                turn.call("pay")
        elif way == "two deep":
            await get_prices()
        elif way == "still running":
            kept.append(asyncio.create_task(later()))
            await asyncio.sleep(0)
        else:
            await pay()
        raise REFUSED

    async def run() -> Any:
        outcome = await rt.call("travel")
        await asyncio.gather(*kept)
        return outcome

    outcome = asyncio.run(run())
    assert (len(paid), outcome.attempts, outcome.fault.effect) == (1, 1, "unknown")


@pytest.mark.parametrize("outer", [{"idempotent": True}, {"read_only": True}], ids=str)
def test_t33_a_tool_whose_author_says_that_it_may_be_repeated_is_repeated(outer: dict[str, Any]) -> None:
    paid: list[str | None] = []
    rt, pay = world_of_writes({"idempotent": False}, paid)

    @rt.tool(retry=RETRY, breaker=OFTEN, **outer)
    async def travel() -> None:
        await pay()
        raise REFUSED

    assert asyncio.run(rt.call("travel")).attempts == 4


def test_t33_a_write_inside_that_gets_the_same_key_each_time_may_be_repeated() -> None:
    paid: list[str | None] = []
    rt, pay = world_of_writes({"idempotency_key": "key"}, paid)

    @rt.tool(retry=RETRY, breaker=OFTEN)
    async def travel() -> None:
        await pay(key="order 7")
        raise REFUSED

    assert asyncio.run(rt.call("travel")).attempts == 4
    assert set(paid) == {"order 7"}


@pytest.mark.parametrize("inner", ["pay", "pay_slowly", "pay_and_stumble"])
def test_t33_a_call_that_is_submitted_to_the_turn_from_inside_a_tool_counts(inner: str) -> None:
    async def run() -> tuple[Any, list[str]]:
        world = World({"retry": {"max_attempts": 1}})
        async with world.rt.turn() as turn:

            @world.rt.tool(idempotent=False, retry=RETRY)
            async def travel() -> None:
                turn.call(inner)
                if inner == "pay":
                    await asyncio.sleep(0.002)
                raise REFUSED

            turn.call(travel, id="it")
        return turn.report.outcomes["it"], world.paid

    outcome, paid = asyncio.run(run())
    assert len(paid) == 1
    assert outcome.fault.effect == "unknown"


def test_t33_a_task_that_acts_while_a_retry_is_waited_for_ends_the_retries() -> None:
    async def run() -> tuple[Any, list[str], int]:
        world = World({})
        attempts: list[int] = []

        @world.rt.tool(idempotent=False, retry=RETRY, breaker=OFTEN)
        async def travel() -> None:
            attempts.append(1)
            world.leave(later(0.005, world.pay))
            raise REFUSED

        outcome = await world.rt.call("travel")
        await asyncio.sleep(0.05)
        return outcome, world.paid, len(attempts)

    outcome, paid, attempts = asyncio.run(run())
    assert (len(paid), attempts) == (1, 1)
    assert outcome.fault.effect == "unknown"


REPEATABLE = (calls_it, calls_it_by_name, calls_one_that_blocks, opens_a_turn, uses_an_executor)


@pytest.mark.parametrize("how", ["guarded", "by name", "in a turn", "in a turn's body"])
@pytest.mark.parametrize("way", REPEATABLE)
@pytest.mark.parametrize("outer", [{"idempotent": False}, {"idempotent": True}, {}], ids=str)
def test_t33_a_repeatable_write_inside_allows_a_retry_but_no_claim_that_nothing_happened(
    outer: dict[str, Any], way: Any, how: str
) -> None:
    async def run() -> tuple[Any, list[str]]:
        world = World({"idempotent": True})

        @world.rt.tool(**outer, retry=RETRY, breaker=OFTEN)
        async def travel() -> None:
            if not world.paid:
                await way(world)
            raise REFUSED

        return await outcome_of(world.rt, travel, how), world.paid

    outcome, paid = asyncio.run(run())
    assert (len(paid), outcome.attempts) == (1, 4)
    assert outcome.fault.effect == "unknown"


def test_t33_a_repeatable_write_submitted_to_the_turn_from_inside_a_tool_counts() -> None:
    async def run() -> Any:
        world = World({"idempotent": True})
        async with world.rt.turn() as turn:

            @world.rt.tool(idempotent=False, retry={"max_attempts": 1})
            async def travel() -> None:
                await turn.call("pay")
                raise REFUSED

            turn.call(travel, id="it")
        return turn.report.outcomes["it"]

    assert asyncio.run(run()).fault.effect == "unknown"


@pytest.mark.parametrize("way", [calls_it, leaves_a_task_that_runs, opens_a_turn])
def test_t33_inner_reads_change_nothing(way: Any) -> None:
    async def run() -> Any:
        world = World({"read_only": True})

        @world.rt.tool(idempotent=False, retry={"max_attempts": 1})
        async def travel() -> None:
            await way(world)
            raise REFUSED

        outcome = await world.rt.call("travel")
        await asyncio.gather(*world.kept)
        return outcome

    assert asyncio.run(run()).fault.effect == "none"


def test_t33_in_thread_carries_context_and_runs_side_by_side() -> None:
    seen: list[int] = []

    def double(x: int) -> int:
        seen.append(x)
        return 2 * x

    async def run() -> list[int]:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(in_thread(double), range(20)))

    assert asyncio.run(run()) == [2 * x for x in range(20)]
    assert in_thread(double).__name__ == "double"
    assert sorted(seen) == list(range(20))


async def asks(world: World, inner: str) -> Any:
    return (await world.rt.call(inner, {"nobody": "takes this"} if inner == "misfit" else {})).unwrap()


async def wraps(world: World, inner: str) -> None:
    try:
        await asks(world, inner)
    except Exception as error:
        raise RuntimeError("no trip") from error


async def unpacks(world: World, inner: str) -> None:
    try:
        await asks(world, inner)
    except Exception as error:
        raise (error.__cause__ or error)  # noqa: B904 - as people write it


async def hands_on_the_fault(world: World, inner: str) -> None:
    outcome = await world.rt.call(inner)
    error = RuntimeError("no trip")
    error.fault = outcome.fault  # type: ignore[attr-defined]
    raise error


async def gathers(world: World, inner: str) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asks(world, inner))


@pytest.mark.parametrize("inner", ["nothing_done", "refused_read", "misfit", "unknown_tool", "cut_off"])
@pytest.mark.parametrize("way", [asks, wraps, unpacks, hands_on_the_fault, gathers])
def test_t33_an_inner_call_that_did_nothing_does_not_speak_for_the_tool_around_it(way: Any, inner: str) -> None:
    """The tool pays by itself, then calls another one that is refused, not entered, or says that it did nothing."""

    async def run() -> tuple[Any, list[str]]:
        world = World({})
        rt = world.rt

        @rt.tool(idempotent=False, retry={"max_attempts": 1})
        async def nothing_done() -> None:
            raise NothingDone("no seats", code="UNAVAILABLE")

        @rt.tool(read_only=True, retry={"max_attempts": 1})
        async def refused_read() -> None:
            raise REFUSED

        @rt.tool(read_only=True)
        async def misfit() -> None:
            raise AssertionError

        @rt.tool(read_only=True, retry={"max_attempts": 1}, breaker={"failure_threshold": 1})
        async def cut_off() -> None:
            raise TimeoutError("too slow")

        await rt.call("cut_off")

        @rt.tool(idempotent=False, retry=RETRY, breaker=OFTEN, fallbacks=["pay"])
        async def pay_by_card() -> None:
            world.paid.append("by card")
            if inner == "refused_read" and way in (unpacks, hands_on_the_fault):
                raise TimeoutError("nothing to be shown here: a bare refusal is one of the tool's own requests")
            await way(world, inner)

        return await rt.call("pay_by_card"), world.paid

    outcome, paid = asyncio.run(run())
    assert (paid, outcome.status) == (["by card"], "failed")
    assert outcome.fault.effect == "unknown"
    assert "no effect" not in outcome.explanation.model


@pytest.mark.parametrize("what", ["refused", "stated", "not entered"])
@pytest.mark.parametrize("overrides", [(), (Override(pattern="nobody says this", as_="permanent"),)])
def test_t33_effects_of_inner_calls_in_a_worker_process_count(what: str, overrides: Any, tmp_path: Path) -> None:
    async def run() -> Any:
        async with Runtime() as rt:
            rt.add(
                pays_inside, id="travel", idempotent=False, isolation="process", classification=overrides,
                retry=RETRY, breaker=OFTEN,
            )  # fmt: skip
            return await rt.call("travel", {"what": what, "paid": str(tmp_path / "paid")})

    outcome = asyncio.run(run())
    assert (tmp_path / "paid").read_text() == "paid\n"
    assert outcome.fault.effect == "unknown"


@pytest.mark.parametrize("delay", [0.0, 0.05])
@pytest.mark.parametrize("in_turn", [True, False], ids=["in a turn", "in a thread"])
@virtual
async def test_t33_an_undeclared_tool_is_not_repeated_once_a_task_of_it_has_written(
    in_turn: bool, delay: float
) -> None:
    rt, paid, tasks = Runtime(), [], []

    @rt.tool(idempotent=False)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    async def pay_later() -> None:
        await asyncio.sleep(delay)
        await pay(4)

    @rt.tool(id="frobnicate")
    async def frobnicate() -> None:
        tasks.append(asyncio.ensure_future(pay_later()))
        raise ConnectionResetError("Connection reset by peer")

    if in_turn:
        async with rt.turn() as turn:
            outcome = await turn.call("frobnicate")
    else:
        outcome = await rt.call("frobnicate", thread="chat")
    await asyncio.wait(tasks)
    assert (paid, len(tasks), outcome.attempts) == ([4], 1, 1)
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@pytest.mark.parametrize("way", ["by name", "guarded"])
@pytest.mark.parametrize("met", [0, 1, 2], ids=["met never", "met once", "met twice"])
@pytest.mark.parametrize(("delay", "attempts"), [(0.0, 1), (0.05, 1), (0.15, 2), (0.25, 3)])
@virtual
async def test_t33_an_undeclared_tool_is_not_repeated_once_a_task_of_its_first_attempt_has_written(
    way: str, met: int, delay: float, attempts: int
) -> None:
    rt, paid, tasks, made = Runtime(), [], [], [0]

    @rt.tool(idempotent=False)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    async def pay_later() -> None:
        await asyncio.sleep(delay)
        await pay(4)

    @rt.tool(
        id="frobnicate",
        breaker=OFTEN,
        retry={"max_attempts": 4, "initial_delay": "100ms", "multiplier": 1, "jitter_percent": 0},
    )
    async def frobnicate(leave: bool) -> None:
        made[0] += 1
        if leave and made[0] == 1:
            tasks.append(asyncio.ensure_future(pay_later()))
        raise ConnectionResetError("Connection reset by peer")

    for _ in range(met):  # from the second time on, the error is known to the fast path
        await rt.call("frobnicate", {"leave": False})
    made[0] = 0
    if way == "by name":
        outcome = await rt.call("frobnicate", {"leave": True})
    else:
        with pytest.raises(CallFailed) as caught:
            await frobnicate(leave=True)
        outcome = caught.value.outcome
    await asyncio.wait(tasks)
    assert (paid, made[0], outcome.attempts) == ([4], attempts, attempts)
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


LIMITED = "HTTP 429: Too Many Requests"


async def call_it(rt: Runtime, tool: Any, how: str) -> Any:
    if how == "in a turn":
        async with rt.turn() as turn:
            return await turn.call(tool)
    if how == "by name":
        return await rt.call(tool)
    try:
        if how == "in a turn's body":
            async with rt.turn():
                return await tool()
        return await tool()
    except CallFailed as failed:
        return failed.outcome


@pytest.mark.parametrize("how", ["guarded", "by name", "in a turn", "in a turn's body", "blocking"])
@pytest.mark.parametrize("declared", [{"idempotent": False}, {"id": "transfer_money"}, {}], ids=str)
@pytest.mark.parametrize("what", ["gathers", "leaves a task", "leaves a task of a turn"])
def test_t33_a_request_that_goes_on_after_its_tool_was_refused_is_not_called_no_effect(
    what: str, declared: dict[str, Any], how: str
) -> None:
    sent: list[str] = []

    async def post(body: str) -> None:
        if body == "refused":
            raise RuntimeError(LIMITED)
        await answered.wait()
        sent.append(body)

    answered = asyncio.Event()

    async def main() -> Any:
        rt, kept = Runtime(), []

        @rt.tool(**{"id": "frobnicate", **declared}, retry={"max_attempts": 1})
        async def tool() -> None:
            if what == "gathers":
                await asyncio.gather(post("order"), post("refused"))
            kept.append(asyncio.ensure_future(post("order")))
            if what == "leaves a task of a turn":
                async with rt.turn():
                    kept.append(asyncio.ensure_future(post("another")))
            await post("refused")

        if how == "blocking":
            outcome = await asyncio.to_thread(rt.call_sync, tool)
        else:
            outcome = await call_it(rt, tool, how)
            answered.set()
            await asyncio.sleep(0.01)
        return outcome

    outcome = asyncio.run(main())
    assert how == "blocking" or "order" in sent  # a blocking caller's loop goes on with the next call
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@pytest.mark.parametrize("declared", [{"idempotent": False}, {}], ids=str)
def test_t33_a_request_under_way_in_a_worker_process_is_not_called_no_effect(declared: dict[str, Any]) -> None:
    async def run() -> Any:
        async with Runtime() as rt:
            rt.add(sends_two_orders, id="frobnicate", isolation="process", retry={"max_attempts": 1}, **declared)
            return await rt.call("frobnicate", {"order": "1"})

    outcome = asyncio.run(run())
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.effect) == ("UNAVAILABLE", "unknown")


@pytest.mark.parametrize("declared", [{"idempotent": False}, {}], ids=str)
@pytest.mark.parametrize("others", [3, 600])
@virtual
async def test_t33_tasks_that_have_ended_and_tasks_of_others_leave_a_refusal_without_effect(
    others: int, declared: dict[str, Any]
) -> None:
    rt, attempts = Runtime(), []

    @rt.tool(id="frobnicate", **declared, retry=RETRY, breaker=OFTEN)
    async def tool() -> None:
        attempts.append(1)
        await asyncio.gather(asyncio.sleep(0.01), asyncio.create_task(asyncio.sleep(0.02)))
        raise RuntimeError(LIMITED)

    async with asyncio.TaskGroup() as group:
        for _ in range(others):
            group.create_task(asyncio.sleep(10))
        calls = [group.create_task(rt.call(tool)) for _ in range(3)]
    assert len(attempts) == 12
    assert {call.result().fault.effect for call in calls} == {"none"}
