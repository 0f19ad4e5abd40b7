"""A runtime that reports to a daemon: every event arrives, once, and calls never wait."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
from tests.client.conftest import ScriptedDaemon
from tests.fakes import DOWN, ONCE, real

from failsoft import ManifestError, Runtime
from failsoft.client import EventReporter, event_reporter
from failsoft.client.event_reporter import BATCH
from failsoft.observe.events import Event


def event(number: int) -> Event:
    return Event(number, "ToolSucceeded", float(number), "search", f"search-{number}", None, {})


def arrived(daemon: ScriptedDaemon) -> list[int]:
    return [record["seq"] for _, body in daemon.asked for record in body["events"]]


@real
async def test_every_event_of_a_runtime_arrives_once_and_in_order(daemon: ScriptedDaemon) -> None:
    async with Runtime(report_to=daemon.url) as rt:

        @rt.tool(read_only=True, retry=ONCE)
        async def search() -> None:
            raise DOWN

        for _ in range(3):
            await rt.call("search")
        await rt.flush()
        recorded = [one.seq for one in rt.events()]
    assert arrived(daemon)[: len(recorded)] == recorded
    assert len({*arrived(daemon)}) == len(arrived(daemon))
    assert {path for path, _ in daemon.asked} == {"/v1/events"}
    assert len({body["source"] for _, body in daemon.asked}) == 1
    assert daemon.headers[0]["authorization"] == "Bearer fsd_secret-of-this-test"


def test_many_events_go_in_several_requests(daemon: ScriptedDaemon) -> None:
    reporter = EventReporter(daemon.url, source="web-1")
    reporter.write([event(number) for number in range(BATCH + 1)])
    reporter.close()
    assert [len(body["events"]) for _, body in daemon.asked] == [BATCH, 1]
    assert reporter.sent == BATCH + 1


def test_events_wait_for_a_daemon_that_is_away(daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(event_reporter.time, "monotonic", lambda: now[0])
    away: list[bool] = [True]
    daemon.reply = lambda path, body: (503, {"title": "Service Unavailable"}) if away else (200, {})
    reporter = EventReporter(daemon.url)
    reporter.write([event(1)])
    for number in range(2, 10):  # it is not asked for each batch
        reporter.write([event(number)])
    assert len(daemon.asked) == 1
    away.clear()
    now[0] += 60
    reporter.write([event(10)])
    assert [record["seq"] for record in daemon.asked[-1][1]["events"]] == [*range(1, 11)]
    assert (reporter.sent, reporter.dropped) == (10, 0)
    reporter.close()


def test_the_daemon_is_told_how_many_events_were_dropped(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(event_reporter.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(event_reporter, "KEPT", 5)
    away: list[bool] = [True]
    daemon.reply = lambda path, body: (503, {}) if away else (200, {})
    reporter = EventReporter(daemon.url)
    for number in range(8):
        reporter.write([event(number)])
    away.clear()
    now[0] += 60
    reporter.write([event(8)])
    last: dict[str, Any] = daemon.asked[-1][1]
    assert (last["dropped"], [record["seq"] for record in last["events"]]) == (4, [4, 5, 6, 7, 8])
    now[0] += 60
    reporter.write([event(9)])
    assert daemon.asked[-1][1]["dropped"] == 0
    reporter.close()


def test_a_batch_that_is_refused_does_not_block_the_next(
    daemon: ScriptedDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.reply = lambda path, body: (422, {"detail": "no"}) if body["events"][0]["seq"] == 1 else (200, {})
    reporter = EventReporter(daemon.url)
    reporter.write([event(1)])
    reporter.write([event(2)])
    assert (reporter.sent, reporter.dropped) == (1, 1)
    assert "refused 1 events: 422: no" in caplog.text
    reporter.close()


def test_the_log_says_how_many_events_were_lost_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    reporter = EventReporter("http://127.0.0.1:9")
    reporter.write([event(1), event(2)])
    reporter.close()
    assert reporter.dropped == 2
    assert "2 events did not reach the daemon at 127.0.0.1:9" in caplog.text
    assert "fsd_" not in caplog.text


@real
async def test_a_daemon_that_is_away_costs_a_call_nothing() -> None:
    async with Runtime(report_to="http://127.0.0.1:9") as rt:

        @rt.tool(read_only=True)
        async def search() -> str:
            return "flights"

        outcomes = [await rt.call("search") for _ in range(100)]
    assert {outcome.value for outcome in outcomes} == {"flights"}


def test_a_wrong_address_names_the_option() -> None:
    with pytest.raises(ManifestError, match="report_to: 'daemon' does not start with https://"):
        Runtime(report_to="daemon")


def test_a_forked_child_has_a_name_and_a_connection_of_its_own(daemon: ScriptedDaemon) -> None:
    reporter = EventReporter(daemon.url, source="web")
    reporter.write([event(1)])
    reporter._waiting.append({"seq": 99})  # waits in the parent
    child = os.fork()
    if not child:
        try:
            reporter.write([event(2)])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    reporter.close()
    by_source: dict[str, list[int]] = {}
    for _, body in daemon.asked:
        by_source.setdefault(body["source"], []).extend(record["seq"] for record in body["events"])
    assert by_source == {"web": [1, 99], f"web-{child}": [2]}


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://daemon.example", True),
        ("https://daemon.example", False),
        ("http://localhost:9", False),
        ("http://[::1]:9", False),
    ],
)
def test_a_token_in_clear_text_is_warned_of(url: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    EventReporter(url)
    assert ("clear text" in caplog.text) is warned
