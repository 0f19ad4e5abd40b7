"""A retry that follows from attempts and time alone needs no report, and its event says the same as with one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from failsoft import RetryOptions, Runtime
from failsoft.runtime.call.recovery import Recovery

TIMES = ("timestamp", "duration_ms", "total_ms", "recovery_ms")


async def _events_of_a_retried_call() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rt = Runtime()
    attempts = 0

    @rt.tool(retry=RetryOptions(max_attempts=3, initial_delay="0s", budget=False))
    async def search() -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise ConnectionError("connection reset by peer")
        return "found"

    search.__failsoft__.known_errors = None  # no fast retries
    assert await search() == "found"
    flat = [event.to_dict() for event in rt.events()]
    metrics = rt.metrics("search")
    return [{name: event[name] for name in event if name not in TIMES} for event in flat], {
        name: metrics[name] for name in ("error_count", "transient_error_count", "retry_count", "success_count")
    }


def test_a_plain_retry_makes_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a report was made")

    monkeypatch.setattr(Recovery, "_make_report", refuse)
    _, metrics = asyncio.run(_events_of_a_retried_call())
    assert metrics == {"error_count": 2, "transient_error_count": 2, "retry_count": 2, "success_count": 1}


def test_events_and_metrics_are_those_of_a_retry_with_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = asyncio.run(_events_of_a_retried_call())
    monkeypatch.setattr(Recovery, "_is_plain_retry", lambda *_: False)
    assert asyncio.run(_events_of_a_retried_call()) == plain
