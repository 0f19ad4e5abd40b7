"""Mistakes that newcomers make. None is silent: each is answered with the mistake and a correction."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from failsoft import Decision, FailsoftError, Override, RetryOptions, Runtime, classify, decide, in_thread
from failsoft.adapters.plain import run_tool_calls
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.surfaces.cli import cli
from failsoft.testing import FaultPlan, HttpError, virtual_time

Body = Callable[[Runtime, Any], Awaitable[Any]]


def get_price(city: str = "Paris") -> int:
    return len(city)


async def get_hotel(city: str = "Paris") -> str:
    return city


def runtime() -> Runtime:
    rt = Runtime()
    rt.add(get_price)
    rt.add(get_hotel)
    return rt


def refusal(mistake: Callable[[], Any]) -> str:
    """The text of the error that a mistake raises; coroutines are run."""
    try:
        made = mistake()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    except (FailsoftError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        return str(error)
    return "silent"


def holds(said: str, *parts: str) -> None:
    for part in parts:
        assert part in said


# --- options -----------------------------------------------------------------------------------------------------------

OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"retries": 3}, "retries: is not known here", 'write retry: {"max_attempts": 3}'),
    ({"max_retries": 3}, "max_retries: is not known here", 'write retry: {"max_attempts": 3}'),
    ({"max_attempts": 3}, "max_attempts: is not known here", 'write retry: {"max_attempts": 3}'),
    (
        {"retry": 3},
        "retry: expected RetryOptions or",
        'a mapping such as {"max_attempts": 3} ({"max_attempts": 1} turns retries off), got 3',
    ),
    ({"retry": False}, "retry: expected RetryOptions", '{"max_attempts": 1} turns retries off'),
    ({"retry": None}, "retry: expected RetryOptions", '{"max_attempts": 1} turns retries off'),
    ({"retry": {"max_attempts": None}}, "retry.max_attempts: None is not a whole number", "leave the key out"),
    ({"retry": {"max_attempts": 0}}, "retry.max_attempts: 0 is too small", "write 1 or more"),
    ({"retry": {"retries": 3}}, "retry.retries: is not known here", "write max_attempts"),
    ({"retry": {"backoff": 2}}, "retry.backoff: is not known here", "write initial_delay, multiplier"),
    ({"retry": {"timeout": "3s"}}, "retry.timeout: is not known here", "write max_total_time"),
    ({"retry": {"initial_delay": 5}}, "retry.initial_delay: 5 has no unit", 'write "5s"'),
    ({"timeout": 30}, "timeout: 30 has no unit", 'write "30s"'),
    ({"timeout": "soon"}, "timeout: 'soon' is not a duration", 'like "30s"'),
    ({"timeout": "-3s"}, "timeout: '-3s' is not a duration", 'like "30s"'),
    ({"timout": "3s"}, "timout: is not known here", "did you mean timeout"),
    ({"fallback": "b"}, "fallback: is not known here", "did you mean fallbacks"),
    ({"fallbaks": ["b"]}, "fallbaks: is not known here", "did you mean fallbacks"),
    ({"fallbacks": "b"}, "fallbacks: 'b' is not a list", "put it in brackets"),
    ({"fallbacks": [get_hotel]}, "expected Fallback", "a tool's id"),
    ({"default": {"city": "Rome"}}, "default: is not known here", "did you mean defaults"),
    ({"defaults": {"ctiy": "Rome"}}, "defaults: the function has no parameter 'ctiy'", "did you mean city?"),
    ({"readonly": True}, "readonly: is not known here", "did you mean read_only"),
    ({"read_only": "yes"}, "read_only: 'yes' is neither true nor false", ""),
    ({"read_only": True, "idempotent": False}, "a read-only tool is idempotent", "drop one"),
    ({"isolation": "proces"}, "isolation: 'proces' is not one of", "did you mean process?"),
    ({"isolation": True}, "isolation: expected Isolation", '"thread" or "process"'),
    ({"concurrency": 0}, "concurrency: 0 is not a whole number", "of at least 1"),
    ({"tags": "travel"}, "tags: 'travel' is not a list of texts", 'write ["travel", "search"]'),
    ({"output": "int"}, "output: 'int' is neither a type", "write list[str], or a mapping"),
    ({"idempotency_key": "key"}, "has no parameter 'key'", "add one, or name another"),
    ({"breaker": False}, "breaker: expected BreakerOptions", '{"failure_threshold": 5}'),
    ({"breaker": {"treshold": 3}}, "breaker.treshold: is not known here", "failure_threshold"),
    ({"failure_threshold": 3}, "failure_threshold: is not known here", 'breaker: {"failure_threshold": 5'),
    ({"on_error": print}, "on_error: is not known here", "error_handler"),
    ({"description": "Prices"}, "description: is not known here", "docstring"),
    ({"name": "price"}, "name: is not known here", "write id"),
    ({"id": 3}, "id: 3 is not a text", ""),
    ({"id": ""}, "id: '' is not a text", ""),
]


@pytest.mark.parametrize(("options", "wrong", "right"), OPTIONS, ids=[wrong for _, wrong, _ in OPTIONS])
def test_options_of_a_tool(options: dict[str, Any], wrong: str, right: str) -> None:
    said = refusal(lambda: Runtime().add(get_price, **options))
    holds(said, wrong, right)
    assert "test_mistakes.py:" in said  # where the function is


RUNTIMES: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: Runtime("nowhere.yaml"), "nowhere.yaml: cannot be read", "No such file"),
    (lambda: Runtime(3), "manifest: expected the path of a file or a mapping", "got 3"),  # type: ignore[arg-type]
    (lambda: Runtime({"tols": {}}), "tols: is not known here", "did you mean tools"),
    (lambda: Runtime({"tools": [{"id": "a"}]}), "is not a mapping", "each tool below its id"),
    (lambda: Runtime({"tools": {"a": {"entrypoint": "m.f"}}}), "'m.f' is not a mapping", '{"function": "m:f"}'),
    (lambda: Runtime({"tools": {"a": {"entrypoint": {"function": "m.f"}}}}), "is not an import path", "module:name"),
    (lambda: Runtime({"tools": {"a": {"retry": 3}}}), "retry: 3 is not a mapping", 'like {"max_attempts": 3}'),
    (lambda: Runtime({"tool": {"a": {"timeout": "3s"}}}), "tool.a: is not known here", "write tools instead of tool"),
    (lambda: Runtime({"calls": []}), "this is a plan", "a manifest lists tools"),
    (lambda: Runtime({"version": 2}), "version: 2 is not a version", "write 1"),
    (lambda: Runtime(store="failsoft.db"), "store: 'failsoft.db' is not known", "sqlite:///path/to/file.db"),
    (lambda: Runtime(store_required=True), "there is no store", 'store="sqlite:///failsoft.db"'),
    (lambda: Runtime(memory="on"), "memory: 'on' is not one of", "advise, act, off"),  # type: ignore[arg-type]
    (lambda: Runtime(undeclared="no"), "is not one of recognise", "never_repeat"),  # type: ignore[arg-type]
    (lambda: Runtime(on_escalation=3), "on_escalation: 3 cannot be called", "give a function"),  # type: ignore[arg-type]
    (lambda: Runtime(error_handler=print), "has no method handle", "give a Handler"),  # type: ignore[arg-type]
    (lambda: Runtime(policies=[{}]), "policies[0].name: is missing", "policies[0].then: is missing"),
    (lambda: Runtime(timeout="3s"), "timeout", ""),  # type: ignore[call-arg]
    (lambda: RetryOptions(max_attempts=None), "max_attempts: None is not a whole", "leave it out"),  # type: ignore[arg-type]
    (lambda: Runtime(policies=[{"name": "x", "then": "retyr"}]), "'retyr' is not one of", "did you mean retry?"),
    (lambda: Runtime(policies=[{"name": "x", "when": {"tols": "a"}, "then": "retry"}]), "tols: is not", "tool?"),
    (lambda: Runtime().threads[3], "thread: 3 is not a text", "str()"),  # type: ignore[index]
    (lambda: Runtime().__enter__(), "async with Runtime() as rt", "rt = Runtime()"),
    (lambda: Runtime().add(staticmethod(get_price)), "put @staticmethod", "outside of the tool decorator"),
    (lambda: Runtime()(get_price), "a Runtime cannot be called", "@rt.tool"),
    (lambda: Runtime().tool("search"), "'search' is not callable", "id='search'"),  # type: ignore[type-var]
    (lambda: Runtime().subscribe(3), "cannot be called", "give a function"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("mistake", "wrong", "right"), RUNTIMES, ids=[right or wrong for _, wrong, right in RUNTIMES])
def test_mistakes_with_runtimes_and_manifests_are_answered(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    holds(refusal(mistake), wrong, right)


# --- tools of one name -------------------------------------------------------------------------------------------------


def test_two_tools_of_one_name() -> None:
    rt = runtime()
    holds(refusal(lambda: rt.add(get_hotel, id="get_price")), "there is a tool of this id already", "replace=True")
    assert rt.call_sync("get_price").value == 5
    rt.add(get_hotel, id="get_price", replace=True)
    assert rt.call_sync("get_price").value == "Paris"


def test_two_lambdas_need_ids() -> None:
    rt = Runtime()
    rt.add(lambda: 1)
    holds(refusal(lambda: rt.add(lambda: 2)), "there is a tool of this id already", 'give it one with id="…"')


def test_methods_of_two_objects_need_ids() -> None:
    class Client:
        def get_page(self) -> None: ...

    rt, client = Runtime(), Client()
    rt.add(client.get_page)
    rt.add(client.get_page)
    holds(refusal(lambda: rt.add(Client().get_page)), "there is a tool of this id already", "replace=True")


def test_two_different_partials_need_ids() -> None:
    rt = Runtime()
    rt.add(partial(get_price, "Rome"))
    rt.add(partial(get_price, "Rome"))
    holds(refusal(lambda: rt.add(partial(get_price, "Oslo"))), "there is a tool of this id already", "replace=True")
    holds(refusal(lambda: rt.add(get_hotel, id="get_price", replace="yes")), "replace: 'yes' is neither true nor false")  # type: ignore[arg-type]


def test_a_notebook_cell_that_is_run_again_is_no_mistake() -> None:
    rt, names = Runtime(), {"__name__": "notebook"}
    for value in (1, 2):
        exec(f"def get_it(): return {value}", names)
        rt.tool(names["get_it"])  # type: ignore[type-var]
        rt.tool(read_only=True)(names["get_it"])  # type: ignore[type-var]
    assert rt.call_sync("get_it").value == 2


# --- turns -------------------------------------------------------------------------------------------------------------


async def no_with(rt: Runtime, turn: Any) -> None:
    with rt.turn():
        pass


async def no_for(rt: Runtime, turn: Any) -> None:
    for _ in turn:
        pass


async def no_await(rt: Runtime, turn: Any) -> None:
    await rt.turn()  # type: ignore[misc]


async def not_begun(rt: Runtime, turn: Any) -> None:
    rt.turn().call("get_hotel")


async def called(rt: Runtime, turn: Any) -> None:
    turn.call(rt.tools and get_hotel("Rome"))


async def a_value(rt: Runtime, turn: Any) -> None:
    turn.call(get_price("Rome"))


async def no_tool(rt: Runtime, turn: Any) -> None:
    turn.call(print)


async def handle_in_text(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": f"{turn.call('get_hotel')}!"})


async def handle_as_text(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": str(turn.call("get_hotel"))})


async def handle_in_percent(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": "%s" % turn.call("get_hotel")})  # noqa: UP031


async def handle_repr(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": [{"name": f"{[turn.call('get_hotel')]}"}]})


async def handle_index(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel")[0]


async def handle_loop(rt: Runtime, turn: Any) -> None:
    for _ in turn.call("get_hotel"):
        pass


async def handle_field(rt: Runtime, turn: Any) -> None:
    _ = turn.call("get_hotel").price


async def handle_set(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": {turn.call("get_hotel")}})


async def handle_key(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": {turn.call("get_hotel"): 1}})


async def handle_method(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": turn.call("get_hotel").value})


async def handle_coroutine(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": turn.call("get_hotel").value()})


async def handle_to_call(rt: Runtime, turn: Any) -> None:
    await rt.call("get_hotel", {"city": turn.call("get_hotel")})


async def no_mapping(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", ["Rome"])


async def keywords(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", city="Rome")


async def misspelt_default(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": turn.call("get_hotel")}, defaults={"ctiy": "Rome"})


async def depends_on_text(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", depends_on="first")


async def depends_on_nothing(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", id="b", depends_on=["a"])


async def early_report(rt: Runtime, turn: Any) -> None:
    _ = turn.report


async def other_turn(rt: Runtime, turn: Any) -> None:
    handle = turn.call("get_hotel")
    async with rt.turn() as other:
        other.call("get_hotel", {"city": handle})


async def after_its_end(rt: Runtime, turn: Any) -> None:
    async with rt.turn() as other:
        pass
    other.call("get_hotel")


async def after_close(rt: Runtime, turn: Any) -> None:
    closed = Runtime()
    await closed.close()
    closed.add(get_price)


async def number_as_id(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", id=7)


async def bare_timeout(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", timeout=3)


async def odd_turn(rt: Runtime, turn: Any) -> None:
    rt.turn(timeout=30)


async def blocking_call(rt: Runtime, turn: Any) -> None:
    rt.call_sync("get_price")


TURNS: list[tuple[Body, str, str]] = [
    (no_with, "a turn runs on an event loop", "async with"),
    (no_for, "outcomes arrive one by one", "async for"),
    (no_await, "a turn is not awaited", "async with"),
    (not_begun, "the turn has not begun", "async with"),
    (called, "get_hotel(…) was called already", 'call(get_hotel, {"x": 1})'),
    (a_value, "4 is not a tool of this Runtime", "instead of call(search(1))"),
    (no_tool, "is not a tool of this Runtime", "@rt.tool"),
    (handle_in_text, "is a handle, the value is not there yet", "Pass the handle itself"),
    (handle_as_text, "is a handle, the value is not there yet", "Pass the handle itself"),
    (handle_in_percent, "is a handle, the value is not there yet", "Pass the handle itself"),
    (handle_repr, "there is a handle as text in it", "Pass the handle itself"),
    (handle_index, "[0]: 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_loop, "is a handle", "await handle.value()"),
    (handle_field, "a handle has no 'price'", "await handle.value()"),
    (handle_set, "a handle is in a set", "use a list"),
    (handle_key, "a handle is the key of a mapping", "await its value"),
    (handle_method, "the method value of a handle", "pass the handle itself"),
    (handle_coroutine, "is the coroutine Handle.value", "write await before it"),
    (handle_to_call, "is a handle, and a function needs its value", "turn.call(tool"),
    (no_mapping, "args:", "one mapping from names to values, not list"),
    (keywords, "a call has no option 'city'", "{'city': …}"),
    (misspelt_default, "get_hotel has no parameter 'ctiy'", "did you mean city?"),
    (depends_on_text, "depends_on:", "depends_on=[…]"),
    (depends_on_nothing, "call 'b' depends on 'a'", "which is not in this turn"),
    (early_report, "the turn has not ended", "after the async with block"),
    (other_turn, "belongs to another turn", "await it there and pass its value on"),
    (after_its_end, "the turn has ended", "takes no more calls"),
    (after_close, "this Runtime has been closed", "make another one"),
    (number_as_id, "id: 7 is not a text", "str()"),
    (bare_timeout, "timeout: 3 has no unit", 'write "3s"'),
    (odd_turn, "timeout: 30 has no unit", 'write "30s"'),
    (blocking_call, "would block the running event loop", "await rt.call"),
]


@pytest.mark.parametrize(("body", "wrong", "right"), TURNS, ids=[body.__name__ for body, _, _ in TURNS])
def test_mistakes_with_turns_are_answered(body: Body, wrong: str, right: str) -> None:
    async def mistake() -> None:
        rt = runtime()
        async with rt.turn() as turn:
            await body(rt, turn)

    said = refusal(mistake)
    assert said != "silent"
    holds(said, wrong, right)


def test_a_handle_can_be_looked_at_and_copied() -> None:
    async def look() -> None:
        rt = runtime()
        async with rt.turn() as turn:
            handle = turn.call("get_hotel")
            assert copy.copy(handle).id == handle.id
            assert not hasattr(handle, "__len__")
            assert repr(handle) == f"{handle!r}" == "<Handle 'get_hotel-1', open>"
            turn.call("get_hotel", {"city": "a text about handles"})

    asyncio.run(look())


def test_a_forgotten_await_is_named_by_python() -> None:
    async def forgets() -> None:
        rt = runtime()
        rt.call("get_hotel")
        rt.call("get_price")
        rt.call("nothing")
        gc.collect()

    with warnings.catch_warnings():  # of what other tests have left
        warnings.simplefilter("ignore")
        gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(forgets())
    said = [str(warning.message) for warning in caught if "never awaited" in str(warning.message)]
    assert len(said) == 3
    assert all("call" in one for one in said)


# --- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args", "wrong", "right"),
    [
        ("get_prise", {}, "get_prise", "get_price"),
        ("get_price", {"ctiy": "Rome"}, "Not known: ctiy", "city"),
        ("get_price", {"city": [3]}, "city", "str"),
        ("get_price", ["Rome"], "mapping", "list"),
    ],
)
def test_mistakes_with_calls_by_name_are_answered(tool: str, args: Any, wrong: str, right: str) -> None:
    outcome = runtime().call_sync(tool, args)
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.effect) == ("failed", "none")
    holds(outcome.fault.message, wrong)


def test_a_fallback_that_does_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    rt = runtime()

    def get_rate() -> None:
        raise ConnectionError

    rt.add(get_rate, fallbacks=["get_prise"], retry={"max_attempts": 1})
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt.call_sync("get_rate")
    holds(caplog.text, "its fallback get_prise does not exist", "did you mean get_price?")


def test_a_runtime_made_outside_of_virtual_time(caplog: pytest.LogCaptureFixture) -> None:
    rt = runtime()
    with caplog.at_level(logging.WARNING, "failsoft"), virtual_time():
        rt.call_sync("get_price")
    holds(caplog.text, "made outside of virtual_time()", "Make the Runtime inside")


# --- plans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "wrong", "right"),
    [
        (3, "plan: 3 is not a plan", "give a mapping"),
        ({"tools": {}}, "this is a manifest", "a plan lists calls"),
        ({"calls": [{"tol": "a"}]}, "calls[0].tol: is not known here", "did you mean tool?"),
        ({"calls": [{"tool": "a", "args": {"x": {"$ref": "b"}}}]}, "depends on b, which is not a call", "name the id"),
        ({"calls": [{"tool": "a", "args": {"x": {"$ref": 3}}}]}, "is not the id of a call", "write a text"),
        ({"calls": [{"id": "a", "tool": "a"}, {"id": "a", "tool": "a"}]}, "a is used twice", "its own id"),
        ({"calls": [{"id": "a", "tool": "a", "args": {"x": {"$ref": "a"}}}]}, "wait for each other", "drop one"),
        ({"calls": {"tool": "a"}}, "is not a list", "in brackets"),
        ("nowhere.yaml", "nowhere.yaml: cannot be read", "No such file"),
    ],
)
def test_mistakes_in_plans_are_answered(plan: Any, wrong: str, right: str) -> None:
    holds(refusal(lambda: runtime().run_plan(plan)), wrong, right)


# --- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "wrong", "right"),
    [
        (["chek"], "No such command", "check"),
        (["check"], "there is no failsoft.yaml here", "failsoft init"),
        (["check", "nowhere.yaml"], "nowhere.yaml", ""),
        (["run", "nowhere.yaml"], "there is no failsoft.yaml here", "--manifest FILE"),
        (["why", "--trace", "nowhere.jsonl"], "nowhere.jsonl", ""),
        (["why", "--store", "failsoft.db"], "failsoft.db", "sqlite:///"),
        (["why"], "there is no store at", "--store"),
        (["trace", "show", "x", "--trace", "example"], "there is no turn 'x'", "failsoft trace list"),
        (["trace"], "", "list"),
        (["classify"], "Missing argument 'TEXT'", "failsoft classify --help"),
    ],
)
def test_mistakes_on_the_command_line_are_answered(
    command: list[str], wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, command)
    assert result.exit_code != 0 or command == ["trace"]
    holds(result.output, wrong, right)
    assert "Traceback" not in result.output


# --- adapters and testing ----------------------------------------------------------------------------------------------


def capability() -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    return Agent(TestModel(), capabilities=[Runtime()]).run("hi")  # type: ignore[list-item]


def agent_without_runtime() -> None:
    from agents import Agent

    from failsoft.adapters.openai_agents import guard_agent

    guard_agent(Agent(name="a"), "rt")  # type: ignore[arg-type]


def middleware_without_runtime() -> None:
    from failsoft.adapters.langchain import FailsoftMiddleware

    FailsoftMiddleware("rt")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mistake", "wrong", "right"),
    [
        (capability, "a Runtime cannot be called", "capabilities=[Failsoft(rt)]"),
        (agent_without_runtime, "'rt' is not a Runtime", "guard_agent(agent, rt)"),
        (middleware_without_runtime, "'rt' is not a Runtime", "FailsoftMiddleware(rt)"),
        (lambda: run_tool_calls("rt", []), "'rt' is not a Runtime", "run_tool_calls(rt,"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_with_adapters_are_answered(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert said != "silent"
    holds(said, wrong, right)


# --- the second list: names, tools made twice, plans, options in the wrong form ------------------------------------------


def warned(mistake: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    """The log of a mistake that does not raise."""
    with caplog.at_level(logging.WARNING, "failsoft"):
        made = mistake()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
        flush_log(5)
    return caplog.text


def guarded_everywhere(tool: Any) -> list[Any]:
    rt = Runtime()
    guarded = rt.add(tool)
    thread = rt.threads["a"]
    thread.clear(guarded)
    return [rt.metrics(guarded)["error_count"], rt.health(guarded).available, thread.available(guarded)]


def test_tools_are_named_by_id_or_by_function_wherever_they_are_asked_about() -> None:
    assert guarded_everywhere(get_price) == [0, True, True]


@pytest.mark.parametrize(
    "ask",
    [
        lambda rt: rt.metrics("get_prise"),
        lambda rt: rt.health("get_prise"),
        lambda rt: rt.threads["a"].clear("get_prise"),
        lambda rt: rt.threads["a"].available("get_prise"),
        lambda rt: rt.disable("get_prise"),
        lambda rt: rt.enable("get_prise"),
    ],
)
def test_a_misspelt_tool_is_warned_of_with_the_nearest_name(
    ask: Callable[[Runtime], Any], caplog: pytest.LogCaptureFixture
) -> None:
    rt = runtime()
    assert "get_prise; did you mean get_price?" in warned(lambda: (ask(rt), ask(rt)), caplog).replace(
        " yet: this holds once it is registered", ""
    )


def test_metrics_of_an_unknown_tool_are_zeros_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime({"tools": {"in_the_manifest": {"timeout": "3s"}}})
    said = warned(lambda: [rt.metrics(name)["error_count"] for name in ("nix", "nix", "in_the_manifest")], caplog)
    assert said.count("there is no tool nix") == 1
    assert "in_the_manifest" not in said


def test_an_offer_of_a_misspelt_tool() -> None:
    outcome = asyncio.run(runtime().threads["a"].retry("get_prise"))
    assert outcome.fault is not None
    assert outcome.fault.message.endswith("get_prise in this thread; did you mean get_price?")


def test_functions_made_in_a_loop(caplog: pytest.LogCaptureFixture) -> None:
    def loop() -> None:
        rt = Runtime()
        for number in (1, 2):

            def get_it() -> int:
                return number  # noqa: B023 - the mistake

            rt.add(get_it)

    holds(warned(loop, caplog), "calls no longer reach that one", 'id="…" gives each its own', "replace=True")


def by_closure(number: int) -> Callable[..., int]:
    def get_it() -> int:
        return number

    return get_it


def by_default(number: int) -> Callable[..., int]:
    def get_it(number: int = number) -> int:
        return number

    return get_it


class GetIt:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> int:
        return self.number


@pytest.mark.parametrize("make", [by_closure, by_default, GetIt])
def test_functions_made_by_a_factory(make: Callable[[int], Any], caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(make(1), read_only=True)
    holds(warned(lambda: rt.add(make(2), read_only=True), caplog), "calls no longer reach that one", "replace=True")
    caplog.clear()
    assert not warned(lambda: rt.add(make(3), read_only=True, replace=True), caplog)


def test_a_set_up_that_is_run_twice_is_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    def set_up(rt: Runtime, number: int) -> None:
        def helper() -> int:
            return number

        @rt.tool
        def get_it() -> int:
            return helper()

    rt = Runtime()
    set_up(rt, 1)
    assert not warned(lambda: set_up(rt, 1), caplog)
    holds(warned(lambda: set_up(rt, 2), caplog), "calls no longer reach that one")


def test_an_outcome_as_an_argument() -> None:
    async def in_a_turn(outcome: Any) -> None:
        async with runtime().turn() as turn:
            turn.call("get_hotel", {"city": [outcome]})

    outcome = runtime().call_sync("get_hotel")
    holds(refusal(lambda: in_a_turn(outcome)), "is the Outcome of", "outcome.value")
    refused = runtime().call_sync("get_hotel", {"city": outcome})
    assert refused.fault is not None
    holds(refused.fault.message, "city is the Outcome of another call", "outcome.value")


def closed(use: Callable[[Runtime], Any]) -> Callable[[], Any]:
    rt = runtime()
    asyncio.run(rt.close())
    return lambda: use(rt)


PLAN = {"calls": [{"id": "a", "tool": "get_price"}, {"tool": "get_hotel", "args": {"city": "Rome"}}]}


def plan_with(**said: Any) -> Callable[[], Any]:
    first, second = PLAN["calls"]
    return lambda: runtime().run_plan({"calls": [first, {**second, **said}]})


REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (closed(lambda rt: rt.subscribe(print)), "this Runtime has been closed", "make another one"),
    (closed(lambda rt: rt.disable("get_price")), "this Runtime has been closed", "make another one"),
    (closed(lambda rt: rt.call_sync("get_price")), "this Runtime has been closed", "make another one"),
    (closed(lambda rt: rt.run_plan(PLAN)), "this Runtime has been closed", "make another one"),
    (closed(lambda rt: rt.threads["a"].retry("get_price")), "this Runtime has been closed", "make another one"),
    (lambda: Runtime().explain("x"), "give the Outcome of a call", "not str"),  # type: ignore[arg-type]
    (lambda: Runtime().metrics(3), "3 is not a tool", "give the tool's name"),  # type: ignore[arg-type]
    (lambda: Runtime().health(get_price), "is not a tool of this Runtime", "@rt.tool"),
    (lambda: Runtime(store_required="no"), "'no' is neither true nor false", ""),  # type: ignore[arg-type]
    (lambda: Runtime(trace=True), "trace: True is not the path of a file", '"trace.jsonl"'),  # type: ignore[arg-type]
    (lambda: Runtime(clock=3), "clock: 3 has no method monotonic", "failsoft.testing"),  # type: ignore[arg-type]
    (lambda: Runtime(random=3), "random: 3 has no method random", "failsoft.testing"),  # type: ignore[arg-type]
    (lambda: Runtime("tools:\n  a: {}\n"), "got the text of a manifest", "give the path of its file, or a mapping"),
    (lambda: Runtime(store="sqlite:///:memory:"), "keeps nothing", 'write "memory:"'),
    (lambda: Runtime({"tools": {"a": {"overrides": []}}}), "overrides: is not known here", "write classification"),
    (lambda: runtime().run_plan([{"tool": "get_price"}]), "is not a plan", '{"calls": […]}'),
    (plan_with(defaults={"ctiy": "x"}), "get_hotel has no parameter 'ctiy'", "did you mean city?"),
    (plan_with(arguments={"city": "x"}), "arguments: is not known here", "write args"),
    (lambda: classify(ValueError), "expected an exception or its text", "got"),  # type: ignore[arg-type]
    (lambda: classify(None), "expected an exception or its text", "got None"),  # type: ignore[arg-type]
    (lambda: classify("x", overrides=Override(http_status=503, as_="permanent")), "expected a list, got one Override", "brackets"),  # type: ignore[arg-type]
    (lambda: decide("x"), "expected an ErrorReport, got str", "from_dict"),  # type: ignore[arg-type]
    (lambda: in_thread(get_price()), "5 cannot be called", "the function itself"),  # type: ignore[arg-type]
    (lambda: FaultPlan("ok").wrap("get_price"), "cannot be called", "the tool's function"),  # type: ignore[arg-type]
    (lambda: FaultPlan(3), "a text or a list of steps, not 3", '"timeout, 503, ok"'),  # type: ignore[arg-type]
    (lambda: FaultPlan("okk"), "'okk' is not a step", "write one of"),
    (lambda: HttpError("503"), "'503' is not a status", "like 503"),  # type: ignore[arg-type]
    (lambda: run_tool_calls(runtime(), [], timeout=3), "timeout: 3 has no unit", 'write "3s"'),  # type: ignore[arg-type]
    (lambda: run_tool_calls(runtime(), [], thread=3), "thread: 3 is not a text", "str()"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "wrong", "right"), REFUSED, ids=[f"{wrong}-{right}" for _, wrong, right in REFUSED]
)
def test_more_mistakes_are_refused(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert said != "silent"
    holds(said, wrong, right)


def test_virtual_time_is_advanced_in_seconds() -> None:
    with virtual_time() as clock:
        holds(refusal(lambda: clock.advance("3s")), "'3s' is not a number of seconds")  # type: ignore[arg-type]


def test_texts_of_a_plan_that_only_look_like_references(caplog: pytest.LogCaptureFixture) -> None:
    calls = [{"id": "a", "tool": "get_price"}, {"id": "5", "tool": "get_price"}]
    for text in ("$5", "${b}", "{{ price }}", "costs $a", "$$a"):
        calls.append({"tool": "get_hotel", "args": {"city": text}})  # type: ignore[dict-item]
    assert not warned(lambda: runtime().run_plan({"calls": calls}), caplog)


def failing(**options: Any) -> Any:
    rt = Runtime(**options)

    def get_it() -> None:
        raise ConnectionError

    rt.add(get_it, retry={"max_attempts": 1})
    return lambda: rt.call_sync("get_it")


class Misguided:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def handle(self, report: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("mistake", "wrong", "right"),
    [
        (lambda: Runtime().add(get_price, retry={"initial_delay": "2s"}), "initial_delay: 2s is cut to the max_delay", "raise max_delay"),
        (lambda: Runtime().add(get_price, retry={"jitter_percent": 0.1}), "less than one percent", "write 10"),
        (lambda: Runtime({"tools": {"get_prise": {}}}).add(get_price), "the manifest says nothing", "get_prise?"),
        (plan_with(args={"city": {"$res": "a"}}), "args.city.$res: is passed to the tool unchanged", "did you mean $ref?"),
        (plan_with(args={"city": {"$Ref": "a"}}), "args.city.$Ref: is passed to the tool unchanged", "did you mean $ref?"),
        (plan_with(args={"city": "${a}"}), "'${a}' is passed to the tool as a text", '{"$ref": "a"}'),
        (plan_with(args={"city": ["{{ a }}"]}), "'{{ a }}' is passed to the tool as a text", '{"$ref": "a"}'),
        (plan_with(args={"city": "$a"}), "'$a' is passed to the tool as a text", '{"$ref": "a"}'),
        (failing(explain=lambda: "x"), "explain= failed", "positional argument"),
        (failing(explain=lambda facts: None), "explain= failed", "None"),
        (failing(error_handler=Misguided("retry")), "the error_handler failed", "str, not a Decision"),
        (failing(error_handler=Misguided(Decision("retyr", "x"))), "no strategy 'retyr'", "there are retry"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_mistakes_that_work_are_logged(
    mistake: Callable[[], Any], wrong: str, right: str, caplog: pytest.LogCaptureFixture
) -> None:
    holds(warned(mistake, caplog), wrong, right)


@pytest.mark.parametrize("text", ["no", 0, None])
def test_a_text_is_no_answer_to_whether_errors_are_graceful(text: Any) -> None:
    from failsoft.adapters.pydantic_ai import Agent, AgentConfig, Failsoft

    said = [
        refusal(lambda: AgentConfig(graceful_tool_errors=text)),
        refusal(lambda: Failsoft(Runtime(), graceful=text)),
    ]
    if text is not None:
        said.append(refusal(lambda: Agent("test").tool_plain(graceful_errors=text)(get_price)))
    for one in said:
        holds(one, "is neither true nor false")


def test_trace_and_store_options_cannot_be_combined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["why", "--trace", "example", "--store", "sqlite:///x.db"])
    assert result.exit_code == 2
    holds(result.output, "--trace and --store cannot be combined", "give one of them")
    assert CliRunner(env={"FAILSOFT_STORE": "sqlite:///x.db"}).invoke(cli, ["why", "--trace", "example"]).exit_code == 0


def test_check_knows_of_policies_for_misspelt_tools(tmp_path: Path) -> None:
    manifest = tmp_path / "failsoft.yaml"
    manifest.write_text(
        "tools:\n  get_price: {retry: {jitter_percent: 0.1}}\n"
        "policies:\n  - {name: x, when: {tool: get_prise}, then: escalate}\n"
    )
    said = CliRunner().invoke(cli, ["check", str(manifest)]).output
    holds(said, "get_prise matches no tool; did you mean get_price?", "less than one percent")


def test_arguments_that_do_not_fit_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def mistakes() -> None:
        rt = Runtime()
        rt.add(get_price, id="get_one_line")
        rt.add(get_hotel, id="get_one_line_too")
        await rt.call("get_one_line", {"ctiy": "x"})
        await rt.run_plan({"calls": [{"tool": "get_one_line_too", "args": {"ctiy": "x"}}]})

    assert warned(mistakes, caplog).count("Not known: ctiy") == 2
    assert not any(record.exc_text for record in caplog.records)


def test_a_blocking_tool_that_waits_on_the_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def mistake() -> None:
        rt = Runtime()
        answers = iter([ConnectionError("x"), ConnectionError("x"), 1])

        @rt.tool(retry={"initial_delay": "1ms"})
        def get_it() -> int:
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        assert get_it() == 1

    said = warned(mistake, caplog)
    assert said.count("get_it was called as a plain function on an event loop") == 1
    holds(said, 'await rt.call("get_it"')


# --- the third list: values that are not there yet, conditions that always hold, work that is dropped --------------------


async def handle_equals(rt: Runtime, turn: Any) -> None:
    _ = turn.call("get_hotel") == "Paris"


async def handle_differs(rt: Runtime, turn: Any) -> None:
    _ = turn.call("get_hotel") != 3


async def handle_in_list(rt: Runtime, turn: Any) -> None:
    _ = turn.call("get_hotel") in ["Paris", "Rome"]


async def handle_as_condition(rt: Runtime, turn: Any) -> None:
    if turn.call("get_hotel"):
        pass


async def handle_or(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", {"city": turn.call("get_hotel") or "Rome"})


async def handle_sum(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel") + "!"


async def handle_called(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel")()


async def no_such_option(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", enabled=False)


async def id_twice(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", id="a")
    turn.call("get_hotel", id="a")


async def text_as_flag(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", required="no")


async def depends_on_one(rt: Runtime, turn: Any) -> None:
    turn.call("get_hotel", depends_on=turn.call("get_hotel"))


async def awaited_outcome(rt: Runtime, turn: Any) -> None:
    await (await rt.call("get_hotel"))  # type: ignore[misc]


MORE_TURNS: list[tuple[Body, str, str]] = [
    (handle_equals, "== 'Paris': 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_differs, "== 3: 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_in_list, "== 'Paris': 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_as_condition, "as a condition: 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_or, "as a condition: 'get_hotel-1' is a handle", "await handle.value()"),
    (handle_sum, "unsupported operand", "'Handle' and 'str'"),
    (handle_called, "'Handle' object is not callable", ""),
    (no_such_option, "a call has no option 'enabled'; there are id, depends_on, required", "one mapping"),
    (id_twice, "call id 'a' is taken", "give each call its own"),
    (text_as_flag, "required: 'no' is neither true nor false", ""),
    (depends_on_one, "write a list of handles or ids", "depends_on=[…]"),
    (awaited_outcome, "Outcome", "await"),  # Python's own words, which differ between its versions
]


@pytest.mark.parametrize(("body", "wrong", "right"), MORE_TURNS, ids=[body.__name__ for body, _, _ in MORE_TURNS])
def test_more_mistakes_with_turns_are_answered(body: Body, wrong: str, right: str) -> None:
    test_mistakes_with_turns_are_answered(body, wrong, right)


def test_handles_are_compared_with_each_other_and_with_none() -> None:
    async def compare() -> None:
        async with runtime().turn() as turn:
            one, other = turn.call("get_hotel"), turn.call("get_hotel")
            assert one == one
            assert one != other
            assert one is not None
            assert (one == None) is False  # noqa: E711
            assert {one: 1}[one] == 1
            assert one in [other, one]

    asyncio.run(compare())


def failed_outcome() -> Any:
    rt = Runtime()

    def get_it() -> None:
        raise ValueError

    rt.add(get_it, id=f"get_it_{id(rt)}", retry={"max_attempts": 1})
    return rt.call_sync(f"get_it_{id(rt)}")


def an_outcome_as_condition() -> None:
    if failed_outcome():
        pass


def an_outcome_equals_a_value() -> None:
    assert failed_outcome() != 3


async def a_report_as_condition() -> None:
    async with runtime().turn() as turn:
        turn.call("get_prise")
    if turn.report:
        pass


def a_plan_of_faults_that_is_dropped() -> None:
    FaultPlan("503").wrap(get_price)


def a_policy_named_twice() -> None:
    Runtime(policies=[{"name": "x", "then": "retry"}, {"name": "x", "then": "escalate"}])


@pytest.mark.parametrize(
    ("mistake", "wrong", "right"),
    [
        (an_outcome_as_condition, "every Outcome is true", 'outcome.status == "succeeded"'),
        (an_outcome_equals_a_value, "an Outcome never equals a value", "outcome.value"),
        (a_report_as_condition, "every TurnReport is true", "if not report.failures"),
        (lambda: runtime().run_plan({"calls": []}), "plan: there are no calls in it", "nothing runs"),
        (a_policy_named_twice, "policies: 'x' is used twice", "its own name"),
        (a_plan_of_faults_that_is_dropped, "FaultPlan.wrap(get_price) returned a function that was dropped", "rt.add("),
    ],
)
def test_more_mistakes_that_work_are_logged(
    mistake: Callable[[], Any], wrong: str, right: str, caplog: pytest.LogCaptureFixture
) -> None:
    holds(warned(mistake, caplog), wrong, right)


def test_conditions_that_hold_are_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    def right() -> None:
        assert runtime().call_sync("get_price")
        assert failed_outcome() is not None
        assert FaultPlan("ok").wrap(get_price)() == 5
        planned = FaultPlan("ok").wrap(get_price)
        del planned

    said = warned(right, caplog)
    assert "is true" not in said
    assert "dropped" not in said


MORE_REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: runtime().call_sync("get_price", timout="3s"), "no option 'timout'", "did you mean timeout?"),  # type: ignore[call-arg]
    (lambda: runtime().call_sync("get_price", city="Rome"), "no option 'city'", "{'city': …}"),  # type: ignore[call-arg]
    (lambda: runtime().call_sync("get_price", tenant=3), "tenant: 3 is not a text", "str()"),  # type: ignore[arg-type]
    (lambda: runtime().call_sync(get_price("Rome")), "4 is not a tool of this Runtime", "instead of call(search(1))"),  # type: ignore[call-overload]
    (lambda: runtime().run_plan({}), "calls: is missing", ""),
    (lambda: runtime().run_plan({"calls": []}, timout="3s"), "timout", "unexpected keyword"),  # type: ignore[call-arg]
    (lambda: runtime().turn(timout="3s"), "timout", "unexpected keyword"),  # type: ignore[call-arg]
    (lambda: runtime().turn(thread=runtime().threads["a"]), "thread: <Thread 'a'> is not a text", "str()"),  # type: ignore[arg-type]
    (lambda: Runtime(storre="x"), "storre", "unexpected keyword"),  # type: ignore[call-arg]
    (lambda: classify("x", overides=[]), "overides", "unexpected keyword"),  # type: ignore[call-arg]
    (lambda: Runtime().add([get_price]), "is not callable", "a tool is a function"),  # type: ignore[type-var]
    (lambda: Runtime().add(get_price, fallbacks=["get_price"]), "fallbacks of each other in a cycle", "drop one"),
    (lambda: Runtime(policies={"name": "x", "then": "retry"}), "policies: ", "put it in brackets"),  # type: ignore[arg-type]
    (lambda: Runtime().subscribe(get_hotel), "is async and would not be awaited", "give a plain function"),
    (lambda: Override(http_status=503, as_="transiant"), "'transiant' is not one of", "did you mean transient?"),  # type: ignore[arg-type]
    (lambda: runtime().call_sync("get_price").ok, "no attribute 'ok'", ""),  # type: ignore[attr-defined]
    (lambda: runtime().call_sync("get_price")["value"], "not subscriptable", ""),  # type: ignore[index]
    (lambda: runtime().call_sync("get_price") + 1, "unsupported operand", "'Outcome'"),  # type: ignore[operator]
    (lambda: FaultPlan("503", "ok"), "positional arguments", ""),  # type: ignore[call-arg]
    (lambda: Runtime().add(get_price, get_hotel), "positional arguments", ""),  # type: ignore[call-arg]
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "wrong", "right"), MORE_REFUSED, ids=[f"{wrong}-{right}" for _, wrong, right in MORE_REFUSED]
)
def test_still_more_mistakes_are_refused(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    test_more_mistakes_are_refused(mistake, wrong, right)


def test_an_id_that_is_not_in_the_report() -> None:
    async def look() -> None:
        async with runtime().turn() as turn:
            turn.call("get_hotel", id="first")
        with pytest.raises(KeyError, match=r"there is no call 'frist' in this turn; did you mean first\?"):
            _ = turn.report.outcomes["frist"]
        assert turn.report.outcomes.get("frist") is None

    asyncio.run(look())
