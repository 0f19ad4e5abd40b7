"""Texts: statuses on word boundaries, words in the wrong place, codes of other languages, tracebacks."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest

from failsoft.core.classify import classify
from failsoft.core.classify.text_reader import LENGTH, Reading, spell


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("HTTP 503", 503),
        ("HTTP/1.1 404 Not Found", 404),
        ("Rate limit exceeded (429)", 429),
        ("status code: 502", 502),
        ("statusCode=500", 500),
        ("Error code: 429 - {'error': 1}", 429),
        ("503 Service Unavailable", 503),
        ("server returned 504", 504),
        ("<title>503 Service Temporarily Unavailable</title>", 503),
        ("404: page", 404),
        ("Request 503abc not found", None),
        ("order 429 was shipped", None),
        ("flight 404 does not exist", None),
        ("took 500 ms", None),
        ("port 5032", None),
        ("v1.429.0", None),
        ("http://127.0.0.1:503/x", None),
        ("in 503 of 1000 runs", None),
        ("no digits", None),
    ],
)
def test_status_on_word_boundaries(text: str, status: int | None) -> None:
    assert Reading(text).status == status


@pytest.mark.parametrize(
    ("text", "classification", "code"),
    [
        ("user asked about timeout", "transient", "UNKNOWN"),
        ("Request 503abc not found", "permanent", "NOT_FOUND"),
        ("Order 429 not found", "permanent", "NOT_FOUND"),
        ("Invalid timeout value: -3", "permanent", "INVALID_ARGUMENT"),
        ("'timeout' is a required property", "permanent", "INVALID_ARGUMENT"),
        ("rate_limit must be a positive integer", "permanent", "INVALID_ARGUMENT"),
        ("Unknown field: retry_after", "permanent", "INVALID_ARGUMENT"),
        ("No document titled 'Service Unavailable' exists", "permanent", "NOT_FOUND"),
        ("Cannot parse 'connection reset' as a date", "permanent", "INVALID_ARGUMENT"),
        ("KeyError: 'timeout'", "permanent", "INTERNAL"),
        ("404 for https://api.example.org/rate-limit/exceeded?timeout=1", "permanent", "NOT_FOUND"),
        ("cannot read /var/run/timeout/connection/refused: no such file", "permanent", "NOT_FOUND"),
    ],
)
def test_words_in_the_wrong_place(text: str, classification: str, code: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.code) == (classification, code), fault.rule


@pytest.mark.parametrize(
    ("text", "code", "effect"),
    [
        # Node.js, libuv
        ("connect ECONNREFUSED 127.0.0.1:5432", "UNAVAILABLE", "none"),
        ("connect ETIMEDOUT 10.0.0.1:443", "DEADLINE_EXCEEDED", "none"),
        ("read ECONNRESET", "UNAVAILABLE", "unknown"),
        ("getaddrinfo EAI_AGAIN api.example.org", "UNAVAILABLE", "none"),
        ("UND_ERR_HEADERS_TIMEOUT", "DEADLINE_EXCEEDED", "unknown"),
        # Go
        ("dial tcp 10.0.0.1:443: i/o timeout", "DEADLINE_EXCEEDED", "none"),
        ("context deadline exceeded", "DEADLINE_EXCEEDED", "unknown"),
        ("rpc error: code = Unavailable desc = transport is closing", "UNAVAILABLE", "none"),
        # Java
        ("java.net.SocketTimeoutException: Read timed out", "DEADLINE_EXCEEDED", "unknown"),
        ("java.net.ConnectException: Connection refused", "UNAVAILABLE", "none"),
        ("HikariPool-1 - Connection is not available, request timed out after 30000ms.", "RESOURCE_EXHAUSTED", "none"),
        # .NET
        ("System.Net.Sockets.SocketException (10061): actively refused it", "UNAVAILABLE", "none"),
        # Rust
        ("error trying to connect: tcp connect error: Connection refused (os error 111)", "UNAVAILABLE", "none"),
        ("connection closed before message completed", "UNAVAILABLE", "unknown"),
        # curl, databases
        ("curl: (28) Operation timed out", "DEADLINE_EXCEEDED", "unknown"),
        ("ERROR: deadlock detected (SQLSTATE 40P01)", "ABORTED", "none"),
        ("ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction", "ABORTED", "none"),
        ("LOADING Redis is loading the dataset in memory", "UNAVAILABLE", "none"),
        ("SQLITE_BUSY: database is locked", "ABORTED", "none"),
        # MCP
        ("MCP error -32001: Request timed out", "DEADLINE_EXCEEDED", "unknown"),
    ],
)
def test_transient_in_other_languages(text: str, code: str, effect: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.code, fault.effect) == ("transient", code, effect), fault.rule


@pytest.mark.parametrize(
    ("text", "code", "category"),
    [
        ("getaddrinfo ENOTFOUND api.example.org", "NOT_FOUND", "tool_misconfigured"),
        ("UNABLE_TO_VERIFY_LEAF_SIGNATURE", "FAILED_PRECONDITION", "tool_misconfigured"),
        ("UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "FAILED_PRECONDITION", "tool_misconfigured"),
        ("CERT_NOT_YET_VALID", "FAILED_PRECONDITION", "tool_misconfigured"),
        ("ERR_TLS_CERT_ALTNAME_INVALID", "FAILED_PRECONDITION", "tool_misconfigured"),
        ("x509: certificate signed by unknown authority", "FAILED_PRECONDITION", "tool_misconfigured"),
        ("spawn npx ENOENT", "NOT_FOUND", "tool_unavailable"),
        ("bash: frob: command not found", "NOT_FOUND", "tool_unavailable"),
        ('exec: "ffmpeg": executable file not found in $PATH', "NOT_FOUND", "tool_unavailable"),
        ("MCP error -32601: Method not found", "UNIMPLEMENTED", "tool_unavailable"),
        ("MCP error -32602: Unknown tool: frob", "NOT_FOUND", "tool_unavailable"),
        ("MCP error -32600: Invalid Request", "INVALID_ARGUMENT", "internal_contract_bug"),
        ("TypeError: Cannot read properties of undefined (reading 'id')", "INTERNAL", "internal_contract_bug"),
        ("java.lang.NullPointerException", "INTERNAL", "internal_contract_bug"),
        ("Error calling tool 'lookup': 'id'", "INTERNAL", "internal_contract_bug"),
        ("The model `x-1` does not exist or you do not have access to it.", "NOT_FOUND", "tool_misconfigured"),
        ("cp: error writing 'x': No space left on device", "RESOURCE_EXHAUSTED", "tool_misconfigured"),
        ("Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", "INTERNAL", "tool_misconfigured"),
        ("ORA-00942: table or view does not exist", "NOT_FOUND", "tool_validation"),
        ("base_url must start with http:// or https://", "FAILED_PRECONDITION", "tool_misconfigured"),
    ],
)
def test_permanent_in_other_languages(text: str, code: str, category: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.code, fault.category) == ("permanent", code, category), fault.rule


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            'Traceback (most recent call last):\n  File "x.py", line 3, in f\n    raise_timeout()\nKeyError: 1',
            "KeyError: 1",
        ),
        ("java.io.IOException: Broken pipe\n\tat x.y.timeout(Z.java:1)\n", "java.io.IOException: Broken pipe\n"),
        ("Error: boom\n    at connect (net.js:1)", "Error: boom\n"),
    ],
)
def test_only_the_exceptions_of_a_traceback_are_read(text: str, kept: str) -> None:
    assert Reading(text).text == kept


def test_both_ends_of_a_long_text_are_read() -> None:
    fault = classify("log line\n" * 5_000 + "ConnectionRefusedError: [Errno 111] Connection refused")
    assert fault.code == "UNAVAILABLE"
    assert len(Reading("x" * 10**6).text) <= LENGTH + 1


@pytest.mark.parametrize("name", ["RateLimitError", "rate_limit_error", "RATE_LIMIT_ERROR"])
def test_names_are_spelled_out(name: str) -> None:
    assert spell(name) == "rate limit error"
    assert classify(name).code == "RESOURCE_EXHAUSTED"


TEXTS = [line.split("\t", 1) for line in (Path(__file__).parent / "texts.tsv").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("classification", "text"), TEXTS)
def test_texts_of_tools_servers_and_programs_are_classified(classification: str, text: str) -> None:
    for subject in (text, f"Error executing tool frob: {text}"):
        fault = classify(subject)
        assert fault.classification == classification, fault.rule


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "connection error timeout invalid ",
        '{"error": {"code": "x", ',
        "/a",
        "'a\" ",
        "x_",
        "aA",
        "5 ",
        "((",
        "try again in ",
        "\n    at ",
        "\n",
        " \n",
        "eyJ",
        "A1b/",
        "token is ",
        "password=hunter2 ",
        "sk-proj-abc123def456ghi789jkl012 ",
        '{"error": {"code": "x", "message": "rate limit"}}, ',
    ],
)
def test_huge_and_hostile_texts_cost_little(part: str) -> None:
    text = part * (2**20 // len(part))
    classify(text[:4_000])  # patterns are compiled once

    def cost() -> float:
        start = perf_counter()
        classify(text)
        return perf_counter() - start

    assert min(cost() for _ in range(5)) < 0.02  # T16; a millisecond on a quiet machine


@pytest.mark.parametrize("at", [0.001, 0.5, 0.999])
def test_no_secret_leaks_from_the_unread_part_of_a_huge_text(at: float) -> None:
    secret = "sk-proj-" + "abc123def456ghi789jkl012"
    filler = "all is well " * 50_000
    place = int(len(filler) * at)
    fault = classify(f"{filler[:place]} invalid_api_key_{secret} {filler[place:]}")
    assert "abc123def456" not in repr(fault)
    assert len(fault.message) <= 400
