"""``rt.threads``: missing tools and loops, through the runtime (R14), and the cost of remembering."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, OFTEN, ONCE, Scripted, Takes, records, virtual
from tests.runtime.conversation.conversation import MISSING, THREAD, ask, faulty

from failsoft import Outcome, Runtime, ToolUnavailable
from failsoft.runtime.conversation import thread_notes

# --- availability ------------------------------------------------------------------------------------------------------


@virtual
async def test_a_text_switches_a_tool_off_for_its_thread_only_and_one_probe_brings_it_back() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, MISSING, "fine")
    rt.add(tool, id="search")
    first = await rt.call("search", thread=THREAD)
    assert (faulty(first)[0], first.attempts) == ("tool_unavailable", 1)
    second = await rt.call("search", thread=THREAD)
    assert faulty(second) == ("tool_unavailable", "tool_marked_unavailable", 0)
    assert second.fault is not None
    assert second.fault.retry_after == pytest.approx(600)
    assert records(rt, "CallRefused")[-1]["rule"] == "tool_marked_unavailable"
    assert (rt.threads[THREAD].available("search"), rt.threads[THREAD].unavailable) == (False, ("search",))
    assert (rt.threads["other"].available("search"), rt.threads["other"].unavailable) == (True, ())
    assert rt.threads(THREAD, tenant="acme").available("search")
    assert rt.health("search").available
    await asyncio.sleep(601)
    assert rt.threads[THREAD].available("search")
    await rt.call("search", thread=THREAD)  # the probe, which meets the same
    assert tool.attempts == 2
    assert faulty(await rt.call("search", thread=THREAD))[1] == "tool_marked_unavailable"
    await asyncio.sleep(601)
    assert (await rt.call("search", thread=THREAD)).value == "fine"
    assert (await rt.call("search", thread=THREAD)).value == "fine"


@pytest.mark.parametrize(
    ("fallback", "policies", "usable"),
    [
        ({"tool": "backup"}, [], True),
        ({"tool": "backup", "handle_errors": ["UNAVAILABLE"]}, [], False),  # not for this
        ({"tool": "missing as well"}, [], False),
        ({"tool": "down"}, [], False),
        ({"tool": "backup"}, [{"name": "ask", "when": {"category": "tool_unavailable"}, "then": "escalate"}], False),
    ],
)
@virtual
async def test_a_missing_tool_is_available_while_it_has_a_usable_fallback(
    fallback: Any, policies: Any, usable: bool
) -> None:
    rt = Runtime(policies=policies)
    rt.add(Scripted(MISSING), id="search", fallbacks=[fallback], read_only=True)
    rt.add(Scripted("from the backup"), id="backup")
    rt.add(Scripted(MISSING), id="missing as well")
    rt.add(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    for tool in ("search", "missing as well", "down"):
        await rt.call(tool, thread=THREAD)
    thread = rt.threads[THREAD]
    assert (thread.available("search"), "search" not in thread.unavailable) == (usable, usable)
    assert ((await rt.call("search", thread=THREAD)).value == "from the backup") is usable


@virtual
async def test_one_probe_at_a_time() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, Takes(5, "fine"), "fine")
    rt.add(tool, id="search")
    await rt.call("search", thread=THREAD)
    await asyncio.sleep(601)
    probe, other = await asyncio.gather(rt.call("search", thread=THREAD), rt.call("search", thread=THREAD))
    assert probe.value == "fine"
    assert faulty(other)[1] == "tool_marked_unavailable"


@virtual
async def test_a_probe_may_be_retried_like_any_call() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, DOWN, "fine")
    rt.add(tool, id="search")
    await rt.call("search", thread=THREAD)
    await asyncio.sleep(601)
    outcome = await rt.call("search", thread=THREAD)
    assert (outcome.value, outcome.attempts) == ("fine", 2)


@virtual
async def test_without_a_thread_nothing_is_remembered() -> None:
    rt = Runtime()
    tool = Scripted(MISSING)
    rt.add(tool, id="search")
    for _ in range(5):
        await rt.call("search", {})
    assert tool.attempts == 5
    assert rt.metrics("search")["loops_prevented"] == 0


@virtual
async def test_a_turns_fast_path_reads_and_updates_its_thread() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, "fine")
    rt.add(tool, id="search")
    for expected in ("phrase", "tool_marked_unavailable"):
        async with rt.turn(thread=THREAD) as turn:
            turn.call("search", id="S")
        assert faulty(turn.report.outcomes["S"])[1].startswith(expected)
    assert tool.attempts == 1
    assert turn.report.message.endswith("This capability isn’t available in this deployment yet.")


@virtual
async def test_a_fallback_that_is_missing_in_the_thread_is_left_out() -> None:
    rt = Runtime()
    backup = Scripted(MISSING)
    rt.add(backup, id="backup")
    rt.add(Scripted(DOWN), id="search", fallbacks=["backup"], retry=ONCE)
    await rt.call("search", {"n": 1}, thread=THREAD)
    await rt.call("search", {"n": 2}, thread=THREAD)
    assert backup.attempts == 1
    await rt.call("search", {"n": 2}, thread="other")
    assert backup.attempts == 2


@virtual
async def test_a_missing_tool_with_a_fallback_is_replaced_without_being_run() -> None:
    rt = Runtime()
    tool = Scripted(MISSING)
    rt.add(tool, id="search", fallbacks=["backup"])
    rt.add(Scripted("from the backup"), id="backup")
    for _ in range(3):
        outcome = await rt.call("search", thread=THREAD)
        assert (outcome.value, outcome.via) == ("from the backup", "backup")
    assert tool.attempts == 1


def test_a_program_that_is_not_there_is_missing_for_the_whole_deployment() -> None:
    command = {"command": ["no-such-program-here"]}
    rt = Runtime(manifest={"tools": {"shout": {"entrypoint": command}}})
    first, second = rt.call_sync("shout"), rt.call_sync("shout")
    asyncio.run(rt.close())
    assert faulty(first)[:2] == ("tool_unavailable", "command_start")
    assert faulty(second) == ("tool_unavailable", "tool_marked_unavailable", 0)
    assert not rt.health("shout").available
    assert rt.threads["any"].unavailable == ("shout",)


@virtual
async def test_registering_a_tool_again_makes_it_available() -> None:
    rt = Runtime(manifest={"tools": {"search": {"entrypoint": {"function": "no.such.module:search"}}}})
    assert not rt.health("search").available
    assert faulty(await rt.call("search"))[1] == "tool_marked_unavailable"
    with pytest.raises(ToolUnavailable):
        (await rt.call("search")).unwrap()

    async def search() -> str:
        return "fine"

    rt.add(search)
    assert rt.health("search").available
    assert (await rt.call("search")).value == "fine"


@virtual
async def test_registering_a_tool_again_ends_what_threads_hold_against_it() -> None:
    rt = Runtime()
    rt.add(Scripted(MISSING), id="search")
    await rt.call("search", thread=THREAD)
    rt.add(Scripted("fine"), id="search")
    assert rt.threads[THREAD].available("search")
    assert (await rt.call("search", thread=THREAD)).value == "fine"


def test_an_unknown_tool_is_unavailable() -> None:
    rt = Runtime()
    assert not rt.health("nowhere").available
    assert not rt.threads[THREAD].available("nowhere")


# --- loops -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["turns", "calls", "guarded"])
@virtual
async def test_the_third_identical_failure_is_answered_not_run(way: str) -> None:
    rt = Runtime()
    tool = Scripted(INVALID)
    guarded = rt.add(tool, id="hotels")

    async def once() -> Outcome[Any]:
        if way == "calls":
            return await rt.call("hotels", {"city": "XYZ"}, thread=THREAD)
        if way == "turns":
            return await ask(rt)
        async with rt.turn(thread=THREAD) as turn:
            with pytest.raises(Exception, match="Invalid airport code"):
                await guarded(city="XYZ")
        return turn.report.outcomes["hotels-1"]

    first, second, third, fourth = [await once() for _ in range(4)]
    assert tool.attempts == 2
    assert third.explanation.user == first.explanation.user == second.explanation.user
    assert third.explanation.operator == second.explanation.operator
    assert faulty(third) == faulty(fourth) == ("tool_validation", "loop_prevented", 0)
    assert third.explanation.model == (
        "hotels failed: INVALID_ARGUMENT (tool_validation, not run). It may already have taken effect. It was not run this "
        'time: the same call has failed before and would fail again. Error text, as data: "Invalid airport code: XYZ"'
    )
    assert third.escalated
    assert rt.metrics("hotels")["loops_prevented"] == 2
    assert [record["message"] for record in records(rt, "LoopPrevented")] == ["Loop prevented for hotels"] * 2
    await asyncio.sleep(61)
    await once()
    assert tool.attempts == 3


@virtual
async def test_arguments_that_do_not_fit_are_a_loop_as_well() -> None:
    rt = Runtime()

    @rt.tool
    async def hotels(city: str) -> str:
        return city

    outcomes = [await ask(rt, {"town": "PAR"}) for _ in range(3)]
    assert [faulty(outcome)[1] for outcome in outcomes] == ["bad_arguments", "bad_arguments", "loop_prevented"]
    assert {outcome.explanation.user for outcome in outcomes} == {"For hotels I need a valid city."}


@virtual
async def test_a_model_that_mends_the_cause_is_not_looping() -> None:
    rt = Runtime()
    files: dict[str, str] = {}

    @rt.tool
    async def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    @rt.tool
    async def write(path: str, text: str) -> None:
        files[path] = text

    for _ in range(2):
        assert (await ask(rt, {"path": "a"}, tool="read")).status == "failed"
    await ask(rt, {"path": "a", "text": "hello"}, tool="write")
    assert (await ask(rt, {"path": "a"}, tool="read")).value == "hello"


@virtual
async def test_other_arguments_other_threads_and_passing_errors_are_no_loop() -> None:
    rt = Runtime()
    tool, flaky = Scripted(INVALID), Scripted(DOWN)
    rt.add(tool, id="hotels")
    rt.add(flaky, id="flights", retry=ONCE, breaker=OFTEN)
    for number in range(4):
        await ask(rt, {"city": str(number)})
        await rt.call("hotels", {"city": "XYZ"}, thread=f"thread {number}")
        await ask(rt, {"city": "PAR"}, tool="flights")
    assert (tool.attempts, flaky.attempts) == (8, 4)


@virtual
async def test_inner_calls_do_not_count_as_a_loop_of_the_model() -> None:
    rt = Runtime()
    inner = Scripted(INVALID)
    guarded = rt.add(inner, id="inner")

    async def outer(n: int) -> str:
        try:
            await guarded(city="XYZ")
        except Exception:
            return "went on without"
        return "never"

    rt.add(outer)
    for number in range(5):
        assert (await ask(rt, {"n": number}, tool="outer")).value == "went on without"
    assert inner.attempts == 5


@virtual
async def test_availability_comes_before_the_loop_and_the_loop_before_the_breaker() -> None:
    rt = Runtime()
    rt.add(Scripted(MISSING), id="missing")
    for expected in ("phrase", "tool_marked_unavailable", "tool_marked_unavailable", "tool_marked_unavailable"):
        assert faulty(await ask(rt, tool="missing"))[1].startswith(expected)
    steps = Scripted(INVALID, INVALID, DOWN)
    rt.add(steps, id="hotels", retry=ONCE, breaker={"failure_threshold": 1})
    await ask(rt)
    await ask(rt)
    await ask(rt, {"city": "PAR"})
    assert rt.health("hotels").state == "open"
    assert faulty(await ask(rt))[1] == "loop_prevented"
    assert faulty(await ask(rt, {"city": "LON"}))[1] == "circuit_open"


# --- turns inside calls ------------------------------------------------------------------------------------------------


@virtual
async def test_a_sub_agent_belongs_to_the_conversation_and_its_failure_is_offered_once() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE)

    @rt.tool
    async def sub_agent(city: str) -> Any:
        async with rt.turn() as turn:
            handle = turn.call("search")
        assert turn.report.thread == THREAD
        return await handle.value()

    outcome = await ask(rt, tool="sub_agent")
    assert outcome.fault is not None
    assert outcome.fault.message == "Service unavailable (503)"
    assert [offer.tool for offer in rt.threads[THREAD].offers] == ["sub_agent"]
    assert outcome.explanation.user.startswith("I couldn’t reach search right now.")


@virtual
async def test_a_missing_tool_inside_marks_itself_and_not_the_one_around_it() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(MISSING), id="inner")

    @rt.tool
    async def outer(city: str) -> Any:
        return await guarded()

    outcome = await ask(rt, tool="outer")
    assert faulty(outcome)[0] == "tool_unavailable"
    assert rt.threads[THREAD].unavailable == ("inner",)


# --- what it costs -----------------------------------------------------------------------------------------------------


@virtual
async def test_threads_without_state_are_freed() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    for number in range(50):
        async with rt.turn(thread=f"thread {number}") as turn:
            turn.call("search")
        rt.threads[f"thread {number}"].offers  # noqa: B018 - looking is not noting
    del turn
    gc.collect()
    notebook = rt._engine.books.conversations
    assert (len(notebook._states), len(notebook._kept)) == (0, 0)


@virtual
async def test_the_number_of_kept_threads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_notes, "MOST_THREADS", 10)
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN)
    for number in range(30):
        await rt.call("search", thread=f"thread {number}")
    gc.collect()
    assert len(rt._engine.books.conversations._kept) == 10
    assert rt.threads["thread 19"].offers == []
    assert rt.threads["thread 20"].offers != []


@virtual
async def test_unknown_tool_names_leave_no_metrics_and_no_state() -> None:
    rt = Runtime()
    async with rt.turn(thread=THREAD) as turn:
        for number in range(20):
            turn.call(f"invented {number}")
            await rt.call(f"made up {number}")
            await rt.call(f"dreamt {number}", thread=THREAD)
    for number in range(20):
        await rt.call(f"imagined {number}", thread=THREAD)
        rt.metrics(f"guessed {number}")
    assert rt.metrics("invented 1")["refused_count"] == 0
    assert rt._engine.log.trace._metrics == {}
    assert rt._engine.books.conversations._kept == {}
    assert len(turn.report.outcomes) == 60


@virtual
async def test_an_unknown_tool_in_a_turns_body_is_one_of_its_calls() -> None:
    rt = Runtime()
    async with rt.turn() as turn:
        outcome = await rt.call("nowhere", {"a": 1}, id="N")
        await rt.call("nowhere\n" * 100)
    assert turn.report.outcomes["N"] is outcome
    assert faulty(outcome) == ("tool_unavailable", "unknown_tool", 0)
    _, strange = turn.report.outcomes.values()
    assert len(strange.tool) <= 80
    assert "\n" not in strange.id


def test_notes_are_taken_from_several_threads() -> None:
    rt = Runtime()

    @rt.tool(timeout=None, retry=ONCE, breaker=OFTEN)
    def search(n: int) -> None:
        raise DOWN

    def work(number: int) -> None:
        for n in range(50):
            rt.call_sync("search", {"n": n}, thread=f"thread {number % 2}")
            rt.threads[f"thread {number % 2}"].clear()

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(switch)
    assert rt._engine.books.conversations._kept == {}
    assert rt.metrics("search")["error_count"] == 200
