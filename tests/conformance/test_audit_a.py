"""The audit's group A: sentences of the documents that 0.1.0 did not keep. One test at least for each row."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, virtual

from failsoft import Decision, ErrorReport, ManifestError, Outcome, Runtime, partial
from failsoft.testing import FaultPlan

# --- A1: "If all retries exhausted, escalate" (S-spec 4.1, 4.3, R30) --------------------------------------------------


@pytest.mark.parametrize("required", [None, True])
@virtual
async def test_a1_the_call_that_exhausts_its_retries_escalates_although_it_opened_the_circuit(
    required: bool | None,
) -> None:
    told: list[Outcome[Any]] = []
    rt = Runtime(on_escalation=told.append)
    rt.add(Scripted(DOWN), id="search")
    async with rt.turn() as turn:
        turn.call("search", id="s", required=required)
    await rt.flush()
    outcome = turn.report.outcomes["s"]
    assert rt.health("search").state == "open"
    assert (outcome.escalated, outcome.attempts) == (True, 5)
    assert [escalation.call_id for escalation in turn.report.escalations] == ["s"]
    assert [outcome.id for outcome in told] == ["s"]
    assert turn.report.message == "Search failed. Trying search again in a little while may help."


@virtual
async def test_a1_a_call_after_its_timeouts_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60)), id="search", timeout="30s", read_only=True, retry={"max_total_time": "10m"})
    outcome = await rt.call("search")
    assert (outcome.attempts, outcome.escalated, rt.health("search").state) == (5, True, "open")


@virtual
async def test_a1_an_optional_call_and_refused_calls_fail_gracefully() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search")
    async with rt.turn() as turn:
        turn.call("search", id="s", required=False)
    assert turn.report.escalations == ()
    refused = await rt.call("search")
    assert refused.decision is not None
    assert (refused.attempts, refused.escalated, refused.decision.strategy) == (0, False, "fail_gracefully")


@virtual
async def test_a1_a_half_open_probe_that_fails_does_not_escalate_again() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search")
    assert (await rt.call("search")).escalated
    for _ in range(3):
        await asyncio.sleep(30)
        probe = await rt.call("search")
        assert probe.decision is not None
        assert (probe.attempts, probe.escalated, probe.decision.strategy) == (1, False, "fail_gracefully")


@virtual
async def test_a1_a_call_whose_circuit_another_call_opened_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", breaker={"failure_threshold": 3})
    first, second = await asyncio.gather(rt.call("search"), rt.call("search"))
    assert first.attempts + second.attempts == 3
    assert (first.escalated, second.escalated) == (True, True)


@virtual
async def test_a1_a_fallback_that_ran_and_failed_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1}, fallbacks=["backup"])
    rt.add(Scripted(INVALID, DOWN), id="backup", retry=ONCE, breaker={"failure_threshold": 2})
    await rt.call("search")
    refused = await rt.call("search")  # the primary is refused, the fallback runs and fails
    assert (refused.attempts, refused.escalated) == (1, True)
    opening = await rt.call("search")  # and so does the one that opens the fallback's circuit
    assert (opening.attempts, opening.escalated, rt.health("backup").state) == (1, True, "open")
    both_open = await rt.call("search")
    assert (both_open.attempts, both_open.escalated) == (0, False)


@virtual
async def test_a1_a_rate_limited_call_that_cannot_wait_escalates_once() -> None:
    rt = Runtime()
    rt.add(FaultPlan("429(retry_after=60)").wrap(Scripted("x")), id="search")
    assert (await rt.call("search")).escalated
    assert not (await rt.call("search")).escalated


# --- A3: "Partial success (if acceptable)" (S-spec 6.1, R32) ----------------------------------------------------------

HALF = partial(["page 1"], missing=["page 2", "page 3"])
MOST = partial(["page 1", "page 2"], missing=["page 3"])
LITTLE = partial([], missing=["page 1", "page 2", "page 3"])


def in_both_places(accept: Any, tool: Any) -> list[Runtime]:
    """A runtime with a tool ``search`` whose ``accept_partial`` is said in code, and one whose manifest says it."""
    in_code, in_file = Runtime(), Runtime({"tools": {"search": {"accept_partial": accept}}})
    in_code.add(tool(), id="search", accept_partial=accept)
    in_file.add(tool(), id="search")
    return [in_code, in_file]


@pytest.mark.parametrize(("then", "attempts"), [(HALF, 5), (INVALID, 2), (DOWN, 5)])
@virtual
async def test_a3_a_part_that_is_not_acceptable_never_ends_a_call_well(then: Any, attempts: int) -> None:
    for rt in in_both_places(False, lambda: Scripted(MOST, then)):
        dependant = Scripted("done")
        rt.add(dependant, id="compare")
        async with rt.turn() as turn:
            found = turn.call("search", id="s")
            turn.call("compare", {"pages": found}, id="c")
        outcome = turn.report.outcomes["s"]
        assert (outcome.status, outcome.value, outcome.attempts) == ("failed", None, attempts)
        assert (outcome.partial, outcome.missing) == (["page 1", "page 2"], ["page 3"])
        assert outcome.to_dict()["partial"] == ["page 1", "page 2"]
        assert pickle.loads(pickle.dumps(outcome)).partial == ["page 1", "page 2"]
        assert (turn.report.outcomes["c"].status, dependant.attempts) == ("skipped", 0)
        assert "s" not in turn.report.results


@pytest.mark.parametrize(("then", "attempts"), [(HALF, 5), (INVALID, 2)])
@virtual
async def test_a3_after_retries_is_the_default_and_takes_the_best_part(then: Any, attempts: int) -> None:
    runtimes = in_both_places("after_retries", lambda: Scripted(LITTLE, MOST, then))
    unsaid = Runtime()
    unsaid.add(Scripted(LITTLE, MOST, then), id="search")
    for rt in (*runtimes, unsaid):
        outcome = await rt.call("search")
        assert (outcome.status, outcome.value, outcome.missing) == ("succeeded", ["page 1", "page 2"], ["page 3"])
        assert outcome.partial is None
        assert outcome.attempts == attempts + (then is INVALID)


@virtual
async def test_a3_true_takes_the_first_part_at_once() -> None:
    for rt in in_both_places(True, lambda: Scripted(LITTLE, "all")):
        outcome = await rt.call("search")
        assert (outcome.status, outcome.value, outcome.attempts) == ("succeeded", [], 1)


@pytest.mark.parametrize("wish", ["policy", "handler"])
@virtual
async def test_a3_nobody_can_make_a_part_acceptable_that_the_tool_rules_out(wish: str) -> None:
    class Easy:
        async def handle(self, report: ErrorReport) -> Decision:
            return Decision("partial_success", "good enough")

    book = [{"name": "easy", "then": "partial_success"}] if wish == "policy" else []
    rt = Runtime(policies=book, error_handler=Easy() if wish == "handler" else None)
    rt.add(Scripted(HALF), id="search", accept_partial=False)
    outcome = await rt.call("search")
    assert (outcome.status, outcome.partial) == ("failed", ["page 1"])


@virtual
async def test_a3_a_fallback_may_serve_what_the_part_could_not() -> None:
    rt = Runtime()
    rt.add(Scripted(HALF), id="search", accept_partial=False, fallbacks=["backup"])
    rt.add(Scripted(HALF), id="backup")
    outcome = await rt.call("search")  # the part of a fallback is none either: the call asks for the whole
    assert (outcome.status, outcome.partial) == ("failed", ["page 1"])


def test_a3_anything_else_is_refused() -> None:
    for wrong in ("always", 1, None):
        with pytest.raises(ManifestError, match="accept_partial"):
            Runtime().add(Scripted(1), id="search", accept_partial=wrong)  # type: ignore[arg-type]
        with pytest.raises(ManifestError, match="accept_partial"):
            Runtime({"tools": {"search": {"accept_partial": wrong}}})
