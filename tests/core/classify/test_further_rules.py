"""Rules that hold for libraries nobody has heard of: names after a status, phases of a connection, others' numbers."""

from __future__ import annotations

import ftplib

import pytest
from tests.core.classify.made import http_error, make

from failsoft.core.classify import classify
from failsoft.core.fault import Code


@pytest.mark.parametrize(
    ("name", "status"),
    [("InternalServerError", 500), ("TooManyRequests", 429), ("NotFoundException", 404), ("BadGatewayError", 502)],
)
def test_a_class_named_after_a_status_claims_it(name: str, status: int) -> None:
    assert classify(make(f"acme.{name}", "leader not found")).http_status == status


@pytest.mark.parametrize("name", ["acme.RequestTimeout", "psycopg_pool.TooManyRequests", "acme.Found"])
def test_but_not_where_the_name_means_something_else(name: str) -> None:
    assert classify(make(name, "x")).http_status is None


def test_a_number_that_is_no_status_is_none() -> None:
    assert classify("Received exception, code: 516, Authentication failed").code is Code.UNAUTHENTICATED
    assert classify(make("acme.DatabaseError", "password is incorrect", code=516)).code is Code.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("error", "code", "passes"),
    [
        (ftplib.error_temp("421 Too many users, sorry"), Code.UNAVAILABLE, True),
        (ftplib.error_perm("530 Login incorrect."), Code.UNAUTHENTICATED, False),
        (ftplib.error_perm("550 x"), Code.NOT_FOUND, False),
        (ftplib.error_temp("499 x"), Code.UNAVAILABLE, True),
    ],
    ids=["421", "530", "550", "family"],
)
def test_ftp_replies_are_no_http_statuses(error: Exception, code: Code, passes: bool) -> None:
    fault = classify(error)
    assert fault.code is code
    assert (fault.classification == "transient") is passes


@pytest.mark.parametrize(
    "text",
    [
        "timed out while waiting for handshake response",
        "kex_exchange_identification: Connection closed by remote host",
        "Error reading SSH protocol banner: connection reset by peer",
        "Net::OpenTimeout: execution expired",
        "Stream closed with error code NGHTTP2_REFUSED_STREAM",
        "Unable to bootstrap from localhost:9092",
    ],
)
def test_before_the_connection_stood_nothing_was_sent(text: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.effect) == ("transient", "none")


@pytest.mark.parametrize(
    "text",
    [
        "localhost:27017: connection closed (configured timeouts: connectTimeoutMS: 20000.0ms)",
        "disconnected: not connected to DevTools",
        "Searching resulted in a timeout. Try again in a few seconds",
    ],
)
def test_afterwards_nobody_knows(text: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.effect) == ("transient", "unknown")


@pytest.mark.parametrize(
    ("text", "effect"), [("Timeout during request", "unknown"), ("Timeout while connecting", "none")]
)
def test_599_is_what_its_text_says(text: str, effect: str) -> None:
    assert classify(http_error(599, b"", text=text)).effect == effect


@pytest.mark.parametrize(
    ("sqlstate", "code"), [("08001", Code.UNAVAILABLE), ("40001", Code.ABORTED), ("42501", Code.PERMISSION_DENIED)]
)
def test_a_sqlstate_in_digits_is_no_number(sqlstate: str, code: Code) -> None:
    assert classify(make("pyodbc.Error", sqlstate, "x")).code is code
    assert classify(make("postgrest.APIError", "x", code=sqlstate)).code is code


def test_a_refused_login_is_no_refused_connection() -> None:
    error = make("snowflake.DatabaseError", "Incorrect username or password was specified.", sqlstate="08001")
    assert classify(error).code is Code.UNAUTHENTICATED
