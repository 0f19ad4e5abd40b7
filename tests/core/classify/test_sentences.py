"""S-tests section 1 and S-norm's signals, in the documents' own words."""

from __future__ import annotations

import pytest

from failsoft.core.classify import classify
from failsoft.core.model.fault import Code
from failsoft.core.model.options import Override


@pytest.mark.parametrize(
    ("text", "classification", "retryable", "reason"),
    [
        ("Connection timeout after 30s", "transient", True, "Network timeouts are temporary"),
        ("Invalid airport code: XYZ", "permanent", False, "Invalid input won't change on retry"),
        ("Rate limit exceeded (429)", "transient", True, "Rate limits reset over time"),
        ("Authentication failed (401)", "permanent", False, "Auth won't change on retry"),
    ],
    ids=["1.1", "1.2", "1.3", "1.4"],
)
def test_stests_1(text: str, classification: str, retryable: bool, reason: str) -> None:
    for subject in (text, RuntimeError(text)):
        fault = classify(subject, tool="flight_search")
        assert (fault.classification, fault.retryable, fault.reason) == (classification, retryable, reason)
        assert fault.rule
        assert fault.message == text


@pytest.mark.parametrize(
    "override", [{"http_status": 503, "as": "permanent"}, Override(http_status=503, as_="permanent")]
)
def test_stests_1_5(override: object) -> None:
    fault = classify("Service unavailable (503)", tool="custom_api", overrides=[override])
    assert fault.classification == "permanent"
    assert not fault.retryable
    assert fault.reason == "Tool manifest override respected"
    assert classify("Service unavailable (503)").classification == "transient"


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Invalid extension.gateway.execute.request", "tool_unavailable"),
        ("invalid extension execute request", "tool_unavailable"),
        ("Invalid extension.calendar.execute.request", "tool_unavailable"),
        ("Invalid extension.google_calendar.gateway.execute.request", "tool_unavailable"),
        ("missing tool id", "tool_unavailable"),
        ("missing extension id", "tool_unavailable"),
        ("Invalid chat.management.gateway.message.append.request", "internal_contract_bug"),
        ("Missing API key", "tool_misconfigured"),
        ("misconfigured base url", "tool_misconfigured"),
        ("Invalid base URL: 'http//api'", "tool_misconfigured"),
        ("Invalid URL: 'http//api'", "tool_validation"),
        ("Invalid file extension", "tool_validation"),
    ],
)
def test_snorm_signals(text: str, category: str) -> None:
    assert classify(text).category == category


def test_unknown_is_transient() -> None:
    fault = classify("the frobnicator said hello")
    assert (fault.classification, fault.code, fault.effect) == ("transient", Code.UNKNOWN, "unknown")


@pytest.mark.parametrize(
    "text",
    [
        "Data loss or corruption",
        "Data corruption detected in block 7",
        "data loss in transit",
        "data is corrupted",
        "corrupted response body",
        "the reply body was corrupt",
        "checksum mismatch",
        "ChecksumMismatchError",
        "CRC32 does not match",
    ],
)
def test_lost_and_corrupted_data(text: str) -> None:
    """S-layers: "Data loss or corruption" may be repeated."""
    fault = classify(text)
    assert (fault.code, fault.classification, fault.effect) == (Code.DATA_LOSS, "transient", "unknown")


@pytest.mark.parametrize(
    "text", ["the input data is corrupted", "image data is corrupted", "corrupted zip file", "File is corrupted"]
)
def test_damaged_inputs_are_not_lost_data(text: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.classification) == (Code.INVALID_ARGUMENT, "permanent")
