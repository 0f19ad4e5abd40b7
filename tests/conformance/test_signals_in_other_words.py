"""The documents' signals in other words: as a text, as an exception, and as what a tool raises."""

from __future__ import annotations

import pytest

from failsoft import Fault, Runtime, classify

SIGNALS: dict[tuple[str, str], list[str]] = {  # the code or *, and the category or "permanent"
    ("DEADLINE_EXCEEDED", "tool_transient"): [
        "Connection timeout after 30s",
        "connection timed out after 12 seconds",
        "Tool didn't respond within timeout",
        "The tool did not respond within 30s",
        "The server did not respond in time",
        "No response within 10 seconds",
        "read timeout",
        "Request timeout",
        "Network timeout",
        "Operation timed out",
        "Gateway Timeout",
        "504 Gateway Time-out",
        "timeout of 5000ms exceeded",
        "upstream request timeout",
        "DEADLINE_EXCEEDED",
    ],
    ("RESOURCE_EXHAUSTED", "tool_transient"): [
        "Rate limit exceeded",
        "API rate limit hit",
        "API rate limit reached, resets in 20s",
        "You have been rate limited",
        "Too many requests, please slow down",
        "429",
        "HTTP 429",
        "status code 429",
        "throttled by the API",
        "Rate limit or quota exceeded",
        "ResourceExhausted",
    ],
    ("UNAVAILABLE", "tool_transient"): [
        "Service temporarily unavailable",
        "Temporary service unavailable",
        "The service is temporarily down",
        "Service temporarily down (503)",
        "503",
        "HTTP/1.1 503 Service Unavailable",
        "Server is overloaded, try again later",
        "Connection reset",
        "Connection reset by peer",
        "Network connection dropped mid-request",
        "connection was dropped",
        "ECONNRESET",
        "socket hang up",
        "Connection refused",
        "Connection aborted.",
        "Service unavailable",
        "UNAVAILABLE: backend down",
        "rpc error: code = Unavailable desc = x",
    ],
    ("*", "tool_transient"): [
        "partial results before timeout",
        "Tool returned partial results before timeout",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "599",
        "network error",
        "Network timeouts",
        "5xx",
        "something odd happened",
        "Unknown error",
    ],
    ("INVALID_ARGUMENT", "tool_validation"): [
        "Invalid airport code: XYZ",
        "Invalid input",
        "Malformed parameters",
        "Tool received malformed parameters",
        "malformed request",
        "Bad input: date is in the past",
        "400 Bad Request",
        "validation failed",
        "Validation error: city is required",
        "422 Unprocessable Entity",
    ],
    ("*", "tool_validation"): [
        "schema mismatch",
    ],
    ("*", "permanent"): [
        "Response doesn't match expected schema",
        "Response does not match the expected schema",
        "Schema validation failed",
        "Schema validation failure",
        "Schema validation error: expected integer",
    ],
    ("*", "tool_misconfigured"): [
        "Authentication failure",
        "Authentication failed",
        "Invalid credentials",
        "invalid credentials or permissions",
        "Auth failures",
        "auth failed",
        "401 Unauthorized",
        "403 Forbidden",
        "missing api key",
        "Missing API key",
        "API key is missing",
        "No API key provided",
        "API key not set",
        "OPENAI_API_KEY is not set",
        "missing credentials",
        "Missing config",
        "missing configuration: SMTP_HOST",
        "credentials not found",
        "misconfigured base url",
        "Misconfigured base URL: http://localhost",
        "base url is misconfigured",
        "Base URL is not configured",
        "invalid base url",
        "Invalid API key",
        "incorrect api key provided",
        "token expired",
        "Access denied",
        "Insufficient permissions",
    ],
    ("PERMISSION_DENIED", "permanent"): [
        "Insufficient permissions",
    ],
    ("UNAUTHENTICATED", "permanent"): [
        "Authentication required",
        "ErrorStatusCode.Unauthenticated: log in",
    ],
    ("NOT_FOUND", "permanent"): [
        "Resource not found",
        "404 Not Found",
        "The resource does not exist",
        "Resource doesn't exist (404)",
        "no such file",
        "rpc failed: NOT_FOUND",
    ],
    ("UNIMPLEMENTED", "permanent"): [
        "Unsupported operation",
        "Tool doesn't support requested operation",
        "The tool does not support the requested operation",
        "operation not supported",
        "501 Not Implemented",
    ],
    ("*", "tool_unavailable"): [
        "Tool not found",
        "Tool not found: flight_search",
        "Tool doesn't exist",
        "Tool does not exist",
        "Tool is disabled",
        "tool flight_search is disabled",
        "Unknown tool: flight_search",
        "Tool/extension not installed",
        "extension not installed",
        "Extension is not registered",
        "tool not registered",
        "Tool 'maps' is not installed",
        "missing tool id",
        "missing extension id",
        "Missing tool id: maps",
        "tool id is missing",
        "extension id missing",
        "Invalid extension.gateway.execute.request",
        "invalid extension execute request",
        "Error: Invalid extension.gateway.execute.request",
        "Invalid extension.gateway.execute.request: missing extensionId",
    ],
    ("*", "internal_contract_bug"): [
        "Invalid chat.management.gateway.message.append.request",
        "Error: Invalid chat.management.gateway.message.append.request",
        "Invalid chat.management.gateway.message.append.request: text is required",
        "Invalid workflow.gateway.start.request",
        "Invalid memory.gateway.write.request",
    ],
    ("UNKNOWN", "tool_transient"): [
        "Unknown error",
        "An unknown error occurred",
    ],
    ("ABORTED", "tool_transient"): [
        "Operation aborted",
        "The operation was aborted",
        "transaction aborted",
        "StatusCode.ABORTED",
    ],
    ("DATA_LOSS", "tool_transient"): [
        "Data loss or corruption",
        "Data loss",
        "data corruption detected",
        "unrecoverable data loss",
        "ErrorStatusCode.DataLoss",
    ],
    ("INTERNAL", "tool_transient"): [
        "Internal server error",
        "internal error",
        "rpc error: code = Internal desc = oops",
        "rpc failed: INTERNAL",
    ],
    ("INVALID_ARGUMENT", "permanent"): [
        "Invalid request parameters",
        "invalid parameters",
    ],
    ("FAILED_PRECONDITION", "permanent"): [
        "Precondition not met",
        "precondition failed",
        "412 Precondition Failed",
        "error FailedPrecondition: index missing",
    ],
    ("OUT_OF_RANGE", "permanent"): [
        "Value out of range",
        "value is out of range",
        "ErrorStatusCode.OutOfRange: page 9",
    ],
}
TEXTS = [(code, who, text) for (code, who), texts in SIGNALS.items() for text in texts]


def holds(fault: Fault | None, code: str, who: str) -> bool:
    assert fault is not None
    as_expected = fault.classification == "permanent" if who == "permanent" else fault.category == who
    return as_expected and code in ("*", fault.code.value)


@pytest.mark.parametrize(("code", "who", "text"), TEXTS, ids=[text for *_, text in TEXTS])
def test_a_signal_in_other_words(code: str, who: str, text: str) -> None:
    rt = Runtime()

    def search() -> None:
        raise RuntimeError(text)

    rt.add(search, read_only=True, retry={"max_attempts": 1})
    for fault in (classify(text), classify(RuntimeError(text)), rt.call_sync("search").fault):
        assert holds(fault, code, who), fault
