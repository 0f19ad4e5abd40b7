"""When to come back: headers, bodies, words; bounded, and never from a clock of our own."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.core.classify.made import http_error, make

from failsoft.core.classify import classify
from failsoft.core.classify.retry_after import LONGEST, find_delay, span

DATE = {"date": "Fri, 06 Nov 2026 08:49:37 GMT"}
EPOCH = 1793954977  # that very moment


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Fri, 06 Nov 2026 08:49:47 GMT", **DATE}, 10),
        ({"retry-after": "Fri, 06 Nov 2026 08:49:27 GMT", **DATE}, 0),
        ({"retry-after": "Fri, 06 Nov 2026 08:49:47 GMT"}, None),
        ({"x-ratelimit-reset": str(EPOCH + 30), "x-ratelimit-remaining": "0", **DATE}, 30),
        ({"x-ratelimit-reset": str(EPOCH + 30)}, None),
        ({"x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "7"}, None),
        ({"ratelimit-reset": "42"}, 42),
        ({"ratelimit": '"default";r=0;t=17'}, 17),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-tokens": "9",
                "x-ratelimit-reset-tokens": "2h",
            },
            360,
        ),
        ({"anthropic-ratelimit-requests-reset": "2026-11-06T08:50:07Z", **DATE}, 30),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "999999"}, LONGEST),
        ({"retry-after": "1e300"}, LONGEST),
        ({"retry-after": "9" * 40}, LONGEST),
        ({"x-ratelimit-reset": str((EPOCH + 30) * 1000), **DATE}, 30),
        ({"x-ratelimit-reset": str((EPOCH + 30) * 1000)}, None),
        ({}, None),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert find_delay(headers, ()) == seconds
    assert classify(http_error(429, headers=headers)).retry_after == seconds


def test_headers_are_looked_up_on_the_response_if_the_error_has_none() -> None:
    error = http_error(429, headers={"Retry-After": "7"})
    error.headers = {}  # type: ignore[attr-defined]  # as some clients carry them
    assert classify(error).retry_after == 7


def test_now_is_an_argument() -> None:
    error = http_error(429, headers={"Retry-After": "Fri, 06 Nov 2026 08:49:47 GMT"})
    assert classify(error).retry_after is None
    assert classify(error, now=EPOCH).retry_after == 10


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"retry_after": 1.5}, 1.5),
        ({"parameters": {"retry_after": 5}}, 5),
        ({"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "21s"}]}}, 21),
        ({"retryAfterMs": 300}, 0.3),
        ({"error": {"message": "Please try again in 20s."}}, 20),
        ({"retry_after": True}, None),
        ({"retry_after": "later"}, None),
    ],
)
def test_bodies(body: Any, seconds: float | None) -> None:
    assert classify(http_error(429, json.dumps(body).encode())).retry_after == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s", 20),
        ("Rate limited, retry after 5 seconds", 5),
        ("Too Many Requests: retry after 7", 7),
        ("Throttled. Please wait 2 minutes", 120),
        ("Rate limit exceeded, try again in 6m0s", 360),
        ("Rate limit exceeded; retry in 120ms", 0.12),
        ("Rate limit exceeded. Please try in 1.4s.", 1.4),
        ("Rate Limit Exceeded. Try Again In 5 Minutes.", 300),
        ("Rate limit exceeded. Expected available in 1 second.", 1),
        ("Rate limit exceeded after 20 calls", None),
        ("Connection timeout after 30s", None),
        ("user 7 should wait in line", None),
    ],
)
def test_words(text: str, seconds: float | None) -> None:
    assert classify(text).retry_after == seconds
    assert classify(RuntimeError(text)).retry_after == seconds


@pytest.mark.parametrize("value", [5, 5.0, timedelta(seconds=5), "5"])
def test_attribute(value: Any) -> None:
    assert classify(make("telegram.error.RetryAfter", "Flood control exceeded", retry_after=value)).retry_after == 5


def test_a_permanent_error_has_none() -> None:
    assert classify(http_error(401, headers={"retry-after": "5"})).retry_after is None
    assert classify("Invalid API key, try again in 5s").retry_after is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h", 3600), ("1m30s", 90), ("250 milliseconds", 0.25), ("3", 3), ("x", None)]
)
def test_span(text: str, seconds: float | None) -> None:
    assert span(text) == seconds


def test_google_rpc_retry_info_as_a_message() -> None:
    info = make("x.RetryInfo", retry_delay=make("x.Duration", seconds=2, nanos=500_000_000))
    assert (
        classify(make("google.api_core.exceptions.TooManyRequests", "x", code=429, details=[info])).retry_after == 2.5
    )


def test_grpc_pushback() -> None:
    methods = {"code": lambda _: None, "trailing_metadata": lambda _: (("grpc-retry-pushback-ms", "300"),)}
    error = type("RpcError", (Exception,), {"__module__": "grpc", **methods})("Service unavailable")
    assert classify(error).retry_after == 0.3
