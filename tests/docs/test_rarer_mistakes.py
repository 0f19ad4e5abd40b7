"""Mistakes that are rarer, or that only half an answer was given to. None is silent: each is answered."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import logging
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import failsoft
from failsoft import FailsoftError, Runtime
from failsoft.adapters.plain import run_tool_calls
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.runtime.registry import _log_misuse as misuse_log
from failsoft.surfaces.cli import cli


@pytest.fixture(autouse=True)
def _each_mistake_is_new() -> None:
    misuse_log.cache_clear()


async def search(city: str = "Paris") -> str:
    return city


async def unannotated(city):  # type: ignore[no-untyped-def]
    return str(city)


def runtime() -> Runtime:
    rt = Runtime()
    rt.add(search, read_only=True)
    rt.add(unannotated, read_only=True)
    return rt


def ran(mistake: Callable[[], Any]) -> Any:
    made = mistake()
    return asyncio.run(made) if asyncio.iscoroutine(made) else made


def refusal(mistake: Callable[[], Any]) -> str:
    with pytest.raises((FailsoftError, TypeError, KeyError, ValueError, AttributeError)) as refused:
        ran(mistake)
    return str(refused.value)


def warned(mistake: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING, "failsoft"):
        ran(mistake)
        flush_log(5)
    return caplog.text


# --- conditions ---------------------------------------------------------------------------------------------------------


def ended(status: str) -> Any:
    rt = runtime()
    return rt.call_sync("search", {"city": "x"} if status == "succeeded" else {"city": [3]})


STATUSES: list[tuple[str, Callable[[Any], bool], str]] = [
    ("succeeded", lambda outcome: outcome.status == "success", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status != "ok", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status == "SUCCEEDED", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status in ("done", "complete"), 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status == True, "like 'succeeded'"),  # noqa: E712
    ("failed", lambda outcome: outcome.status == "error", 'did you mean "failed"?'),
    ("failed", lambda outcome: outcome.status == "failure", 'did you mean "failed"?'),
    ("failed", lambda outcome: outcome.status == "timeout", 'did you mean "timed_out"?'),
    ("failed", lambda outcome: outcome.status == "timed-out", 'did you mean "timed_out"?'),
    ("failed", lambda outcome: outcome.status == "canceled", 'did you mean "cancelled"?'),
]


@pytest.mark.parametrize(("status", "compare", "right"), STATUSES)
def test_a_status_that_there_is_not(
    status: str, compare: Callable[[Any], bool], right: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = ended(status)
    said = warned(lambda: compare(outcome), caplog)
    assert "outcome.status: ==" in said
    assert right in said


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_status_is_a_text(status: str, caplog: pytest.LogCaptureFixture) -> None:
    found = ended(status).status

    def use() -> None:
        assert found == status == found
        assert found != "skipped"
        assert found != "pending"
        assert found in ("skipped", status)
        assert {found: 1}[status] == 1
        assert json.dumps([found]) == json.dumps([status])
        for copied in (copy.deepcopy(found), pickle.loads(pickle.dumps(found)), ended(status).to_dict()["status"]):
            assert (type(copied), copied) == (str, status)

    assert "never true" not in warned(use, caplog)


def test_a_method_as_a_condition(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        rt = runtime()
        async with rt.turn() as turn:
            handle = turn.call("search")
            for method in (rt.running, handle.done):
                assert method  # type: ignore[truthy-bool]

    said = warned(ask, caplog)
    assert "Runtime.running: a method is always true: write running()" in said
    assert "Handle.done: a method is always true: write done()" in said


def test_methods_that_are_called_are_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        rt = runtime()
        assert not rt.running()
        assert str(inspect.signature(rt.running)) == "(self) -> 'list[RunningCall]'"
        async with rt.turn() as turn:
            handle = turn.call("search")
            assert not handle.done()
            await handle
            assert handle.done()

    assert "always true" not in warned(ask, caplog)


# --- values that are not there yet --------------------------------------------------------------------------------------


async def an_open_outcome() -> None:
    async with runtime().turn() as turn:
        _ = turn.call("search").outcome.value  # type: ignore[union-attr]


def test_the_outcome_of_an_open_call() -> None:
    said = refusal(an_open_outcome)
    assert "'NoneType' object has no attribute 'value'" in said
    assert "if this is handle.outcome, it is None until the call has ended; await the handle" in said


def unfinished(tool: str, make: Callable[[], Any]) -> Callable[[], Any]:
    async def call() -> Any:
        given = make()
        try:
            return await runtime().call(tool, {"city": given})
        finally:
            given.close() if inspect.iscoroutine(given) else given.cancel()

    return call


MAKES: list[tuple[str, Callable[[], Any]]] = [
    ("Task", lambda: asyncio.ensure_future(search())),
    ("Future", lambda: asyncio.get_running_loop().create_future()),
    ("coroutine", search),
]


@pytest.mark.parametrize(("kind", "make"), MAKES)
def test_a_call_with_a_task_in_place_of_its_result(kind: str, make: Callable[[], Any]) -> None:
    outcome = ran(unfinished("search", make))
    assert outcome.attempts == 0
    assert f"city is a {kind}, not its result: write await before it." in outcome.fault.message


@pytest.mark.parametrize(("kind", "make"), MAKES)
def test_a_task_for_a_parameter_without_annotation(
    kind: str, make: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    said = warned(unfinished("unannotated", make), caplog)
    assert f"unannotated: city is a {kind}, not its result: write await before it" in said


def test_a_tool_may_take_a_task(caplog: pytest.LogCaptureFixture) -> None:
    async def follow(task: asyncio.Task[str]) -> str:
        return await task

    async def call() -> None:
        rt = Runtime()
        rt.add(follow, read_only=True)
        assert (await rt.call("follow", {"task": asyncio.create_task(search())})).value == "Paris"

    assert "not its result" not in warned(call, caplog)


def test_progress_may_be_awaited() -> None:
    async def work() -> str:
        await failsoft.progress("half")
        return "done"

    async def call() -> Any:
        rt = Runtime()
        rt.add(work, read_only=True)
        return await rt.call("work")

    assert ran(call).value == "done"


# --- in the body of a turn ----------------------------------------------------------------------------------------------


def in_a_turn(use: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    async def mistake() -> None:
        async with runtime().turn() as turn:
            made = use(turn, turn.call("search"))
            if inspect.isawaitable(made):
                await made

    return mistake


async def await_the_method(_: Any, handle: Any) -> None:
    await handle.value


NOT_AWAITABLE = (
    "object method can't be used in 'await' expression"
    if sys.version_info < (3, 14)
    else "'method' object can't be awaited"
)

BODIES: list[tuple[Callable[[Any, Any], Any], str, str]] = [
    (lambda turn, handle: handle < 3, "'<' not supported between instances of 'Handle'", "await handle.value()"),
    (lambda turn, handle: "x" + handle, 'can only concatenate str (not "Handle")', "await handle.value()"),
    (lambda turn, handle: json.dumps([handle]), "Handle is not JSON serializable", "await handle.value()"),
    (lambda turn, handle: dict(**handle), "must be a mapping, not Handle", "await handle.value()"),
    (await_the_method, NOT_AWAITABLE, "`await handle.value()`, with brackets"),
    (lambda turn, handle: turn.results, "'Turn' object has no attribute 'results'", "write turn.report.results"),
    (lambda turn, handle: turn.message, "'Turn' object has no attribute 'message'", "write turn.report.message"),
    (lambda turn, handle: turn.call_sync("search"), "no attribute 'call_sync'", "write turn.call, and await the handle"),
    (lambda turn, handle: turn.call({"tool": "search"}), "is not a tool of this Runtime, but a value of type dict", "apart"),
    (lambda turn, handle: turn.call(search), "the function that rt.add() was given, without its guard", "'search'"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "wrong", "right"), BODIES, ids=[wrong for _, wrong, _ in BODIES])
def test_in_the_body_of_a_turn(use: Callable[[Any, Any], Any], wrong: str, right: str) -> None:
    said = refusal(in_a_turn(use))
    assert wrong in said
    assert right in said


def test_a_type_error_about_other_things_is_left_alone() -> None:
    assert refusal(in_a_turn(lambda *_: 1 + "x")) == "unsupported operand type(s) for +: 'int' and 'str'"  # type: ignore[operator]
    assert refusal(in_a_turn(lambda *_: None.price)) == "'NoneType' object has no attribute 'price'"  # type: ignore[attr-defined]


# --- what tools return --------------------------------------------------------------------------------------------------


async def forgets_await() -> Any:
    return search()


async def starts_a_task() -> Any:
    return asyncio.ensure_future(search())


async def returns_a_fault() -> Any:
    return failsoft.classify("503 Service Unavailable")


def called_by(way: str, fn: Callable[..., Any]) -> Callable[[], Any]:
    async def call() -> Any:
        rt = Runtime()
        rt.add(fn, read_only=True, retry={"max_attempts": 1})
        if way == "call":
            return await rt.call(fn.__name__)
        if way == "with an id":
            return await rt.call(fn.__name__, id="a")
        async with rt.turn() as turn:
            return await turn.call(fn.__name__)

    return call


WAYS = ["call", "with an id", "turn"]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_returns_a_coroutine(way: str) -> None:
    outcome = ran(called_by(way, forgets_await))
    assert (outcome.status, outcome.fault.category) == ("failed", "internal_contract_bug")
    assert outcome.fault.message == "forgets_await returned a coroutine, which is not protected: write await before it"


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_returns_a_task(way: str, caplog: pytest.LogCaptureFixture) -> None:
    said = warned(called_by(way, starts_a_task), caplog)
    assert "starts_a_task: it returned a Task, not its result: write await before it" in said


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_returns_a_fault(way: str) -> None:
    outcome = ran(called_by(way, returns_a_fault))
    assert (outcome.status, outcome.fault.code) == ("failed", "UNAVAILABLE")


# --- calls and names ----------------------------------------------------------------------------------------------------


async def with_a_handle(tool: str) -> Any:
    rt = runtime()
    async with rt.turn() as turn:
        handle = turn.call("search")
    return await rt.call(tool, {"city": handle})


def test_a_handle_of_a_turn_that_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    wrong = "city is the handle of the call 'search-1', and a function needs its value: give `await handle.value()`"
    outcome = ran(lambda: with_a_handle("search"))
    assert outcome.status == "failed"
    assert wrong in outcome.fault.message
    assert f"unannotated: {wrong}" in warned(lambda: with_a_handle("unannotated"), caplog)


async def with_the_text_of_an_outcome(way: str) -> None:
    rt = runtime()
    given = {"city": f"near {await rt.call('search')}"}
    if way == "call":
        await rt.call("search", given)
    else:
        async with rt.turn() as turn:
            turn.call("search", given)


@pytest.mark.parametrize("way", ["call", "turn"])
def test_the_text_of_an_outcome_as_an_argument(way: str, caplog: pytest.LogCaptureFixture) -> None:
    said = warned(lambda: with_the_text_of_an_outcome(way), caplog)
    assert "search: city has the text of an Outcome in it: use outcome.value, or outcome.unwrap()" in said


def succeeded() -> Any:
    return ended("succeeded")


def the_report() -> Any:
    async def make() -> Any:
        async with runtime().turn() as turn:
            turn.call("search")
        return turn.report

    return asyncio.run(make())


NAMES: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: succeeded().error, "'Outcome' object has no attribute 'error'", "write outcome.fault"),
    (lambda: succeeded().result, "'Outcome' object has no attribute 'result'", "write outcome.value"),
    (lambda: succeeded().ok, "'Outcome' object has no attribute 'ok'", 'write outcome.status == "succeeded"'),
    (lambda: failsoft.classify("503").status_code, "no attribute 'status_code'", "write fault.http_status"),  # type: ignore[attr-defined]
    (lambda: failsoft.classify("503").kind, "'Fault' object has no attribute 'kind'", "write fault.code"),  # type: ignore[attr-defined]
    (lambda: the_report().ok, "'TurnReport' object has no attribute 'ok'", "write not report.failures"),
    (lambda: the_report().errors, "'TurnReport' object has no attribute 'errors'", "write report.failures"),
    (lambda: runtime().health("search").open, "no attribute 'open'", 'write health.state == "open"'),  # type: ignore[attr-defined]
    (lambda: runtime().metrics("search").error_count, "no attribute 'error_count'", "write metrics['error_count']"),  # type: ignore[attr-defined]
    (lambda: runtime().retry("search"), "'Runtime' object has no attribute 'retry'", "rt.threads["),  # type: ignore[attr-defined]
    (lambda: runtime().wrap_tool_call, "'Runtime' object has no attribute 'wrap_tool_call'", "FailsoftMiddleware(rt)"),  # type: ignore[attr-defined]
    (lambda: runtime().call_sync({"tool": "search"}), "is not a tool of this Runtime, but a value of type dict", "apart"),  # type: ignore[call-overload]
    (lambda: runtime().call({"tool": "search"}), "is not a tool of this Runtime, but a value of type dict", "apart"),  # type: ignore[call-overload]
    (lambda: runtime().call(search), "the function that rt.add() was given, without its guard", "name, 'search'"),
    (lambda: runtime().threads["a"].retry(succeeded()), "is not a tool of this Runtime, but a value of type Outcome", "name"),
    (lambda: failsoft.classify(succeeded()), "classify: got an Outcome", "outcome.fault is its classified failure"),
    (lambda: Runtime(trace="turn.html"), "trace: 'turn.html': events are written as JSON lines", "failsoft trace export"),
    (lambda: runtime().add(search, id="b", retries=[{"max_attempts": 2}]), "retries: is not known", 'error_handling: {"retries"'),  # type: ignore[call-arg]
    (lambda: run_tool_calls(runtime(), [{"tool": "search", "args": {}}]), "is not a tool call: pass", "message.tool_calls"),
    (lambda: run_tool_calls(runtime(), [{"name": "search", "input": {}}]), "is not a tool call: pass", "message.tool_calls"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "wrong", "right"), NAMES, ids=[f"{wrong}-{right}" for _, wrong, right in NAMES])
def test_calls_and_names(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def test_names_of_other_libraries_are_no_attributes() -> None:
    assert not hasattr(succeeded(), "error")
    assert not hasattr(failsoft.classify("503"), "status_code")
    assert failsoft.classify(b"503").http_status == 503  # type: ignore[arg-type]
    assert copy.deepcopy(runtime().metrics("search")) == runtime().metrics("search")


# --- commands -----------------------------------------------------------------------------------------------------------

COMMANDS = [
    (["why", ""], 2, "TURN is empty: write a turn's id, or leave it out for the last one"),
    (["trace", "show", " "], 2, "TURN is empty: write a turn's id, or leave it out for the last one"),
    (["run", "travel.py"], 2, "travel.py: this is Python code; a manifest or a plan is YAML or JSON"),
    (["run", "plan.yaml", "--manifest", "travel.py"], 2, "travel.py: this is Python code"),
    (["check", "travel.py"], 1, "travel.py: this is Python code; a manifest or a plan is YAML or JSON"),
    (["run", '{"calls": []}'], 2, "It looks like the content of a file: write it into one, or pipe it in and give -."),
]


@pytest.mark.parametrize(("command", "code", "said"), COMMANDS, ids=[" ".join(command) for command, *_ in COMMANDS])
def test_commands(command: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("failsoft.yaml").write_text("tools: {search: {read_only: true}}")
    Path("plan.yaml").write_text("calls: [{tool: search}]")
    Path("travel.py").write_text("def search():\n    return 1\n")
    answered = CliRunner().invoke(cli, command)
    assert (answered.exit_code, said in " ".join(answered.output.split())) == (code, True), answered.output
