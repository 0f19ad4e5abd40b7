"""The fast path gives the same results as the full path: every story runs on both and is compared."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.fakes import AUTH, DOWN, OFTEN, RESET, Scripted, Takes, virtual

from failsoft import CallFailed, Runtime, partial
from failsoft.core.model import builtin_faults
from failsoft.observe.recorder import BATCH
from failsoft.runtime.fastpath import retry as short_way
from failsoft.runtime.tools.known_errors import MOST_KNOWN, KnownError, look_up
from failsoft.testing import virtual_time

Story = Callable[[Runtime, Any], Coroutine[Any, Any, Any]]
RETRY = {"max_attempts": 4, "initial_delay": "100ms", "jitter_percent": 0}
AT_ONCE = {**RETRY, "initial_delay": "0s"}
WORKS = [RESET, "known by now"]  # the first time goes the long way
TWICE = [RESET, RESET, "a"]


async def call(rt: Runtime, search: Any) -> list[Any]:
    """The values or errors of three calls."""
    results: list[Any] = []
    for _ in range(3):
        try:
            results.append(await search())
        except CallFailed as failed:
            results.append(failed.outcome.to_dict())
    return results


async def call_by_name(rt: Runtime, search: Any) -> list[Any]:
    return [(await rt.call(search)).to_dict() for _ in range(3)]


async def be_cancelled(rt: Runtime, search: Any) -> list[bool]:
    await search()
    task = asyncio.create_task(search())
    await asyncio.sleep(0.05)
    task.cancel()
    done = await asyncio.gather(task, return_exceptions=True)
    return [isinstance(one, asyncio.CancelledError) for one in done]


class Ends(BaseException):
    """Wants the program to end."""


async def be_left(rt: Runtime, search: Any) -> str:
    """The tool itself ends the call, before it has suspended."""
    await search()
    try:
        await search()
    except (asyncio.CancelledError, Ends) as left:
        return type(left).__name__
    return ""


async def be_marked(rt: Runtime, search: Any) -> Any:
    """The tool is taken away while a retry waits."""
    await search()
    task = asyncio.create_task(rt.call(search))
    await asyncio.sleep(0.05)
    search.__failsoft__.mark_unavailable(builtin_faults.unknown_tool("search", []))
    return (await task).to_dict()


async def side_by_side(rt: Runtime, search: Any) -> list[Any]:
    await search()
    return [one.to_dict() for one in await asyncio.gather(*(rt.call(search) for _ in range(4)))]


async def forget(rt: Runtime, search: Any) -> list[Any]:
    await search()
    assert rt.memory.forget() == 1
    return await call(rt, search)


async def days(rt: Runtime, search: Any) -> list[Any]:
    """So many episodes that the memory quotes them."""
    results = []
    for _ in range(6):
        results += await call(rt, search)
        await asyncio.sleep(7200)
    return results


STORIES: dict[str, tuple[Story, list[Any], dict[str, Any]]] = {
    "a retry works": (call, [*WORKS, *TWICE, RESET, "b"], {}),
    "a retry works at once": (call, [*WORKS, *TWICE, RESET, "b"], {"retry": AT_ONCE}),
    "by name": (call_by_name, [*WORKS, *TWICE, RESET, "b"], {"retry": AT_ONCE}),
    "without a budget": (call, [*WORKS, *TWICE, RESET, "b"], {"retry": {**AT_ONCE, "budget": False}}),
    "without a deadline": (call, [*WORKS, RESET, Takes(1, RESET), Takes(1, "a")], {"timeout": None}),
    "all attempts fail": (call, [*WORKS, RESET], {"breaker": OFTEN}),
    "all attempts fail at once": (call, [*WORKS, RESET], {"breaker": OFTEN, "retry": AT_ONCE}),
    "time is up": (call, [*WORKS, Takes(0.9, RESET)], {"breaker": OFTEN}),
    "another error": (call, [*WORKS, RESET, DOWN, RESET, "a"], {}),
    "a permanent error": (call, [*WORKS, RESET, RESET, AUTH], {}),
    "the circuit opens": (call, [*WORKS, RESET], {"breaker": {"failure_threshold": 3}}),
    "the circuit opens at once": (call, [*WORKS, RESET], {"breaker": {"failure_threshold": 3}, "retry": AT_ONCE}),
    "failures of two calls": (call, [*WORKS, RESET, RESET, RESET, AUTH, RESET, "a"], {"retry": AT_ONCE}),
    "the budget is spent": (days, [*WORKS, *[RESET] * 400], {"breaker": OFTEN, "retry": AT_ONCE}),
    "the tool suspends": (call, [*WORKS, RESET, Takes(0.2, RESET), Takes(0.2, "a")], {"retry": AT_ONCE}),
    "the tool hangs": (call, [*WORKS, RESET, Takes(99), "a"], {"timeout": "1s"}),
    "the result is partial": (call, [*WORKS, RESET, partial(1, missing="2"), "a"], {}),
    "the result is good enough": (call, [*WORKS, RESET, partial(1, missing="2"), "a"], {"accept_partial": True}),
    "the caller leaves while waiting": (be_cancelled, [*WORKS, RESET, "a"], {}),
    "the caller leaves": (be_cancelled, [*WORKS, RESET, Takes(9, "a")], {"retry": AT_ONCE}),
    "the tool leaves at once": (be_left, [*WORKS, RESET, asyncio.CancelledError()], {"retry": AT_ONCE}),
    "the program ends": (be_left, [*WORKS, RESET, Ends()], {"retry": AT_ONCE}),
    "the tool goes away": (be_marked, [*WORKS, RESET, "a"], {}),
    "calls side by side": (side_by_side, [*WORKS, RESET, RESET, RESET, RESET, "a"], {"breaker": OFTEN}),
    "calls side by side open the circuit": (side_by_side, [*WORKS, RESET], {}),
    "the memory is dropped": (forget, [*WORKS, *TWICE, RESET, "b", RESET, "c"], {}),
    "the memory quotes": (days, [step for _ in range(18) for step in (RESET, "a")], {}),
    "classified by the manifest": (
        call,
        [AUTH, "a", AUTH, AUTH, "b", AUTH, "c"],
        {"classification": [{"pattern": "Authentication", "as": "transient"}]},
    ),
}


def tell(story: str, *, known: bool, heeded: bool) -> dict[str, Any]:
    """The results of a story with and without known errors; with ``heeded``, a subscriber listens."""
    plot, steps, options = STORIES[story]
    tool = Scripted(*steps)

    async def play() -> dict[str, Any]:
        async with Runtime() as rt:
            search = rt.add(tool, id="search", **{"retry": RETRY, "read_only": True, **options})
            if not known:
                search.__failsoft__.known_errors = None
            heard: list[str] = []
            if heeded:
                rt.subscribe(lambda event: heard.append(event.event_type))
            result = await plot(rt, search)
            at_once = [*heard]  # before anybody looks
            return {
                "result": result,
                "events": [event.to_dict() for event in rt.events()],
                "metrics": {name: figure and round(figure, 6) for name, figure in rt.metrics("search").items()},
                "health": rt.health("search"),
                "memory": rt.memory.families(),
                "started": tool.started,
                "heard": at_once,
            }

    with virtual_time() as time:
        told: dict[str, Any] = time.run(play())
        return told


@pytest.mark.parametrize("heeded", [False, True])
@pytest.mark.parametrize("story", STORIES)
def test_both_ways_tell_the_same_story(story: str, heeded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[KnownError] = []
    monkeypatch.setattr(short_way, "look_up", noting(taken))
    long, short = tell(story, known=False, heeded=heeded), tell(story, known=True, heeded=heeded)
    assert taken, "nothing went the short way"
    for part in long:
        assert short[part] == long[part], part
    assert short["events"], "the stream says nothing"


def noting(taken: list[KnownError]) -> Callable[..., KnownError | None]:
    def noted(tool: Any, error: Exception) -> KnownError | None:
        known = look_up(tool, error)
        if known is not None:
            taken.append(known)
        return known

    return noted


# --- which errors are known -------------------------------------------------------------------------------------------


class Odd(ConnectionResetError):
    """Has more to say than its text."""

    def __init__(self, text: str, **more: Any) -> None:
        super().__init__(text)
        self.__dict__.update(more)


def numbered(error: OSError, number: int) -> OSError:
    error.errno = number
    return error


def caused(error: Exception, *, by: Exception | None = None, within: Exception | None = None) -> Exception:
    error.__cause__, error.__context__ = by, within
    return error


@virtual
async def test_an_error_is_known_by_type_and_text_alone() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Odd("lost"), "a"), id="search", read_only=True)
    await search()
    tool = search.__failsoft__
    assert look_up(tool, Odd("lost")) is not None
    for other in (
        Odd("lost again"),
        Odd("lost", status=503),
        ConnectionResetError("lost"),
        Odd.__new__(Odd, ["cannot be looked up"]),
        numbered(Odd("lost"), errno.EACCES),
        caused(Odd("lost"), by=RESET),
        caused(Odd("lost"), within=RESET),
    ):
        assert look_up(tool, other) is None, other


@virtual
async def test_the_number_of_known_errors_is_bounded() -> None:
    rt = Runtime()
    steps = [step for number in range(2 * MOST_KNOWN) for step in (ConnectionResetError(f"lost {number}"), "a")]
    search = rt.add(Scripted(*steps), id="search", read_only=True, retry={"budget": False})
    for _ in range(2 * MOST_KNOWN):
        await search()
    assert 0 < len(search.__failsoft__.known_errors) <= MOST_KNOWN


class Judge:
    async def handle(self, report: Any) -> Any:
        return None


SPECIAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a handler": ({"error_handler": Judge()}, {}),
    "a policy": ({"policies": [{"name": "all", "when": {}, "then": {"strategy": "retry"}}]}, {}),
    "a memory that acts": ({"memory": "act"}, {}),
    "a fallback": ({}, {"fallbacks": ["backup"]}),
    "a retry rule": ({}, {"retry": {"rules": [{"handle_errors": ["UNAVAILABLE"], "max_attempts": 3}]}}),
    "calls are counted": ({}, {"breaker": {"count": "calls"}}),
    "a limit": ({}, {"concurrency": 2}),
    "a callable classifies": ({}, {"classification": [lambda error: None]}),
}


@pytest.mark.parametrize("special", SPECIAL)
def test_errors_are_not_remembered_if_other_settings_affect_the_decision(special: str) -> None:
    settings, options = SPECIAL[special]

    async def play() -> None:
        rt = Runtime(**settings)
        rt.add(Scripted("b"), id="backup")
        search = rt.add(Scripted(RESET, "a"), id="search", **{"read_only": True, **options})
        assert await search() == "a"
        assert not search.__failsoft__.known_errors

    with virtual_time() as time:
        time.run(play())


@virtual
async def test_calls_with_a_turn_a_tenant_or_their_own_options_make_no_error_known() -> None:
    rt = Runtime()
    search = rt.add(Scripted(*[RESET, "a"] * 3), id="search", read_only=True)
    async with rt.turn() as turn:
        turn.call("search")
    await rt.call("search", tenant="t")
    await rt.call("search", retry={"max_attempts": 2})
    assert rt.metrics("search")["retry_count"] == 3
    assert not search.__failsoft__.known_errors


@virtual
async def test_an_error_with_a_hint_does_not_become_known() -> None:
    rt = Runtime()
    search = rt.add(Scripted(RuntimeError("429 too many requests, retry after 1s"), "a"), id="search", read_only=True)
    await search()
    assert rt.metrics("search")["retry_count"] == 1
    assert not search.__failsoft__.known_errors


@virtual
async def test_errors_with_masked_text_are_not_remembered() -> None:
    rt = Runtime()
    search = rt.add(Scripted(ConnectionResetError("lost, password=hunter2hunter2"), "a"), id="search", read_only=True)
    await search()
    assert rt.metrics("search")["retry_count"] == 1
    assert not search.__failsoft__.known_errors


@virtual
async def test_an_error_with_an_errno_does_not_become_known() -> None:
    rt = Runtime()
    errors = [numbered(Odd("lost"), errno.ECONNRESET)]

    async def search() -> str:
        if errors:
            raise errors.pop()
        return "a"

    guarded = rt.add(search, read_only=True)
    await guarded()
    assert rt.metrics("search")["retry_count"] == 1
    assert not guarded.__failsoft__.known_errors


@virtual
async def test_retries_as_a_fallback_do_not_make_an_error_known() -> None:
    """A fallback has its own retry rules, here one that repeats a permanent error."""
    rt = Runtime()
    backup = rt.add(Scripted(AUTH, "a", AUTH, "b"), id="backup", read_only=True)
    rule = {"rules": [{"handle_errors": ["UNAUTHENTICATED"], "max_attempts": 3}], "initial_delay": "0s"}
    search = rt.add(Scripted(AUTH), id="search", read_only=True, fallbacks=[{"tool": "backup", "retry": rule}])
    assert await search() == "a"
    outcome = await rt.call(backup)
    assert (outcome.status, outcome.attempts) == ("failed", 1)


# --- callers that leave -----------------------------------------------------------------------------------------------


@virtual
async def test_records_of_cancelled_callers_do_not_accumulate() -> None:
    rt = Runtime()
    search = rt.add(Scripted(*WORKS, Takes(9)), id="search", read_only=True)
    await search()
    for _ in range(BATCH + 10):
        task = asyncio.create_task(search())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(rt._engine.log.trace.pending) <= BATCH


@pytest.mark.parametrize("by_name", [False, True])
def test_listeners_hear_at_once_of_a_caller_that_leaves(by_name: bool) -> None:
    async def play() -> None:
        rt = Runtime()
        search = rt.add(Scripted(Takes(9)), id="search", read_only=True)
        heard: list[str] = []
        rt.subscribe(lambda event: heard.append(event.event_type))
        task = asyncio.ensure_future(rt.call("search") if by_name else search())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert heard == ["CallCancelled"]

    with virtual_time() as time:
        time.run(play())


@virtual
async def test_the_tool_itself_can_see_its_failures() -> None:
    rt = Runtime()
    seen: list[int] = []
    fails = [True, False, True, True, False]

    async def search() -> str:
        seen.append(rt.health("search").failure_count)
        if fails.pop(0):
            raise ConnectionResetError("lost")
        return "a"

    guarded = rt.add(search, read_only=True, retry=AT_ONCE)
    await guarded()
    await guarded()
    assert seen == [0, 1, 0, 1, 2]
    assert rt.health("search").failure_count == 0
