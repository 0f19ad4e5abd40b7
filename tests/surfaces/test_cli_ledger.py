"""``failsoft ledger``: list, show, resolve and verify from another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.stores.sqlite.store import SqliteStore

TOOLS = """
from failsoft import Runtime, Verified

rt = Runtime(store="sqlite:///kept.db", record_arguments=True)

@rt.tool(idempotent=False, verify_delay="10ms", verify=lambda arguments, key, fault: Verified.happened(arguments["amount"]))
def pay(amount):
    raise ConnectionResetError("reset")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a store that has one open case."""

    def pay(amount: int) -> None:
        raise ConnectionResetError("reset")

    store = SqliteStore(tmp_path / "kept.db")
    rt = Runtime(store=store, record_arguments=True)
    rt.add(pay, idempotent=False)
    rt.call_sync("pay", {"amount": 4}, id="order-7", thread="chat")
    store.close()
    (tmp_path / "app.py").write_text(TOOLS)
    return tmp_path


def run(place: Path, *words: str, store: str = "sqlite:///kept.db") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "failsoft", "ledger", *words, "--store", store]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def read(place: Path, *words: str) -> Any:
    code, out, err = run(place, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def pay_again(place: Path) -> Any:
    store = SqliteStore(place / "kept.db")
    rt = Runtime(store=store)
    rt.add(lambda amount: "paid", id="pay", idempotent=False)
    outcome = rt.call_sync("pay", {"amount": 4}, id="order-7", thread="chat")
    store.close()
    return outcome.value


def test_open_cases_are_listed_and_shown(place: Path) -> None:
    code, out, _ = run(place, "list")
    assert code == 0
    for word in ("pay", "order-7", "chat", "unknown"):
        assert word in out
    (entry,) = read(place, "list")["entries"]
    assert read(place, "show", entry["id"]) == read(place, "show", "order-7") == entry
    assert read(place, "list", "--thread", "other") == {"entries": []}
    assert "no open cases" in run(place, "list", "--tool", "book")[1]


@pytest.mark.parametrize(
    ("words", "value"), [(("happened", "--value", '{"receipt": 7}'), {"receipt": 7}), (("none",), "paid")]
)
def test_a_case_is_resolved_for_all_processes(place: Path, words: tuple[str, ...], value: Any) -> None:
    closed = read(place, "resolve", "order-7", *words, "--by", "anna")
    assert (closed["state"], closed["resolved_by"]) == (words[0], "anna")
    assert read(place, "list") == {"entries": []}
    assert [entry["state"] for entry in read(place, "list", "--all")["entries"]] == [words[0]]
    assert pay_again(place) == value
    events = [event for _, event in SqliteStore(place / "kept.db").read() if event["event_type"] == "EffectResolved"]
    assert [event["by"] for event in events] == ["anna"]


def test_mistakes_are_reported_with_exit_codes(place: Path) -> None:
    assert run(place, "show", "nothing")[0] == 1
    assert run(place, "resolve", "nothing", "none")[0] == 1
    assert run(place, "resolve", "order-7", "maybe")[0] == 2
    code, _, err = run(place, "resolve", "order-7", "happened", "--value", "paid")
    assert code == 2
    assert "not JSON" in err
    assert run(place, "resolve", "order-7", "none", "--value", "1")[0] == 2
    assert run(place, "list", store="sqlite:///other.db")[0] == 2
    assert not (place / "other.db").exists()
    assert run(place, "resolve", "order-7", "none")[0] == 0
    code, _, err = run(place, "resolve", "order-7", "none")
    assert (code, "resolved before" in err) == (1, True)
    assert json.loads(run(place, "show", "nothing", "--json")[1])["error"]["exit_code"] == 1


def test_verify_asks_the_tool_of_a_runtime(place: Path) -> None:
    closed = read(place, "verify", "order-7", "--runtime", "app:rt")
    assert (closed["state"], closed["value"], closed["resolved_by"]) == ("happened", 4, "verify")
    assert pay_again(place) == 4
