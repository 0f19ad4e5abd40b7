"""Everyday mistakes in manifests, plans, code and on the command line. None is silent: each is answered."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider

from failsoft import FailsoftError, Runtime
from failsoft.client import Client
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.otel import OpenTelemetry
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
        "an earlier entry matches all that it does",
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
        (search, {"retry": {"initial_delay": "5s", "max_delay": "9s"}}, "2s is over before the first retry"),
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
