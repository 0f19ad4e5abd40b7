"""T31: a tool charged, then raised a local exception, and was told as "It had no effect", repeated and done elsewhere.

Here what an entered tool raises leaves the effect open, unless the other side has refused or the author says so.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import json
import pickle
import shlex
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from decimal import InvalidOperation
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from tests.fakes import OFTEN
from tests.runtime.execution.processes.fake_tools import raises_after_paying

from failsoft import CallFailed, NothingDone, Override, Runtime

RETRY: Any = {"max_attempts": 5, "initial_delay": "1ms", "budget": False}


class Receipt(BaseModel):
    number: int


class ReceiptError(Exception):
    """A tool's own, with a code of its own."""

    code = "invalid_receipt"


def made(make: Callable[[], object]) -> Exception:
    try:
        make()
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError("it has not raised")


LOCAL: dict[str, Exception] = {
    **{
        name: getattr(builtins, name)("after the charge")
        for name in (
            "ArithmeticError AssertionError AttributeError BlockingIOError BufferError ChildProcessError EOFError "
            "Exception FileExistsError FileNotFoundError FloatingPointError ImportError IndexError InterruptedError "
            "IsADirectoryError KeyError LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError "
            "NotImplementedError OSError OverflowError PermissionError ProcessLookupError RecursionError ReferenceError "
            "RuntimeError StopAsyncIteration SystemError TypeError UnboundLocalError UnicodeError ValueError Warning "
            "ZeroDivisionError TimeoutError ConnectionResetError BrokenPipeError ConnectionAbortedError"
        ).split()
    },
    **{
        name: OSError(getattr(errno, name), "after the charge")
        for name in "EMFILE ENFILE ENOSPC EDQUOT ENOMEM EROFS EINVAL EBUSY EAGAIN ENOLCK".split()
    },
    "json": made(lambda: json.loads("<html>")),
    "pydantic": made(lambda: Receipt.model_validate({})),
    "unicode": made(lambda: b"\xff".decode()),
    "int": made(lambda: int("none")),
    "pickle": pickle.PicklingError("no receipt"),
    "zip": zipfile.BadZipFile("no receipt"),
    "decimal": InvalidOperation("no amount"),
    "sqlite locked": made(lambda: locked()),
    "process": subprocess.CalledProcessError(127, "print"),
    "queue": asyncio.QueueFull(),
    "its own": ReceiptError("no receipt"),
    "words": RuntimeError("Invalid receipt number"),
    "not found": RuntimeError("receipt not found"),
    "local words": RuntimeError("Permission denied: '/var/receipts'"),
    "disk words": RuntimeError("No space left on device"),
    "a name": RuntimeError("ValidationError: 1 validation error for Receipt"),
}


def locked() -> None:
    one, other = sqlite3.connect("file:t31?mode=memory&cache=shared", uri=True), None
    try:
        one.execute("create table receipts (number)")
        one.execute("begin immediate")
        other = sqlite3.connect("file:t31?mode=memory&cache=shared", uri=True, timeout=0)
        other.execute("insert into receipts values (1)")
    finally:
        one.close()
        if other is not None:
            other.close()


class Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


REFUSED: dict[str, Exception] = {
    "refused": ConnectionRefusedError(111, "Connection refused"),
    "unresolved": made(lambda: (_ for _ in ()).throw(__import__("socket").gaierror(-2, "Name or service not known"))),
    **{str(status): Refused(status) for status in (400, 401, 403, 404, 409, 422, 429, 503)},
    "words with a status": RuntimeError("HTTP 429 Too Many Requests"),
    "a named refusal": RuntimeError("Rate limit exceeded"),
    "in words": RuntimeError("connect ECONNREFUSED 127.0.0.1:80"),
    "the author's word": NothingDone("no seats", code="FAILED_PRECONDITION"),
    "wrapped": NothingDone("rolled back"),
}


def till(error: Exception) -> tuple[Runtime, list[str]]:
    rt = Runtime()
    acted: list[str] = []

    async def pay() -> None:
        acted.append("pay")
        raise error

    async def pay_elsewhere() -> str:
        acted.append("pay_elsewhere")
        return "paid"

    rt.add(pay_elsewhere, idempotent=False)
    rt.add(pay, idempotent=False, retry=RETRY, breaker=OFTEN, fallbacks=["pay_elsewhere"])
    return rt, acted


@pytest.mark.parametrize("name", LOCAL)
def test_t31_a_local_error_after_the_charge_is_one_effect_and_the_model_is_told(name: str) -> None:
    rt, acted = till(LOCAL[name])
    outcome = asyncio.run(rt.call("pay"))
    assert acted == ["pay"]
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"
    assert "may already have taken effect" in outcome.explanation.model
    assert "no effect" not in outcome.explanation.model


def test_t31_at_least_sixty_local_errors_are_covered() -> None:
    assert len(LOCAL) >= 60
    assert isinstance(LOCAL["pydantic"], ValidationError)


@pytest.mark.parametrize("how", ["blocking", "guarded", "threaded", "in a turn", "by name"])
@pytest.mark.parametrize("error", [ValueError("no receipt"), MemoryError(), OSError(errno.EMFILE, "x"), TypeError("x")])
def test_t31_it_holds_on_every_way_to_call_a_tool(how: str, error: Exception) -> None:
    rt = Runtime()
    acted: list[str] = []

    def pay() -> None:
        acted.append("pay")
        raise error

    async def pay_async() -> None:
        pay()

    options: Any = {"idempotent": False, "retry": RETRY}
    rt.add(pay, id="pay", timeout="5s" if how == "threaded" else None, **options)
    guarded = rt.add(pay_async, id="pay_async", **options)

    async def run() -> Any:
        if how == "in a turn":
            async with rt.turn() as turn:
                turn.call("pay_async", id="it")
            return turn.report.outcomes["it"]
        if how == "guarded":
            with pytest.raises(Exception, match="pay_async") as failed:
                await guarded()
            return failed.value.outcome  # type: ignore[attr-defined]
        return await rt.call("pay" if how == "threaded" else "pay_async")

    outcome = rt.call_sync("pay") if how == "blocking" else asyncio.run(run())
    assert acted == ["pay"]
    assert outcome.fault.effect == "unknown"


@pytest.mark.parametrize("name", REFUSED)
def test_t31_what_the_other_side_refused_had_no_effect(name: str) -> None:
    rt, _ = till(REFUSED[name])
    outcome = asyncio.run(rt.call("pay", retry={"max_attempts": 1}))
    assert outcome.via == "pay_elsewhere"


@pytest.mark.parametrize("name", REFUSED)
def test_t31_of_many_requests_the_refusal_of_one_says_nothing(name: str) -> None:
    rt = Runtime({"tools": {"pay": {"requests": "many"}}})

    async def pay() -> None:
        raise REFUSED[name]

    rt.add(pay, idempotent=False, retry=RETRY)
    outcome = asyncio.run(rt.call("pay"))
    assert outcome.fault is not None
    assert (outcome.fault.effect, outcome.attempts) == ("unknown", 1)
    misfit = asyncio.run(rt.call("pay", {"amount": 1}))
    assert misfit.fault is not None
    assert (misfit.fault.effect, misfit.attempts) == ("none", 0)


def test_t31_an_override_is_the_authors_word() -> None:
    rt = Runtime()

    async def pay() -> None:
        raise ValueError("checked before anything is sent")

    rt.add(pay, idempotent=False, classification=[Override(exception="ValueError", effect="none")])
    outcome = asyncio.run(rt.call("pay"))
    assert outcome.fault is not None
    assert outcome.fault.effect == "none"


def test_t31_a_decorated_blocking_tool_that_acts_before_its_type_error_has_run() -> None:
    import functools

    acted: list[str] = []

    def audited(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            acted.append("paid")
            return fn(*args, **kwargs)

        return wrapper

    @audited
    def pay(amount: int) -> None:
        raise AssertionError(amount)

    for timeout in (None, "5s"):
        rt = Runtime()
        rt.add(pay, id="pay", timeout=timeout)
        guarded = rt.add(pay, id="pay_guarded", timeout=timeout)
        with pytest.raises(Exception, match="pay_guarded") as failed:
            guarded(sum=1)
        fault = failed.value.outcome.fault  # type: ignore[attr-defined]
        assert (fault.effect, fault.rule != "bad_arguments") == ("unknown", True)
    assert acted == ["paid", "paid"]


def test_t31_nothing_done_crosses_processes_and_is_the_word_of_the_tool_that_raises_it() -> None:
    rt = Runtime()
    error = pickle.loads(pickle.dumps(NothingDone("no seats", code="UNAVAILABLE")))
    assert (str(error), error.code.value) == ("no seats", "UNAVAILABLE")

    @rt.tool(idempotent=False, retry={"max_attempts": 1})
    async def reserve() -> None:
        raise error

    @rt.tool(idempotent=False)
    async def travel(sure: bool) -> None:
        try:
            await reserve()
        except CallFailed as failed:
            if sure:
                raise NothingDone("no trip") from failed
            raise

    for sure, effect in ((False, "unknown"), (True, "none")):
        outcome = asyncio.run(rt.call("travel", {"sure": sure}))
        assert outcome.fault is not None
        assert (outcome.fault.effect, outcome.fault.code.value) == (effect, "UNAVAILABLE")
    with pytest.raises(ValueError, match="PLUNGED"):
        NothingDone("no seats", code="PLUNGED")


@pytest.mark.parametrize("overrides", [(), (Override(pattern="nobody says this", as_="permanent"),)])
def test_t31_the_source_of_the_evidence_crosses_the_process_boundary(overrides: Any) -> None:
    effects = {"local": "unknown", "remote": "none", "stated": "none", "disputed": "unknown"}

    async def run() -> dict[str, str]:
        async with Runtime() as rt:
            rt.add(
                raises_after_paying, id="pay", idempotent=False, isolation="process", classification=overrides,
                retry={"max_attempts": 1}, breaker=OFTEN,
            )  # fmt: skip
            outcomes = {what: await rt.call("pay", {"what": what}) for what in effects}
        return {what: outcome.fault.effect for what, outcome in outcomes.items() if outcome.fault is not None}

    assert asyncio.run(run()) == effects


@pytest.mark.parametrize(
    "words",
    ["connection refused", "HTTP/1.1 429 Too Many Requests", "rate limit exceeded"],
)
def test_t31_what_a_program_writes_to_its_log_does_not_say_that_nothing_was_done(tmp_path: Path, words: str) -> None:
    paid = tmp_path / "paid"
    script = f"echo 4 >> {shlex.quote(str(paid))}; echo 'metrics: {words}' >&2; exit 1"
    pay = {"entrypoint": {"command": ["sh", "-c", script]}, "idempotent": False, "retry": RETRY}
    rt = Runtime({"tools": {"pay": pay}})
    outcome = rt.call_sync("pay", {})
    assert outcome.fault is not None
    assert (outcome.fault.effect, outcome.attempts) == ("unknown", 1)
    assert paid.read_text() == "4\n"
    asyncio.run(rt.close())
