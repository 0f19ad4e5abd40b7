"""Mistakes in options, callbacks, calls, manifests, plans and commands. None is silent: each is answered with a correction."""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from failsoft import Decision, FailsoftError, Fault, NothingDone, Runtime
from failsoft.adapters.pydantic_ai import Agent
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.surfaces.cli import cli


def search(city: str = "Rome") -> str:
    return city


async def look_up(city: str = "Rome") -> str:
    return city


def add_a_coroutine() -> None:
    coroutine = look_up()
    try:
        Runtime().add(coroutine)  # type: ignore[call-overload]
    finally:
        coroutine.close()


def refusal(mistake: Callable[[], Any]) -> str:
    with pytest.raises((FailsoftError, TypeError, ValueError)) as refused:
        mistake()
    return str(refused.value)


def handling(*codes: object) -> dict[str, Any]:
    return {"fallbacks": [{"tool": "cache", "handle_errors": list(codes)}]}


OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    # error codes under other names
    (handling("TIMEOUT"), "'TIMEOUT' is not an error code", "write DEADLINE_EXCEEDED"),
    (handling("rate_limit"), "'rate_limit' is not an error code", "write RESOURCE_EXHAUSTED"),
    (handling(503), "503 is not an error code", "write UNAVAILABLE"),
    (handling("429"), "'429' is not an error code", "write RESOURCE_EXHAUSTED"),
    (handling(TimeoutError), "is not an error code", "write DEADLINE_EXCEEDED"),
    (handling(PermissionError), "is not an error code", "write PERMISSION_DENIED"),
    (handling("ConnectionError"), "'ConnectionError' is not an error code", "write UNAVAILABLE"),
    (handling("UNAVAILABEL"), "'UNAVAILABEL' is not an error code", "did you mean UNAVAILABLE?"),
    # other libraries' words
    ({"breaker": {"reset_timeout": "5s"}}, "breaker.reset_timeout: is not known here", "write timeout"),
    ({"breaker": {"recovery_timeout": "5s"}}, "breaker.recovery_timeout: is not known here", "write timeout"),
    ({"breaker": {"fail_max": 5}}, "breaker.fail_max: is not known here", "write failure_threshold"),
    ({"breaker": {"cooldown_duration": "5s"}}, "cooldown_duration: is not known here", "belongs to cooldown"),
    ({"cooldown": {"failure_threshold": 3}}, "failure_threshold: is not known here", "write min_consecutive_failures"),
    ({"cooldown": {"timeout": "3s"}}, "cooldown.timeout: is not known here", "write cooldown_duration"),
    ({"retry_on": [TimeoutError]}, "retry_on: is not known here", 'write retry: {"rules": ['),
    ({"retry": {"handle_errors": ["UNAVAILABLE"]}}, "handle_errors: is not known here", "write rules: ["),
    ({"reset_timeout": "5s"}, "reset_timeout: is not known here", 'write breaker: {"timeout": "30s"}'),
    ({"error_handling": {"breaker": {}}}, "error_handling.breaker: is not known here", "write cooldown: {"),
    ({"errorHandling": {"retry": {}}}, "errorHandling.retry: is not known here", "write retries: ["),
    # types
    ({"retry": True}, "retry: expected RetryOptions or a mapping", "got True"),
    ({"retry": [3]}, "retry: expected RetryOptions or a mapping", "turns retries off"),
    ({"retry": {"max_attempts": 2.5}}, "retry.max_attempts: 2.5 is not a whole number", ""),
    ({"retry": {"max_attempts": True}}, "retry.max_attempts: True is not a whole number", ""),
    ({"retry": {"initial_delay_ms": "100ms"}}, "'100ms' is not a number of milliseconds", "the name without ms"),
    ({"retry": {"initial_delay": "1s", "initial_delay_ms": 5}}, "initial_delay is given too", "keep one"),
    ({"retry": {"multiplier": 0.5}}, "retry.multiplier: 0.5 is too small", "write 1 or more"),
    ({"retry": {"jitter": True}}, "retry.jitter: is not known here", "did you mean jitter_percent?"),
    ({"retry": {"strategy": "linear"}}, "'linear' is not one of exponential_backoff", ""),
    ({"timeout": "30 s"}, "timeout: '30 s' is not a duration", 'like "30s"'),
    ({"timeout": "PT30S"}, "timeout: 'PT30S' is not a duration", 'like "30s"'),
    ({"timeout": float("inf")}, "timeout: inf is not a duration", 'like "30s"'),
    ({"timeout": Decimal(3)}, "timeout: Decimal('3') is not a duration", 'like "30s"'),
    ({"timeout": (3, 30)}, "timeout: (3, 30) is not a duration", 'like "30s"'),
    ({"timeout": "3s", "timeout_ms": 3000}, "timeout is given too and means the same", "keep one"),
    ({"breaker": False}, "breaker: expected BreakerOptions or a mapping", "got False"),
    ({"breaker": {"count": "call"}}, "breaker.count: 'call' is not one of attempts, calls", "did you mean calls?"),
    ({"cooldown": "30s"}, "cooldown: '30s' is not a mapping", '"cooldown_duration": "1m"'),
    ({"fallbacks": [look_up]}, "fallbacks: expected Fallback or a tool's id", 'write "look_up"'),
    ({"fallbacks": ["search"]}, "these tools are fallbacks of each other in a cycle", "drop one"),
    ({"concurrency": "4"}, "concurrency: '4' is not a whole number of at least 1", ""),
    ({"queue": -1}, "queue: -1 is not a whole number of at least 0", ""),
    ({"isolation": "subprocess"}, "isolation: 'subprocess' is not one of", "did you mean process?"),
    ({"output": "array"}, "output: 'array' is neither a type", "write list[str], or a mapping"),
    ({"output": {"type": "strng"}}, "output: is not a JSON Schema", "'string'"),
    ({"label": 3}, "label: 3 is not a text", ""),
    ({"idempotency_key": True}, "idempotency_key: True is not a text", ""),
    ({"classification": {503: "permanent"}}, "classification: {503: 'permanent'} is not a list", "in brackets"),
    ({"classification": [{"http_status": 503}]}, "expected a result", "as, category, to_code or effect"),
    ({"classification": [{"as": "permanent"}]}, "expected a condition", "http_status, code, exception or pattern"),
    ({"classification": [{"http_status": 503, "as": "fatal"}]}, "'fatal' is not one of transient, permanent", ""),
    ({"classification": [{"exception": TimeoutError, "as": "permanent"}]}, "is a class", 'write "TimeoutError"'),
    ({"classification": [{"pattern": "(", "as": "permanent"}]}, "'(' is not a regular expression", "missing )"),
]


@pytest.mark.parametrize(
    ("options", "wrong", "right"), OPTIONS, ids=[f"{wrong}-{right}" for _, wrong, right in OPTIONS]
)
def test_options_of_a_tool(options: dict[str, Any], wrong: str, right: str) -> None:
    said = refusal(lambda: Runtime().add(search, **options))
    assert wrong in said
    assert right in said


def called(**options: Any) -> Callable[[], Any]:
    rt = Runtime()
    rt.add(search)
    return lambda: rt.call_sync("search", **options)


CODE: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: Runtime(on_escalation=lambda: None), "on_escalation: <function", "give a function of one argument"),  # type: ignore[arg-type,misc]
    (lambda: Runtime().subscribe(lambda: None), "subscribe: <function", "give a function of one argument"),  # type: ignore[arg-type,misc]
    (lambda: Runtime().subscribe(lambda tool, event: None), "missing a required argument", "of one argument"),  # type: ignore[arg-type,misc]
    (lambda: Runtime(breakers="redis://localhost"), "breakers: Redis as a store", 'write "memory:"'),
    (lambda: Runtime(breakers="circuits.db"), "breakers: 'circuits.db' is not known", "sqlite:///path/to/file.db"),
    (lambda: NothingDone("x", code="nope"), "'nope' is not an error code", "like UNAVAILABLE or NOT_FOUND"),
    (lambda: NothingDone("x", code="timeout"), "'timeout' is not an error code", "write DEADLINE_EXCEEDED"),
    (called(max_attempts=2), "a call has no option 'max_attempts'", 'write retry={"max_attempts": 3}'),
    (called(required=True), "a call has no option 'required'", "write it in turn.call(…)"),
    (called(defaults={}), "a call has no option 'defaults'", "write it in turn.call(…)"),
    (called(depends_on=[]), "a call has no option 'depends_on'", "write it in turn.call(…)"),
    (called(fallbacks=["x"]), "a call has no option 'fallbacks'", "it is an option of the tool"),
    (called(args={"city": "x"}), "a call has no option 'args'", "call(tool, {'city': …})"),
    (called(retry=5), "retry: 5 is not a mapping", 'like {"max_attempts": 3}'),
    (lambda: Decision.from_dict({}), "Decision.from_dict: missing strategy", ""),
    (lambda: Fault.from_dict({"code": "UNKNOWN"}), "Fault.from_dict: missing classification", "category"),
    (lambda: Agent("test").tool_plain("look_up"), "'look_up' is not callable", "name= names its tool"),  # type: ignore[call-overload]
    (add_a_coroutine, "is not callable", "a tool is a function"),
    (lambda: Runtime().add(json), "is not callable", "a tool is a function"),  # type: ignore[type-var]
    (lambda: Runtime(memory=True), "memory: True is not one of advise, act, off", ""),  # type: ignore[arg-type]
    (lambda: Runtime(store=Path("x.db")), "store: expected an address", "got PosixPath"),  # type: ignore[arg-type]
    (lambda: Runtime(undeclared="safe"), "undeclared: 'safe' is not one of recognise", "never_repeat"),  # type: ignore[arg-type]
    (lambda: Runtime(policies=[{"name": "x", "when": {"turn_left": 20}, "then": "retry"}]), "20 has no unit", '"20s"'),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(("mistake", "wrong", "right"), CODE, ids=[f"{wrong}-{right}" for _, wrong, right in CODE])
def test_code(mistake: Callable[[], Any], wrong: str, right: str) -> None:
    said = refusal(mistake)
    assert wrong in said
    assert right in said


def test_functions_that_can_take_one_argument_are_accepted() -> None:
    for function in (print, lambda *given: None, lambda given, more=1: None, functools.partial(search)):
        Runtime().subscribe(function)


class Travel:
    def search(self, city: str) -> str:
        return city


def by_position(city: str, /) -> str:
    return city


@pytest.mark.parametrize(
    ("fn", "options", "warning"),
    [
        (search, {"queue": 5}, "search: queue: has no effect without concurrency: give one, or drop queue"),
        (Travel.search, {}, "search: calls by name cannot fill self: register the method of an object"),
        (by_position, {}, "by_position: calls by name cannot fill city, which is positional-only: drop the /"),
    ],
)
def test_a_tool_that_is_odd_is_logged(
    fn: Callable[..., Any], options: Mapping[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "failsoft"):
        Runtime().add(fn, **options)
        flush_log(5)
    assert warning in caplog.text


def test_ordinary_tools_are_not_odd(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(search, concurrency=2, queue=5)
    rt.add(Travel().search, id="search_travel")
    rt.add(functools.partial(Travel().search, "x"), id="search_more")
    flush_log(5)
    assert caplog.text == ""


def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "travel", raising=False)  # of another test
    (tmp_path / "travel.py").write_text("def search(city):\n    return [city]\n")
    result = CliRunner().invoke(cli, list(args))
    return result.output


MANIFESTS = [
    ("tools:\n  a: {queue: 5, read_only: true}", "warning: tools.a.queue: has no effect", "give one, or drop queue"),
    ('tools:\n  a: {entrypoint: {command: "ls -l"}}', "'ls -l' is not a list", 'brackets, like ["ls", "-l"]'),
    ("tools:\n  a: {errorHandling: {circuitBreaker: {}}}", "circuitBreaker: is not known here", "write cooldown"),
    ("tools:\n  a: {errorHandling: {retries: [{maxAttempts: 3, handleErrors: [Timeout]}]}}", "'Timeout' is not", "write DEAD"),
    ("tools:\n  a: {breaker: {resetTimeout: 5s}}", "resetTimeout: is not known here", ""),
    ("tools:\n  a: {entrypoint: {url: 'http://x'}}", "url: is not known here", "known are function, command"),
    ("turn: 30s", "turn: '30s' is not a mapping", 'like {"timeout": "5m"}'),
    ("explanations: {de: {user.tool_transient: '{Lable} x'}}", "there is no fact {Lable}", "there are Label"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wrong", "right"), MANIFESTS, ids=[wrong for _, wrong, _ in MANIFESTS])
def test_manifests(text: str, wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failsoft.yaml").write_text(text)
    said = command(tmp_path, monkeypatch, "check")
    assert wrong in said
    assert right in said


TOOLS = 'tools: {search: {entrypoint: {function: "travel:search"}, read_only: true}}'


@pytest.mark.parametrize("reference", ["a", "a.price", "a[0]"])
def test_a_reference_without_its_dollar_sign(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "failsoft.yaml").write_text(TOOLS)
    calls = [
        {"id": "a", "tool": "search", "args": {"city": "x"}},
        {"tool": "search", "args": {"city": {"ref": reference}}},
    ]
    (tmp_path / "plan.yaml").write_text(json.dumps({"calls": calls}))
    warning = 'calls[1].args.city.ref: is passed to the tool unchanged; write "$ref" for the value of a'
    assert warning in command(tmp_path, monkeypatch, "check", "plan.yaml")
    command(tmp_path, monkeypatch, "run", "plan.yaml")
    assert warning in caplog.text


@pytest.mark.parametrize("limit", ["max_calls", "max_calls_per_tool"])
def test_a_plans_limits_hold_on_the_command_line(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failsoft.yaml").write_text(TOOLS)
    call = {"tool": "search", "args": {"city": "x"}}
    (tmp_path / "plan.yaml").write_text(json.dumps({limit: 1, "calls": [call, call]}))
    outcomes = json.loads(command(tmp_path, monkeypatch, "run", "plan.yaml", "--json"))["outcomes"]
    assert [outcome["status"] for outcome in outcomes.values()] == ["succeeded", "failed"]


def test_data_called_ref_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failsoft.yaml").write_text(TOOLS)
    (tmp_path / "plan.yaml").write_text('calls: [{id: a, tool: search, args: {city: {ref: "order 7"}}}]')
    assert "handed" not in command(tmp_path, monkeypatch, "check", "plan.yaml")


COMMANDS = [
    (("trace", "export", "--trace", "example", "-o", "x.pdf"), "--output x.pdf", "as .jsonl or .html, not as .pdf"),
    (("trace", "show", "--trace", "travel.yaml"), "travel.yaml:1: this line is not JSON", "one event a line"),
    (("serve", "--host", "0.0.0.0"), "other machines could reach the daemon", "--allow-remote"),
    (("serve", "--allow-host", "http://x"), "expected the name of a host", "--allow-host failsoft.example"),
    (("token", "add", "ci", "--role", "admin"), "'admin' is not one of", "'operate'"),
    (("ledger", "resolve", "x", "happened", "--value", "{bad"), "--value is not JSON", "A text needs quotes"),
    (("tools", "travel:nix"), "module 'travel' has no attribute 'nix'", "Write MODULE:RUNTIME"),
    (("doctor", "--port", "0"), "0 is not in the range", ""),
]


@pytest.mark.parametrize(("args", "wrong", "right"), COMMANDS, ids=[" ".join(args) for args, _, _ in COMMANDS])
def test_commands(
    args: tuple[str, ...], wrong: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "travel.yaml").write_text("calls: [{tool: search}]")
    monkeypatch.setenv("FAILSOFT_STATE", str(tmp_path / "state"))
    said = command(tmp_path, monkeypatch, *args)
    assert wrong in said
    assert right in said


def test_an_error_text_without_quotes_is_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command(tmp_path, monkeypatch, "classify", "503", "Service", "Unavailable", "--json")
    assert json.loads(said)["message"] == "503 Service Unavailable"


def test_tools_that_cannot_be_called_are_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failsoft.yaml").write_text('tools: {nowhere: {entrypoint: {function: "nix_at_all:x"}}}')
    said = " ".join(command(tmp_path, monkeypatch, "tools").split())
    assert "nowhere cannot be called here: nix_at_all:x is not available here: No module named 'nix_at_all'" in said
    (row,) = json.loads(command(tmp_path, monkeypatch, "tools", "--json"))["tools"]
    assert "No module named" in row["unavailable_because"]
