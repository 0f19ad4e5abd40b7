"""T32: an error that contradicts itself was read as "nothing happened". Here the worst evidence decides."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.core.classify.made import make
from tests.fakes import OFTEN, Scripted, virtual

from failsoft import Runtime
from failsoft.testing import virtual_time

RETRY: Any = {"max_attempts": 3, "initial_delay": "1ms", "budget": False}


class Answered(Exception):
    """A service has answered with a status, and perhaps a body."""

    def __init__(self, text: str, status: int | None = None, body: Any = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status_code = status
        if body is not None:
            self.body = body


def harmless() -> dict[str, Exception]:
    """Errors that on their own mean that nothing happened."""
    return {
        "refused": ConnectionRefusedError(111, "Connection refused"),
        "unresolved": socket.gaierror(-2, "Name or service not known"),
        "httpx refused": make("httpx.ConnectError", "All connection attempts failed"),
        "429": Answered("Too Many Requests", 429),
        "401": Answered("Unauthorized", 401),
        "404": Answered("Not Found", 404),
        "503": Answered("Service Unavailable", 503),
        "words": RuntimeError("HTTP 429: rate limit exceeded"),
        "code": Answered("no", 400, {"error": {"code": "rate_limit_exceeded"}}),
        "unique": make("psycopg.errors.UniqueViolation", "duplicate key", sqlstate="23505"),
    }


def worse() -> dict[str, Exception]:
    """Errors of the other side or the network that leave the effect unknown."""
    return {
        "read timeout": make("httpx.ReadTimeout", "The read operation timed out"),
        "timeout": TimeoutError("timed out"),
        "reset": ConnectionResetError(104, "Connection reset by peer"),
        "protocol": make("httpx.RemoteProtocolError", "Server disconnected without sending a response."),
        "500": Answered("Internal Server Error", 500),
        "502": Answered("Bad Gateway", 502),
        "504": Answered("Gateway Timeout", 504),
        "words": RuntimeError("HTTP 504 Gateway Timeout"),
    }


WORDS = (
    "database is locked",
    "rate limit exceeded",
    "connection refused",
    "quota exceeded",
    "no space left on device",
    "already exists",
    "overloaded, try again later",
    "deadlock detected",
)
CODES = ("rate_limit_exceeded", "insufficient_quota", "card_declined", "overloaded_error", "not_found")
DONE = (
    "payment captured, but",
    "order 17 was placed; then",
    "message sent, however",
    "charged the card, but",
    "the transfer was committed. Afterwards",
    "charged 50 EUR; the receipt:",
    "3 of 5 messages sent before",
    "2 succeeded, 3 failed:",
    "payment 123 OK, the receipt:",
    "Saved. The copy:",
    "first request: 201; second request:",
    "step 1 completed, step 2:",
    "while polling job 7:",
)


def answers() -> Iterator[tuple[str, Exception]]:
    """Refusals whose body names a success, and statuses that can come after the request was sent on."""
    for status, state in itertools.product((400, 402, 409, 429), ("succeeded", "captured", "COMPLETED", "paid")):
        yield f"{status}, a body whose status is {state}", Answered("no", status, {"status": state})
        yield f"{status}, an error whose status is {state}", Answered("no", status, {"error": {"status": state}})
    for status in (507, 508, 520, 522, 524, 527, 598, 599):
        yield f"{status} attribute", Answered("failed", status)
        yield f"{status} text", RuntimeError(f"HTTP {status}: failed")


def combinations() -> Iterator[tuple[str, Exception]]:
    for status, words in itertools.product((500, 502, 504, 520, 524), WORDS):
        yield f"{status} attribute, {words}", Answered(words, status)
        yield f"{status} text, {words}", RuntimeError(f"HTTP {status}: {words}")
    for status, code in itertools.product((500, 502, 504), CODES):
        yield f"{status}, code {code}", Answered("failed", status, {"error": {"code": code, "message": "no"}})
    for how, (none, bad) in itertools.product(("cause", "context", "hidden"), itertools.product(harmless(), worse())):
        error, other = harmless()[none], worse()[bad]
        if (how, none) == ("cause", "httpx refused") and bad in ("timeout", "reset"):
            continue  # how a connection that was never made comes out of httpx
        if how == "cause":
            error.__cause__ = other
        else:
            error.__context__ = other
            error.__suppress_context__ = how == "hidden"
        yield f"{none} {how} {bad}", error
    for none, bad in itertools.product(harmless(), worse()):
        yield f"group of {none} and {bad}", ExceptionGroup("both", [harmless()[none], worse()[bad]])
        yield f"wrapped group of {none} and {bad}", wrapped(ExceptionGroup("both", [harmless()[none], worse()[bad]]))
    for done, words in itertools.product(DONE, WORDS):
        yield f"{done} {words}", RuntimeError(f"{done} {words} (429)")
    for done in DONE:
        yield f"a body: {done}", Answered("no", 403, {"error": {"message": f"{done} the receipt was refused"}})
    yield from answers()
    for none in harmless():
        yield f"group of {none} and a bug", ExceptionGroup("both", [harmless()[none], KeyError("receipt")])
    for text in (
        "bad text: '429 Too Many Requests'",
        'the note says "rate limit exceeded"',
        "`connection refused` is no name",
    ):
        yield f"quoted: {text}", RuntimeError(text)
    for how in ("__cause__", "__context__"):
        yield f"a long chain of {how}", chained(Answered("Too Many Requests", 429), how, 80)
    yield "at the end", RuntimeError("connection refused; the charge went through")
    yield "many leaves", ExceptionGroup("all", [harmless()["429"] for _ in range(40)])


def wrapped(error: Exception) -> Exception:
    outer = Answered("Too Many Requests", 429)
    outer.__cause__ = error
    return outer


def chained(error: Exception, how: str, length: int) -> Exception:
    """A lost connection too deep in a chain to be read."""
    links = [error, *(KeyError("x") for _ in range(length)), ConnectionResetError(104, "Connection reset by peer")]
    for outer, inner in itertools.pairwise(links):
        setattr(outer, how, inner)
    return error


ALL = dict(combinations())


async def outcome_of(error: Exception) -> tuple[Any, int]:
    rt = Runtime()
    acted: list[str] = []

    @rt.tool(idempotent=False, retry=RETRY, breaker=OFTEN)
    async def pay() -> None:
        acted.append("pay")
        raise error

    return await rt.call("pay"), len(acted)


def test_t32_the_worst_evidence_decides_in_every_contradiction() -> None:
    assert len(ALL) >= 200
    wrong = []
    for name, error in ALL.items():
        outcome, times = asyncio.run(outcome_of(error))
        if (outcome.fault.effect, times) != ("unknown", 1):
            wrong.append((name, outcome.fault.effect, outcome.fault.rule, times))
    assert wrong == []


@pytest.mark.parametrize("none", harmless())
def test_t32_alone_each_of_them_is_believed(none: str) -> None:
    outcome, _ = asyncio.run(outcome_of(harmless()[none]))
    assert outcome.fault.effect == "none"


@pytest.mark.parametrize("none", harmless())
@pytest.mark.parametrize(
    "before",
    [KeyError("cache miss"), ValueError("x"), RuntimeError("cache is cold"), FileNotFoundError(2, "x")],
    ids=str,
)
def test_t32_a_local_error_that_was_being_handled_says_nothing(none: str, before: Exception) -> None:
    error = harmless()[none]
    error.__context__ = before
    outcome, _ = asyncio.run(outcome_of(error))
    assert outcome.fault.effect == "none"


def test_t32_a_denial_is_no_confession() -> None:
    for text in (
        "429: no payment was captured, but try again",
        "401: the order was not placed, so sign in first",
        "attempt 3 of 5 failed: connection refused",
        "429: you have sent too many requests",
        "Rate limit exceeded: 60 of 60 requests used",
        "connection refused; first attempt: connection refused",
        "429: requests are processed in order",
    ):
        outcome, _ = asyncio.run(outcome_of(RuntimeError(text)))
        assert outcome.fault.effect == "none", text


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Connection timeout after 30s"),
        TimeoutError("connection timed out"),
        OSError(110, "Connection timed out"),
        Exception("upstream connect timeout"),
    ],
    ids=str,
)
def test_t32_a_connection_that_timed_out_may_have_carried_the_request(error: Exception) -> None:
    made: list[int] = []

    async def pay(amount: int) -> None:
        made.append(amount)
        raise error

    with virtual_time() as clock:
        rt = Runtime()
        rt.add(pay, idempotent=False)
        outcome = clock.run(rt.call("pay", {"amount": 40}))
    assert made == [40]
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


class Refused(Exception):
    """The service turned the request away."""

    status_code = 400


@pytest.mark.parametrize(
    ("acted", "denied"),
    [
        ("Zahlung wurde ausgeführt, aber die Bestätigung fehlt", "Zahlung wurde nicht ausgeführt, aber gemeldet"),
        ("paiement effectué mais erreur de confirmation", "paiement non effectué mais signalé"),
        ("el pago se realizó pero falló la confirmación", "el pago no se realizó pero se registra"),
        ("pagamento eseguito, ma errore di conferma", "pagamento non eseguito, ma segnalato"),
        ("pagamento concluído, mas a confirmação falhou", "pagamento não concluído, mas registra"),
        ("betaling uitgevoerd maar bevestiging mislukt", "betaling niet uitgevoerd maar gemeld"),
        ("платёж проведён, но подтверждение не пришло", "платёж не проведён, но ошибка"),
        ("支払いは完了しましたが、エラーが発生しました", "支払いは完了していませんが、エラー"),
        ("付款已完成，但发生错误", "付款未完成，但发生错误"),
    ],
    ids=["de", "fr", "es", "it", "pt", "nl", "ru", "ja", "zh"],
)
@virtual
async def test_t32_words_of_other_languages_say_that_something_was_done(acted: str, denied: str) -> None:
    for words, effect in ((acted, "unknown"), (denied, "none")):
        rt = Runtime()
        rt.add(Scripted(Refused(words)), id="pay", idempotent=False)
        outcome = await rt.call("pay")
        assert outcome.fault is not None
        assert (outcome.fault.effect, outcome.attempts) == (effect, 1)


class Redirected:
    """An answer after a redirect, as httpx and requests keep it."""

    def __init__(self, status: int, *before: int) -> None:
        self.status_code = status
        self.headers: dict[str, str] = {}
        self.history = [Redirected(one) for one in before]


def noted(error: Exception, note: str) -> Exception:
    error.add_note(note)
    return error


def carried() -> Iterator[tuple[str, Exception]]:
    """Refusals that carry the sign of an effect in another place than their text."""
    yield "a note", noted(Answered("Too Many Requests", 429), "the order was placed; the receipt was not")
    yield "a note on a refusal", noted(ConnectionRefusedError(111, "refused"), "payment captured before this")
    yield "the text of a group", ExceptionGroup("payment captured, but", [Answered("Too Many Requests", 429)])
    for status, before in itertools.product((401, 404, 429, 503), (301, 302, 303)):
        answer = Redirected(status, before)
        yield f"{status} after {before}", make("httpx.HTTPStatusError", f"error {status}", response=answer)
    yield "a history on the error", make("aiohttp.ClientResponseError", "no", status=404, history=(Redirected(303),))
    yield "302", Answered("Found", 302)
    yield "303 in words", RuntimeError("Redirect response '303 See Other' for url 'http://pay.test/'")
    for status, body in itertools.product((400, 403, 409, 429), BODIES):
        yield f"{status} {body}", Answered("no", status, body)
        yield f"{status} {body} as text", Answered("no", status, json.dumps(body))
    end = ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:2426)")
    yield "a TLS connection that ended", make("requests.exceptions.SSLError", make("urllib3.exceptions.SSLError", end))
    yield (
        "a bulk write",
        make("elasticsearch.helpers.BulkIndexError", "2 document(s) failed", [{"index": {"status": 429}}]),
    )
    for library, several in (
        ("cassandra.cluster.NoHostAvailable", {"a": TimeoutError("timed out"), "b": ConnectionRefusedError(111, "no")}),
        ("elastic_transport.ConnectionError", (ConnectionResetError(104, "reset"), ConnectionRefusedError(111, "no"))),
    ):
        tried = make(library, "no host")
        vars(tried)["errors"] = several
        yield f"an earlier attempt of {library}", tried
    retried = make("tenacity.RetryError", "gave up")
    vars(retried)["last_attempt"] = SimpleNamespace(attempt_number=3, _exception=ConnectionRefusedError(111, "no"))
    yield "attempts that are not known", retried
    for code, details in (
        ("PERMISSION_DENIED", "order was created, but the caller may not read it"),
        ("UNKNOWN", "Exception calling application: rate limit exceeded"),
    ):
        yield f"gRPC {code}", GrpcError(code, details)
    said = make(
        "aiohttp.ClientResponseError", "429, message='Message sent; receipts limited', url='http://a/'", status=429
    )
    yield "a quoted statement of the server", said
    yield "replication after a write", make("pymongo.errors.WriteConcernError", "Not enough nodes", code=100)
    yield "a file without the attribute", OSError(61, "No data available")
    for body in CLOSING:
        yield f"409, {body}", Answered("Conflict", 409, body)
    for text in LEFT_OPEN:
        yield f"429, {text}", Answered(text, 429)
        yield f"words: {text}", RuntimeError(f"{text} (429)")


class GrpcError(Exception):
    """As grpc raises it."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f'<RPC that terminated with: status = StatusCode.{code} details = "{details}">')
        self._code = code

    def code(self) -> str:
        return self._code


GrpcError.__module__ = "grpc"


BODIES: tuple[Any, ...] = (
    {"paymentStatus": "CAPTURED"},
    {"created_ids": ["a"], "failed_ids": ["b"]},
    {"messages": [{"status": "sent"}, {"status": "failed"}]},
    {"steps": [{"name": "debit", "status": "completed"}, {"name": "credit", "status": "conflict"}]},
    {"charged": True, "error": "rate limited"},
    {"ok": True, "error": {"code": "rate_limit_exceeded"}},
    {"payment": {"status": "captured"}, "error": {"code": "webhook_failed"}},
    {"state": "SETTLED", "error": "rate"},
    {"payment_status": "paid"},
    {"result": "ok"},
    {"created": ["a"], "failed": [{"id": "b"}]},
    {"summary": {"succeeded": 2, "failed": 1}},
    {"successCount": 3, "failureCount": 1},
    {"isSuccess": True},
    {"partial": True, "error": "no"},
    {"data": {"pay": {"id": "p1"}, "print": None}, "errors": [{"message": "no printer"}]},
)
LEFT_OPEN = (
    "could not receive data from server: connection refused",
    "rollback failed: connection refused",
    "could not roll back: quota exceeded",
    "connection refused by printer after label purchase",
    "retrying audit after payment",
    "POST /orders -> 201; GET /orders/9: rate limit exceeded",
    "unauthorized on GET /receipt after POST /charge returned 201",
    "POST succeeded, GET: connection refused",
    "quota exceeded in post-processing hook",
    "polling operation 7: rate limit exceeded",
    "waiting for settlement: rate limit exceeded",
    "unable to fetch the result of job 9: rate limit exceeded",
    "could not confirm delivery: rate limit exceeded",
    "charge left in pending state: connection refused",
    "rate limit exceeded (the e-mail has gone out)",
    "money left the account; confirmation: connection refused",
    "connection refused - invoice 17 was mailed",
    "commit outcome unknown",
    "the card may have been charged",
    "the transfer might already have gone through",
    "transaction status is unknown",
    "committed=true error=rate_limited",
    "Transaction 991 approved; notification failed",
    "receipt printer refused (payment was taken)",
    "job started; polling",
    "1/3 done; rate limit exceeded",
    "Sent! (receipt: refused)",
    "deployed v3 — smoke test failed",
    "200 OK but then",
    "keepalive watchdog timeout",
    "stock reserved; label API: refused",
    "Payment successful. Receipt: not found",
    "publish completed; cache purge",
    "INSERT ok, COMMIT: refused",
    "wrote 2 of 3 shards",
    "your transfer is on its way. Too many requests",
    "this invoice has already been settled",
    "duplicate payment",
    "stage 3 of 4: rate limit exceeded",
    "failed to parse the confirmation: rate limit exceeded",
    "could not close the session: unauthorized",
)
CLOSING = tuple(
    {"error": {"code": code}}
    for code in ("payment_already_captured", "OrderAlreadyShipped", "duplicate-transfer", "idempotency_key_in_use")
)


@virtual
async def test_t32_an_effect_is_seen_wherever_the_error_carries_it() -> None:
    wrong = []
    for name, error in carried():
        outcome, times = await outcome_of(error)
        assert outcome.fault is not None
        if (outcome.fault.effect, times) != ("unknown", 1):
            wrong.append((name, outcome.fault.effect, outcome.fault.rule, times))
    assert wrong == []


@virtual
async def test_t32_what_only_resembles_a_sign_of_an_effect_is_none() -> None:
    refusals = [
        *(
            Answered("no", 429, body)
            for body in (
                {"ok": False, "error": "ratelimited"},
                {"charged": False, "error": "declined"},
                {"data": {"pay": None}, "errors": [{"message": "no"}]},
                {"data": None, "errors": [{"message": "no"}]},
                {"created": 0, "failed": 3},
                {"created": 1_700_000_000, "error": "no"},
                {"order": {"status": "shipped"}, "error": "cannot cancel"},
                {"detail": [{"loc": ["body"], "msg": "no", "input": {"paid": True, "status": "paid"}}]},
            )
        ),
        noted(Answered("Too Many Requests", 429), "in row 7 of the input"),
        GrpcError("PERMISSION_DENIED", "the caller may not pay"),
        make("httpx.PoolTimeout", ""),
        make("redis.exceptions.OutOfMemoryError", "command not allowed when used memory > 'maxmemory'"),
        make("redis.exceptions.BusyLoadingError", "Redis is loading the dataset in memory"),
        make("httpx.HTTPStatusError", "error 429", response=Redirected(429, 307)),
        *(
            Answered(text, 429)
            for text in (
                "404: the page may have been deleted or moved",
                "expected 200 OK, got 429",
                "status is unknown value 'x'",
                "max 60 requests accepted per minute",
                "the token may have expired",
                "field approved: true is required",
                "username taken, choose another",
                'HTTP 200 OK: {"ok": false, "error": "rate_limited"}',
                "To get started with the CLI, please run: cli login",
                "try again after your next payment",
                "too many requests: wait after each order",
                "locked after too many payment attempts",
                "the transaction was rolled back",
                "POST is not allowed",
                "DELETE returned 401",
                "no results left",
            )
        ),
    ]
    for error in refusals:
        outcome, _ = await outcome_of(error)
        assert outcome.fault is not None
        assert outcome.fault.effect == "none", (error, getattr(error, "body", None))


def of_request(method: str, how: str) -> Exception:
    """A refusal that knows the request it answers."""
    error: Exception = Answered("Too Many Requests", 429)
    request = SimpleNamespace(method=method)
    if how == "words":
        return RuntimeError(f"{method} /v1/orders/7: HTTP 429 Too Many Requests")
    if how == "botocore":
        error = make("botocore.exceptions.ClientError", "An error occurred")
        vars(error).update(
            response={"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}},
            operation_name="PutObject" if method == "POST" else "GetObject",
        )
    elif how == "aiohttp":
        error = make(
            "aiohttp.ClientResponseError", "429, message='Too Many Requests'", status=429, request_info=request
        )
    elif how == "requests":
        response = SimpleNamespace(status_code=429, request=request, headers={})
        error = make("requests.HTTPError", "429 Client Error", response=response)
    else:
        vars(error)["request"] = request
    if how == "cause":
        outer = RuntimeError("HTTP 429: Too Many Requests")
        outer.__cause__ = error
        return outer
    return ExceptionGroup("no luck", [error]) if how == "group" else error


CARRIERS = ("request", "requests", "aiohttp", "botocore", "cause", "group", "words")


@pytest.mark.parametrize("how", CARRIERS)
@virtual
async def test_t32_the_refusal_of_a_request_that_reads_says_nothing_about_a_write(how: str) -> None:
    effects = {}
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"):
        if how != "botocore" or method in ("GET", "POST"):
            outcome, times = await outcome_of(of_request(method, how))
            effects[method] = (outcome.fault.effect, times)
    reads = {"GET": ("unknown", 1), "HEAD": ("unknown", 1), "OPTIONS": ("unknown", 1)}
    assert effects == {method: reads.get(method, ("none", 3)) for method in effects}


@pytest.mark.parametrize("declared", [{"read_only": True}, {"id": "get_orders"}, {"id": "frobnicate"}], ids=str)
@virtual
async def test_t32_the_refusal_of_a_request_that_reads_is_believed_of_a_tool_that_is_no_write(
    declared: dict[str, Any],
) -> None:
    rt = Runtime()

    @rt.tool(**{"id": "look", **declared}, retry=RETRY, breaker=OFTEN)
    async def tool() -> None:
        raise of_request("GET", "request")

    outcome = await rt.call(tool)
    assert outcome.fault is not None
    assert (outcome.fault.effect, outcome.attempts) == ("none", 3)


async def pay_in_a_worker(method: str) -> None:
    raise of_request(method, "requests")


@pytest.mark.parametrize(("method", "effect"), [("GET", "unknown"), ("POST", "none")])
def test_t32_a_worker_process_tells_which_request_was_refused(method: str, effect: str) -> None:
    async def run() -> Any:
        async with Runtime() as rt:
            rt.add(pay_in_a_worker, idempotent=False, isolation="process", retry={"max_attempts": 1})
            return await rt.call("pay_in_a_worker", {"method": method})

    outcome = asyncio.run(run())
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.effect) == ("RESOURCE_EXHAUSTED", effect)
