"""The fast path of blocking calls: anything but an immediate plain success takes the full path."""

from __future__ import annotations

import threading

import pytest
from tests.fakes import ONCE, records

from failsoft import CallFailed, Runtime
from failsoft.core.model.partial import Partial


def warm() -> Runtime:
    """A runtime that already has a thread: a call that waits for a new one takes the full path."""
    rt = Runtime()
    rt.add(lambda: None, id="first", timeout="5s")
    rt.call_sync("first")
    return rt


def test_a_partial_result_is_recorded_as_partial() -> None:
    rt = warm()
    rt.add(lambda: Partial(["Bern"], missing=["Basel"]), id="search", timeout="5s", retry=ONCE, accept_partial=True)
    outcome = rt.call_sync("search")
    assert (outcome.value, outcome.missing) == (["Bern"], ["Basel"])
    assert records(rt, "PartialUsed")


def test_arguments_that_do_not_fit_are_no_bug_of_the_tool() -> None:
    rt = warm()

    @rt.tool(timeout="5s", retry=ONCE)
    def search(city: str) -> str:
        return city

    outcome = rt.call_sync("search", {"town": "Bern"})
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.attempts) == ("INVALID_ARGUMENT", 0)
    with pytest.raises(CallFailed, match="do not fit"):
        search(town="Bern")  # type: ignore[call-arg]  # on purpose


def test_a_success_counts_where_the_circuit_has_changed_meanwhile() -> None:
    rt = warm()
    inside = []

    @rt.tool(timeout="5s", retry=ONCE, idempotent=True, breaker={"failure_threshold": 5})
    def search(fails: bool) -> str:
        if fails:
            raise ConnectionError("reset")
        inside.append(rt.health("search").failure_count)
        _fail_beside(rt)
        inside.append(rt.health("search").failure_count)
        return "found"

    assert rt.call_sync("search", {"fails": False}).value == "found"
    assert inside == [0, 1]
    assert rt.health("search").failure_count == 0


def _fail_beside(rt: Runtime) -> None:
    """A call that has nothing to do with the one around it."""
    other = threading.Thread(target=rt.call_sync, args=("search", {"fails": True}))
    other.start()
    other.join()
