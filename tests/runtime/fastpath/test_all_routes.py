"""Every story comes to the same on the fast path and on the full path, on every route by which a tool can be called.

Rules
-----
- A *story* is what the tool does, and what is declared and said about it. A *route* is how it is called. Each story runs
  twice on each route: as it is (the fast path, where it may be taken), and with ``output=object``, which every value has
  and which keeps a tool off the fast path.
- Results, metrics, health, memory and events are equal.
- Outcomes and metrics are also equal between routes, and with a listener. ``ROUTES_DIFFER`` has the exceptions and is
  exact: a difference that is gone must be removed from it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.fakes import AUTH, DOWN, INVALID, OFTEN, ONCE, RESET, Takes

import failsoft.runtime
from failsoft import CallFailed, Outcome, Runtime, classify, partial
from failsoft.adapters.plain import run_tool_calls
from failsoft.integration.framework_tool import ControlFlow
from failsoft.observe.events import Event
from failsoft.testing import VirtualClock, virtual_time

RETRY = {"max_attempts": 4, "initial_delay": "100ms", "jitter_percent": 0}
SHAKY = {"failure_threshold": 2, "timeout": "30s"}
READ: dict[str, Any] = {"read_only": True}
FULL = classify("503 Service Unavailable")


class Ends(BaseException):
    """Wants the program to end."""


class Inner(NamedTuple):
    """A step that calls another guarded tool, which plays this step."""

    step: Any


class Story(NamedTuple):
    """``steps`` of the tool, one per attempt, the last one for ever; ``said`` is about each call."""

    steps: tuple[Any, ...]
    options: Mapping[str, Any] = READ
    arguments: Mapping[str, Any] = {"city": "Bern"}
    said: Mapping[str, Any] = {}
    calls: int = 1
    rests: tuple[float, ...] = ()  # seconds before each call


STORIES: dict[str, Story] = {
    "succeeds at once": Story(("a",), calls=3),
    "succeeds after a suspension": Story((Takes(0.1, "a"),), calls=2),
    "fails twice, then succeeds": Story((RESET, RESET, "a") * 3, calls=3),
    "fails once after a suspension": Story((Takes(0.1, RESET), Takes(0.1, "a")) * 2, calls=2),
    "fails for good, transient": Story((DOWN,), READ | {"breaker": OFTEN}, calls=2),
    "fails for good, permanent": Story((INVALID,), calls=2),
    "fails for good, needs attention": Story((AUTH,)),
    "times out": Story((Takes(99),), READ | {"timeout": "1s", "retry": ONCE}),
    "takes long": Story((Takes(2, "a"),), calls=2),
    "takes long, undeclared": Story((Takes(2, "a"),), {}, calls=2),
    "takes long, then fails": Story((Takes(2, RESET), Takes(2, "a")) * 3, calls=3),
    "takes long, then fails, undeclared": Story((Takes(2, RESET), Takes(2, "a")) * 3, {}, calls=3),
    "takes long, then ends the program": Story((Takes(2, Ends()), "a"), calls=2),
    "takes long for a part": Story((Takes(2, partial(1, missing="2")), "a"), calls=2),
    "times out, then succeeds": Story((Takes(99), "a"), READ | {"timeout": "1s"}),
    "a failed outcome is returned": Story((Outcome("1", "inner", "failed", fault=FULL), Takes(0.1, "a")), calls=2),
    "a successful outcome is returned": Story((Outcome("1", "inner", "succeeded", "a"),), calls=2),
    "a part is returned": Story((partial(1, missing="2"), partial(1, missing="2"), DOWN)),
    "a part is accepted": Story((partial(1, missing="2"),), READ | {"accept_partial": True}, calls=2),
    "the circuit opens": Story((DOWN,), READ | {"breaker": SHAKY}),
    "an open circuit refuses": Story((DOWN,), READ | {"breaker": SHAKY, "retry": ONCE}, calls=4),
    "a probe succeeds": Story((DOWN, DOWN, "a"), READ | {"breaker": SHAKY, "retry": ONCE}, calls=5, rests=(0, 0, 31)),
    "a probe fails": Story((DOWN,), READ | {"breaker": SHAKY, "retry": ONCE}, calls=4, rests=(0, 0, 31)),
    "an inner call succeeds": Story((Inner("a"),), calls=2),
    "an inner call recovers": Story((Inner("a"), RESET, Inner("a")), calls=2),
    "an inner call fails": Story((Inner(INVALID),)),
    "an inner call of an undeclared tool": Story((Inner("a"), RESET, Inner("a")), {}, calls=2),
    "an inner call of a write": Story((Inner("a"), RESET), {"idempotent": False}, calls=2),
    "ends the program": Story((Ends(), "a"), calls=2),
    "ends the program after a suspension": Story((Takes(0.1, Ends()), "a"), calls=2),
    "ends the program on a retry": Story((RESET, Ends(), "a"), calls=2),
    "ends the program, undeclared": Story((Inner("a"), Ends(), "a"), {}, calls=3),
    "a framework's control flow": Story((ControlFlow(ValueError()), "a"), calls=2),
    "is cancelled": Story((asyncio.CancelledError(), "a"), calls=2),
    "bad arguments": Story(("a",), arguments={"planet": "Mars"}, calls=2),
    "a lost answer, undeclared": Story((RESET, "a") * 2, {}, calls=2),
    "a lost answer of an idempotent write": Story((RESET, "a") * 2, {"idempotent": True}, calls=2),
    "a lost answer of a write": Story((RESET, "a"), {"idempotent": False}, calls=2),
    "an undeclared success": Story(("a",), {}, calls=2),
    "a write succeeds": Story(("a",), {"idempotent": False}, calls=2),
    "without a deadline": Story((RESET, "a", "b"), READ | {"timeout": None}, calls=2),
    "in a thread": Story(("a", RESET, "a"), said={"thread": "chat"}, calls=2),
    "a loop in a thread": Story((INVALID,), said={"thread": "chat"}, calls=3),
    "for a tenant": Story(("a", RESET, "a"), said={"tenant": "acme"}, calls=2),
    "with an id": Story(("a", RESET, "a"), said={"id": "mine"}, calls=2),
}


class Stage:
    """A runtime with the story's tool, played by an async function or by one that blocks."""

    def __init__(self, story: Story, clock: VirtualClock, *, blocks: bool, foreign: bool, full: bool) -> None:
        self.story = story
        self.clock = clock
        self.rt = Runtime(random=random.Random(7))
        self.attempts = 0
        shape: dict[str, Any] = {"output": object} if full else {}
        self.inner_steps: list[Any] = []
        inner = self._inner_blocking if blocks else self._inner
        endless: dict[str, Any] = (
            {"timeout": None} if blocks else {}
        )  # a function that blocks has no fast path with one
        self.inner = self.rt.add(inner, id="inner", **READ, **shape, **endless)
        options = {"retry": RETRY, **endless, **story.options, **shape}
        if foreign:
            self.rt.declare("step", **options)
        else:
            self.guarded = self.rt.add(self.block if blocks else self.play, id="step", **options)
        for tool in ("step", "inner"):
            is_off = self.rt._engine.toolbox.tools[tool].closed_ticket is None  # the fast path needs one
            assert is_off is full, "this is not the path that is meant"

    def _next(self) -> Any:
        self.attempts += 1
        return self.story.steps[min(self.attempts, len(self.story.steps)) - 1]

    async def play(self, city: str = "Bern") -> Any:
        step = self._next()
        if isinstance(step, Takes):
            await asyncio.sleep(step.seconds)
            step = step.then
        if isinstance(step, Inner):
            self.inner_steps.append(step.step)
            return await self.inner()
        return _end(step)

    async def _inner(self) -> Any:
        return _end(self.inner_steps[-1])

    def block(self, city: str = "Bern") -> Any:
        step = self._next()
        if isinstance(step, Takes):
            self.clock.sleep(step.seconds)
            step = step.then
        if isinstance(step, Inner):
            self.inner_steps.append(step.step)
            return self.inner()
        return _end(step)

    def _inner_blocking(self) -> Any:
        return _end(self.inner_steps[-1])


def _end(step: Any) -> Any:
    if isinstance(step, BaseException):
        raise type(step)(*step.args)
    return step


# --- how the paths differ -----------------------------------------------------------------------------------------------

ROUTES_DIFFER: Mapping[tuple[str, str], str] = {  # story, route -> why it comes to something else there
    **{
        ("is cancelled", name): "in a turn, a tool that cancels itself is an outcome"
        for name in ("turn.call", "guarded function in a turn", "call by name in a turn", "run_plan")
    },
    **{
        ("bad arguments", name): "the framework has validated the arguments"
        for name in ("framework", "framework that blocks")
    },
    **{
        ("a framework's control flow", name): "the framework gets its own exception"
        for name in ("framework", "framework that blocks")
    },
    **{
        (story, name): "an undeclared tool counts as a write where a model asks for it"
        for story in (
            "an inner call of an undeclared tool",
            "a lost answer, undeclared",
            "takes long, then fails, undeclared",
        )
        for name in ("run_tool_calls", "framework", "framework that blocks")
    },
}


# --- routes -------------------------------------------------------------------------------------------------------------


class Route(NamedTuple):
    """How a tool is called; ``says`` are the options that a call can be given."""

    call: Callable[[Stage], Any]
    says: tuple[str, ...] = ()
    blocks: bool = False  # the tool is a function that blocks
    waits: bool = True  # the caller awaits
    foreign: bool = False  # the tool belongs to an agent framework


ROUTES: dict[str, Route] = {}


def route(name: str, *says: str, **shape: bool) -> Callable[[Callable[[Stage], Any]], None]:
    def enter(call: Callable[[Stage], Any]) -> None:
        ROUTES[name] = Route(call, says, **shape)

    return enter


@route("guarded function")
async def call_guarded(stage: Stage) -> Any:
    return await stage.guarded(**stage.story.arguments)


@route("guarded function that blocks", blocks=True, waits=False)
def call_guarded_blocking(stage: Stage) -> Any:
    return stage.guarded(**stage.story.arguments)


@route("call by name", "thread", "tenant", "id")
async def call_by_name(stage: Stage) -> Any:
    return await stage.rt.call("step", stage.story.arguments, **stage.story.said)


@route("call by function", "thread", "tenant", "id")
async def call_by_function(stage: Stage) -> Any:
    return await stage.rt.call(stage.guarded, stage.story.arguments, **stage.story.said)


@route("call by name of a function that blocks", "thread", "tenant", "id", blocks=True)
async def call_thread(stage: Stage) -> Any:
    return await stage.rt.call("step", stage.story.arguments, **stage.story.said)


@route("call_sync of a function that blocks", "thread", "tenant", "id", blocks=True, waits=False)
def call_sync(stage: Stage) -> Any:
    return stage.rt.call_sync("step", stage.story.arguments, **stage.story.said)


@route("call_sync of an async function", "thread", "tenant", "id", waits=False)
def call_sync_async(stage: Stage) -> Any:
    return stage.rt.call_sync("step", stage.story.arguments, **stage.story.said)


def around(stage: Stage) -> dict[str, Any]:
    """The options of a call, for routes through a turn."""
    return {name: value for name, value in stage.story.said.items() if name != "id"}


@route("turn.call", "thread", "tenant", "id")
async def call_in_turn(stage: Stage) -> Any:
    named = {name: value for name, value in stage.story.said.items() if name == "id"}
    async with stage.rt.turn(**around(stage)) as turn:
        handle = turn.call("step", stage.story.arguments, **named)
    return await handle


@route("guarded function in a turn", "thread", "tenant")
async def call_guarded_in_turn(stage: Stage) -> Any:
    async with stage.rt.turn(**around(stage)):
        return await stage.guarded(**stage.story.arguments)


@route("call by name in a turn", "thread", "tenant")
async def call_by_name_in_turn(stage: Stage) -> Any:
    async with stage.rt.turn(**around(stage)):
        return await stage.rt.call("step", stage.story.arguments)


@route("run_plan", "thread", "id")
async def call_by_plan(stage: Stage) -> Any:
    id = stage.story.said.get("id", "step-1")
    plan = {"calls": [{"id": id, "tool": "step", "args": dict(stage.story.arguments)}], **around(stage)}
    report = await stage.rt.run_plan(plan)
    return report.outcomes[id]


@route("run_tool_calls", "thread", "tenant", "id")
async def call_for_model(stage: Stage) -> Any:
    written = json.dumps(dict(stage.story.arguments))
    asked = {"id": stage.story.said.get("id", "c1"), "function": {"name": "step", "arguments": written}}
    return await run_tool_calls(stage.rt, [asked | {"type": "function"}], **around(stage))


@route("framework", "thread", "tenant", "id", foreign=True)
async def call_for_framework(stage: Stage) -> Any:
    runners = {"step": lambda given: stage.play(**given)}
    return await stage.rt.run("step", stage.story.arguments, runners, **stage.story.said)


@route("framework that blocks", "thread", "tenant", "id", foreign=True, blocks=True, waits=False)
def call_for_blocking_framework(stage: Stage) -> Any:
    runners = {"step": lambda given: stage.block(**given)}
    return stage.rt.run_sync("step", stage.story.arguments, runners, **stage.story.said)


def applies(story: str, name: str) -> bool:
    """False if a story cannot be expressed on a route, or does not happen there."""
    told, way = STORIES[story], ROUTES[name]
    if not told.said.keys() <= {*way.says}:
        return False
    if way.blocks and any(isinstance(step, Takes) and step.seconds > 1 for step in told.steps):
        return False  # two threads would race for the virtual clock
    return not (way.blocks and story == "is cancelled")


# --- playing ------------------------------------------------------------------------------------------------------------


@functools.cache
def play(story: str, name: str, *, full: bool, heard: bool = False) -> dict[str, Any]:
    """The result of a story on a route; with ``heard``, a subscriber listens and its events are compared."""
    told, way = STORIES[story], ROUTES[name]
    with virtual_time() as clock:
        stage = Stage(told, clock, blocks=way.blocks, foreign=way.foreign, full=full)
        events: list[Event] = []
        leave = stage.rt.subscribe(events.append) if heard else None
        if way.waits:
            results = clock.run(_await_all(stage, way))
        else:
            results = []
            for number in range(told.calls):
                clock.sleep(_rest(told, number))
                results.append(_result(lambda: way.call(stage)))
        if leave is not None:
            leave()  # waits for events that another thread is handing out
        return {
            "results": results,
            "metrics": {tool: _rounded(stage.rt.metrics(tool)) for tool in ("step", "inner")},
            "health": [_health(stage.rt, tool) for tool in ("step", "inner")],
            "memory": stage.rt.memory.families(),
            "attempts": stage.attempts,
            "events": [_rounded(event.to_dict()) for event in (events if heard else stage.rt.events())],
        }


async def _await_all(stage: Stage, way: Route) -> list[Any]:
    results = []
    for number in range(stage.story.calls):
        await asyncio.sleep(_rest(stage.story, number))
        running: Coroutine[Any, Any, Any] = way.call(stage)
        try:
            results.append(_shown(await running))
        except BaseException as error:
            results.append(_raised(error))
    await stage.rt.close()
    return results


def _rest(story: Story, number: int) -> float:
    return story.rests[number] if number < len(story.rests) else 0.0


def _result(call: Callable[[], Any]) -> Any:
    try:
        return _shown(call())
    except BaseException as error:
        return _raised(error)


def _shown(value: Any) -> Any:
    return _rounded(value.to_dict()) if isinstance(value, Outcome) else {"value": value}


def _raised(error: BaseException) -> Any:
    told = {"raised": type(error).__name__, "text": str(error)}
    return told | (_rounded(error.outcome.to_dict()) if isinstance(error, CallFailed) else {})


def _health(rt: Runtime, tool: str) -> tuple[Any, ...]:
    view = rt.health(tool)
    return view.state, view.failure_count, view.available


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value


# --- comparing ----------------------------------------------------------------------------------------------------------

IDS = ("id", "call_id", "inner_call_id", "parent_id")
Pairs = Iterator[tuple[str, Any, Any]]


def differences(fast: dict[str, Any], full: dict[str, Any]) -> set[str]:
    """The differences of a story on the fast path, in words; ids may differ if equal calls have equal ids."""
    found: set[str] = set()
    ids: set[tuple[str, str]] = set()
    for what, one, other in (*_results(fast, full), *_events(fast, full, found)):
        for name in one.keys() | other.keys():
            before, after = one.get(name, ...), other.get(name, ...)
            if isinstance(before, str) and isinstance(after, str) and name in IDS:
                ids.add((before, after))
            elif before != after:
                found.add(f"{what}.{name} {_how(before, after)}")
    if any(before != after for before, after in ids):
        found.add("ids are numbered or written otherwise")
    if len({before for before, _ in ids}) < len(ids) or len({after for _, after in ids}) < len(ids):
        found.add("ids belong to other calls")
    for tool, metrics in full["metrics"].items():
        changed = [name for name in metrics if metrics[name] != fast["metrics"][tool][name]]
        found |= {f"metrics of {tool}: {name} differs" for name in changed}
    return found | {f"{part} differs" for part in ("health", "memory", "attempts") if fast[part] != full[part]}


def _how(before: Any, after: Any) -> str:
    return "is missing" if before is ... else "is added" if after is ... else "is None" if before is None else "differs"


def _results(fast: dict[str, Any], full: dict[str, Any]) -> Pairs:
    assert len(fast["results"]) == len(full["results"])
    return (("result", one, other) for one, other in zip(fast["results"], full["results"], strict=True))


def _events(fast: dict[str, Any], full: dict[str, Any], found: set[str]) -> Pairs:
    """Pairs of events; those that only one of the paths has go into ``found``."""
    mine, theirs = ([event["event_type"] for event in told["events"]] for told in (fast, full))
    for tag, a, b, c, d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            for one, other in zip(fast["events"][a:b], full["events"][c:d], strict=True):
                number = {} if mine == theirs else {"seq": 0}
                yield one["event_type"], one | number, other | number
        else:
            found |= {f"{event_type} is added" for event_type in mine[a:b]}
            found |= {f"{event_type} is missing" for event_type in theirs[c:d]}


COPIES = {  # modules with an attempt or a record written out for speed -> the routes that run them
    "guarded.py": ("guarded function", "guarded function that blocks"),
    "call.py": ("call by name",),
    "retry.py": ("guarded function", "call by name"),
    "refusal.py": ("guarded function", "guarded function that blocks", "call by name"),
    "scheduler.py": ("turn.call", "run_plan"),
}


def test_every_copy_made_for_speed_has_its_routes() -> None:
    runtime = Path(failsoft.runtime.__file__).parent
    marked = {path.name for path in runtime.rglob("*/*.py") if "# FAST: " in path.read_text(encoding="utf-8")}
    assert marked == COPIES.keys()
    assert {name for names in COPIES.values() for name in names} <= ROUTES.keys()


def combinations() -> list[Any]:
    return [
        pytest.param(story, name, id=f"{name}: {story}") for name in ROUTES for story in STORIES if applies(story, name)
    ]


@pytest.mark.parametrize(("story", "name"), combinations())
def test_both_paths_tell_the_same_story(story: str, name: str) -> None:
    fast, full = play(story, name, full=False), play(story, name, full=True)
    assert fast["events"], "the stream says nothing"
    assert differences(fast, full) == set()


@pytest.mark.parametrize(("story", "name"), combinations())
def test_a_listener_changes_nothing(story: str, name: str) -> None:
    alone, heard = play(story, name, full=False), play(story, name, full=False, heard=True)
    for part in alone:
        assert heard[part] == alone[part], part


@pytest.mark.parametrize(("story", "name"), combinations())
def test_routes_agree(story: str, name: str) -> None:
    """A tool's failures, their outcomes and its metrics do not depend on how it is called."""
    here, there = play(story, name, full=True), play(story, "call by name", full=True)
    agree = all(here[part] == there[part] for part in ("metrics", "health", "memory", "attempts"))
    if name != "run_tool_calls":  # which gives messages
        agree = agree and all(map(_agrees, here["results"], there["results"]))
    assert agree is ((story, name) not in ROUTES_DIFFER), ROUTES_DIFFER.get((story, name), "the routes differ")


def _agrees(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two results say the same; a guarded function gives its value, or raises."""
    if "status" not in one and "status" not in other:
        return one == other
    return all(other.get(name) == value for name, value in one.items() if name not in ("id", "raised", "text"))
