"""Failures that a tool in a worker process returns."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.execution.processes.fake_tools import echo

from failsoft import NothingDone, Outcome, Runtime


@pytest.mark.parametrize(
    ("value", "code", "effect"),
    [
        (ValueError("bad city"), "INVALID_ARGUMENT", "unknown"),
        (NothingDone("no stock", code="FAILED_PRECONDITION"), "FAILED_PRECONDITION", "none"),
        ({"ok": False, "error": "bad gateway (502)"}, "UNAVAILABLE", "unknown"),
    ],
    ids=["exception", "nothing done", "pattern"],
)
def test_a_returned_failure_fails_the_call(value: Any, code: str, effect: str) -> None:
    rt = Runtime()
    rt.add(echo, id="echo", isolation="process", idempotent=False, failed_if={"ok": False, "message": "error"})
    fault = rt.call_sync("echo", {"value": value}).fault
    assert fault is not None
    assert (fault.code, fault.effect) == (code, effect)


def test_a_successful_outcome_gives_its_value() -> None:
    rt = Runtime()
    rt.add(echo, id="echo", isolation="process", read_only=True)
    assert rt.call_sync("echo", {"value": Outcome("1", "inner", "succeeded", 5)}).value == 5
