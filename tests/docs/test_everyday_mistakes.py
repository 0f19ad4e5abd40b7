"""Everyday mistakes in manifests, plans, code and on the command line. None is silent: each is answered."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from click.testing import CliRunner
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider

from failsoft import Code, FailsoftError, Runtime, Verified
from failsoft.adapters.openai_agents import guard_agent
from failsoft.client import Client
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.otel import OpenTelemetry
from failsoft.runtime.registry import _log_misuse as misuse_log
from failsoft.surfaces.cli import cli


async def search(city: str = "Paris") -> str:
    return city


def refusal(mistake: Callable[[], Any]) -> str:
    with pytest.raises((FailsoftError, TypeError, KeyError, ValueError, AttributeError)) as refused:
        made = mistake()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    return str(refused.value)


def warned(mistake: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING, "failsoft"):
        made = mistake()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
        flush_log(5)
    return caplog.text


def command(here: Path, monkeypatch: pytest.MonkeyPatch, *args: str, **files: str) -> str:
    """What a command prints in a directory with these files."""
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(here)
    monkeypatch.delitem(sys.modules, "travel", raising=False)
    monkeypatch.setenv("FAILSOFT_STATE", str(here / "state"))
    (here / "travel.py").write_text(TRAVEL)
    for name, text in files.items():
        (here / f"{name}.yaml").write_text(text)
    return CliRunner().invoke(cli, list(args)).output


TRAVEL = """
def search(city, stars=3):
    return [city]
def book(city, *, request_id=None, **more):
    return city
def plain(function):
    return lambda city: function()
@plain
def changed():
    return 1
"""

# --- manifests and plans ------------------------------------------------------------------------------------------------

READS = "read_only: true"
MANIFESTS = [
    (f"tools: {{a: {{fallbacks: [b, b], {READS}}}, b: {{{READS}}}}}", "fallbacks[1]: b has been tried before", "drop one"),
    (
        "tools: {a: {fallbacks: [{tool: b, handle_errors: [UNAVAILABLE, INTERNAL]}, {tool: b, handle_errors: [INTERNAL]}]},"
        " b: {read_only: true}}",
        "fallbacks[1]: b has been tried before for these errors",
        "drop one",
    ),
    (
        f"tools: {{a: {{cooldown: {{cooldown_duration: 20}}, {READS}}}}}",
        "the circuit stays open for only 20ms",
        'write a unit, like "20s"',
    ),
    (
        f"tools: {{a: {{fallbacks: [{{tool: b, cooldown: {{cooldown_duration: 30}}}}], {READS}}}, b: {{{READS}}}}}",
        "fallbacks[0].cooldown: the circuit stays open for only 30ms",
        'like "20s"',
    ),
    (
        f"tools: {{a: {{classification: [{{http_status: 503, as: permanent}}, {{http_status: 503, as: transient}}], {READS}}}}}",
        "classification[1]: is never reached",
        "an earlier entry matches everything that this one matches",
    ),
    (
        f"policies: [{{name: x, when: {{tags: slwo}}, then: escalate}}]\ntools: {{a: {{tags: [slow], {READS}}}}}",
        "no tool of the manifest has the tag slwo",
        "did you mean slow?",
    ),
    ("policies: [{name: x, when: {code: 503}, then: escalate}]", "503 is not an error code", "write UNAVAILABLE"),
    ("tools: {a: {entrypoint: {function: 'travel.py:search'}}}", "names a file", 'write the module, "travel:search"'),
    ("tools: {a: {entrypoint: {command: [ls], env: [$KEY]}}}", "'$KEY' is not the name of a variable", 'like "PATH"'),
    ("tools: {a: {disabled: true}}", "disabled: is not known here", "write enabled: false"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wrong", "right"), MANIFESTS, ids=[wrong for _, wrong, _ in MANIFESTS])
def test_manifests(text: str, wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command(tmp_path, monkeypatch, "check", failsoft=text)
    assert wrong in said
    assert right in said


def test_a_manifest_with_several_ways_to_one_fallback_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallbacks = "[{tool: b, handle_errors: [UNAVAILABLE]}, {tool: b, handle_errors: [INTERNAL]}]"
    text = f"tools: {{a: {{fallbacks: {fallbacks}, {READS}}}, b: {{cooldown: {{cooldown_duration: 2000}}, {READS}}}}}"
    assert command(tmp_path, monkeypatch, "check", failsoft=text) == "failsoft.yaml: ok\n"


TOOLS = 'tools: {search: {entrypoint: {function: "travel:search"}, read_only: true}}'
PLANS = [
    ("[{tool: search, args: {city: x}, needs: [a]}]", "calls[0].needs: is not known here", "write depends_on"),
    ("[{tool: search, args: {city: x}, if: x}]", "calls[0].if: is not known here", "decide in code"),
    ("[{tool: search, args: {city: x}, fallbacks: [b]}]", "calls[0].fallbacks: is not known here", "option of the tool"),
    ("[{name: search}]", "calls[0].name: is not known here", "write tool for the tool's id"),
    ("{a: {tool: search}}", "is not a list", '[{"id": "a", "tool": "search"}]'),
    ("[]\nsteps: []", "steps: is not known here", "write calls"),
    ("[]\non_timeout: cancel", "on_timeout: is not known here", "write turn: {on_timeout: cancel} in the manifest"),
    ("[{tool: search, args: {city: {$ref: '$a'}}}, {id: a, tool: search}]", "depends on $a", "did you mean a?"),
    (
        "[{tool: search, args: {city: x}}, {tool: search, args: {city: y}}]\nmax_calls: 1",
        "max_calls: the plan has 2 calls and its turn may make 1",
        "the others are refused",
    ),
    (
        "[{tool: search, args: {city: x}}, {tool: search, args: {city: y}}]\nmax_calls_per_tool: 1",
        "the plan calls search 2 times and its turn may do so 1 times",
        "the others are refused",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "wrong", "right"), PLANS, ids=[wrong for _, wrong, _ in PLANS])
def test_plans(calls: str, wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command(tmp_path, monkeypatch, "check", "plan.yaml", failsoft=TOOLS, plan=f"calls: {calls}")
    assert wrong in said
    assert right in said


def test_a_position_in_a_list_is_written_in_brackets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = "calls: [{id: a, tool: search, args: {city: x}}, {tool: search, args: {city: {$ref: a.0}}}]"
    said = command(tmp_path, monkeypatch, "run", "plan.yaml", "--json", failsoft=TOOLS, plan=plan)
    fault = json.loads(said)["outcomes"]["search-1"]["fault"]
    assert "The value of a has no .0: it is a list of 1, write [0]" in fault["message"]


# --- options and functions of tools -------------------------------------------------------------------------------------


class Travel:
    @classmethod
    def search(cls, city: str) -> str:
        return city

    def unbound(cls, city: str) -> str:
        return city


def by_star(*cities: str) -> str:
    return str(cities)


@pytest.mark.parametrize(
    ("fn", "options", "warning"),
    [
        (
            search,
            {"retry": {"initial_delay": "5s", "max_delay": "9s"}},
            "2s is shorter than the delay of the first retry",
        ),
        (search, {"fallbacks": ["book", "book"]}, "search: fallbacks[1]: book has been tried before"),
        (search, {"cooldown": {"cooldown_duration": 20}}, "the circuit stays open for only 20ms"),
        (Travel.unbound, {}, "calls by name cannot fill cls: register the method of the class"),
        (by_star, {}, "calls by name cannot fill *cities: give its function named parameters"),
    ],
)
def test_a_tool_that_is_odd_is_logged(
    fn: Callable[..., Any], options: dict[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert warning in warned(lambda: Runtime().add(fn, **options), caplog)


def test_a_bound_class_method_is_not_odd(caplog: pytest.LogCaptureFixture) -> None:
    assert "cannot fill" not in warned(lambda: Runtime().add(Travel.search), caplog)


def test_a_misspelt_entry_is_found_for_tools_of_frameworks_too(caplog: pytest.LogCaptureFixture) -> None:
    said = warned(lambda: Runtime({"tools": {"get_prise": {"timeout": "3s"}}}).declare("get_price"), caplog)
    assert "get_price: the manifest says nothing about this tool; did you mean get_prise?" in said


# --- what the source of a function shows --------------------------------------------------------------------------------

SOURCES = [
    ("search", "", "calls[0].args.ctiy: search has no parameter 'ctiy'", "did you mean city?"),
    ("search", "", "calls[1].args: search needs city", ""),
    ("search", "idempotency_key: request_id", "tools.search.idempotency_key: the function has no parameter", ""),
    ("search", "defaults: {citi: x}", "tools.search.defaults.citi: the function has no parameter", "did you mean city?"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "option", "wrong", "right"), SOURCES, ids=[wrong for _, _, wrong, _ in SOURCES])
def test_functions_in_this_directory(
    function: str, option: str, wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = f'{{function: "travel:{function}"}}'
    text = f"tools:\n  search:\n    entrypoint: {entry}\n    idempotent: true\n    {option}\n"
    plan = "calls: [{tool: search, args: {ctiy: x}}, {tool: search, args: {stars: 4}}]"
    said = command(tmp_path, monkeypatch, "check", "plan.yaml", failsoft=text, plan=plan)
    assert wrong in said
    assert right in said


@pytest.mark.parametrize(
    ("function", "args"), [("book", "{any: 1}"), ("changed", "{town: x}"), ("search", "{city: x}")]
)
def test_functions_that_may_take_other_arguments(
    function: str, args: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'tools: {{a: {{entrypoint: {{function: "travel:{function}"}}, {READS}}}}}'
    plan = f"calls: [{{tool: a, args: {args}}}]"
    said = command(tmp_path, monkeypatch, "check", "plan.yaml", failsoft=text, plan=plan)
    assert said == "failsoft.yaml, plan.yaml: ok\n"


def test_a_misspelt_module_of_this_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'tools: {{a: {{entrypoint: {{function: "travl:search"}}, {READS}}}}}'
    said = command(tmp_path, monkeypatch, "check", failsoft=text)
    assert (
        "warning: tools.a.entrypoint.function: there is no module travl in this directory; did you mean travel?" in said
    )
    other = f'tools: {{a: {{entrypoint: {{function: "json:loads"}}, {READS}}}}}'
    assert command(tmp_path, monkeypatch, "check", failsoft=other) == "failsoft.yaml: ok\n"


# --- files and commands -------------------------------------------------------------------------------------------------


def test_a_trace_is_not_appended_to_a_file_of_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plan = "calls: [{tool: search, args: {city: x}}]"
    said = command(tmp_path, monkeypatch, "run", "plan.yaml", "--trace", "failsoft.yaml", failsoft=TOOLS, plan=plan)
    assert "--trace failsoft.yaml: it has other content than events" in said
    assert "name another file" in said

    async def trace_into_a_module() -> None:
        async with Runtime(trace=tmp_path / "travel.py") as rt:
            rt.add(search)
            await rt.call("search")

    assert "travel.py cannot be written (it has other content" in warned(trace_into_a_module, caplog)
    assert (tmp_path / "travel.py").read_text() == TRAVEL
    assert (tmp_path / "failsoft.yaml").read_text() == TOOLS


def test_a_trace_is_appended_to_a_trace(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def trace() -> None:
        async with Runtime(trace=tmp_path / "trace.jsonl") as rt:
            rt.add(search)
            await rt.call("search")

    (tmp_path / "trace.jsonl").touch()
    assert "cannot be written" not in warned(trace, caplog) + warned(trace, caplog)
    assert (tmp_path / "trace.jsonl").read_text().count("CallSucceeded") == 2


COMMANDS = [
    (("trace", "export", "--trace", "example", "-o", "x.html", "--format", "jsonl"), "asks for html", "drop one"),
    (("token", "list", "--tokens", "nowhere.json"), "there is no token file nowhere.json", "failsoft token add"),
    (("token", "rotate", "--tokens", "nowhere.json"), "there is no token file nowhere.json", "failsoft token add"),
    (("token", "remove", "operator"), "No token may operate the daemon any more", "failsoft token add NAME"),
    (("serve", "--host", "http://localhost"), "--host http://localhost: expected a name", "--port names the port"),
    (("serve", "--host", "localhost:8585"), "--host localhost:8585: expected a name", "--port names the port"),
    (("serve", "--host", "8585"), "--host 8585: expected a name", "--port names the port"),
    (("serve", "--host", ""), "--host : expected a name", "IP address"),
]


@pytest.mark.parametrize(("args", "wrong", "right"), COMMANDS, ids=[" ".join(args) for args, _, _ in COMMANDS])
def test_commands(
    args: tuple[str, ...], wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = command(tmp_path, monkeypatch, *args)
    assert wrong in said
    assert right in said
    assert not (tmp_path / "nowhere.json").exists()


# --- turns, reports and threads -----------------------------------------------------------------------------------------


def turn_with(body: Callable[[Any], Any]) -> Callable[[], Any]:
    async def mistake() -> None:
        rt = Runtime()
        rt.add(search)
        async with rt.turn() as turn:
            made = body(turn)
            if asyncio.iscoroutine(made):
                await made

    return mistake


async def hand_over_a_task(turn: Any) -> None:
    turn.call("search", {"city": asyncio.ensure_future(asyncio.sleep(0))})


async def reported(look: Callable[[Any, Any], Any]) -> None:
    rt = Runtime()
    rt.add(search)
    async with rt.turn() as turn:
        handle = turn.call("search", id="flights")
    look(turn.report, handle)


TURNS: list[tuple[Callable[[], Any], str, str]] = [
    (turn_with(hand_over_a_task), "an argument is a Task, not its result", "write await before it"),
    (turn_with(lambda turn: turn.call("search", id="")), "id: '' is empty", "write one, or leave it out"),
    (turn_with(lambda turn: turn.call("search", depends_on=None)), "write a list of handles or ids", "depends_on=[…]"),
    (lambda: reported(lambda report, _: report.results["flihgts"]), "there is no result of call", "did you mean flights?"),
    (lambda: reported(lambda report, handle: report.results[handle]), "there is no result of call", "write handle.id"),
    (lambda: reported(lambda report, handle: report.outcomes[handle]), "are found by id", "write handle.id, 'flights'"),
    (lambda: reported(lambda report, _: report.failures["flights"]), "there is no such outcome of call 'flights'", ""),
    (lambda: Runtime().metrics("search")["error_cuont"], "there is no metric", "did you mean error_count?"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "wrong", "right"), TURNS, ids=[f"{wrong}-{right}" for _, wrong, right in TURNS])
def test_turns_and_reports(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def test_results_are_mappings_as_before() -> None:
    def look(report: Any, _: Any) -> None:
        assert report.results == {"flights": "Paris"}
        assert json.dumps(report.results) == '{"flights": "Paris"}'
        assert repr(report.results) == "{'flights': 'Paris'}"
        assert pickle.loads(pickle.dumps(report.results)) == report.results
        assert report.results.get("hotels") is None

    asyncio.run(reported(look))


def test_a_default_that_nothing_uses(caplog: pytest.LogCaptureFixture) -> None:
    plain = turn_with(lambda turn: turn.call("search", {"city": "x"}, defaults={"city": "Rome"}))
    assert "search: defaults: no other call fills 'city' here" in warned(plain, caplog)


def test_a_default_that_may_be_used_is_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    nested = turn_with(lambda turn: turn.call("search", {"city": [turn.call("search")]}, defaults={"city": "Rome"}))
    assert "no other call fills" not in warned(nested, caplog)


# --- frameworks, telemetry and the daemon's client ----------------------------------------------------------------------


class FrameworkTool:
    name = "search"
    description = "Search " * 100


CLIENTS: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: Runtime().tool(FrameworkTool()), "is not callable", "decorate the function first"),  # type: ignore[type-var]
    (lambda: Client("http://localhost:1", token="t", timeout=3), "timeout: 3 has no unit", 'write "3s"'),  # type: ignore[arg-type]
    (lambda: Client("http://localhost:1", token="t").decide("x"), "expected an ErrorReport, got str", "report_error"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "wrong", "right"), CLIENTS, ids=[wrong for _, wrong, _ in CLIENTS])
def test_frameworks_and_clients(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def observed(**options: Any) -> Callable[[], Any]:
    async def calls() -> None:
        rt = Runtime(instruments=[OpenTelemetry(**options)])
        rt.add(search)
        await rt.call("search")
        await rt.call("search")

    return calls


def test_opentelemetry_without_a_provider(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = {"tracer_provider": NoOpTracerProvider(), "meter_provider": NoOpMeterProvider()}
    assert warned(observed(**nowhere), caplog).count("no SDK is set up, so spans and metrics go nowhere") == 1
    caplog.clear()
    assert "go nowhere" not in warned(observed(**nowhere | {"tracer_provider": TracerProvider()}), caplog)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert "go nowhere" not in warned(observed(**nowhere), caplog)


# --- mistakes that look like successes ----------------------------------------------------------------------------------


def called(fn: Callable[..., Any], times: int = 1, **options: Any) -> Callable[[], Any]:
    async def calls() -> None:
        rt = Runtime()
        rt.add(fn, **({"read_only": True} | options))
        for _ in range(times):
            await rt.call(fn.__name__)

    return calls


def returns(value: Any) -> Callable[..., Any]:
    async def search() -> Any:
        return value

    return search


def forgets_return(value: Any) -> None:
    value["ok"] is False  # noqa: B015


def placeholder(value: Any) -> None:
    """No failure yet."""


def raises(value: Any) -> None:
    if not value["ok"]:
        raise ValueError(value)


async def count_rooms() -> int:
    return 3


FAILED_IF: list[tuple[Callable[..., Any], Any, str, str]] = [
    (returns({"success": False}), {"sucess": False}, "no field sucess", "did you mean success?"),
    (returns({"isError": True}), {"is_error": True}, "no field is_error", "did you mean isError?"),
    (returns({"result": {"status": "error"}}), {"result": {"staus": "error"}}, "no field result.staus", "result.status?"),
    (returns('{"status": "error"}'), {"stauts": ["error"]}, "no field stauts", "did you mean status?"),
    (returns("Error: no such city"), {"ok": False}, "reads like an error and has no field ok", 'text: "^Error"'),
    (returns("ApiError: 503"), {"ok": False}, "reads like an error and has no field ok", 'text: "^Error"'),
    (count_rooms, {"ok": False}, "a value of type int has none", "give a function of the value"),
    (returns({"ok": False}), forgets_return, "forgets_return never returns anything", "add a return"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "failed_if", "wrong", "right"), FAILED_IF, ids=[row[2] for row in FAILED_IF])
def test_a_failed_if_that_never_matches(
    fn: Callable[..., Any], failed_if: Any, wrong: str, right: str, caplog: pytest.LogCaptureFixture
) -> None:
    misuse_log.cache_clear()
    said = warned(called(fn, 3, failed_if=failed_if), caplog)
    assert said.count(wrong) == 1
    assert right in said


@pytest.mark.parametrize(
    ("value", "failed_if"),
    [
        ({"status": "fine", "state": "error"}, {"status": "error"}),
        ({"results": []}, {"error": True}),  # only failures have the field
        ({"errors": []}, {"error": True}),
        ({"mode": 3}, {"code": 3}),
        ({"error_2": True}, {"error_1": True}),
        ("Sunny, 21 degrees", {"ok": False}),  # only failures are JSON
        ("Errors are human", {"ok": False}),
        ("Error: no such city", {"ok": False, "text": "^Fatal"}),
        ({"ok": True}, placeholder),
        ({"ok": True}, raises),
        ({"ok": True}, lambda value: None),
        ({"ok": True}, lambda value: not value["ok"]),
    ],
)
def test_a_failed_if_that_may_match_is_no_mistake(value: Any, failed_if: Any, caplog: pytest.LogCaptureFixture) -> None:
    misuse_log.cache_clear()
    assert "failed_if" not in warned(called(returns(value), 3, failed_if=failed_if), caplog)


def test_a_tool_that_returns_a_verified(caplog: pytest.LogCaptureFixture) -> None:
    misuse_log.cache_clear()
    assert warned(called(returns(Verified.none()), 3), caplog).count("it returned a Verified") == 1


def test_a_tool_that_answers_for_verify(caplog: pytest.LogCaptureFixture) -> None:
    async def ask_and_book() -> None:
        rt = Runtime()

        @rt.tool(read_only=True)
        async def find_booking(arguments: Any = None, key: Any = None, fault: Any = None) -> Any:
            return Verified.happened("booked")

        @rt.tool(read_only=True)
        async def look() -> Any:
            return Verified.happened("paid")

        async def ask(arguments: Any, key: Any, fault: Any) -> Any:
            return (await rt.call("look")).value

        @rt.tool(idempotent=False, verify=find_booking)
        async def book() -> str:
            raise ConnectionResetError("reset by peer")

        @rt.tool(idempotent=False, verify=ask)
        async def pay() -> str:
            raise ConnectionResetError("reset by peer")

        assert (await rt.call("book")).value == "booked"
        assert (await rt.call("pay")).value == "paid"

    misuse_log.cache_clear()
    assert "Verified" not in warned(ask_and_book, caplog)


# --- policies in code ---------------------------------------------------------------------------------------------------


def fails_with(policy: Mapping[str, Any], *tools: str) -> Callable[[], Any]:
    async def calls() -> None:
        async def fail() -> None:
            raise TimeoutError("slow")

        rt = Runtime(policies=[{"name": "p", **policy}])
        for tool in tools:
            rt.add(fail, id=tool, read_only=True, retry={"max_attempts": 1})
        for _ in range(2):
            await rt.call(tools[-1])

    return calls


def test_a_placeholder_in_a_policys_message(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "message: {city} is shown unchanged: a policy's text has no placeholders"
    then = {"then": {"message": "No flights to {city}"}}
    assert said in warned(fails_with(then, "search"), caplog)
    text = "policies: [{name: x, then: {message: 'No flights to {city}'}}]"
    assert "then.message: {city} is shown unchanged" in command(tmp_path, monkeypatch, "check", failsoft=text)
    caplog.clear()
    assert "placeholder" not in warned(fails_with({"then": {"message": 'Send {"a": 1} or {}'}}, "search"), caplog)


def test_a_policy_for_a_misspelt_tool(caplog: pytest.LogCaptureFixture) -> None:
    when = {"when": {"tool": "serch"}, "then": "escalate"}
    assert warned(fails_with(when, "search"), caplog).count("there is no tool serch; did you mean search?") == 1


@pytest.mark.parametrize("names", ["search", "sear*", "flights", "search_v1", ["search", "search_v1"]])
def test_a_policy_for_other_tools_is_no_mistake(names: Any, caplog: pytest.LogCaptureFixture) -> None:
    when = {"when": {"tool": names}, "then": "escalate"}
    assert "there is no tool" not in warned(fails_with(when, "search", "search_v2"), caplog)


# --- comparisons that are never true ------------------------------------------------------------------------------------


def compared(compare: Callable[[Any], bool]) -> Callable[[], Any]:
    async def look() -> None:
        async def fail() -> None:
            raise ConnectionRefusedError("refused")

        rt = Runtime()
        rt.add(fail, read_only=True, retry={"max_attempts": 1})
        outcome = await rt.call("fail")
        assert outcome.fault is not None
        compare(SimpleNamespace(code=outcome.fault.code, state=rt.health("fail").state))

    return look


NEVER: list[tuple[Callable[[Any], bool], str, str]] = [
    (lambda seen: seen.code == "UNAVAILBLE", "fault.code", 'did you mean "UNAVAILABLE"?'),
    (lambda seen: seen.code == "Unavailable", "fault.code", 'did you mean "UNAVAILABLE"?'),
    (lambda seen: seen.code != "deadline exceeded", "fault.code", 'did you mean "DEADLINE_EXCEEDED"?'),
    (lambda seen: seen.code in ("NOT_FUOND", "x"), "fault.code", 'did you mean "NOT_FOUND"?'),
    (lambda seen: seen.code == 503, "fault.code", "write fault.http_status == 503"),
    (lambda seen: seen.state == "OPEN", "health.state", 'did you mean "open"?'),
    (lambda seen: seen.state != "half-open", "health.state", 'did you mean "half_open"?'),
]  # fmt: skip


@pytest.mark.parametrize(("compare", "wrong", "right"), NEVER, ids=[right for *_, right in NEVER])
def test_a_comparison_that_is_never_true(
    compare: Callable[[Any], bool], wrong: str, right: str, caplog: pytest.LogCaptureFixture
) -> None:
    misuse_log.cache_clear()
    said = warned(compared(compare), caplog)
    assert wrong in said
    assert right in said


def test_comparisons_that_may_be_true(caplog: pytest.LogCaptureFixture) -> None:
    def compare(seen: Any) -> bool:
        assert seen.code == "UNAVAILABLE" == seen.code
        assert seen.code in ("ECONNRESET", "UNAVAILABLE")
        assert seen.code in {"NOT_FOUND", Code.UNAVAILABLE}
        assert seen.code != "NOT_FOUND"
        assert seen.code != None  # noqa: E711
        assert {seen.code: 1}["UNAVAILABLE"] == 1
        assert json.loads(json.dumps([seen.code, seen.state])) == ["UNAVAILABLE", "closed"]
        assert pickle.loads(pickle.dumps((seen.code, seen.state))) == (seen.code, seen.state)
        assert {seen.state: 1}["closed"] == 1
        assert seen.state != "open"
        assert seen.state in ("closed", "broken")
        return True

    misuse_log.cache_clear()
    assert "never true" not in warned(compared(compare), caplog)


# --- threads and instruments --------------------------------------------------------------------------------------------


def test_a_thread_without_a_name() -> None:
    thread = Runtime().threads[""]
    for use in (
        lambda: thread.offers,
        lambda: thread.retry("x"),
        thread.clear,
        thread.close_dangling,
        lambda: thread.dangling,
    ):
        assert "'' is no conversation: name the one" in refusal(use)
    assert thread.unavailable == ()


def test_two_instruments_for_one_place(caplog: pytest.LogCaptureFixture) -> None:
    twice = "OpenTelemetry is there twice, and records everything twice"
    assert twice in warned(lambda: Runtime(instruments=[OpenTelemetry(), OpenTelemetry(record_results=True)]), caplog)
    caplog.clear()
    other = OpenTelemetry(tracer_provider=TracerProvider())
    assert twice not in warned(lambda: Runtime(instruments=[OpenTelemetry(), other]), caplog)


class Answers(Model):
    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        text = ResponseOutputText(annotations=[], text="done", type="output_text")
        said = ResponseOutputMessage(id="1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def runs(body: Callable[[Agent[Any], Callable[[Agent[Any]], Any]], Any]) -> Callable[[], Any]:
    async def run(agent: Agent[Any]) -> None:
        await Runner.run(agent, "hello", run_config=RunConfig(tracing_disabled=True))

    async def runs() -> None:
        await body(Agent(name="travel", model=Answers()), run)

    return runs


async def drop_the_guarded_agent(agent: Agent[Any], run: Callable[[Agent[Any]], Any]) -> None:
    guard_agent(agent, Runtime())
    gc.collect()
    await run(agent)
    await run(agent)


async def run_both(agent: Agent[Any], run: Callable[[Agent[Any]], Any]) -> None:
    guarded = guard_agent(agent, Runtime())
    await run(guarded)
    del guarded
    gc.collect()
    await run(agent)


async def keep_the_guarded_agent(agent: Agent[Any], run: Callable[[Agent[Any]], Any]) -> None:
    guarded = guard_agent(agent, Runtime())
    await run(agent)
    await run(guarded)


async def run_another_agent(agent: Agent[Any], run: Callable[[Agent[Any]], Any]) -> None:
    guard_agent(agent, Runtime())
    gc.collect()
    await run(Agent(name="travel", model=Answers()))


def test_a_guarded_agent_that_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    said = "travel runs without failsoft: guard_agent returns the guarded agent"
    assert warned(runs(drop_the_guarded_agent), caplog).count(said) == 1


@pytest.mark.parametrize("body", [run_both, keep_the_guarded_agent, run_another_agent])
def test_an_agent_that_runs_unguarded_on_purpose(body: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert "without failsoft" not in warned(runs(body), caplog)


# --- messages -----------------------------------------------------------------------------------------------------------


async def keyed(request: str = "") -> str:
    return request


def of_another_runtime() -> Any:
    return Runtime().call(Runtime().tool(search))


def with_key(key: Any) -> Callable[[], Any]:
    async def call() -> Any:
        rt = Runtime()
        rt.add(keyed, idempotency_key="request")
        return await rt.call("keyed", idempotency_key=key)

    return call


def details() -> Any:
    rt = Runtime()
    rt.add(search)
    return rt.tools.search  # type: ignore[attr-defined]


MESSAGES: list[tuple[Callable[[], Any], str, str]] = [
    (turn_with(lambda turn: len(turn.call("search"))), "type 'Handle' has no len()", "await handle.value()"),
    (turn_with(lambda turn: asyncio.create_task(turn.call("search"))), "a coroutine was expected", "await handle.value()"),
    (turn_with(lambda turn: int(turn.call("search"))), "int(): 'search-1' is a handle", "await handle.value()"),
    (turn_with(lambda turn: float(turn.call("search"))), "float(): 'search-1' is a handle", "await handle.value()"),
    (details, "has no attribute 'search'", 'write rt.tools["search"]'),
    (of_another_runtime, "search is a tool of another Runtime", "rt.add() it here"),
    (with_key(3), "keyed: idempotency_key: 3 is not a text", "put str() around it"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "wrong", "right"), MESSAGES, ids=[wrong for _, wrong, _ in MESSAGES])
def test_messages_say_what_to_write(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def test_a_tool_that_is_disabled_for_no_reason_is_disabled() -> None:
    rt = Runtime()
    rt.add(search)
    rt.disable("search", reason=None)
    assert not rt.health("search").available


@pytest.mark.parametrize("options", [{"id": "get_price "}, {"id": " get_price"}, {"label": "  "}])
def test_names_of_blanks(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert "blank" in warned(lambda: Runtime().add(search, **options), caplog)


@pytest.mark.parametrize("options", [{"id": "get_price"}, {"id": "get price"}, {"label": "Price of it"}, {}])
def test_other_names_are_no_mistake(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert "blank" not in warned(lambda: Runtime().add(search, **options), caplog)


@pytest.mark.parametrize(
    ("path", "right"), [("./app:rt", "app:rt"), ("app.py:rt", "app:rt"), ("src/app/main.py", "app.main:rt")]
)
def test_a_file_in_place_of_a_module(path: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command(tmp_path, monkeypatch, "tools", path)
    assert f"{path} names a file: write the module, as in" in said
    assert right in said


def test_a_reference_to_the_value_of_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = "calls: [{id: a, tool: search, args: {city: x}}, {tool: search, args: {city: {$ref: a.value}}}]"
    said = command(tmp_path, monkeypatch, "run", "plan.yaml", "--json", failsoft=TOOLS, plan=plan)
    fault = json.loads(said)["outcomes"]["search-1"]["fault"]
    assert "has no .value: it is a list of 1; the call's id alone refers to its value" in fault["message"]
