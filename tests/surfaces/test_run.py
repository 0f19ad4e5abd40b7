"""``failsoft run``: plans and manifests without Python code around them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from failsoft.stores.sqlite import writer as sqlite
from failsoft.surfaces.cli import cli

MANIFEST = """\
tools:
  search: {entrypoint: {function: "tools_of_test_run:search"}, read_only: true}
  deny: {entrypoint: {function: "tools_of_test_run:deny"}, read_only: true}
  hostile: {entrypoint: {function: "tools_of_test_run:hostile"}, read_only: true}
  missing: {entrypoint: {function: "no_such_module:gone"}, read_only: true}
"""
TOOLS = """\
async def search(city): return [city]
async def deny(city): raise RuntimeError("Authentication failed (401)")
async def hostile(): raise ValueError("\\x1b[31m[red]Invalid[/red] [link=http://x]city[/link]\\x07 :smile:")
"""
GOOD = "calls: [{id: flights, tool: search, args: {city: PAR}}]"
MIXED = """\
calls:
  - {id: flights, tool: search, args: {city: PAR}}
  - {id: trains, tool: deny, args: {city: PAR}}
  - {id: prices, tool: search, args: {city: {$ref: trains}}}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "tools_of_test_run", raising=False)
    Path("tools_of_test_run.py").write_text(TOOLS)
    Path("failsoft.yaml").write_text(MANIFEST)


def run(plan: str, *args: str, stdin: str | None = None) -> Result:
    Path("plan.yaml").write_text(plan)
    return CliRunner().invoke(cli, ["run", "-" if stdin is not None else "plan.yaml", *args], input=stdin)


def test_a_plan_that_works_with_functions_of_this_directory() -> None:
    result = run(GOOD)
    assert result.exit_code == 0, result.output
    assert "flights: ok\n" in result.stdout  # while it runs
    assert "flights: ['PAR']" in result.stdout
    assert "Where the time went\n" in result.stdout
    assert result.stdout.rstrip().endswith("What the user would be told\n  Completed search")


def test_failures_their_cascade_and_exit_code() -> None:
    result = run(MIXED)
    assert result.exit_code == 1
    assert "trains: failed with UNAUTHENTICATED" in result.stdout
    assert "prices: skipped: trains failed" in result.stdout
    assert "trains: UNAUTHENTICATED, tool_misconfigured: Authentication failed (401) (rule " in result.stdout
    assert "so search (1 of 2) was skipped" in " ".join(result.stdout.split())


def test_as_json_it_is_the_report_with_its_waterfall() -> None:
    result = run(MIXED, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    report: dict[str, Any] = json.loads(result.stdout)
    assert {id: outcome["status"] for id, outcome in report["outcomes"].items()} == {
        "flights": "succeeded",
        "trains": "failed",
        "prices": "skipped",
    }
    assert [row["id"] for row in report["waterfall"]["rows"]] == ["flights", "trains", "prices"]
    assert report["waterfall"]["rows"][2]["needs"] == ["trains"]
    assert report["waterfall"]["verdict"]["text"].endswith(".")
    assert report["message"].startswith("Completed search (1 of 2), but deny failed")


def test_a_plan_from_standard_input() -> None:
    assert run("", stdin=GOOD).exit_code == 0
    result = run("", "--json", stdin="calls: [{tool: serch}]")
    assert result.exit_code == 1
    assert "did you mean search?" in json.loads(result.stdout)["outcomes"]["serch-1"]["fault"]["message"]


def test_a_key_that_the_tool_does_not_take() -> None:
    result = run("calls: [{tool: search, idempotency_key: order-17}]")
    assert result.exit_code == 2
    assert "plan.yaml:1:9: calls[0].idempotency_key: search takes no idempotency key" in result.stderr


def test_a_tool_without_an_entrypoint_is_named() -> None:
    Path("failsoft.yaml").write_text(MANIFEST + "  silent: {read_only: true}\n")
    result = run("calls: [{tool: silent}, {tool: search, args: {city: X}}]")
    assert result.exit_code == 1
    assert "The tools are: search, deny, hostile, missing. failsoft.yaml has no entrypoint for silent" in result.stdout
    assert "search-1: ['X']" in result.stdout


def test_warnings_are_prefixed_with_failsoft() -> None:
    Path("failsoft.yaml").write_text('tools: {oracle: {entrypoint: {function: "tools_of_test_run:oracle"}}}')
    Path("tools_of_test_run.py").write_text("async def oracle(city): return city")
    Path("plan.yaml").write_text("calls: [{tool: oracle, args: {city: X}, timeout: 1s}]")
    program = [sys.executable, "-m", "failsoft", "run", "plan.yaml"]
    said = subprocess.run(program, capture_output=True, text=True, check=False).stderr
    assert said.startswith("failsoft: oracle: nothing says whether this tool reads or writes")


def test_a_failed_write_is_shown_as_possibly_having_acted() -> None:
    Path("tools_of_test_run.py").write_text("async def deny(city): raise TimeoutError('no answer')")
    Path("failsoft.yaml").write_text(MANIFEST.replace('deny"}, read_only: true', 'deny"}, idempotent: false'))
    result = run("calls: [{tool: deny, args: {city: X}}]")
    assert "DEADLINE_EXCEEDED, may have acted\n" in result.stdout


def test_the_trace_is_written() -> None:
    assert run(GOOD, "--trace", "trace.jsonl").exit_code == 0
    assert run(GOOD, "--trace", "trace.jsonl").exit_code == 0
    types = [json.loads(line)["event_type"] for line in Path("trace.jsonl").read_text().splitlines()]
    assert types == ["TurnStarted", "CallSucceeded", "TurnEnded"] * 2


def test_a_tool_that_is_not_there_is_a_failure_of_its_calls_only() -> None:
    result = run("calls: [{tool: missing}, {tool: search, args: {city: X}}]")
    assert result.exit_code == 1
    assert "No module named 'no_such_module'" in result.stdout
    assert "search-1: ['X']" in result.stdout


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        ({"failsoft.yaml": None}, (), "there is no failsoft.yaml here"),
        ({"failsoft.yaml": "tools: ["}, (), "failsoft.yaml has mistakes"),
        ({"failsoft.yaml": "tools: {a: {timeout: 3}}"}, (), "failsoft.yaml:1:"),
        ({}, ("--manifest", "other.yaml"), "other.yaml: cannot be read: No such file or directory"),
        ({"plan.yaml": None}, (), "plan.yaml: cannot be read: No such file or directory"),
        ({"plan.yaml": "calls: {"}, (), "plan.yaml:1:"),
        ({"plan.yaml": "tools: {}"}, (), "plan.yaml:1:1: this is a manifest, which lists tools"),
        ({"plan.yaml": "calls: [{id: a, tool: deny, depends_on: [a]}]"}, (), "plan.yaml:1:"),
        ({"tools_of_test_run.py": "def search(:"}, (), "tools_of_test_run.py:1: SyntaxError: invalid syntax"),
        ({"tools_of_test_run.py": "raise OSError('no licence')"}, (), "tools_of_test_run.py:1: OSError: no licence"),
        (
            {"tools_of_test_run.py": "raise SystemExit"},
            (),
            "importing a module named in failsoft.yaml exits the program",
        ),
        ({}, ("--trace", "no/such/directory"), "no/such/directory: cannot be written"),
        ({}, ("--store", "mysql://x"), '--store: no store is known for "mysql:": write'),
        ({}, ("--store", "sqlite:///plan.yaml"), "plan.yaml: cannot be used as a store: the file is not failsoft's"),
        ({}, ("--store", "sqlite:///plan.yaml/x.db"), "plan.yaml is a file, not a directory: name another place"),
    ],
)
def test_a_plan_that_cannot_run_is_reported_once_and_exits_with_2(
    change: dict[str, str | None], args: tuple[str, ...], message: str
) -> None:
    Path("plan.yaml").write_text(GOOD)
    for name, text in change.items():
        Path(name).unlink() if text is None else Path(name).write_text(text)
    result = CliRunner().invoke(cli, ["run", "plan.yaml", *args])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.output
    as_json = CliRunner().invoke(cli, ["run", "plan.yaml", *args, "--json"])
    assert (as_json.exit_code, as_json.stderr) == (2, "")
    error = json.loads(as_json.stdout)["error"]
    assert message in " ".join([error["message"], *error["problems"]])


@pytest.mark.parametrize("colour", ["", "1"])
def test_hostile_text_is_shown_and_never_interpreted(colour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", colour)
    plan = 'calls: [{id: "[bold]id[/] \\e]0;title\\a", tool: hostile}, {tool: search, args: {city: "[red]\\e[5m"}}]'
    result = run(plan)
    assert result.exit_code == 1
    assert "[red]Invalid[/red] [link=http://x]city[/link] :smile:" in result.stdout
    assert "[bold]id[/]" in result.stdout
    for acting in ("\x1b]", "\x07", "\x1b[5m", "\x1b[31m[red]"):
        assert acting not in result.stdout
    assert ("\x1b[" in result.stdout) == bool(colour)


def test_a_locked_store_neither_fails_nor_delays_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.1)
    assert run(GOOD, "--store", "sqlite:///kept.db").exit_code == 0
    holder = sqlite3.connect("kept.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    result = run(GOOD, "--store", "sqlite:///kept.db")
    assert time.monotonic() - began < 4.5  # a write waits for five
    assert result.exit_code == 0
    assert "flights: ['PAR']" in result.stdout
    assert sum("the store cannot be used now" in record.getMessage() for record in caplog.records) == 1
    holder.close()


def test_runs_that_share_a_store_open_a_circuit_together() -> None:
    Path("failsoft.yaml").write_text(
        "tools:\n  down: {entrypoint: {function: 'tools_of_test_run:down'}, read_only: true, "
        "retry: {max_attempts: 1}, breaker: {failure_threshold: 2, timeout: 1h}}\n"
    )
    Path("tools_of_test_run.py").write_text(
        "async def down():\n    with open('ran', 'a') as file:\n        file.write('x')\n"
        "    raise RuntimeError('Service unavailable (503)')\n"
    )
    results = [run("calls: [{id: c, tool: down}]", "--store", "sqlite:///kept.db") for _ in range(5)]
    assert Path("ran").read_text() == "xx"
    assert all("circuit" in result.output.lower() for result in results[2:])
