"""Wrong units, misspelt exceptions and schemas, and names of other libraries: each is answered with what to write."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from failsoft import ManifestError, Override, Runtime
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.surfaces.cli import cli
from failsoft.testing import FaultPlan


def get_it(city: str = "x") -> str:
    return city


def refused(**options: Any) -> str:
    with pytest.raises(ManifestError) as error:
        Runtime().add(get_it, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("timeout", "right"),
    [
        (30, 'write "30s"'),
        ("30", 'write "30s"'),
        (2000, 'write "2000ms" or "2000s"'),
        ("30000", 'write "30000ms" or "30000s"'),
        (1500.5, 'write "1500.5ms" or "1500.5s"'),
    ],
)
def test_a_number_without_unit(timeout: Any, right: str) -> None:
    assert f"has no unit: {right}" in refused(timeout=timeout)


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({"retry": {"stop_max_attempt_number": 3}}, "write max_attempts"),
        ({"retry": {"max_tries": 3}}, "write max_attempts"),
        ({"retry": {"wait_initial": "1s"}}, "write initial_delay"),
        ({"retry": {"wait_max": "5s"}}, "write max_delay"),
        ({"retry": {"wait_jitter": 1}}, "write jitter_percent"),
        ({"retry": {"wait_exp_base": 2}}, "write multiplier"),
        ({"retry": {"wait_exponential_multiplier": 1}}, "write initial_delay, multiplier and max_delay"),
        ({"retry": {"stop_after_delay": 10}}, 'write max_total_time: "10s"'),
        ({"retry": {"reraise": True}}, "outcome.unwrap() raises its failure"),
        ({"retry": {"before_sleep": print}}, "rt.subscribe(fn)"),
        ({"retry": {"giveup": print}}, "write rules: "),
        ({"breaker": {"expected_exception": ValueError}}, "write classification"),
        ({"breaker": {"exclude": [ValueError]}}, "write classification"),
        ({"breaker": {"enabled": False}}, "a large failure_threshold"),
        ({"handle_tool_error": True}, "leave it out"),
        ({"return_direct": True}, "the framework's own tool"),
        ({"args_schema": dict}, "the framework's own tool"),
    ],
)
def test_names_of_other_libraries(options: dict[str, Any], right: str) -> None:
    assert right in refused(**options)


def logged(caplog: pytest.LogCaptureFixture, **options: Any) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "failsoft"):
        Runtime().add(get_it, read_only=True, **options)
    return caplog.text


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("ValueEror", "did you mean 'ValueError'?"),
        ("ValeuError", "did you mean 'ValueError'?"),
        ("timeouterror", "did you mean 'TimeoutError'?"),
        ("builtins.ConectionError", "did you mean 'ConnectionError'?"),
        ("ValueError(", "is not the name of a class"),
        ("ValueError, KeyError", "is not the name of a class"),
        ("*Error", "is not the name of a class"),
    ],
)
def test_an_exception_that_there_is_not(name: str, right: str, caplog: pytest.LogCaptureFixture) -> None:
    said = logged(caplog, classification=[Override(exception=name, as_="permanent")])
    assert "classification[0].exception" in said
    assert right in said


@pytest.mark.parametrize(
    "name",
    [
        "ValueError",
        "NotFoundError",
        "httpx.ReadTimeout",
        "RequestError",
        "APIError",
        "builtins.OSError",
        "f.<locals>.E",
    ],
)
def test_an_exception_that_there_may_be(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, classification=[Override(exception=name, as_="permanent")]) == ""


def test_a_keyword_that_checks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert "did you mean 'type'?" in logged(caplog, output={"typ": "array"})
    assert "did you mean 'properties'?" in logged(caplog, output={"type": "object", "property": {}, "propertys": {}})
    assert logged(caplog, output={"type": "object", "properties": {"a": {}}, "x-own": 1, "$id": "y"}) == ""


@pytest.mark.parametrize("written", ["$ref a", "$ref: a"])
def test_a_reference_as_a_text(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("lookup.py").write_text("def get_it(city: str) -> str:\n    return city\n")
    Path("failsoft.yaml").write_text('tools: {get_it: {entrypoint: {function: "lookup:get_it"}, read_only: true}}\n')
    calls = f'calls:\n  - {{id: a, tool: get_it, args: {{city: x}}}}\n  - {{id: b, tool: get_it, args: {{city: "{written}"}}}}\n'
    Path("plan.yaml").write_text(calls)
    CliRunner().invoke(cli, ["run", "plan.yaml"])
    assert 'is passed to the tool as a text; write {"$ref": "a"} for the value of a' in caplog.text


def test_the_result_of_a_short_id() -> None:
    async def run() -> None:
        rt = Runtime()
        rt.add(get_it, id="ok", read_only=True)
        async with rt.turn() as turn:
            turn.call("ok")
        turn.report.results["ok"]

    with pytest.raises(KeyError, match="did you mean ok-1"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "right"), [("is_success", "outcome.status"), ("raise_for_status", "outcome.unwrap()")]
)
def test_attributes_of_other_libraries(name: str, right: str) -> None:
    rt = Runtime()
    rt.add(get_it, read_only=True)
    with pytest.raises(AttributeError) as error:
        getattr(rt.call_sync("get_it"), name)
    assert right in str(error.value)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("register", "rt.add(fn)"),
        ("invoke", "await rt.call(tool, arguments)"),
        ("shutdown", "await rt.close()"),
        ("on", "rt.subscribe(fn)"),
        ("from_yaml", "Runtime(manifest)"),
        ("unregister", "rt.disable(tool, reason)"),
    ],
)
def test_methods_of_other_libraries(name: str, right: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(Runtime(), name)
    assert right in str(error.value)


@pytest.mark.parametrize(("status", "said"), [(503, True), (404, True), (200, False), (304, False)])
def test_a_tool_that_returns_a_response(status: int, said: bool, caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(httpx.Response, id=f"get_page_{status}", read_only=True)
    rt.call_sync(f"get_page_{status}", {"status_code": status})
    flush_log(5)
    assert (f"with status {status}, which counts as a success: call raise_for_status()" in caplog.text) is said


def test_a_tool_whose_response_is_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(httpx.Response, id="get_page", read_only=True, failed_if=lambda page: page.status_code >= 500)
    assert rt.call_sync("get_page", {"status_code": 404}).status == "succeeded"
    flush_log(5)
    assert "counts as a success" not in caplog.text


@pytest.mark.parametrize(
    ("name", "right"), [("type", "event.event_type"), ("data", "event.fields"), ("tool", "event.tool_id")]
)
def test_fields_of_an_event(name: str, right: str) -> None:
    rt = Runtime()
    rt.add(get_it, read_only=True)
    seen: list[object] = []
    rt.subscribe(seen.append, inline=True)
    rt.call_sync("get_it")
    with pytest.raises(AttributeError) as error:
        getattr(seen[0], name)
    assert right in str(error.value)


def test_a_step_that_never_happens() -> None:
    with pytest.raises(ValueError, match=r"'503\*0' never happens"):
        FaultPlan("503*0, ok")
