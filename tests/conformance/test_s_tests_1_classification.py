"""S-tests 1: error classification. Each test's name carries the number of its condition."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import AUTH, DOWN, INVALID, RATE_LIMIT, TIMEOUT, Scripted, records, virtual

from failsoft import Outcome, Override, Runtime, classify

MANIFEST = {"version": 1, "tools": {"custom_api": {"classification": [{"http_status": 503, "as": "permanent"}]}}}


async def call(error: Exception, tool: str = "flight_search", manifest: Any = None) -> tuple[Outcome[Any], Runtime]:
    """Let a tool fail with this error once; it would succeed if it were called again."""
    rt = Runtime(manifest)
    rt.add(Scripted(error, "flights"), id=tool)
    return await rt.call(tool), rt


def test_1_1_network_timeout_classified_as_transient() -> None:
    fault = classify("Connection timeout after 30s", tool="flight_search")
    assert fault.classification == "transient"
    assert fault.retryable
    assert fault.reason == "Network timeouts are temporary"


@virtual
async def test_1_1_network_timeout_is_retried() -> None:
    outcome, rt = await call(TIMEOUT)
    assert (outcome.value, outcome.attempts) == ("flights", 2)
    assert [record["classification"] for record in records(rt, "ToolError")] == ["transient"]


def test_1_2_invalid_input_classified_as_permanent() -> None:
    fault = classify("Invalid airport code: XYZ", tool="flight_search")
    assert fault.classification == "permanent"
    assert not fault.retryable
    assert fault.reason == "Invalid input won't change on retry"


@virtual
async def test_1_2_invalid_input_is_not_retried() -> None:
    outcome, rt = await call(INVALID)
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.fault is not None
    assert outcome.fault.category == "tool_validation"
    assert [record["classification"] for record in records(rt, "ToolError")] == ["permanent"]


def test_1_3_rate_limit_classified_as_transient() -> None:
    fault = classify("Rate limit exceeded (429)", tool="flight_search")
    assert fault.classification == "transient"
    assert fault.retryable
    assert fault.reason == "Rate limits reset over time"


@virtual
async def test_1_3_rate_limit_is_retried() -> None:
    outcome, rt = await call(RATE_LIMIT)
    assert (outcome.value, outcome.attempts) == ("flights", 2)
    assert [record["code"] for record in records(rt, "ToolError")] == ["RESOURCE_EXHAUSTED"]


def test_1_4_auth_failure_classified_as_permanent() -> None:
    fault = classify("Authentication failed (401)", tool="flight_search")
    assert fault.classification == "permanent"
    assert not fault.retryable
    assert fault.reason == "Auth won't change on retry"


@virtual
async def test_1_4_auth_failure_is_not_retried() -> None:
    outcome, _ = await call(AUTH)
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.fault is not None
    assert outcome.fault.code == "UNAUTHENTICATED"


def test_1_5_tool_manifest_can_override_classification() -> None:
    text = "Service unavailable (503)"
    fault = classify(text, tool="custom_api", overrides=[Override(http_status=503, as_="permanent")])
    assert classify(text, tool="custom_api").classification == "transient"
    assert fault.classification == "permanent"
    assert not fault.retryable
    assert fault.reason == "Tool manifest override respected"


@pytest.mark.parametrize("manifest", [None, MANIFEST], ids=["plain", "overridden"])
@virtual
async def test_1_5_an_override_decides_about_retries(manifest: Any) -> None:
    outcome, _ = await call(DOWN, "custom_api", manifest)
    assert outcome.attempts == (1 if manifest else 2)
    assert outcome.status == ("failed" if manifest else "succeeded")
