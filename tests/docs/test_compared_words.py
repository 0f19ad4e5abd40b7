"""Words that a user compares with: the right ones are silent, a word that there is not is answered with the right one."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from failsoft import CallFailed, Decision, ErrorReport, Fault, Runtime, classify
from failsoft.core.model.compared import Shown
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.runtime.registry import _log_misuse as misuse_log


@pytest.fixture(autouse=True)
def _each_mistake_is_new() -> None:
    misuse_log.cache_clear()


async def search() -> None:
    raise ConnectionRefusedError("refused")


def runtime(**options: Any) -> Runtime:
    rt = Runtime(**options)
    rt.add(search, read_only=True, retry={"max_attempts": 1})
    return rt


def called(**options: Any) -> Any:
    outcome = asyncio.run(runtime(**options).call("search"))
    return SimpleNamespace(fault=outcome.fault, strategy=outcome.decision and outcome.decision.strategy)


def raised() -> Any:
    rt = runtime()
    with pytest.raises(CallFailed) as failed:
        asyncio.run(rt.call("search")).unwrap()
    return SimpleNamespace(fault=failed.value.fault, strategy=failed.value.outcome.decision.strategy)  # type: ignore[union-attr]


def in_a_turn() -> Any:
    async def run() -> Any:
        async with runtime().turn() as turn:
            turn.call("search", id="a")
        return turn.report.outcomes["a"]

    outcome = asyncio.run(run())
    return SimpleNamespace(fault=outcome.fault, strategy=outcome.decision.strategy)


def asked() -> Any:
    found: list[ErrorReport] = []

    class Ask:
        async def handle(self, report: ErrorReport) -> Decision:
            found.append(report)
            return Decision("escalate", "asked")

    seen = called(error_handler=Ask())
    return SimpleNamespace(fault=found[0].fault, strategy=seen.strategy)


ROUTES = [called, raised, in_a_turn, asked]


def said(look: Callable[[], object], caplog: pytest.LogCaptureFixture) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "failsoft"):
        look()
        flush_log(5)
    return "\n".join(record.getMessage() for record in caplog.records if "true" in record.getMessage())


NEVER: list[tuple[Callable[[Any], object], str]] = [
    (lambda seen: seen.fault.classification == "Transient", 'did you mean "transient"?'),
    (lambda seen: seen.fault.classification != "temporary", 'did you mean "transient"?'),
    (lambda seen: seen.fault.classification == "UNAVAILABLE", 'it is "transient" or "permanent"'),
    (lambda seen: "PERMANENT" == seen.fault.classification, 'did you mean "permanent"?'),  # noqa: SIM300
    (lambda seen: seen.fault.category == "transient", 'did you mean "tool_transient"?'),
    (lambda seen: seen.fault.category in ("validation", "misconfigured"), 'did you mean "tool_validation"?'),
    (lambda seen: seen.fault.category == "network", 'it is "tool_unavailable", '),
    (lambda seen: seen.fault.effect == "None", 'did you mean "none"?'),
    (lambda seen: seen.fault.effect == "nothing", 'did you mean "none"?'),
    (lambda seen: seen.fault.effect == "side effects", 'it is "none", "unknown" or "happened"'),
    (lambda seen: seen.fault.effect == False, "compare with a text"),  # noqa: E712
    (lambda seen: not seen.fault.effect, 'write fault.effect != "none"'),
    (lambda seen: "yes" if seen.fault.effect else "no", 'write fault.effect != "none"'),
    (lambda seen: seen.fault.code == "Unavailable", 'did you mean "UNAVAILABLE"?'),
    (lambda seen: seen.strategy == "Escalate", 'did you mean "escalate"?'),
    (lambda seen: seen.strategy == "fallback", 'did you mean "alternative_tool"?'),
    (lambda seen: seen.strategy in ("abort", "retry"), 'it is "retry", "alternative_tool", '),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("compare", "right"), NEVER)
def test_a_word_that_there_is_not(
    compare: Callable[[Any], object], right: str, route: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    seen = route()
    warned = said(lambda: compare(seen), caplog)
    assert right in warned
    assert said(lambda: compare(seen), caplog) == ""  # once


@pytest.mark.parametrize("route", ROUTES)
def test_words_that_there_are(route: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> None:
    seen = route()
    fault: Fault = seen.fault

    def use() -> None:
        assert fault.classification == "transient" != "permanent" == "permanent"
        assert fault.classification != "permanent"
        assert fault.category in {"tool_transient", "tool_unavailable"}
        assert fault.category not in ("tool_validation", "tool_misconfigured")
        assert {"transient": 1, "retry": 2, "x": 3}[fault.classification] == 1
        assert {"none": "no", "Nothing": "?"}.get(fault.effect) == "no"
        assert {"a", "b", "tool_bug"}.isdisjoint({fault.category, fault.effect})
        assert fault.effect != ""
        assert fault.effect is not None
        assert f"{fault.effect:>6}" == "  none"
        assert fault.effect.upper() == "NONE"
        assert sorted([fault.effect, "a", "z"]) == ["a", "none", "z"]
        match fault.effect:
            case "happened" | "unknown":
                raise AssertionError
            case "none":
                pass
        assert fault == fault._replace()
        assert fault != fault._replace(effect="unknown")
        assert seen.strategy == "escalate"
        assert seen.strategy not in ("retry", "alternative_tool")

    assert said(use, caplog) == ""


def test_an_effect_that_is_known_to_be_possible_is_a_true_condition(caplog: pytest.LogCaptureFixture) -> None:
    fault = classify(TimeoutError("late"))
    assert fault.effect == "unknown"
    assert said(lambda: fault.effect or "none", caplog) == ""


def test_faults_outside_of_calls(caplog: pytest.LogCaptureFixture) -> None:
    assert 'did you mean "permanent"?' in said(lambda: classify("401 Unauthorized").classification == "fatal", caplog)


def test_the_breakers_state_in_a_report(caplog: pytest.LogCaptureFixture) -> None:
    found: list[str] = []

    class Ask:
        async def handle(self, report: ErrorReport) -> Decision:
            if report.breaker_state == "CLOSED":
                found.append("never")
            return Decision("escalate", "asked")

    assert 'did you mean "closed"?' in said(lambda: called(error_handler=Ask()), caplog)
    assert not found


def test_the_type_of_an_event(caplog: pytest.LogCaptureFixture) -> None:
    found: list[object] = []

    def listen(event: Any) -> None:
        found.append(event.event_type == "tool_error")

    def right(event: Any) -> None:
        found.append(event.event_type == "ToolError" or event.event_type.startswith("Call"))

    def subscribed(listener: Callable[[Any], None]) -> Callable[[], None]:
        def run() -> None:
            rt = runtime()
            rt.subscribe(listener, inline=True)
            rt.call_sync("search")
            asyncio.run(rt.close())

        return run

    assert 'did you mean "ToolError"?' in said(subscribed(listen), caplog)
    assert not any(found)
    assert said(subscribed(right), caplog) == ""
    assert any(found)


def test_the_effect_of_a_tool(caplog: pytest.LogCaptureFixture) -> None:
    info = runtime().tools["search"]
    assert info.effect == "read"
    assert 'did you mean "read"?' in said(lambda: info.effect == "read_only", caplog)


def test_the_state_of_a_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def send() -> None:
        raise TimeoutError("late")

    rt = Runtime(store=f"sqlite:///{tmp_path}/failsoft.db")
    rt.add(send, idempotent=False)
    rt.call_sync("send", thread="t")
    (entry,) = rt.ledger.unknown()
    assert entry.state == "unknown"
    assert 'did you mean "happened"?' in said(lambda: entry.state == "done", caplog)
    assert json.loads(json.dumps(entry.to_dict()))["state"] == "unknown"
    asyncio.run(rt.close())


@pytest.mark.parametrize("route", ROUTES)
def test_data_has_plain_words(route: Callable[[], Any]) -> None:
    fault: Fault = route().fault
    for data in (fault.to_dict(), runtime().call_sync("search").to_dict()):
        assert json.loads(json.dumps(data)) == yaml.safe_load(yaml.safe_dump(data))
    for copied in (copy.deepcopy(fault), pickle.loads(pickle.dumps(fault))):
        assert copied._replace(cause=None) == fault._replace(cause=None)
    assert not any(isinstance(value, Shown) for value in pickle.loads(pickle.dumps(fault)))
