"""An instrument surrounds turns, calls and attempts where they run; without one nothing is different."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted, Takes, real, virtual

from failsoft import CallFailed, Instrument, Runtime
from failsoft.errors import ManifestError
from failsoft.observe.instrument import CallInfo, TurnInfo, carried

SPAN: ContextVar[str] = ContextVar("span", default="-")


class Spans(Instrument):
    """Makes spans as a tracer does: the current one is the parent of the next."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.ended: list[tuple[str, str | None]] = []
        self.lost: list[str] = []
        self.outcomes: list[Any] = []

    @contextmanager
    def span(self, name: str, info: Any = None) -> Iterator[None]:
        self.made.append(f"{SPAN.get()} > {name}")
        token = SPAN.set(name)
        problem = None
        try:
            yield
        except BaseException as error:
            problem = type(error).__name__
            raise
        finally:
            SPAN.reset(token)
            self.ended.append((name, problem))
            if info is not None:
                self.outcomes.append(info.outcome if isinstance(info, CallInfo) else info.report)

    def turn(self, turn: TurnInfo) -> AbstractContextManager[None]:
        return self.span(turn.id, turn)

    def call(self, call: CallInfo) -> AbstractContextManager[None]:
        return self.span(call.id, call)

    def attempt(self, call: CallInfo, number: int) -> AbstractContextManager[None]:
        return self.span(f"{call.candidate}#{number}")

    def abandoned(self, call: CallInfo, number: int) -> None:
        self.lost.append(f"{call.candidate}#{number}")

    def carrier(self, call: CallInfo, number: int) -> Mapping[str, str]:
        return {"TRACEPARENT": f"{call.id}/{number}"}


async def see() -> str:
    return SPAN.get()


async def see_later() -> str:
    await asyncio.sleep(0.001)
    return SPAN.get()


def see_blocking() -> str:
    return SPAN.get()


TOOLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "async": (see, {}),
    "async, suspended": (see_later, {}),
    "async, one at a time": (see_later, {"concurrency": 1}),
    "in a worker thread": (see_blocking, {}),
    "in the caller": (see_blocking, {"timeout": None}),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("route", ["by name", "guarded", "blocking", "in a turn", "in a turn's body"])
def test_a_tool_runs_inside_the_span_of_its_attempt(tool: str, route: str) -> None:
    fn, options = TOOLS[tool]
    spans = Spans()
    rt = Runtime(instruments=[spans])
    guarded = rt.add(fn, id="tool", read_only=True, **options)

    async def play() -> Any:
        if route == "by name":
            return (await rt.call("tool")).value
        if route == "guarded":
            value = guarded()
            return await value if asyncio.iscoroutine(value) else value
        async with rt.turn(id="turn") as turn:
            if route == "in a turn":
                return (await turn.call("tool")).value
            return (await rt.call("tool")).value

    value = rt.call_sync("tool").value if route == "blocking" else asyncio.run(play())
    assert value == "tool#1"
    in_turn = route.startswith("in a turn")
    assert spans.made == [
        *(["- > turn"] if in_turn else []),
        f"{'turn' if in_turn else '-'} > tool-1",
        "tool-1 > tool#1",
    ]
    assert [name for name, _ in spans.ended] == ["tool#1", "tool-1", *(["turn"] if in_turn else [])]
    assert {problem for _, problem in spans.ended} == {None}
    assert SPAN.get() == "-"


@virtual
async def test_every_attempt_has_its_number_and_its_error() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted(RESET, RESET, "found"), id="search", read_only=True)
    outcome = await rt.call("search", id="mine")
    assert outcome.value == "found"
    assert spans.made == ["- > mine", "mine > search#1", "mine > search#2", "mine > search#3"]
    problem = type(RESET).__name__
    assert spans.ended == [("search#1", problem), ("search#2", problem), ("search#3", None), ("mine", None)]
    assert spans.outcomes == [outcome]


@virtual
async def test_a_failed_call_ends_with_its_error_and_its_outcome() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    search = rt.add(Scripted(INVALID), id="search")
    with pytest.raises(CallFailed) as raised:
        await search()
    assert spans.ended[-1] == ("search-1", type(INVALID).__name__)
    assert spans.outcomes == [raised.value.outcome]


@virtual
async def test_attempts_of_a_fallback_name_the_fallback() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache", read_only=True)
    await rt.call("search", id="mine")
    assert spans.made == ["- > mine", "mine > search#1", "mine > cache#2"]


@virtual
async def test_calls_inside_a_tool_are_children_of_its_attempt() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted("found"), id="inner", read_only=True)

    async def outer() -> Any:
        return (await rt.call("inner", id="within")).value

    rt.add(outer, id="outer", read_only=True)
    await rt.call("outer", id="mine")
    assert spans.made == ["- > mine", "mine > outer#1", "outer#1 > within", "within > inner#1"]


@virtual
async def test_calls_of_a_turn_that_run_side_by_side_keep_their_spans_apart() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(see_later, id="see", read_only=True)
    async with rt.turn(id="turn") as turn:
        for number in range(5):
            turn.call("see", id=f"c{number}")
    assert [*turn.report.results.values()] == ["see#1"] * 5
    assert spans.made[0] == "- > turn"
    assert {f"turn > c{number}" for number in range(5)} <= {*spans.made}
    assert {f"c{number} > see#1" for number in range(5)} <= {*spans.made}
    assert spans.outcomes[-1] is turn.report


@virtual
async def test_a_turn_that_is_broken_off_ends_its_span_with_the_error() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    with suppress(KeyError):
        async with rt.turn(id="turn"):
            raise KeyError("body")
    assert spans.ended == [("turn", "KeyError")]


@virtual
async def test_a_timeout_ends_the_span_of_the_attempt_at_the_deadline() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted(Takes(100)), id="search", timeout="2s", read_only=True, retry=ONCE)
    await rt.call("search", id="mine")
    assert spans.ended[0] == ("search#1", "TimeoutError")
    assert spans.lost == []


@virtual
async def test_an_async_tool_that_goes_on_after_its_deadline_is_reported_as_abandoned() -> None:
    async def stubborn() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)
                return

    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(stubborn, timeout="2s", read_only=True, retry=ONCE)
    await rt.call("stubborn", id="mine")
    assert spans.lost == ["stubborn#1"]
    assert spans.ended == [("stubborn#1", "TimeoutError"), ("mine", None)]


@pytest.mark.parametrize("blocking", [False, True])
def test_a_blocking_tool_that_goes_on_is_reported_and_leaves_its_span_when_it_ends(blocking: bool) -> None:
    held = threading.Event()
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(lambda: held.wait(20), id="hang", timeout="20ms", read_only=True, retry=ONCE)
    outcome = rt.call_sync("hang", id="mine") if blocking else asyncio.run(rt.call("hang", id="mine"))  # type: ignore[arg-type]
    assert outcome.status == "failed"
    assert spans.lost == ["hang#1"]
    assert [name for name, _ in spans.ended] == ["mine"]
    held.set()
    until = time.monotonic() + 20
    while len(spans.ended) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    assert spans.ended[1] == ("hang#1", None)


@virtual
async def test_a_cancelled_call_ends_its_spans() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted(Takes(100)), id="search", read_only=True)
    task = asyncio.ensure_future(rt.call("search", id="mine"))
    await asyncio.sleep(1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert spans.ended == [("search#1", "CancelledError"), ("mine", "CancelledError")]


@virtual
async def test_a_refused_call_has_a_span_and_no_attempt() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, breaker={"failure_threshold": 1, "timeout": "60s"})
    for id in ("first", "second", "third"):
        await rt.call("search", id=id)
    await rt.call("search")
    assert [made for made in spans.made if "#" in made] == ["first > search#1"]
    assert len(spans.outcomes) == 4


# --- other processes ----------------------------------------------------------------------------------------------------


def read_carried() -> str:
    return json.dumps(dict(carried()))


@pytest.mark.parametrize("blocking", [False, True])
def test_a_worker_process_gets_what_instruments_send_along(blocking: bool) -> None:
    rt = Runtime(instruments=[spans := Spans()])
    rt.add(read_carried, id="read", isolation="process", read_only=True)
    outcome = rt.call_sync("read", id="mine") if blocking else asyncio.run(rt.call("read", id="mine"))  # type: ignore[arg-type]
    assert outcome.value == '{"TRACEPARENT": "mine/1"}'
    assert spans.made == ["- > mine", "mine > read#1"]
    assert carried() == {}
    asyncio.run(rt.close())


@pytest.mark.parametrize("blocking", [False, True])
def test_a_program_gets_what_instruments_send_along_in_its_environment(blocking: bool) -> None:
    show = "import json, os; print(json.dumps(os.environ.get('TRACEPARENT')))"
    manifest = {"tools": {"show": {"entrypoint": {"command": [sys.executable, "-c", show]}, "read_only": True}}}
    rt = Runtime(manifest, instruments=[Spans()])
    outcome = rt.call_sync("show", id="mine") if blocking else asyncio.run(rt.call("show", id="mine"))  # type: ignore[arg-type]
    assert outcome.value == "mine/1", outcome
    bare = Runtime(manifest)
    assert bare.call_sync("show").value is None
    asyncio.run(rt.close())
    asyncio.run(bare.close())


# --- adding, removing, failing --------------------------------------------------------------------------------------------


@real
async def test_tools_leave_the_fast_path_while_there_is_an_instrument() -> None:
    rt = Runtime()
    before = rt.add(see, id="before", read_only=True)
    tools = rt._engine.toolbox.tools
    assert tools["before"].closed_ticket is not None
    first, second = Spans(), Spans()
    remove, remove_other = rt.instrument(first), rt.instrument(second)
    after = rt.add(see, id="after", read_only=True)
    assert [tool.closed_ticket for tool in tools.values()] == [None, None]
    assert (await before(), await after()) == ("before#1", "after#1")
    remove()
    assert [tool.closed_ticket for tool in tools.values()] == [None, None]
    await before()
    assert (len(first.made), len(second.made)) == (4, 6)
    remove_other()
    remove_other()
    assert None not in [tool.closed_ticket for tool in tools.values()]
    assert (await before(), await after()) == ("-", "-")
    assert (len(first.made), len(second.made)) == (4, 6)


@real
async def test_removing_an_instrument_of_a_closed_runtime_opens_nothing() -> None:
    rt = Runtime()
    rt.add(see, id="see", read_only=True)
    remove = rt.instrument(Spans())
    await rt.close()
    remove()
    assert rt._engine.toolbox.tools["see"].closed_ticket is None


@virtual
async def test_an_instrument_that_raises_breaks_no_call_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Instrument):
        def turn(self, turn: TurnInfo) -> Any:
            raise RuntimeError("no turns")

        def call(self, call: CallInfo) -> Any:
            raise RuntimeError("no calls")

        def attempt(self, call: CallInfo, number: int) -> Any:
            raise RuntimeError("no attempts")

    rt = Runtime(instruments=[Broken(), spans := Spans()])
    rt.add(see, id="see", read_only=True)
    with caplog.at_level(logging.ERROR, "failsoft"):
        async with rt.turn(id="turn") as turn:
            turn.call("see", id="mine")
    assert turn.report.results == {"mine": "see#1"}
    assert spans.made == ["- > turn", "turn > mine", "mine > see#1"]
    assert [record.getMessage().splitlines()[0] for record in caplog.records] == [
        f"instrument {Broken.__qualname__} failed; calls go on without it"
    ]


@pytest.mark.parametrize("wrong", [3, Spans, print])
def test_an_object_that_is_no_instrument_is_refused(wrong: Any) -> None:
    right = "give an instance of it" if wrong is Spans else "give an instance of a subclass of failsoft.Instrument"
    with pytest.raises(ManifestError, match=right):
        Runtime(instruments=[wrong])


# --- runs of agent frameworks, events, sinks ------------------------------------------------------------------------------


class Run:
    """A framework's object for a run."""


@virtual
async def test_a_run_of_an_agent_framework_has_a_turn_hook_in_a_context_of_its_own() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    run = Run()
    turn = rt.agent_run(run)
    assert turn is not None
    assert spans.made == [f"- > {turn.id}"]
    assert SPAN.get() == "-"
    assert rt.agent_run(run) is turn
    rt.end_agent_run(run)
    rt.end_agent_run(run)
    assert spans.ended == [(turn.id, None)]


@virtual
async def test_a_call_of_a_run_finds_the_turn_and_its_notes() -> None:
    class Notes(Instrument):
        def turn(self, turn: TurnInfo) -> None:
            turn.notes[self] = "noted"

        def call(self, call: CallInfo) -> None:
            seen.append((call.turn and call.turn.notes[self], call.turn and call.turn.surrounds, call.description))

    seen: list[Any] = []
    rt = Runtime(instruments=[Notes()])
    run = Run()

    async def find(arguments: dict[str, Any]) -> str:
        """Find things."""
        return "found"

    await rt.run("find", {}, {"find": find}, turn=rt.agent_run(run))
    rt.add(see, id="see", read_only=True)
    async with rt.turn():
        await rt.call("see")
    await rt.call("see")
    assert seen == [("noted", False, ""), ("noted", True, ""), (None, None, "")]


@virtual
async def test_the_hook_of_a_run_that_was_freed_is_left_before_the_next_call_and_not_by_the_finaliser() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    rt.add(see, id="see", read_only=True)
    run = Run()
    turn = rt.agent_run(run)
    assert turn is not None
    del run
    assert turn.over
    assert spans.ended == []
    await rt.call("see", id="mine")
    assert spans.ended[0] == (turn.id, None)


@virtual
async def test_closing_a_runtime_leaves_the_hooks_of_all_runs() -> None:
    spans = Spans()
    rt = Runtime(instruments=[spans])
    open_run, freed = Run(), Run()
    turns = [rt.agent_run(open_run), rt.agent_run(freed)]
    del freed
    await rt.close()
    assert {name for name, _ in spans.ended} == {turn.id for turn in turns if turn is not None}


@virtual
async def test_an_instrument_learns_the_events_of_a_call_while_it_runs() -> None:
    class Events(Spans):
        def event(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
            self.made.append(f"{event_type} of {call.candidate} in {SPAN.get()}")

    rt = Runtime(instruments=[spans := Events()])
    rt.add(Scripted(RESET, DOWN), id="search", read_only=True, retry={"max_attempts": 2}, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache", read_only=True)
    await rt.call("search", id="mine")
    assert spans.made == [
        "- > mine",
        "mine > search#1",
        "ToolError of search in mine",
        "mine > search#2",
        "ToolError of search in mine",
        "FallbackUsed of search in mine",
        "mine > cache#3",
        "CallSucceeded of cache in mine",
    ]


@virtual
async def test_an_instrument_that_raises_at_an_event_breaks_no_call() -> None:
    class Broken(Instrument):
        def event(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
            raise RuntimeError("no events")

    rt = Runtime(instruments=[Broken()])
    rt.add(see, id="see", read_only=True)
    assert (await rt.call("see")).status == "succeeded"


@real
async def test_the_sink_of_an_instrument_gets_all_events_until_the_instrument_is_removed() -> None:
    class Sink:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def write(self, batch: Any) -> None:
            self.seen += [event.event_type for event in batch]

        def close(self) -> None:
            self.seen.append("closed")

    class Counting(Instrument):
        def sink(self, metrics: Any) -> Any:
            assert metrics.label("see") == "_unknown"  # not registered yet
            return sink

    sink = Sink()
    rt = Runtime()
    remove = rt.instrument(Counting())
    rt.add(see, id="see", read_only=True)
    await rt.call("see")
    assert await rt.flush("5s")
    assert sink.seen == ["CallSucceeded"]
    remove()
    await rt.call("see")
    await rt.flush("5s")
    assert sink.seen == ["CallSucceeded", "closed"]


OPENED: ContextVar[str] = ContextVar("opened", default="-")


def open_here(found: Mapping[str, str]) -> None:
    OPENED.set(found["TRACEPARENT"])


def fail_to_open(found: Mapping[str, str]) -> None:
    raise RuntimeError("cannot open")


def read_opened() -> str:
    return OPENED.get()


@pytest.mark.parametrize("opener", ["open_here", "fail_to_open", "missing"])
def test_a_worker_process_calls_the_opener_in_the_context_of_the_tool(opener: str) -> None:
    class Opening(Spans):
        pass

    Opening.opener = f"{__name__}:{opener}"
    rt = Runtime(instruments=[Opening()])
    rt.add(read_opened, isolation="process", read_only=True)
    assert rt.call_sync("read_opened", id="mine").value == ("mine/1" if opener == "open_here" else "-")
    asyncio.run(rt.close())
