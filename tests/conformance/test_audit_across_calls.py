"""The audit's rows about what outlives a call: retry offers, counts in the store, the log. At least one test for each."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import Runtime
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.surfaces.cli import cli

CHAT = "chat-42"

# --- A2: "Allow 1 retry if user explicitly asks" (S-norm, R31) --------------------------------------------------------


@virtual
async def test_a2_a_retry_that_an_open_circuit_refuses_leaves_the_offer() -> None:
    rt = Runtime()
    search = Scripted(DOWN, "found")
    rt.add(search, id="search", read_only=True, retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    await rt.call("search", thread=CHAT)
    refused = await rt.threads[CHAT].retry("search")
    assert (refused.status, refused.attempts) == ("failed", 0)
    assert "10 seconds" in refused.explanation.user
    assert [offer.tool for offer in rt.threads[CHAT].offers] == ["search"]


@virtual
async def test_a2_a_retry_that_ran_uses_the_offer_up() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="search", read_only=True, retry=ONCE)
    await rt.call("search", thread=CHAT)
    assert (await rt.threads[CHAT].retry("search")).attempts == 1
    assert (await rt.threads[CHAT].retry("search")).attempts == 0
    assert len(search.started) == 2
    assert list(rt.threads[CHAT].offers) == []


# --- B3: "I've logged it" (S-norm, R45) -------------------------------------------------------------------------------


def test_b3_a_broken_contract_is_logged_as_an_error_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()

    @rt.tool(id="append")
    def append() -> None:
        raise RuntimeError("Invalid chat.management.gateway.message.append.request")

    with caplog.at_level(logging.DEBUG, "failsoft"):
        outcome = rt.call_sync("append")
        flush_log(5)
    assert outcome.explanation.user == "Something broke internally, I’ve logged it."
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "Invalid chat.management.gateway.message.append.request" in record.getMessage()
    assert "in append" in caplog.text


# --- B8: "Track consecutive failures across executions" (S-layers, R44) -----------------------------------------------


def test_b8_counts_below_the_threshold_are_kept_between_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit_b8.py").write_text("def search():\n    raise RuntimeError('Service unavailable (503)')\n")
    (tmp_path / "failsoft.yaml").write_text(
        "tools:\n"
        '  search: {entrypoint: {function: "audit_b8:search"}, read_only: true, retry: {max_attempts: 1},'
        " breaker: {failure_threshold: 2}}\n"
    )
    (tmp_path / "plan.yaml").write_text("calls: [{tool: search}]\n")
    said = [
        CliRunner()
        .invoke(cli, ["run", "plan.yaml", "--store", "sqlite:///audit.db"])
        .output  # each has its own runtime
        for _ in range(3)
    ]
    assert ["Circuit breaker open for search" in one for one in said] == [False, False, True]


# --- C12: a call that the turn's deadline cut off may be retried if the user asks (S-norm, R31) -----------------------


@virtual
async def test_c12_a_read_that_the_deadline_cut_off_leaves_an_offer() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60, "late"), "found"), id="search", read_only=True, timeout="2m")
    async with rt.turn(timeout="5s", thread=CHAT) as turn:
        turn.call("search")
    assert turn.report.outcomes["search-1"].status == "timed_out"
    assert [offer.tool for offer in rt.threads[CHAT].offers] == ["search"]
    assert (await rt.threads[CHAT].retry("search")).value == "found"


@virtual
async def test_c12_a_write_that_the_deadline_cut_off_leaves_none() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60, "late")), id="book", idempotent=False, timeout="2m")
    async with rt.turn(timeout="5s", thread=CHAT) as turn:
        turn.call("book")
    assert list(rt.threads[CHAT].offers) == []
