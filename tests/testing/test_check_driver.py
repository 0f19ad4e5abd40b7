"""``check_driver`` replays every call, and finds drivers and pipelines that break the contract between them."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import DOWN, Scripted, virtual
from tests.golden.recording import Scenario, record
from tests.golden.streams import GROUPS, scenarios

from failsoft import Runtime
from failsoft.runtime.call import event_fields, pipeline
from failsoft.runtime.call.in_place import IN_PLACE
from failsoft.runtime.call.recovery import Recovery
from failsoft.runtime.call.steps import Spend
from failsoft.testing import check_driver

LOCK = threading.Lock()
REPORTED = {"daemon"}  # groups whose scenes run no tool: they are told about failures elsewhere


@pytest.mark.parametrize("group", GROUPS)
def test_the_same_answers_give_the_same_steps_in_every_golden_scene(group: str) -> None:
    with check_driver() as checked:
        lines = [record(scenario) for scenario in scenarios(group)]
    assert any(lines)
    failed = any("ToolError" in line for story in lines for line in story)
    assert checked.calls if failed and group not in REPORTED else not (checked.calls and group in REPORTED)


def test_the_golden_scenes_are_many_calls_on_the_full_path() -> None:
    with check_driver() as checked:
        for scenario in scenarios("calls"):
            record(scenario)
    assert checked.calls > 20
    assert checked.steps > 5 * checked.calls


async def call_that_is_retried() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, DOWN, "found"), id="search", read_only=True)
    assert (await rt.call("search")).attempts == 3


@virtual
async def test_a_call_that_waits_for_its_rate_limit_between_attempts_is_replayed() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, DOWN, "found"), id="search", read_only=True, rate="2/1m")
    with check_driver() as checked:
        assert (await rt.call("search")).attempts == 3
    assert checked.calls == 1


@virtual
async def test_a_driver_that_answers_with_another_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IN_PLACE, Spend, lambda *_: 1)
    with pytest.raises(AssertionError, match=r"Spend: the driver must answer with bool, not int"), check_driver():
        await call_that_is_retried()


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (time.monotonic, r"time\.monotonic"),
        (random.Random(1).random, r"random\.random"),
        (LOCK.locked, r"_thread\.locked"),
        (lambda: logging.getLogger("failsoft").debug("x"), r"logging\.getLogger"),
    ],
)
@virtual
async def test_a_pipeline_that_uses_something_outside_is_named(
    use: Callable[[], Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Recovery._take_in

    def curious(self: Recovery, *answers: Any) -> Any:
        use()
        return original(self, *answers)

    monkeypatch.setattr(Recovery, "_take_in", curious)
    with pytest.raises(AssertionError, match=f"after Assess .* the pipeline used {named}"), check_driver():
        await call_that_is_retried()


@pytest.mark.parametrize("name", ["abandoned", "may_have_acted_inside", "write_record"])
@virtual
async def test_a_pipeline_that_reads_what_others_change_in_its_call_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Recovery._take_in

    def curious(self: Recovery, *answers: Any) -> Any:
        getattr(self._call, name)
        return original(self, *answers)

    monkeypatch.setattr(Recovery, "_take_in", curious)
    with pytest.raises(AssertionError, match=rf"the pipeline used call\.{name}"), check_driver():
        await call_that_is_retried()


@virtual
async def test_a_pipeline_that_remembers_something_between_calls_gives_other_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = itertools.count()
    original = event_fields.recovery_fields
    monkeypatch.setattr(
        pipeline, "recovery_fields", lambda attempt, seconds: {**original(attempt, seconds), "count": next(counter)}
    )
    with pytest.raises(AssertionError, match=r"'count': 0.* the same answers now give .*'count': 1"), check_driver():
        await call_that_is_retried()


def test_an_error_in_the_body_is_not_replaced() -> None:
    with pytest.raises(ZeroDivisionError), check_driver():
        raise ZeroDivisionError


def test_calls_outside_of_the_body_are_not_recorded() -> None:
    with check_driver() as checked:
        pass
    record(Scenario("later", virtual(call_that_is_retried)))
    assert checked.calls == 0
