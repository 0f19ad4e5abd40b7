"""Rules for unknown libraries: classes named after a status, phases of a connection, numbers that are no statuses."""

from __future__ import annotations

import ftplib
import json

import pytest
from tests.core.classify.made import error_type, http_error, make

from failsoft.core.classify import classify
from failsoft.core.model.fault import Code


@pytest.mark.parametrize(
    ("name", "status"),
    [("InternalServerError", 500), ("TooManyRequests", 429), ("NotFoundException", 404), ("BadGatewayError", 502)],
)
def test_a_class_named_after_a_status_claims_it(name: str, status: int) -> None:
    assert classify(make(f"acme.{name}", "leader not found")).http_status == status


@pytest.mark.parametrize("name", ["acme.RequestTimeout", "psycopg_pool.TooManyRequests", "acme.Found"])
def test_a_class_name_with_another_meaning_claims_no_status(name: str) -> None:
    assert classify(make(name, "x")).http_status is None


def test_a_number_that_is_not_a_status_is_ignored() -> None:
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
def test_after_connecting_the_effect_of_a_lost_connection_is_unknown(text: str) -> None:
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


def test_a_code_in_the_body_does_not_override_a_denied_permission() -> None:
    body = b'{"error": {"message": "Your organization must be verified", "code": "unsupported_value"}}'
    assert classify(http_error(403, body)).code is Code.PERMISSION_DENIED
    assert classify(http_error(400, body)).code is Code.UNIMPLEMENTED


def test_a_conflict_that_asks_for_a_retry_is_transient() -> None:
    fault = classify(http_error(409, b'{"error": {"message": "The thread is busy. Please retry."}}'))
    assert (fault.code, fault.classification) == (Code.ABORTED, "transient")


@pytest.mark.parametrize(("reason", "passes"), [("TransactionConflict", True), ("ConditionalCheckFailed", False)])
def test_a_cancelled_transaction_goes_by_its_reason(reason: str, passes: bool) -> None:
    body = f'{{"__type": "TransactionCanceledException", "message": "Transaction cancelled [None, {reason}]"}}'
    assert (classify(http_error(400, body.encode())).classification == "transient") is passes


@pytest.mark.parametrize(
    ("details", "passes"), [("not leader for partition 3", True), ("the bucket is not empty", False)]
)
def test_the_details_of_a_grpc_error_are_read(details: str, passes: bool) -> None:
    text = (
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.FAILED_PRECONDITION\n"
        f'\tdetails = "{details}"\n\tdebug_error_string = "UNKNOWN:Error received from peer"\n>'
    )
    assert (classify(text).classification == "transient") is passes


@pytest.mark.parametrize("text", ["MCP error -32603: {}", "Internal error: {}"])
def test_an_error_that_wraps_an_answer_goes_by_its_status(text: str) -> None:
    error = make("mcp.McpError", text.format("Request failed with status code 401"), error=None)
    error.error = make("mcp.ErrorData", "", code=-32603)  # type: ignore[attr-defined]
    assert classify(error).code is Code.UNAUTHENTICATED
    assert classify("MCP error -32603: Internal error").code is Code.INTERNAL


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("acme.errors.InternalServerError: active node not found", Code.INTERNAL),
        ("java.util.concurrent.RejectedExecutionException: Task rejected", Code.RESOURCE_EXHAUSTED),
        ("System.ObjectDisposedException: x", Code.INTERNAL),
        ("ftplib.error_perm: 550 Failed to open file.", Code.NOT_FOUND),
        ("550 Failed to open file.", Code.NOT_FOUND),
        ("421 There are too many connections from your address", Code.UNAVAILABLE),
        ("421 Misdirected Request", Code.FAILED_PRECONDITION),
        ('KafkaError{code=_ALL_BROKERS_DOWN,val=-187,str="x"}', Code.UNAVAILABLE),
        ("ApiError(429, 'circuit_breaking_exception', 'Data too large')", Code.RESOURCE_EXHAUSTED),
        ("/bin/sh: 1: jq: not found", Code.NOT_FOUND),
    ],
)
def test_names_and_replies_as_they_are_printed(text: str, code: Code) -> None:
    assert classify(text).code is code


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("rate limit quota exceeded", True),
        ("The throttling quota has been exceeded", True),
        ("Your quota has been exceeded", False),
        ("Too many tokens per day, please wait before trying again.", False),
        ("A wait of 42 seconds is required", True),
        ("This error is not retryable: bad input given", False),
    ],
)
def test_limits_in_words(text: str, passes: bool) -> None:
    assert (classify(text).classification == "transient") is passes


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (make("acme.Oops", "x", non_retryable=True), False),
        (make("acme.Oops", "x", non_retryable=False), True),
        (make("acme.InvalidMetadata", "x", retriable=True), True),
        (make("acme.InvalidMetadata", "x", retriable=False), False),
        (http_error(400, b'{"error": {"message": "x", "is_transient": true}}'), True),
        (http_error(500, b'{"error": {"message": "x", "retryable": false}}'), False),
        (http_error(401, b'{"code": "invalid_api_key", "retryable": true}'), False),
    ],
    ids=["never", "not never", "retriable", "not retriable", "body true", "body false", "the code knows better"],
)
def test_an_errors_own_retry_flags_decide(error: Exception, passes: bool) -> None:
    assert (classify(error).classification == "transient") is passes


def test_the_end_of_a_text_is_no_lost_connection() -> None:
    base = error_type("acme.ParseError", ValueError)
    assert classify(error_type("acme.UnexpectedEOF", base)("unexpected end")).code is Code.INVALID_ARGUMENT
    assert classify("Unexpected end of file at line 1 col 0").code is Code.INVALID_ARGUMENT
    assert classify(make("acme.UnexpectedEOF", "unexpected end")).code is Code.UNAVAILABLE
    assert classify(error_type("acme.UnexpectedEOF", error_type("acme.ResponseParseError"))("x")).effect == "unknown"


def test_a_name_that_says_it_beats_weak_words_but_no_firm_ones() -> None:
    assert classify(make("acme.DeviceTimeoutException", "Causes: 1. Incorrect hostname")).code is Code.DEADLINE_EXCEEDED
    assert classify(make("acme.DeviceTimeoutException", "password is incorrect")).code is Code.UNAUTHENTICATED


def test_codes_that_every_server_may_use_leave_room_for_words() -> None:
    assert classify(make("acme.Error", "Login failed for user sa", code=-32002)).code is Code.UNAUTHENTICATED
    assert classify(make("acme.Error", "x", code=-32002)).code is Code.NOT_FOUND


def test_attributes_that_complain_are_left_alone() -> None:
    complaints: list[object] = []
    base = error_type("grpclib.GRPCError", status=property(complaints.append))
    error = error_type("modal.AuthError", base, message=property(complaints.append))("x")
    assert classify(error).code is Code.UNAUTHENTICATED
    assert not complaints


@pytest.mark.parametrize(
    ("text", "code", "effect"),
    [
        ("Timeout not elapsed yet, circuit breaker still open", Code.UNAVAILABLE, "none"),
        ("The file lock '/srv/x.lock' could not be acquired.", Code.ABORTED, "none"),
        ("DNS lookup failed: no results for hostname lookup: x", Code.NOT_FOUND, "none"),
        ("TCP connection to device failed.", Code.UNAVAILABLE, "none"),
        ("You've reached your write unit limit for the current month", Code.RESOURCE_EXHAUSTED, "none"),
        ("upload failed: insufficient space", Code.RESOURCE_EXHAUSTED, "none"),
    ],
)
def test_more_words(text: str, code: Code, effect: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.effect) == (code, effect)


def test_a_limit_by_name_may_be_a_quota_in_words() -> None:
    assert classify(make("acme.RateLimitError", "Monthly usage limit exceeded")).category == "tool_misconfigured"
    assert classify(make("acme.RateLimitError", "Limit: 50 requests per minute")).category == "tool_transient"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Please make sure the file exists and is reachable: unable to locate it", Code.NOT_FOUND),
        ("GithubException: Base branch was modified: 405 {'message': 'x'}", Code.UNIMPLEMENTED),
        ('<HttpError 403 when requesting x returned "y">', Code.PERMISSION_DENIED),
        ("current transaction is aborted, commands ignored until end of transaction block", Code.FAILED_PRECONDITION),
        ("Unrecognized stage, full error: {'ok': 0.0, 'code': 40324}", Code.INVALID_ARGUMENT),
        ("acme.NodeExistsError: ", Code.ALREADY_EXISTS),
        ("attempted to call tool 'x' which was not in request.tools", Code.NOT_FOUND),
        ("response body truncated after 1024 of 4096 bytes", Code.DATA_LOSS),
        ("Call aborted: exceeded 60s execution limit", Code.DEADLINE_EXCEEDED),
        ("Your account has run out of searches.", Code.RESOURCE_EXHAUSTED),
        ("File type is text/html", Code.UNKNOWN),
        ("unexpected mimetype: text/html", Code.INTERNAL),
    ],
)
def test_texts_of_other_libraries_are_classified(text: str, code: Code) -> None:
    assert classify(text).code is code


def test_a_status_in_the_text_outweighs_a_parse_error_as_the_cause() -> None:
    page = "<html><h1>Down</h1></html>"
    for text, code in (("Bad Gateway (502). Parsing failed", Code.UNAVAILABLE), ("Parsing failed", Code.INTERNAL)):
        error = make("acme.NetworkError", text)
        error.__cause__ = json.JSONDecodeError("Expecting value", page, 0)
        assert classify(error).code is code


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ("<html><h1>503 Service Unavailable</h1></html>", Code.UNAVAILABLE),
        ("<html><h1>Log in</h1></html>", Code.INTERNAL),
    ],
)
def test_an_html_error_page_gives_the_code(page: str, code: Code) -> None:
    assert classify(make("acme.VaultDown", page, text=page)).code is code


def test_a_damaged_answer_that_is_a_page_is_a_page() -> None:
    name = "elastic_transport.SerializationError"
    assert classify(make(name, "Unknown mimetype, unable to deserialize: text/html")).category == "tool_misconfigured"
    assert classify(make(name, "Unable to deserialize")).category == "tool_transient"


def test_an_answer_that_breaks_its_schema_is_not_the_callers_fault() -> None:
    assert classify(make("acme.ResponseValidationError", "Response validation failed: EOF")).code is Code.DATA_LOSS


def wrapped(text: str, cause: Exception) -> Exception:
    error = RuntimeError(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("The server has not responded"),
        TimeoutError("The lock was not acquired"),
        ConnectionError("The channel is not open"),
        MemoryError("heap has no room"),
        wrapped("The order was not created", ConnectionError()),
        wrapped("The job was not saved", TimeoutError()),
        wrapped("The row cannot be changed", ConnectionResetError()),
    ],
    ids=["timeout", "lock", "channel", "memory", "wrapped connection", "wrapped timeout", "wrapped reset"],
)
def test_a_guess_by_wording_yields_to_types_and_causes(error: Exception) -> None:
    assert classify(error).classification == "transient"


@pytest.mark.parametrize(
    "text",
    [
        "Your request has not been completed",
        "The job has not been started",
        "The service is not currently available",
        "The leader has not been elected yet",
        "The quorum was not reached",
        "The socket has already been closed",
        "The pool has no idle connections",
        "This requires a few more minutes",
        "Check your VPN connection and try again",
        "Use exponential backoff and retry",
        "The connection cannot be established",
        "At most 5 requests per second are allowed",
        "Too many items in queue, try again later",
        "Failed to install dependencies: network timeout",
        "The tool call was rejected because the server is busy",
        "There are no workers for this queue",
        "The server does not appear to be up",
        "The service should be back shortly",
        "The request must be repeated",
        "Model not available, please try again later",
        "The model is not available at the moment",
        "The site has been taken down for maintenance",
        "Request denied by rate limiter",
        "Usage limit reached, resets in 5 minutes",
        "Queue size exceeded",
        "Connection pool size exceeded",
        "The server is gone",
        "Authentication server error",
        "Failed to authenticate: connection timed out",
        "Wrong epoch, retry",
        "wrong leader",
        "bad handshake",
        "missing heartbeat",
        "No data received from server",
        "Failed to read from socket",
        "The lock is already taken",
        "Primary shard is not active",
        "The cooldown has not expired",
        "The specified network name is no longer available",
    ],
)
def test_an_unfinished_request_or_job_is_transient(text: str) -> None:
    assert classify(text).classification == "transient"


@pytest.mark.parametrize(
    "text",
    [
        "The order has no items",
        "The issue is already closed",
        "The subscription is not active",
        "The invoice cannot be changed because it is paid",
        "Rename the file and try again",
        "At most 5 tags are allowed",
        "The table has no primary key",
        "The channel has been archived",
        "Cannot insert multiple commands into a prepared statement",
        "The server is not configured",
        "The sign-in to the portal failed",
    ],
)
def test_a_state_that_stays_is_permanent(text: str) -> None:
    assert classify(text).classification == "permanent"


def test_the_body_of_a_text_speaks_for_it() -> None:
    body = "{'error': {'code': 400, 'message': 'User location is not supported.', 'status': 'FAILED_PRECONDITION'}}"
    assert classify(f"400 FAILED_PRECONDITION. {body}").category == "tool_misconfigured"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Session is closed"),
        RuntimeError("Cannot send a message, as the client has been closed."),
        make("psycopg.InterfaceError", "the cursor is closed"),
        make("acme.InterfaceError", "the pool 'main' is already closed"),
        "sqlite3.ProgrammingError: Cannot work on a closed database.",
        "Error: Cannot borrow from a pool after calling end",
        "java.lang.IllegalStateException: Connection pool shut down",
        make("anyio.ClosedResourceError"),
        make("trio.ClosedResourceError", "already closed"),
    ],
    ids=str,
)
def test_using_a_client_that_we_closed_is_a_bug_without_effect(error: Exception | str) -> None:
    fault = classify(error)
    assert (fault.category, fault.effect) == ("internal_contract_bug", "none")


@pytest.mark.parametrize(
    "text",
    [
        "Not running inside an AnyIO worker thread, and no event loop token was provided",
        "This function can only be run from an AnyIO worker thread",
        "There is no current event loop in thread 'worker'.",
        "no running event loop",
        "Task <Task pending name='Task-1'> got Future <Future pending> attached to a different loop",
        "<asyncio.locks.Lock object at 0x7f3a [unlocked]> is bound to a different event loop",
        "Cannot run the event loop while another loop is running",
        "Non-thread-safe operation invoked on an event loop other than the current one",
        "You cannot call this from an async context - use a thread or sync_to_async.",
    ],
)
def test_the_wrong_loop_or_thread_is_the_tools_own_fault(text: str) -> None:
    assert classify(RuntimeError(text)).category == "internal_contract_bug"


@pytest.mark.parametrize(
    "text",
    [
        "the session was closed by the server",
        "browser session is closed",
        "the trading session is closed",
        "connection already closed",
        "Client has been closed due to inactivity",
        "SocketError: other side closed",
        "the peer went away",
        "The TLS connection was non-properly terminated.",
    ],
)
def test_a_session_closed_by_the_peer_is_transient(text: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.classification, fault.effect) == (Code.UNAVAILABLE, "transient", "unknown")


def test_a_status_and_a_failed_precondition_that_agree_are_not_overruled_by_a_promise() -> None:
    body = {"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "The index is not ready yet"}}
    assert classify(http_error(400, json.dumps(body).encode())).code is Code.FAILED_PRECONDITION
    assert classify(json.dumps(body)).classification == "permanent"
    alone = {"error": {"status": "FAILED_PRECONDITION", "message": "The index is not ready yet"}}
    assert classify(json.dumps(alone)).classification == "transient"


def test_an_answer_in_json_that_refuses_has_not_acted() -> None:
    body = json.dumps({"ok": False, "error": "service_unavailable"}).encode()
    assert classify(http_error(200, body, {"Content-Type": "application/json; charset=utf-8"})).effect == "none"
    assert classify(http_error(200, body, {"Content-Type": "text/event-stream"})).effect == "unknown"


def test_the_words_of_a_message_beat_those_around_it() -> None:
    text = 'web1 | UNREACHABLE! => {"changed": false, "msg": "ssh failed: Permission denied (publickey)."}'
    assert classify(text).code is Code.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("text", "code", "effect"),
    [
        ("System.Net.Sockets.SocketException (10061): abgelehnt", Code.UNAVAILABLE, "none"),
        ("SocketException (0x80004005): 10054 x", Code.UNAVAILABLE, "unknown"),
        ("System.Net.Sockets.SocketException (11001): x", Code.NOT_FOUND, "none"),
        ("RPC failed; curl 56 x", Code.UNAVAILABLE, "unknown"),
        ("cURL error 28: x", Code.DEADLINE_EXCEEDED, "unknown"),
        ("curl: (35) x", Code.UNAVAILABLE, "none"),
        ("Command 'curl -s x' returned non-zero exit status 7.", Code.UNAVAILABLE, "none"),
        ("exited with status 60: curl -s x", Code.FAILED_PRECONDITION, "none"),
        ("curl 7.88 says hello", Code.UNKNOWN, "unknown"),
        ("npm error code EEXIST\nnpm error EACCES: x", Code.PERMISSION_DENIED, "none"),
        ("fatal: could not read Username for 'x': terminal prompts disabled", Code.UNAUTHENTICATED, "none"),
        ("InvalidTemplateDeployment: x is not valid.\nInsufficientQuota: 9 tokens per minute", Code.RESOURCE_EXHAUSTED, "none"),
        ("Unsupported currency: 429", Code.INVALID_ARGUMENT, "none"),
        ("api_key=abc: 401", Code.UNAUTHENTICATED, "none"),
        ("see line: 401", Code.UNKNOWN, "unknown"),
        ("this server does not accept connections from there", Code.PERMISSION_DENIED, "none"),
        ("upstream connect error or disconnect/reset before headers. reset reason: connection termination", Code.UNAVAILABLE, "unknown"),
        ("No route matched with those values", Code.NOT_FOUND, "none"),
    ],
)  # fmt: skip
def test_numbers_and_words_of_the_tools_at_hand(text: str, code: Code, effect: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.effect) == (code, effect)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("<Fault 1: 'method \"pow\" is not supported'>", "tool_unavailable"),
        ("payment method 'visa' is not supported", "tool_validation"),
        ("Budget has been exceeded! Max: 10", "tool_misconfigured"),
        ("Too many tool calls in one turn", "tool_validation"),
        ("InsufficientQuota: 9 tokens per minute", "tool_misconfigured"),
        ("Conflict (409): the function is in state: Pending", "tool_transient"),
    ],
)
def test_the_category_names_who_must_act(text: str, category: str) -> None:
    assert classify(text).category == category
