"""Attributes of exceptions: status, codes, bodies, headers, errno; and attributes that mislead."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from enum import Enum, IntEnum
from typing import Any

import pytest
from tests.core.classify.made import Response, error_type, http_error, make

from failsoft.core.classify import classify
from failsoft.core.model.fault import Code, Fault


@pytest.mark.parametrize(
    ("status", "code", "classification", "effect"),
    [
        (400, "INVALID_ARGUMENT", "permanent", "none"),
        (401, "UNAUTHENTICATED", "permanent", "none"),
        (403, "PERMISSION_DENIED", "permanent", "none"),
        (404, "NOT_FOUND", "permanent", "none"),
        (408, "DEADLINE_EXCEEDED", "transient", "none"),
        (410, "NOT_FOUND", "permanent", "none"),
        (412, "FAILED_PRECONDITION", "permanent", "none"),
        (413, "INVALID_ARGUMENT", "permanent", "none"),
        (422, "INVALID_ARGUMENT", "permanent", "none"),
        (429, "RESOURCE_EXHAUSTED", "transient", "none"),
        (499, "CANCELLED", "transient", "unknown"),
        (500, "INTERNAL", "transient", "unknown"),
        (501, "UNIMPLEMENTED", "permanent", "none"),
        (502, "UNAVAILABLE", "transient", "unknown"),
        (503, "UNAVAILABLE", "transient", "none"),
        (504, "DEADLINE_EXCEEDED", "transient", "unknown"),
        (507, "RESOURCE_EXHAUSTED", "permanent", "none"),
        (529, "UNAVAILABLE", "transient", "none"),
        (302, "FAILED_PRECONDITION", "permanent", "none"),
        (477, "INVALID_ARGUMENT", "permanent", "none"),
        (577, "INTERNAL", "transient", "unknown"),
    ],
)
def test_status(status: int, code: str, classification: str, effect: str) -> None:
    fault = classify(http_error(status))
    assert (fault.code, fault.classification, fault.effect) == (code, classification, effect)
    assert fault.http_status == status
    assert fault.rule == f"http_status: {status}"


class Status(IntEnum):
    THROTTLED = 429


@pytest.mark.parametrize("value", [429, "429", Status.THROTTLED])
@pytest.mark.parametrize("name", ["status_code", "status", "http_status", "code", "response_code"])
def test_status_by_any_name(name: str, value: Any) -> None:
    assert classify(make("acme.Error", "x", **{name: value})).http_status == 429


@pytest.mark.parametrize("name", ["response", "resp", "raw_response", "meta"])
def test_status_of_the_response(name: str) -> None:
    assert classify(make("acme.Error", "x", **{name: Response(503)})).http_status == 503


class Falsy(Response):
    def __bool__(self) -> bool:  # requests.Response is false for a 4xx
        return False


def test_a_false_response_is_read_too() -> None:
    body = json.dumps({"error": {"code": "insufficient_quota"}}).encode()
    fault = classify(make("requests.exceptions.HTTPError", "x", response=Falsy(429, body)))
    assert (fault.http_status, fault.classification) == (429, "permanent")


@pytest.mark.parametrize(
    ("status", "body", "classification", "code"),
    [
        # the body beats the status
        (429, {"error": {"type": "insufficient_quota"}}, "permanent", "RESOURCE_EXHAUSTED"),
        (
            429,
            {"error": {"code": "rate_limit_exceeded", "message": "Request too large for x"}},
            "permanent",
            "INVALID_ARGUMENT",
        ),
        (429, {"message": "Daily quota exceeded"}, "permanent", "RESOURCE_EXHAUSTED"),
        (429, {"message": "Quota exceeded for 'reads per minute'"}, "transient", "RESOURCE_EXHAUSTED"),
        (400, {"__type": "com.acme#ThrottlingException"}, "transient", "RESOURCE_EXHAUSTED"),
        (400, {"error": {"message": "Your credit balance is too low"}}, "permanent", "RESOURCE_EXHAUSTED"),
        (403, {"message": "API rate limit exceeded for user 1"}, "transient", "RESOURCE_EXHAUSTED"),
        (403, {"error": {"errors": [{"reason": "userRateLimitExceeded"}]}}, "transient", "RESOURCE_EXHAUSTED"),
        (409, {"message": "A user of that name already exists"}, "permanent", "ALREADY_EXISTS"),
        (409, {"message": "Another request is in progress"}, "transient", "ABORTED"),
        (409, {}, "permanent", "ABORTED"),
        (503, {"errors": ["Vault is sealed"]}, "permanent", "FAILED_PRECONDITION"),
        (500, {"message": "write failed: no space left on device"}, "permanent", "RESOURCE_EXHAUSTED"),
        (200, {"ok": False, "error": "ratelimited"}, "transient", "RESOURCE_EXHAUSTED"),
        (
            200,
            {"errors": [{"message": "no", "extensions": {"code": "UNAUTHENTICATED"}}]},
            "permanent",
            "UNAUTHENTICATED",
        ),
        (200, {"type": "error", "error": {"type": "overloaded_error"}}, "transient", "UNAVAILABLE"),
        # but not where the status leaves no room
        (401, {"message": "Request timed out"}, "permanent", "UNAUTHENTICATED"),
        (404, {"message": "rate limit exceeded"}, "permanent", "NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("shape", ["response", "attribute", "text"])
def test_the_body_beats_the_status(status: int, body: Any, classification: str, code: str, shape: str) -> None:
    if shape == "response":
        error = http_error(status, json.dumps(body).encode())
    elif shape == "attribute":
        error = make("acme.ApiError", "failed", status_code=status, body=body)
    else:
        error = make("acme.ApiError", "failed", status_code=status, body=json.dumps(body))
    fault = classify(error)
    assert (fault.classification, fault.code) == (classification, code), fault.rule


def test_an_error_in_a_stream_that_had_begun_may_have_acted() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error"}}
    assert classify(http_error(200, json.dumps(body).encode())).effect == "unknown"
    assert classify(http_error(529, json.dumps(body).encode())).effect == "none"


def test_aws_shape() -> None:
    response = {
        "Error": {"Code": "ProvisionedThroughputExceededException", "Message": "x"},
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "7"}},
    }
    fault = classify(make("botocore.exceptions.ClientError", "An error occurred", response=response))
    assert (fault.code, fault.classification, fault.http_status) == ("RESOURCE_EXHAUSTED", "transient", 400)
    assert fault.retry_after == 7


def test_xml_body() -> None:
    body = b"<Error><Code>SlowDown</Code><Message>x</Message></Error>"
    assert classify(http_error(503, body)).code == "RESOURCE_EXHAUSTED"


def test_a_page_where_data_was_due() -> None:
    page = b"<!DOCTYPE html><html><title>404</title></html>"
    assert classify(http_error(200, page)).category == "tool_misconfigured"
    assert classify(http_error(404, page)).category == "tool_misconfigured"  # an SDK's address is wrong
    fetched = make("httpx.HTTPStatusError", "404", response=Response(404, page))
    assert classify(fetched).category == "tool_validation"  # the caller's address is wrong
    assert classify(http_error(502, page)).classification == "transient"


class GrpcCode(Enum):
    UNAVAILABLE = (14, "unavailable")
    RESOURCE_EXHAUSTED = (8, "resource exhausted")
    INTERNAL = (13, "internal")


@pytest.mark.parametrize(
    ("code", "text", "want", "classification"),
    [
        (GrpcCode.UNAVAILABLE, "x", "UNAVAILABLE", "transient"),
        (GrpcCode.INTERNAL, "x", "INTERNAL", "transient"),
        (GrpcCode.RESOURCE_EXHAUSTED, "x", "RESOURCE_EXHAUSTED", "transient"),
        (GrpcCode.RESOURCE_EXHAUSTED, "Received message larger than max (9 vs. 4)", "INVALID_ARGUMENT", "permanent"),
    ],
)
def test_grpc(code: GrpcCode, text: str, want: str, classification: str) -> None:
    rpc_error = error_type("grpc.RpcError")
    error = type("_InactiveRpcError", (rpc_error,), {"__module__": "grpc._channel", "code": lambda _: code})(text)
    fault = classify(error)
    assert (fault.code, fault.classification) == (want, classification)


def test_code_is_called_for_grpc_only() -> None:
    called = []
    error = type("Odd", (Exception,), {"__module__": "acme", "code": lambda _: called.append(1)})("x")
    classify(error)
    assert called == []


@pytest.mark.parametrize(
    ("qualified", "attributes", "code", "classification"),
    [
        ("psycopg.errors.UniqueViolation", {"sqlstate": "23505"}, "ALREADY_EXISTS", "permanent"),
        ("psycopg2.errors.X", {"pgcode": "40001"}, "ABORTED", "transient"),
        ("asyncpg.exceptions.X", {"sqlstate": "08001"}, "UNAVAILABLE", "transient"),
        ("psycopg.errors.X", {"sqlstate": "22999"}, "INVALID_ARGUMENT", "permanent"),
        ("sqlite3.OperationalError", {"sqlite_errorname": "SQLITE_BUSY_SNAPSHOT"}, "ABORTED", "transient"),
        ("pymongo.errors.OperationFailure", {"code": 112}, "ABORTED", "transient"),
        ("pymongo.errors.OperationFailure", {"code": 11000}, "ALREADY_EXISTS", "permanent"),
        ("mcp.shared.exceptions.McpError", {"error": make("x.Y", code=-32601)}, "UNIMPLEMENTED", "permanent"),
        ("acme.RpcError", {"code": -32602}, "INVALID_ARGUMENT", "permanent"),
        ("neo4j.exceptions.X", {"code": "Neo.TransientError.Transaction.DeadlockDetected"}, "ABORTED", "transient"),
        ("subprocess.CalledProcessError", {"returncode": 127}, "NOT_FOUND", "permanent"),
        ("subprocess.CalledProcessError", {"returncode": -9}, "ABORTED", "transient"),
        (
            "subprocess.CalledProcessError",
            {"returncode": 1, "stderr": b"frob: Permission denied"},
            "PERMISSION_DENIED",
            "permanent",
        ),
        ("smtplib.SMTPResponseException", {"smtp_code": 451, "smtp_error": b"4.7.1 later"}, "UNAVAILABLE", "transient"),
        (
            "smtplib.SMTPResponseException",
            {"smtp_code": 550, "smtp_error": b"5.7.1 no relay"},
            "PERMISSION_DENIED",
            "permanent",
        ),
        ("smtplib.SMTPRecipientsRefused", {"recipients": {"a@b": (550, b"5.1.1 no")}}, "NOT_FOUND", "permanent"),
        ("pika.exceptions.ChannelClosedByBroker", {"reply_code": 404}, "NOT_FOUND", "permanent"),
        ("grpclib.exceptions.GRPCError", {"status": GrpcCode.UNAVAILABLE}, "UNAVAILABLE", "transient"),
    ],
)
def test_codes_of_their_own(qualified: str, attributes: dict[str, Any], code: str, classification: str) -> None:
    fault = classify(make(qualified, "x", **attributes))
    assert (fault.code, fault.classification) == (code, classification), fault.rule


def test_mysql_numbers_are_no_statuses() -> None:
    fault = classify(make("pymysql.err.OperationalError", 1213, "Deadlock found"))
    assert (fault.code, fault.http_status, fault.rule) == ("ABORTED", None, "mysql: 1213")


@pytest.mark.parametrize(
    ("error", "code", "category", "effect"),
    [
        (ConnectionRefusedError(111, "x"), "UNAVAILABLE", "tool_transient", "none"),
        (ConnectionResetError(104, "x"), "UNAVAILABLE", "tool_transient", "unknown"),
        (OSError(28, "x"), "RESOURCE_EXHAUSTED", "tool_misconfigured", "none"),
        (OSError(24, "x"), "RESOURCE_EXHAUSTED", "tool_transient", "none"),
        (FileNotFoundError(2, "x", "report.csv"), "NOT_FOUND", "tool_validation", "none"),
        (PermissionError(13, "x"), "PERMISSION_DENIED", "tool_misconfigured", "none"),
        (socket.gaierror(-2, "x"), "NOT_FOUND", "tool_misconfigured", "none"),
        (socket.gaierror(-3, "x"), "UNAVAILABLE", "tool_transient", "none"),
        (TimeoutError(), "DEADLINE_EXCEEDED", "tool_transient", "unknown"),
        (TypeError("f() got an unexpected keyword argument 'x'"), "INTERNAL", "internal_contract_bug", "none"),
        (KeyError("timeout"), "INTERNAL", "internal_contract_bug", "none"),
        (AssertionError("connection reset"), "INTERNAL", "internal_contract_bug", "none"),
        (ZeroDivisionError("division by zero"), "INTERNAL", "internal_contract_bug", "none"),
        (NotImplementedError(), "UNIMPLEMENTED", "tool_unavailable", "none"),
        (ModuleNotFoundError("No module named 'x'"), "NOT_FOUND", "tool_unavailable", "none"),
        (ValueError("no such shape"), "NOT_FOUND", "tool_validation", "none"),
        (ValueError("xyzzy"), "INVALID_ARGUMENT", "tool_validation", "none"),
        (UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "timeout"), "INVALID_ARGUMENT", "tool_validation", "none"),
        (json.JSONDecodeError("timeout", "{", 0), "INVALID_ARGUMENT", "tool_validation", "none"),
        (json.JSONDecodeError("x", "<!DOCTYPE html>", 0), "INTERNAL", "tool_misconfigured", "unknown"),
        (MemoryError(), "RESOURCE_EXHAUSTED", "tool_transient", "none"),
        (RecursionError(), "INTERNAL", "internal_contract_bug", "none"),
        (asyncio.CancelledError(), "CANCELLED", "tool_transient", "unknown"),
        (asyncio.IncompleteReadError(b"", 9), "DATA_LOSS", "tool_transient", "unknown"),
        (subprocess.TimeoutExpired(["x"], 1), "DEADLINE_EXCEEDED", "tool_transient", "unknown"),
        (RuntimeError("xyzzy"), "UNKNOWN", "tool_transient", "unknown"),
        (OSError("xyzzy"), "UNKNOWN", "tool_transient", "unknown"),
        (SystemExit(404), "CANCELLED", "tool_transient", "unknown"),
    ],
    ids=repr,
)
def test_python(error: BaseException, code: str, category: str, effect: str) -> None:
    fault = classify(error)
    assert (fault.code, fault.category, fault.effect) == (code, category, effect), fault.rule
    assert fault.cause is error


def test_a_missing_program_is_not_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        subprocess.run(["no-such-program-anywhere"], check=False)
    assert classify(caught.value).category == "tool_unavailable"


def test_an_answer_that_is_no_json_is_not_the_callers_json() -> None:
    scope = {"__name__": "httpx._models"}
    exec("def json(text):\n    import json as j\n    return j.loads(text)", scope)
    with pytest.raises(json.JSONDecodeError) as caught:
        scope["json"]("")  # type: ignore[operator]
    fault = classify(caught.value)
    assert (fault.code, fault.classification, fault.effect) == ("DATA_LOSS", "transient", "unknown")


class Hostile(Exception):
    """Every attribute of interest raises."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__dict__", "__cause__", "__context__"):
            return super().__getattribute__(name)
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise ValueError("no text")


class Mute(Hostile):
    """The same, but its text is plain."""

    __str__ = Exception.__str__


@pytest.mark.parametrize("hostile", [Hostile, Mute])
def test_attributes_that_raise(hostile: type[Exception]) -> None:
    fault = classify(hostile("x"))
    assert isinstance(fault, Fault)
    assert fault.code is Code.UNKNOWN


def test_properties_are_read_once_and_only_by_known_names() -> None:
    read: list[str] = []

    def record(name: str) -> property:
        return property(lambda _: read.append(name))

    names = ("status_code", "launch_missiles", "body", "json", "read")
    classify(type("Odd", (Exception,), {"__module__": "acme", **{name: record(name) for name in names}})("x"))
    assert sorted(read) == ["body", "status_code"]


@pytest.mark.parametrize("value", [float("nan"), -1, 10**30, "9" * 50, b"429", [], {}, object(), True])
def test_odd_codes(value: Any) -> None:
    assert classify(make("acme.Error", "xyzzy", status_code=value, code=value, sqlstate=value)).http_status is None


@pytest.mark.parametrize("name", ["code", "error_code", "body"])
def test_a_secret_in_a_code_does_not_get_into_the_rule(name: str) -> None:
    secret = "sk-proj-" + "abc123def456ghi789jkl012"
    code = f"invalid_api_key:{secret}"
    fault = classify(make("acme.ApiError", "no", **{name: {"error": {"code": code}} if name == "body" else code}))
    assert fault.rule == "code: invalid_api_key:[redacted]"
    assert secret not in repr(fault)
