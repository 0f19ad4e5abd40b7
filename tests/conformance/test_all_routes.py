"""The documents' statements on every public route: rt.call, a guarded function, call_sync, a turn, a plan, the command line.

Each statement is a tool's options, what its attempts do, and what must come of it. The manifest's spelling is used where
the route reads one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from failsoft import CallFailed, Runtime
from failsoft.surfaces.cli import cli

QUICK = {"initial_delay_ms": 1, "jitter_percent": 0}


class Carried(Exception):
    """An error that carries its gRPC code, as clients raise it."""

    def __init__(self, code: str) -> None:
        super().__init__("it failed")
        self.code = code


class Statement(NamedTuple):
    """One sentence of a document."""

    name: str
    options: Mapping[str, Any]  # of the primary tool, as in a manifest
    does: tuple[Any, ...]  # what its attempts do: raise an exception, or return a value; the last for ever
    expect: Mapping[str, Any]  # of the outcome, and "attempts of primary"


class Tools:
    """A primary tool and a fallback, counted."""

    def __init__(self, does: tuple[Any, ...]) -> None:
        self.does = does
        self.attempts = 0
        self.fallbacks = 0

    def primary(self, city: str = "PAR") -> Any:
        step = self.does[min(self.attempts, len(self.does) - 1)]
        self.attempts += 1
        if isinstance(step, Exception):
            raise step
        return step

    def other(self, city: str = "PAR") -> Any:
        self.fallbacks += 1
        return f"instead for {city}"


def manifest_of(options: Mapping[str, Any]) -> dict[str, Any]:
    own = {"read_only": True, "retry_policy": QUICK, **options}
    return {"tools": {"search": own, "other": {"read_only": True}}}


def runtime(tools: Tools, options: Mapping[str, Any]) -> Runtime:
    rt = Runtime(manifest_of(options))
    rt.add(tools.primary, id="search")
    rt.add(tools.other, id="other")
    return rt


Found = Mapping[str, Any]
Route = Callable[[Tools, Mapping[str, Any], Path], Found]


def by_name(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    return asyncio.run(runtime(tools, options).call("search", {"city": "PAR"})).to_dict()


def in_a_thread(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    return asyncio.run(runtime(tools, options).call("search", {"city": "PAR"}, thread="t", tenant="x")).to_dict()


def blocking(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    return runtime(tools, options).call_sync("search", {"city": "PAR"}).to_dict()


def guarded(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    rt = Runtime(manifest_of(options))
    search = rt.add(tools.primary, id="search")
    rt.add(tools.other, id="other")
    try:
        value = search("PAR")
    except CallFailed as failed:
        return failed.outcome.to_dict()
    return {"status": "succeeded", "value": value}


def in_a_turn(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    async def run() -> Found:
        async with runtime(tools, options).turn() as turn:
            turn.call("search", {"city": "PAR"}, id="a")
        return turn.report.outcomes["a"].to_dict()

    return asyncio.run(run())


def as_a_plan(tools: Tools, options: Mapping[str, Any], _: Path) -> Found:
    plan = {"calls": [{"id": "a", "tool": "search", "args": {"city": "PAR"}}]}
    return asyncio.run(runtime(tools, options).run_plan(plan)).outcomes["a"].to_dict()


def on_the_command_line(tools: Tools, options: Mapping[str, Any], path: Path) -> Found:
    module = ModuleType("travel_of_the_test")
    module.__dict__.update(search=tools.primary, other=tools.other)
    sys.modules[module.__name__] = module
    manifest = manifest_of(options)
    for name, tool in manifest["tools"].items():
        tool["entrypoint"] = {"function": f"{module.__name__}:{name}"}
    (path / "failsoft.json").write_text(json.dumps(manifest))
    (path / "plan.json").write_text(json.dumps({"calls": [{"id": "a", "tool": "search", "args": {"city": "PAR"}}]}))
    command = ["run", str(path / "plan.json"), "--manifest", str(path / "failsoft.json"), "--json"]
    try:
        result = CliRunner().invoke(cli, command)
    finally:
        del sys.modules[module.__name__]
    found: Found = json.loads(result.stdout)["outcomes"]["a"]
    assert result.exit_code == (0 if found["status"] == "succeeded" else 1)
    return found


ROUTES: list[Route] = [by_name, in_a_thread, blocking, guarded, in_a_turn, as_a_plan, on_the_command_line]

ALWAYS = ["Unavailable", "DeadlineExceeded", "Internal", "ResourceExhausted", "Unknown", "Aborted", "DataLoss"]
NEVER = ["InvalidArgument", "NotFound", "PermissionDenied", "Unauthenticated", "FailedPrecondition", "OutOfRange"]
LISTED = {"retries": [{"maxAttempts": 3, "handleErrors": ["Unavailable", "DeadlineExceeded", "Internal"]}]}
FALLS_BACK = {"fallbacks": [{"nodeId": "other", "handleErrors": ["Unavailable", "Internal", "DeadlineExceeded"]}]}
FAILED = {"status": "failed"}
WORKED = {"status": "succeeded", "value": "fine"}

STATEMENTS = [
    *(
        Statement(f"S-layers retryable {code}", {}, (Carried(code), "fine"), {**WORKED, "attempts of primary": 2})
        for code in ALWAYS
    ),
    *(
        Statement(
            f"S-layers not retryable {code}",
            {},
            (Carried(code), "fine"),
            {**FAILED, "attempts of primary": 1, "classification": "permanent", "strategy": "escalate"},
        )
        for code in NEVER
    ),
    *(
        Statement(f"S-layers retry up to 3 times {code}", {"errorHandling": LISTED}, (Carried(code),),
                  {**FAILED, "attempts of primary": 3})
        for code in ("Unavailable", "DeadlineExceeded", "Internal")
    ),
    *(
        Statement(f"S-layers not listed {code}", {"errorHandling": LISTED}, (Carried(code), "fine"),
                  {**FAILED, "attempts of primary": 1})
        for code in ("ResourceExhausted", "Aborted", "DataLoss", "InvalidArgument")
    ),
    *(
        Statement(f"S-layers fallback for {code}", {"errorHandling": {**FALLS_BACK, "retries": []}}, (Carried(code),),
                  {"status": "succeeded", "value": "instead for PAR", "via": "other", "tool": "search",
                   "attempts of primary": 1, "fallbacks": 1})
        for code in ("Unavailable", "Internal", "DeadlineExceeded")
    ),
    *(
        Statement(f"S-layers no fallback for {code}", {"errorHandling": {**FALLS_BACK, "retries": []}}, (Carried(code),),
                  {**FAILED, "attempts of primary": 1, "fallbacks": 0})
        for code in ("Aborted", "NotFound", "ResourceExhausted")
    ),
    Statement("S-layers catch-all", {"errorHandling": {"fallbacks": [{"nodeId": "other", "handleErrors": []}]}},
              (Carried("NotFound"),), {"value": "instead for PAR", "attempts of primary": 1, "fallbacks": 1}),
    Statement("S-layers all retries come before the fallback", {"errorHandling": {**FALLS_BACK, **LISTED}},
              (Carried("Internal"),), {"value": "instead for PAR", "attempts of primary": 3, "fallbacks": 1}),
    Statement("S-layers two strategies",
              {"errorHandling": {"retries": [{"maxAttempts": 2, "handleErrors": ["Unavailable"]},
                                             {"maxAttempts": 3, "handleErrors": ["DeadlineExceeded"]}]}},
              (Carried("DeadlineExceeded"),), {**FAILED, "attempts of primary": 3}),
    Statement("S-layers two strategies, the first",
              {"errorHandling": {"retries": [{"maxAttempts": 2, "handleErrors": ["Unavailable"]},
                                             {"maxAttempts": 3, "handleErrors": ["DeadlineExceeded"]}]}},
              (Carried("Unavailable"),), {**FAILED, "attempts of primary": 2}),
    Statement("S-spec 2.1 max attempts", {}, (TimeoutError("Connection timeout after 30s"),),
              {**FAILED, "attempts of primary": 5, "code": "DEADLINE_EXCEEDED"}),
    Statement("S-spec 2.2 overrides", {"retry_policy": {**QUICK, "max_attempts": 3, "max_total_time_ms": 5000}},
              (ConnectionResetError("Connection reset by peer"),), {**FAILED, "attempts of primary": 3}),
    Statement("S-spec 1.3 unknown", {}, (RuntimeError("a strange thing"), "fine"), {**WORKED, "attempts of primary": 2}),
    Statement("S-spec 1.3 the manifest overrides",
              {"classification": [{"httpStatus": 503, "as": "permanent"}]}, (RuntimeError("503 Service Unavailable"),),
              {**FAILED, "attempts of primary": 1, "classification": "permanent"}),
    Statement("S-spec 1.3 the manifest overrides to transient",
              {"classification": [{"pattern": "airport", "as": "transient"}]}, (ValueError("Invalid airport code: XYZ"), "fine"),
              {**WORKED, "attempts of primary": 2}),
    Statement("S-spec 3.3 the breaker ends the retries", {"breaker": {"failure_threshold": 2}},
              (TimeoutError("Connection timeout"),), {**FAILED, "attempts of primary": 2, "strategy": "escalate"}),
    Statement("S-spec 3.4 permanent", {}, (PermissionError("401"),),
              {**FAILED, "attempts of primary": 1, "reason": "Permanent error (no retry)", "category": "tool_misconfigured"}),
    Statement("S-tests 6.2 the reason", {"retry_policy": {**QUICK, "max_attempts": 2}}, (RuntimeError("503"), "fine"),
              {**WORKED, "attempts of primary": 2}),
    Statement("S-norm a bug is not tried again", {}, (KeyError("city"), "fine"),
              {**FAILED, "attempts of primary": 1, "category": "internal_contract_bug",
               "user": "Something broke internally, I’ve logged it."}),
    Statement("S-norm unavailable", {}, (RuntimeError("Invalid extension.gateway.execute.request"), "fine"),
              {**FAILED, "attempts of primary": 1, "category": "tool_unavailable",
               "user": "This capability isn’t available in this deployment yet."}),
    Statement("S-norm contract bug", {}, (RuntimeError("Invalid chat.management.gateway.message.append.request"), "fine"),
              {**FAILED, "attempts of primary": 1, "category": "internal_contract_bug",
               "user": "Something broke internally, I’ve logged it."}),
    Statement("R16 not implemented", {}, (Carried("Unimplemented"), "fine"), {**FAILED, "attempts of primary": 1}),
    Statement("R39 no retries", {"errorHandling": {"retries": []}}, (RuntimeError("503"), "fine"),
              {**FAILED, "attempts of primary": 1}),
    Statement("R11 a write is not repeated after an unknown effect", {"read_only": False, "idempotent": False},
              (TimeoutError("read timeout"), "fine"), {**FAILED, "attempts of primary": 1, "effect": "unknown"}),
    Statement("R11 a write is repeated if nothing happened", {"read_only": False, "idempotent": False},
              (ConnectionRefusedError("refused"), "fine"), {**WORKED, "attempts of primary": 2}),
    Statement("R12 an assertion", {}, (AssertionError("never"), "fine"),
              {**FAILED, "attempts of primary": 1, "code": "INTERNAL", "category": "internal_contract_bug"}),
    Statement("R29 a value error", {}, (ValueError("bad city"), "fine"),
              {**FAILED, "attempts of primary": 1, "category": "tool_validation"}),
    Statement("R28 a group with a permanent leaf", {}, (ExceptionGroup("both", [TimeoutError("x"), ValueError("y")]), "fine"),
              {**FAILED, "attempts of primary": 1}),
    Statement("R28 a transient group", {}, (ExceptionGroup("both", [TimeoutError("x"), ConnectionResetError("y")]), "fine"),
              {**WORKED, "attempts of primary": 2}),
    Statement("R40 a block with a fallback keeps the default retries", {"errorHandling": FALLS_BACK}, (Carried("Internal"),),
              {"value": "instead for PAR", "attempts of primary": 5, "fallbacks": 1}),
]  # fmt: skip


def flat(found: Found, tools: Tools) -> dict[str, Any]:
    fault, decision, texts = (found.get(name) or {} for name in ("fault", "decision", "explanation"))
    counts = {"attempts of primary": tools.attempts, "fallbacks": tools.fallbacks}
    return {**fault, **decision, **texts, **found, **counts, "reason": decision.get("reason")}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_on_a_route(statement: Statement, route: Route, tmp_path: Path) -> None:
    tools = Tools(statement.does)
    found = flat(route(tools, statement.options, tmp_path), tools)
    expected = {key: value for key, value in statement.expect.items() if route is not guarded or key in found}
    assert {key: found.get(key) for key in expected} == expected
