"""Mistakes with verify, limits, exporters and the daemon. None is silent: each is answered with a correction."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from failsoft import FailsoftError, Instrument, Runtime, Verified
from failsoft.client import Client
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.otel import OpenTelemetry
from failsoft.prometheus import PrometheusCollector
from failsoft.surfaces.cli import cli
from failsoft.testing import virtual_time


async def pay(amount: int = 1, reference: str = "") -> dict[str, Any]:
    return {"ok": False, "amount": amount, "reference": reference}


def find(arguments: Any, key: Any, fault: Any) -> Verified:
    return Verified.none()


def read_with(**more: Any) -> dict[str, Any]:
    return {"tool": "get_order", "happened_if": {"status": "paid"}, **more}


def refusal(mistake: Callable[[], Any]) -> str:
    with pytest.raises((FailsoftError, TypeError)) as refused:
        mistake()
    return str(refused.value)


OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"verify": "check"}, "verify: 'check' is not a function", 'nor a mapping such as {"tool": "get_order"'),
    ({"verify": find, "read_only": True}, "verify: a tool that is read_only is repeated", "drop one of the two"),
    ({"verify": find, "idempotent": True}, "verify: a tool that is idempotent is repeated", "drop one of the two"),
    ({"verify": find, "verify_delay": 1}, "verify_delay: 1 has no unit", 'write "1s"'),
    ({"verify_delay": "3s"}, "verify_delay: there is no verify that it could apply to", "drop verify_delay"),
    ({"verify_timeout": "3s"}, "verify_timeout: there is no verify that it could apply to", "drop verify_timeout"),
    ({"verify_key": "reference"}, "verify_key: there is no verify to use the key", "or use idempotency_key"),
    ({"verify": find, "verify_key": "ref"}, "verify_key: the function has no parameter 'ref'", "name another"),
    ({"verify": lambda: True}, "is not a function verify(arguments, key, fault)", ""),
    ({"verify": Verified}, "is not a function verify(arguments, key, fault)", ""),
    ({"verify": read_with(none_if={"status": "paid"})}, "happened_if and none_if are the same", "change or drop one"),
    ({"verify": True}, "verify: True is not a function verify(arguments, key, fault)", 'nor a mapping such as {"tool"'),
    ({"verify": read_with(arguments=["amount"])}, "arguments: ['amount'] is not a mapping", "from arguments to values"),
    ({"verify": find, "verify_key": "reference", "idempotency_key": "reference"}, "verify is never asked", "drop one"),
    (
        {"verify": find, "verify_timeout": "0s"},
        "verify_timeout: '0s' is not longer than zero",
        "write a number with a unit",
    ),
    ({"idle_timeout": 30}, "idle_timeout: 30 has no unit", 'write "30s"'),
    ({"idle_timeout": "60s", "timeout": "30s"}, "idle_timeout: 60s is longer than the timeout of 30s", "shorten"),
    ({"idle": "30s"}, "idle: is not known here", "did you mean idle_timeout?"),
    ({"progress_timeout": "30s"}, "progress_timeout: is not known here", 'write idle_timeout: "30s"'),
    ({"success_if": {"ok": True}}, "success_if: is not known here", "write failed_if"),
    ({"rate": {"calls": 100}}, "is not a rate", 'like "100/1m"'),
    ({"rate": "100/1d"}, "'1d' is not a duration", "a unit of ms, s, m or h"),
    ({"rps": 5}, "rps: is not known here", 'write rate: "100/1m"'),
    ({"breaker": {"window": 20, "failure_rate": 50}}, "failure_rate: 50 is too large", "write 1 or less"),
    ({"breaker": {"window": 20, "failure_rate": "50%"}}, "failure_rate: '50%' is not a number", ""),
    ({"breaker": {"min_calls": 5}}, "breaker.min_calls: needs a window", '{"window": 20, "min_calls": 5}'),
    ({"max_repeats": "5"}, "max_repeats: '5' is not a whole number", "between 1 and 100"),
    ({"failed_if": pay}, "is async and would not be awaited", "give a plain function"),
    ({"failed_if": {"text": "(unclosed"}}, "'(unclosed' is not a regular expression", "missing )"),
    ({"verify": Verified.none()}, "is not a function verify(arguments, key, fault)", ""),
    ({"verify": {"tool": "get_order"}}, "verify: expected a pattern", "happened_if, none_if or both"),
    ({"verify": {"tol": "a", "happened_if": 1}}, "verify: 'tol' is not one of tool", "did you mean tool?"),
    ({"verify": read_with(arguments={"id": "$amont"})}, "no parameter 'amont'", "did you mean amount?"),
    ({"verify": read_with(none_if={"$failed": "NOTFOUND"})}, "'NOTFOUND' is not an error code", "NOT_FOUND?"),
    ({"verify": read_with(none_if={"$faild": "NOT_FOUND"})}, "none_if: '$faild' is not known", "did you mean $failed?"),
    ({"verify": read_with(value="receipt")}, "value: 'receipt' is not \"$match\"", 'such as "$match.id"'),
    ({"verify": read_with(tool="pay")}, "verify: tool: pay is the write itself", "name a tool that reads"),
    ({"failed_if": {"ok": "false"}}, "failed_if: ok: 'false' is a text", "write false without quotes, or ['false']"),
    ({"failed_if": {"result": {"ok": "True"}}}, "failed_if: result.ok: 'True' is a text", "write true without quotes"),
    ({"failed_if": lambda: True}, "cannot be called with the value alone", "a function of one argument"),
    ({"failed_if": "ok"}, "failed_if: expected a pattern such as", "got 'ok'"),
    ({"failed_if": {}}, "failed_if: it has no condition", "name a field"),
    ({"rate": "100"}, "rate: '100' has no time", 'write "100/1m"'),
    ({"rate": 100}, "rate: 100 has no time", 'write "100/1m"'),
    ({"rate": "100/min"}, "rate: '100/min' is not a rate", 'write "100/1m"'),
    ({"rate": "5/second"}, "rate: '5/second' is not a rate", 'write "5/1s"'),
    ({"rate": "100/0s"}, "rate: '100/0s' is not a rate", "'0s' is not longer than zero"),
    ({"rate": "0/1m"}, "would allow no call at all", "write calls and a time"),
    ({"rate_limit": "100/1m"}, "rate_limit: is not known here", 'write rate: "100/1m"'),
    ({"breaker": {"failure_rate": 0.5}}, "breaker.failure_rate: needs a window", '{"window": 20, "failure_rate": 0.5}'),
    ({"breaker": {"window": 20, "min_calls": 30}}, "min_calls: 30 is not a whole number", "between 1 and 20"),
    ({"window": 20}, "window: is not known here", 'write breaker: {"window": 20, "failure_rate": 0.5}'),
    ({"max_calls": 3}, "max_calls: is not known here: it limits a turn", "rt.turn(max_calls=50)"),
    ({"max_repeats": 0}, "max_repeats: 0 is not a whole number", "between 1 and 100"),
    ({"max_repeats": 3, "polling": True}, "max_repeats: a polling tool may repeat a call", "drop one"),
    ({"polling": "yes"}, "polling: 'yes' is neither true nor false", ""),
    ({"verified": find}, "verified: is not known here", "write verify"),
    ({"poll": True}, "poll: is not known here", "write polling: true"),
    ({"error_if": {"ok": False}}, "error_if: is not known here", "write failed_if"),
]


@pytest.mark.parametrize(("options", "wrong", "right"), OPTIONS, ids=[wrong for _, wrong, _ in OPTIONS])
def test_options_of_a_tool(options: dict[str, Any], wrong: str, right: str) -> None:
    said = refusal(lambda: Runtime().add(pay, **options))
    assert wrong in said
    assert right in said
    assert "test_newer_mistakes.py:" in said  # where the function is


def test_texts_true_and_false_can_be_compared_in_a_list() -> None:
    rt = Runtime()
    rt.add(pay, failed_if={"reference": ["false"]})
    assert asyncio.run(rt.call("pay", {"reference": "false"})).status == "failed"
    assert asyncio.run(rt.call("pay", {"reference": "other"})).status == "succeeded"


def test_keys_of_data_may_begin_with_a_dollar_sign() -> None:
    Runtime().add(pay, verify=read_with(none_if={"$ref": "x"}))


def test_a_delay_in_the_manifest_belongs_to_a_verify_in_code() -> None:
    Runtime({"tools": {"pay": {"verify_delay": "3s"}}}).add(pay, verify=find)


MANIFESTS: list[tuple[dict[str, Any], str, str]] = [
    ({"turn": {"max_calls": 0}}, "turn.max_calls: 0 is too small", "write 1 or more"),
    ({"max_calls": 3}, "max_calls: is not known here", "write turn: {max_calls: 50}"),
    ({"report_to": "http://x"}, "report_to: is not known here", "write Runtime(report_to=…) in code"),
    ({"store": "sqlite:///x.db"}, "store: is not known here", "write Runtime(store=…) in code"),
    ({"rate": "100/1m"}, "rate: is not known here", "write it below defaults"),
    ({"defaults": {"verify": read_with()}}, "defaults.verify: is an option of one tool", "below tools"),
    ({"defaults": {"idle_timeout": "5s"}}, "defaults.idle_timeout: is an option of one tool", "below tools"),
    ({"defaults": {"polling": True}}, "defaults.polling: is an option of one tool", "below tools"),
    ({"tools": {"a": {"failed_if": {"ok": "false"}}}}, "tools.a.failed_if: ok: 'false' is a text", "without quotes"),
]


@pytest.mark.parametrize(("manifest", "wrong", "right"), MANIFESTS, ids=[wrong for _, wrong, _ in MANIFESTS])
def test_mistakes_in_manifests_are_answered(manifest: dict[str, Any], wrong: str, right: str) -> None:
    said = refusal(lambda: Runtime(manifest))
    assert wrong in said
    assert right in said


class Handling:
    """An Error Handler that decides nothing."""

    async def handle(self, report: Any) -> Any:
        raise NotImplementedError


def count_twice() -> PrometheusCollector:
    rt = Runtime()
    return PrometheusCollector(search=rt, billing=rt)


class Timed(Instrument):
    """An instrument that does nothing."""


RUNTIMES: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: Runtime(instruments=[Timed]), "Timed is a class", "give an instance of it, Timed()"),  # type: ignore[list-item]
    (lambda: Runtime(instruments=Timed()), "instruments:", "is not a list: put it in brackets"),  # type: ignore[arg-type]
    (lambda: Runtime(instruments=[Timed()] * 2), "instruments:", "is in the list twice: keep one"),
    (lambda: Runtime(instruments=["otel"]), "'otel' is not an Instrument", "give an instance"),  # type: ignore[list-item]
    (lambda: OpenTelemetry(tracer_provider="x"), "tracer_provider: expected a TracerProvider", "got 'x'"),  # type: ignore[arg-type]
    (lambda: PrometheusCollector(), "give one runtime, PrometheusCollector(rt)", "or several with names"),
    (lambda: PrometheusCollector(Runtime), "expected a Runtime", ""),  # type: ignore[arg-type]
    (lambda: Runtime(error_handler="localhost:8585"), "error_handler: 'localhost:8585' does not start", "https://"),
    (lambda: Runtime(report_to="events.jsonl"), "report_to: 'events.jsonl' does not start", "https://"),
    (lambda: Runtime(error_handler="http://me@localhost"), "error_handler: a token or password", "FAILSOFT_TOKEN"),
    (lambda: Runtime(error_handler="http://localhost"), "needs a token: set FAILSOFT_TOKEN", "failsoft token add"),
    (
        lambda: Runtime(error_handler=Handling),
        "error_handler: Handling is a class",
        "give an instance of it, Handling()",
    ),  # type: ignore[arg-type]
    (
        lambda: Runtime(error_handler="http://localhost:8585/v1/errors"),
        "error_handler: 'http://localhost:8585/v1/errors' is the address of a route",
        "write 'http://localhost:8585'",
    ),
    (lambda: Runtime(report_to="https://a.example/failsoft/v1/events"), "report_to:", "'https://a.example/failsoft'"),
    (lambda: Runtime().subscribe(None), "subscribe: None cannot be called", "give a function"),  # type: ignore[arg-type]
    (count_twice, "one runtime has two names", "keep one"),
    (lambda: Runtime().turn(max_calls_per_tool={"pay": 3}), "max_calls_per_tool: {'pay': 3} is not", "whole number"),  # type: ignore[arg-type]
    (lambda: Runtime(store_required=True), "store_required: there is no store", 'store="sqlite:///failsoft.db"'),
    (lambda: Client("http://localhost", token=3), "token: expected the daemon's token as a text", "got int"),  # type: ignore[arg-type]
    (lambda: Runtime().ledger.resolve("nope", "none"), "the ledger has no entry 'nope'", ""),
    (lambda: Runtime().ledger.resolve("nope", "done"), "'done' is neither", '"happened" nor "none"'),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("mistake", "wrong", "right"), RUNTIMES, ids=[wrong for _, wrong, _ in RUNTIMES])
def test_mistakes_with_runtimes_are_answered(
    mistake: Callable[[], Any], wrong: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAILSOFT_TOKEN", raising=False)
    monkeypatch.delenv("FAILSOFT_TOKEN_FILE", raising=False)
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def test_an_entry_of_the_ledger_is_not_its_id() -> None:
    rt = Runtime()

    @rt.tool(idempotent=False)
    async def book() -> str:
        raise ConnectionResetError("the answer was lost")

    asyncio.run(rt.call("book"))
    (case,) = rt.ledger.unknown()
    assert "write entry.id" in refusal(lambda: rt.ledger.resolve(case, "none"))  # type: ignore[arg-type]


VERIFIES: list[tuple[Any, str]] = [
    (lambda a, k, f: None, "verify returned nothing: return Verified.happened(value), .none() or .unknown()"),
    (lambda a, k, f: True, "verify returned bool: return Verified.happened(value)"),
    (lambda a, k, f: Verified.none, "return Verified.happened(value), .none() or .unknown()"),
    (lambda a, k, f: 1 // 0, "verify raised ZeroDivisionError"),
    (read_with(), "there is no tool get_order; did you mean get_orders?"),
    (read_with(tool="send"), "send is not known to read: declare it read_only"),
]


@pytest.mark.parametrize(("verify", "said"), VERIFIES, ids=[said for _, said in VERIFIES])
def test_a_verify_with_a_mistake_is_logged(verify: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    async def book() -> str:
        raise ConnectionResetError("the answer was lost")

    async def get_orders() -> str:
        return ""

    async def main() -> None:
        rt = Runtime()
        rt.add(book, verify=verify)
        rt.add(get_orders, read_only=True)
        rt.add(get_orders, id="send", read_only=False, idempotent=False)
        await rt.call("book")
        await rt.close()

    with caplog.at_level(logging.WARNING, "failsoft"):
        with virtual_time() as clock:
            clock.run(main())
        flush_log(5)
    (record,) = [record for record in caplog.records if "the effect of book is unknown" in record.getMessage()]
    assert said in record.getMessage()


COMMANDS: list[tuple[list[str], int, str, str]] = [
    (["token", "add", "", "--role", "read"], 2, "NAME: expected a name", "failsoft token add executor"),
    (["token", "add", "a\n", "--role", "read"], 2, "NAME: expected a name", "failsoft token add executor"),
    (["token", "add", "operator", "--role", "read"], 2, "has a token 'operator' already", "token rotate operator"),
    (["token", "remove", "nope"], 1, "has no token 'nope'", "Known: operator"),
    (["serve", "--allow-host", "http://x.org"], 2, "--allow-host http://x.org: expected the name", "failsoft.example"),
    (["serve", "--allow-origin", "x.org"], 2, "--allow-origin x.org: expected scheme", "https://dashboard.example"),
    (["serve", "--tls-certificate", "a.pem", "--tls-key", "a.pem"], 2, "are not a certificate and its key", "PEM"),
    (["serve", "--tls-certificate", "b.pem", "--tls-key", "a.pem"], 2, "b.pem: cannot be read", ""),
    (["serve", "--manifest", "nowhere.yaml"], 2, "nowhere.yaml: cannot be read", "Look at the name"),
    (["serve", "--host", "0.0.0.0"], 2, "other machines could reach the daemon", "--allow-remote"),
    (["ledger", "list"], 2, "there is no store", "--store"),
]


@pytest.mark.parametrize(
    ("command", "code", "wrong", "right"), COMMANDS, ids=[" ".join(command) for command, _, _, _ in COMMANDS]
)
def test_mistakes_with_commands_are_answered(
    command: list[str], code: int, wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAILSOFT_STATE", str(tmp_path))
    Path("a.pem").write_text("no certificate")
    ran = CliRunner().invoke(cli, command)
    said = " ".join(ran.output.split())
    assert (ran.exit_code, wrong in said, right in said) == (code, True, True), said
    as_json = CliRunner().invoke(cli, [*command, "--json"])
    assert (as_json.exit_code, json.loads(as_json.output)["error"]["exit_code"]) == (code, code)


def test_a_refused_name_leaves_the_token_file_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_STATE", str(tmp_path))
    CliRunner().invoke(cli, ["token", "add", "", "--role", "read"])
    assert CliRunner().invoke(cli, ["token", "list"]).exit_code == 0
