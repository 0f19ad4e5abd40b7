"""The audit's group A: sentences of the documents that 0.1.0 did not keep. One test at least for each row."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, records, virtual

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
    """Two runtimes with a tool ``search``: one sets ``accept_partial`` in code, the other in the manifest."""
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
async def test_a3_no_policy_or_handler_can_accept_a_partial_result_that_the_tool_rules_out(wish: str) -> None:
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


def test_a3_other_values_of_accept_partial_are_rejected() -> None:
    for wrong in ("always", 1, None):
        with pytest.raises(ManifestError, match="accept_partial"):
            Runtime().add(Scripted(1), id="search", accept_partial=wrong)  # type: ignore[arg-type]
        with pytest.raises(ManifestError, match="accept_partial"):
            Runtime({"tools": {"search": {"accept_partial": wrong}}})


# --- A4: "a user-facing explanation via orchestrator" (S-norm, R33) ---------------------------------------------------


class Orchestrator:
    """Phrases the user's texts and records the facts it receives."""

    def __init__(self, takes: float = 0.0) -> None:
        self.facts: list[dict[str, Any]] = []
        self.takes = takes

    async def __call__(self, facts: Mapping[str, Any]) -> str:
        self.facts.append(dict(facts))
        await asyncio.sleep(self.takes)
        return f"So sorry: {facts['label']} ({facts['status']})."


def orchestrated(explain: Any, **options: Any) -> Runtime:
    rt = Runtime(explain=explain, **options)
    rt.add(Scripted(INVALID), id="flights")
    rt.add(Scripted("sun"), id="weather")
    rt.add(Scripted(Takes(1000)), id="hotels", timeout="1h")
    rt.add(Scripted("x"), id="compare")
    return rt


@pytest.mark.parametrize("kind", ["async", "sync"])
@virtual
async def test_a4_the_orchestrator_phrases_everything_that_a_user_reads(kind: str) -> None:
    orchestrator = Orchestrator()
    told: list[str] = []

    def sync(facts: Mapping[str, Any]) -> str:
        return f"So sorry: {facts['label']} ({facts['status']})."

    rt = orchestrated(
        orchestrator if kind == "async" else sync, on_escalation=lambda outcome: told.append(outcome.explanation.user)
    )
    async with rt.turn(timeout="10s") as turn:
        flights = turn.call("flights", id="f")
        turn.call("compare", {"of": flights}, id="c", required=True)
        turn.call("compare", {"of": flights}, id="d")
        turn.call("weather", id="w")
        turn.call("hotels", id="h")
        turn.call("nowhere", id="n")
    await rt.flush()
    report = turn.report
    assert {id: outcome.explanation.user for id, outcome in report.outcomes.items() if id != "w"} == {
        "f": "So sorry: flights (failed).",
        "c": "So sorry: compare (skipped).",
        "d": "So sorry: compare (skipped).",
        "h": "So sorry: hotels (timed_out).",
        "n": "So sorry: nowhere (failed).",
    }
    assert report.message == "So sorry: flights, compare, hotels and 1 other (timed_out)."
    assert report.to_dict()["message"] == report.message
    assert pickle.loads(pickle.dumps(report)).message == report.message
    said = json.dumps(report.to_dict()["escalations"])
    assert "Completed" not in said + report.message
    assert [one.explanation.user for one in report.escalations] == [
        "So sorry: flights (failed).",
        "So sorry: compare (skipped).",
        "So sorry: nowhere (failed).",
    ]
    assert sorted(told) == sorted(one.explanation.user for one in report.escalations)
    assert "flights failed: INVALID_ARGUMENT" in report.outcomes["f"].explanation.model  # of fixed form, as before


@virtual
async def test_a4_the_orchestrator_receives_facts_about_the_turn_that_are_safe_to_share() -> None:
    orchestrator = Orchestrator()
    rt = orchestrated(orchestrator)
    async with rt.turn() as turn:
        turn.call("flights", id="f")
        turn.call("weather", id="w")
    call, whole = orchestrator.facts
    assert whole["text"] == "Completed weather, but flights failed. For flights I need a valid airport code."
    assert (whole["turn_id"], whole["call_id"], whole["label"]) == (turn.id, None, "flights")
    assert {**whole["calls"][0], "text": call["text"]} == call
    assert whole["completed"] == ["weather"]
    assert set(call) <= set(whole)


@virtual
async def test_a4_a_turn_in_which_all_went_well_needs_no_orchestrator() -> None:
    orchestrator = Orchestrator()
    async with orchestrated(orchestrator).turn() as turn:
        turn.call("weather")
    assert (turn.report.message, orchestrator.facts) == ("Completed weather", [])


@virtual
async def test_a4_refusals_and_retries_that_are_not_possible_are_phrased_too() -> None:
    rt = orchestrated(Orchestrator())
    rt.add(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    for _ in range(3):
        assert (await rt.call("down")).explanation.user == "So sorry: down (failed)."
    await rt.call("down", thread="chat")
    for offer in rt.threads["chat"].offers:
        assert offer.explanation.user == "So sorry: down (failed)."
    assert (await rt.threads["chat"].retry("weather")).explanation.user == "So sorry: weather (failed)."


@virtual
async def test_a4_a_policys_own_message_stands() -> None:
    book = [{"name": "closed", "when": {"tool": "flights"}, "then": {"message": "Flights are on strike."}}]
    orchestrator = Orchestrator()
    rt = orchestrated(orchestrator, policies=book)
    async with rt.turn() as turn:
        turn.call("flights", id="f")
        turn.call("weather", id="w")
    assert turn.report.outcomes["f"].explanation.user == "Flights are on strike."
    assert turn.report.message == "Completed weather, but flights failed. Flights are on strike."
    assert orchestrator.facts == []
    async with rt.turn() as turn:
        turn.call("flights", id="f")
        turn.call("nowhere", id="n")
    assert turn.report.message == "So sorry: flights and nowhere (failed). Flights are on strike."


@virtual
async def test_a4_a_slow_orchestrator_keeps_no_turn_for_long() -> None:
    rt = orchestrated(Orchestrator(takes=100))
    before = asyncio.get_running_loop().time()
    async with rt.turn(timeout="10s") as turn:
        turn.call("hotels", id="h")
    took = asyncio.get_running_loop().time() - before
    assert 10 <= took <= 10.6
    assert turn.report.timed_out
    assert turn.report.message == "Hotels timed out"
    assert turn.report.outcomes["h"].explanation.user == "Hotels didn’t finish in time."
    assert len(records(rt, "ExplainFailed")) == 2


@virtual
async def test_a4_a_late_orchestrator_makes_no_turn_time_out() -> None:
    rt = orchestrated(Orchestrator(takes=100))
    async with rt.turn(timeout="1s") as turn:
        turn.call("flights", id="f")
    assert not turn.report.timed_out
    assert records(turn.report, "TurnTimedOut") == []
