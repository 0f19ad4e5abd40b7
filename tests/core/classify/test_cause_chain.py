"""Chains, wrappers and groups: which exception decides."""

from __future__ import annotations

import pytest
from tests.core.classify.made import error_type, http_error, make

import failsoft.core.classify as classify_module
from failsoft.core.classify import cause_chain, classify
from failsoft.core.classify.lookup import KindMatch
from failsoft.core.classify.weigh import judge_text
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import CallFailed, CircuitOpen


def raised_from(outer: BaseException, inner: BaseException | None) -> BaseException:
    try:
        raise outer from inner
    except BaseException as error:
        return error


def raised_while(outer: BaseException, inner: BaseException) -> BaseException:
    try:
        try:
            raise inner
        except BaseException:
            raise outer  # noqa: B904 - the context is the point
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("outer", "inner", "code"),
    [
        # a wrapper takes the label of what it wraps
        (RuntimeError("the booking failed"), ConnectionRefusedError(111, "x"), "UNAVAILABLE"),
        (ValueError("no forecast"), http_error(503), "UNAVAILABLE"),
        (RuntimeError("the booking failed"), KeyError("id"), "INTERNAL"),
        (make("openai.APIConnectionError", "Connection error."), make("httpx.ConnectTimeout", ""), "DEADLINE_EXCEEDED"),
        # a specific outer error beats a generic inner one
        (http_error(404), KeyError("id"), "NOT_FOUND"),
        (RuntimeError("Rate limit exceeded"), ValueError("x"), "RESOURCE_EXHAUSTED"),
        (make("acme.NotFoundError", "x"), RuntimeError("timed out"), "NOT_FOUND"),
        # asyncio.timeout raises its TimeoutError from the cancellation that it used
        (TimeoutError(), make("asyncio.exceptions.CancelledError"), "DEADLINE_EXCEEDED"),
        (TimeoutError(), make("asyncio.exceptions.CancelledError", "Cancelled by cancel scope 7"), "DEADLINE_EXCEEDED"),
        # a library's own ValueError speaks of what it was given, however it found out
        (error_type("acme.ParseFailed", ValueError)("no expression"), SyntaxError("x"), "INVALID_ARGUMENT"),
        (error_type("acme.ParseFailed", ValueError)("because of SyntaxError: x"), KeyError("x"), "INVALID_ARGUMENT"),
        (error_type("acme.ParseFailed", ValueError)("no expression"), AttributeError("x"), "INTERNAL"),
        (ValueError("no forecast"), KeyError("x"), "INTERNAL"),
    ],
)
def test_cause(outer: BaseException, inner: BaseException, code: str) -> None:
    assert classify(raised_from(outer, inner)).code == code


def test_context_is_asked_only_when_nothing_else_has_spoken() -> None:
    refused = ConnectionRefusedError(111, "x")
    assert classify(raised_while(RuntimeError("xyzzy"), refused)).code == "UNAVAILABLE"
    assert classify(raised_while(RuntimeError("Invalid city"), refused)).code == "INVALID_ARGUMENT"
    assert classify(raised_while(TypeError("x"), refused)).code == "INTERNAL"
    cancelled = make("asyncio.exceptions.CancelledError", "Cancelled by cancel scope 7")
    assert classify(raised_while(TimeoutError(), cancelled)).code == "DEADLINE_EXCEEDED"  # anyio.fail_after


def test_suppressed_context_is_not_asked() -> None:
    error = raised_while(RuntimeError("xyzzy"), ConnectionRefusedError(111, "x"))
    error.__suppress_context__ = True
    assert classify(error).code == "UNKNOWN"


@pytest.mark.parametrize("name", ["reason", "orig", "original_exception", "inner_exception", "exc", "_os_error"])
def test_an_error_carried_as_an_attribute_is_classified(name: str) -> None:
    assert classify(make("acme.Wrapped", "xyzzy", **{name: ConnectionResetError(104, "x")})).code == "UNAVAILABLE"


def test_an_error_carried_as_an_argument_is_classified() -> None:
    inner = make("urllib3.exceptions.NewConnectionError", "x: [Errno 111] Connection refused")
    outer = make("requests.exceptions.ConnectionError", make("urllib3.exceptions.MaxRetryError", "x", reason=inner))
    fault = classify(outer)
    assert (fault.code, fault.effect) == ("UNAVAILABLE", "none")


def test_the_last_of_several_carried_errors_is_classified() -> None:
    attempts = [make("acme.Odd", "x"), TimeoutError("timed out")]
    assert classify(make("acme.Wrapped", "xyzzy", errors=attempts)).code == "DEADLINE_EXCEEDED"
    assert classify(make("acme.Wrapped", "xyzzy", errors={"a": ConnectionRefusedError(111, "x")})).code == "UNAVAILABLE"


def test_tenacity() -> None:
    attempt = make("x.Future", _exception=http_error(401))
    assert (
        classify(make("tenacity.RetryError", "RetryError[timed out]", last_attempt=attempt)).code == "UNAUTHENTICATED"
    )


def test_an_error_while_connecting_means_that_nothing_was_sent() -> None:
    reset = ConnectionResetError(104, "Connection reset by peer")
    assert classify(raised_from(make("httpx.ConnectError", "x"), reset)).effect == "none"
    assert classify(raised_from(make("httpx.ReadError", "x"), reset)).effect == "unknown"


def test_cycles_are_cut() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert classify(one).code == "UNKNOWN"


def test_endless_chains_are_cut() -> None:
    error: BaseException = http_error(404)
    for depth in range(5_000):
        outer = RuntimeError(f"level {depth}")
        outer.__cause__ = error
        error = outer
    assert classify(error).code == "UNKNOWN"


# --- groups (R28) ------------------------------------------------------------------------------------------------


def test_a_group_is_permanent_if_any_leaf_is() -> None:
    fault = classify(ExceptionGroup("two", [TimeoutError("timed out"), ExceptionGroup("x", [ValueError("bad city")])]))
    assert (fault.classification, fault.category) == ("permanent", "tool_validation")
    assert fault.effect == "unknown"
    assert fault.rule.startswith("group: ")
    assert "bad city" in fault.message


def test_a_group_is_transient_if_all_leaves_are() -> None:
    fault = classify(ExceptionGroup("two", [TimeoutError(), ConnectionRefusedError(111, "x")]))
    assert (fault.classification, fault.code) == ("transient", "DEADLINE_EXCEEDED")


def test_a_group_inside_a_chain() -> None:
    group = ExceptionGroup("x", [http_error(404)])
    assert classify(raised_from(RuntimeError("xyzzy"), group)).code == "NOT_FOUND"


def test_deep_groups_are_cut() -> None:
    group: BaseException = TimeoutError()
    for _ in range(500):
        group = BaseExceptionGroup("deeper", [group])
    assert classify(group).classification == "transient"


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_leaves_raised_from_their_own_group_end(link: str) -> None:
    leaves = [TimeoutError("timed out"), ValueError("bad city"), KeyError("city")]
    group = ExceptionGroup("three", leaves)
    for leaf in leaves:
        setattr(leaf, link, group)
    for subject in (group, *leaves):
        fault = classify(subject)
        assert fault.rule.count("group: ") <= 1
        assert fault.cause is subject
    assert classify(group).code == "INVALID_ARGUMENT"


def test_a_group_in_many_chains_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[BaseException] = []

    def leaves(group: BaseException) -> list[BaseException]:
        read.append(group)
        return cause_chain.leaves(group)

    monkeypatch.setattr(classify_module, "leaves", leaves)
    group: BaseException = TimeoutError("timed out")
    for depth in range(5):
        parts = [raised_from(ValueError(f"part {part}"), group) for part in range(8)]
        group = BaseExceptionGroup(f"try {depth}", parts)
    assert classify(group).rule.startswith("group: ")
    assert len(read) == 5


def test_only_the_message_that_is_used_is_sanitised(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "password=hunter2"
    texts: list[object] = []

    def sanitised(text: object, **options: int) -> str:
        texts.append(text)
        return sanitise(text, **options)

    monkeypatch.setattr(classify_module, "sanitise", sanitised)
    fault = classify(ExceptionGroup("many", [ValueError(f"part {part}: {secret}") for part in range(30)]))
    assert fault.message == "many (30 sub-exceptions): part 0: password=[redacted]"
    assert len([text for text in texts if secret in str(text)]) == 1


# --- failsoft's own (R24) ----------------------------------------------------------------------------------------

INSIDE = Fault(
    Code.ABORTED, "permanent", "tool_validation", "happened", "said inside", "because", "http_status: 409", 4.0
)


@pytest.mark.parametrize("kind", [CallFailed, CircuitOpen])
def test_the_fault_of_a_guarded_call_inside_is_kept(kind: type[CallFailed]) -> None:
    error = kind(Outcome("a-1", "a", "failed", fault=INSIDE))
    for subject in (error, raised_from(RuntimeError("timed out"), error)):
        fault = classify(subject)
        assert fault == INSIDE._replace(rule="nested: http_status: 409", cause=subject)


def test_a_guarded_call_without_a_fault() -> None:
    assert classify(CallFailed(Outcome("a-1", "a", "failed"))).code == "UNKNOWN"


def test_message_of_an_error_without_text_is_its_type() -> None:
    assert classify(error_type("httpx.PoolTimeout")()).message == "PoolTimeout"


def test_texts_are_read_until_one_has_said_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def judged(text: str) -> KindMatch:
        read.append(text)
        return judge_text(text)

    monkeypatch.setattr(cause_chain, "judge_text", judged)
    error = RuntimeError("Connection refused")
    error.__cause__ = RuntimeError("quite another text, connection reset by peer")
    assert classify(error).rule == "phrase: refused"
    assert read == ["Connection refused"]
