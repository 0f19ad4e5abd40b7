"""The audit's group C: smaller differences from the documents. One test at least for each row."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, OFTEN, ONCE, Scripted, Takes, records, virtual

import failsoft
from failsoft import Code, Decision, ErrorReport, Runtime, classify
from failsoft.analysis.replay import replay
from failsoft.config.manifest import check, load
from failsoft.testing import FaultPlan

# --- C2: the state half-open is an input (S-spec 6.2, R42) ------------------------------------------------------------


class Listening:
    """An Error Handler that records its reports and decides as the built-in one."""

    def __init__(self) -> None:
        self.reports: list[ErrorReport] = []

    async def handle(self, report: ErrorReport) -> Decision:
        self.reports.append(report)
        return failsoft.decide(report)


@pytest.mark.parametrize("count", ["attempts", "calls"])
@virtual
async def test_c2_a_probe_that_fails_is_reported_as_half_open(count: str) -> None:
    handler = Listening()
    book = [{"name": "probing", "when": {"breaker": "half_open"}, "then": {"message": "Still down."}}]
    rt = Runtime(error_handler=handler, policies=book)
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1, "count": count})
    first = await rt.call("search")
    await asyncio.sleep(30)
    probe = await rt.call("search")
    states = [report.breaker_state for report in handler.reports]
    assert states == [{"attempts": "open", "calls": "closed"}[count], "half_open"]
    assert [record["circuit_breaker_state"] for record in records(rt, "ToolError")] == states
    assert first.explanation.user != "Still down."
    assert probe.explanation.user == "Still down."
    assert rt.health("search").state == "open"


@virtual
async def test_c2_a_call_refused_while_a_probe_runs_is_half_open_too() -> None:
    handler = Listening()
    rt = Runtime(error_handler=handler)
    rt.add(Scripted(DOWN, Takes(1, "up")), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("search")
    await asyncio.sleep(30)
    probe, refused = await asyncio.gather(rt.call("search"), rt.call("search"))
    assert (probe.value, refused.status, handler.reports[-1].breaker_state) == ("up", "failed", "half_open")


# --- C7: the document's spelling of error codes (S-layers) ------------------------------------------------------------

THIRTEEN = (
    "Unavailable DeadlineExceeded Internal ResourceExhausted Unknown Aborted DataLoss "
    "InvalidArgument NotFound PermissionDenied Unauthenticated FailedPrecondition OutOfRange"
).split()


def test_c7_all_thirteen_codes_of_the_document() -> None:
    for name in THIRTEEN:
        code = getattr(failsoft.ErrorStatusCode, name)
        assert code is getattr(Code, name) is Code(name) is Code(f"ErrorStatusCode.{name}")
    assert failsoft.ErrorStatusCode.Unavailable is Code.UNAVAILABLE
    assert failsoft.ErrorStatusCode.DeadlineExceeded == "DEADLINE_EXCEEDED"
    assert len(Code) == 16  # aliases are no codes of their own


@virtual
async def test_c7_the_enum_in_a_block() -> None:
    code = failsoft.ErrorStatusCode
    handling = {"retries": [{"maxAttempts": 2, "handleErrors": [code.Unavailable, code.Internal]}]}
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="search", error_handling=handling)
    await rt.call("search")
    assert search.attempts == 2


# --- C5, C6: common circuit breaker, per-fallback override, both visible (S-layers, R41) ------------------------------

COMMON = {"minConsecutiveFailures": 2, "cooldownDuration": 30000}
OWN = {"minConsecutiveFailures": 3, "cooldownDuration": "20s"}


def layered(**handling: Any) -> Runtime:
    return Runtime({"tools": {"primary": {"errorHandling": {"retries": [], **handling}}}})


@virtual
async def test_c5_a_fallback_without_a_cooldown_goes_by_the_common_one() -> None:
    rt = layered(fallbacks=[{"nodeId": "own", "cooldown": OWN}, {"nodeId": "common"}], cooldown=COMMON)
    own, common = Scripted(DOWN), Scripted(DOWN)
    rt.add(Scripted(DOWN), id="primary")
    rt.add(own, id="own", retry=ONCE)
    rt.add(common, id="common", retry=ONCE)
    for _ in range(5):
        await rt.call("primary")
    assert (own.attempts, common.attempts) == (3, 2)
    assert rt.health("common", fallback_of="primary").state == "open"
    assert rt.health("common", fallback_of="primary").retry_after == pytest.approx(30)
    assert rt.health("own", fallback_of="primary").retry_after == pytest.approx(20)
    assert (rt.health("common").state, rt.health("own").state) == ("closed", "closed")
    await rt.call("common")  # called by its own name it is not cut off
    assert common.attempts == 3
    await asyncio.sleep(30)
    assert rt.health("common", fallback_of="primary").state == "half_open"
    await rt.call("primary")
    assert common.attempts == 4  # one attempt is allowed


@virtual
async def test_c5_fallbacks_of_two_primaries_have_circuits_of_their_own() -> None:
    handling = {"retries": [], "fallbacks": ["backup"], "cooldown": COMMON}
    rt = Runtime({"tools": {"one": {"errorHandling": handling}, "two": {"errorHandling": handling}}})
    backup = Scripted(DOWN)
    for id in ("one", "two"):
        rt.add(Scripted(DOWN), id=id)
    rt.add(backup, id="backup", retry=ONCE)
    for _ in range(3):
        await rt.call("one")
    assert rt.health("backup", fallback_of="one").state == "open"
    assert rt.health("backup", fallback_of="two").state == "closed"


@virtual
async def test_c5_a_breaker_is_not_common() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="primary", retry=ONCE, breaker={"failure_threshold": 2}, fallbacks=["backup"])
    rt.add(Scripted(DOWN), id="backup", retry=ONCE)
    for _ in range(5):
        await rt.call("primary")
    assert rt.health("backup") == rt.health("backup", fallback_of="primary")
    assert rt.health("backup").state == "open"


@virtual
async def test_c6_events_of_a_fallbacks_own_circuit_name_the_primary() -> None:
    rt = layered(fallbacks=[{"nodeId": "backup", "cooldown": OWN}], cooldown=COMMON)
    rt.add(Scripted(DOWN), id="primary")
    rt.add(Scripted(DOWN, DOWN, DOWN, "up"), id="backup", retry=ONCE)
    for _ in range(3):
        await rt.call("primary")
    await asyncio.sleep(20)
    await rt.call("primary")
    opened = records(rt, "CircuitOpened")
    assert [(one["tool_id"], one.get("primary"), one["code"]) for one in opened] == [
        ("primary", None, "UNAVAILABLE"),
        ("backup", "primary", "UNAVAILABLE"),
    ]
    assert [one["primary"] for one in records(rt, "CircuitHalfOpened")] == ["primary"]
    assert [one["primary"] for one in records(rt, "CircuitClosed")] == ["primary"]
    assert opened[1]["message"] == "Circuit breaker opened for backup"
    assert opened[1]["error"] == str(DOWN)


def test_c6_asking_for_the_health_of_a_tool_that_is_not_a_fallback_is_an_error() -> None:
    rt = Runtime()
    rt.add(Scripted(1), id="primary", fallbacks=["backup"])
    rt.add(Scripted(1), id="backup")
    with pytest.raises(failsoft.FailsoftError, match="other is not a fallback of primary: its fallbacks are backup"):
        rt.health("other", fallback_of="primary")
    with pytest.raises(failsoft.FailsoftError, match="backup is not a fallback of nowhere"):
        rt.health("backup", fallback_of="nowhere")


# --- C15: a fallback that does not exist (S-layers) -------------------------------------------------------------------


@virtual
async def test_c15_a_fallback_that_does_not_exist_is_named_where_it_is_needed(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry={"max_attempts": 2}, fallbacks=["backp", "second"], breaker=OFTEN)
    rt.add(Scripted("x"), id="second")
    with caplog.at_level("WARNING", "failsoft"):
        await rt.call("search", id="s")
        await rt.call("search")
    said = [record.getMessage() for record in caplog.records if "backp" in record.getMessage()]
    assert len([text for text in said if text.startswith("search: its fallback backp does not exist")]) == 1
    events = [record for record in records(rt, "ToolError") if record["call_id"] == "s"]
    assert [event.get("absent") for event in events] == [["backp"], ["backp"]]
    assert events[-1]["decision"] == "alternative_tool"
    assert "the fallback backp does not exist" in events[-1]["reason"]


@virtual
async def test_c15_the_operator_reads_it() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, fallbacks=["backp"], breaker={"failure_threshold": 1})
    ran, refused = await rt.call("search"), await rt.call("search")
    for outcome in (ran, refused):
        assert "the fallback backp does not exist" in outcome.explanation.operator
        assert "backp" not in outcome.explanation.user


@virtual
async def test_c15_tools_may_be_registered_in_any_order(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, fallbacks=["backup"])
    rt.add(Scripted("x"), id="backup")
    with caplog.at_level("WARNING", "failsoft"):
        outcome = await rt.call("search")
    assert (outcome.via, [record for record in caplog.records if "exist" in record.getMessage()]) == ("backup", [])


def test_c15_check_calls_it_an_error() -> None:
    manifest = load({"tools": {"search": {"read_only": True, "fallbacks": ["backp"]}, "backup": {"read_only": True}}})
    (problem,) = check(manifest)
    assert (problem.severity, problem.field) == ("error", "tools.search.fallbacks")
    assert "backp is not in the manifest; did you mean backup?" in problem.message


# --- C10: the signal "auth failures" (S-norm) -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["auth failures", "Auth failure", "repeated authentication failures", "auth failed"])
@pytest.mark.parametrize("make", [str, RuntimeError])
def test_c10_auth_failures_are_a_misconfigured_tool(make: Any, text: str) -> None:
    fault = classify(make(text))
    assert (fault.code, fault.category, fault.retryable) == ("UNAUTHENTICATED", "tool_misconfigured", False)


# --- C16: codes in running text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [str, RuntimeError])
@pytest.mark.parametrize("code", [code for code in Code if code != "UNKNOWN"])
def test_c16_the_code_that_is_written(make: Any, code: Code) -> None:
    titled = code.title().replace("_", "")
    for text in (
        code.value,
        f"rpc failed: {code.value}",
        f"the call failed with status {code.value}",
        f"ErrorStatusCode.{titled}",
        f"ErrorStatusCode.{titled}: the model service is gone",
        f"upstream returned {code.value}",
        f"{code.value}: something went wrong",
    ):
        assert classify(make(text)).code == code, text


def test_c16_ordinary_words_are_no_codes() -> None:
    for text in ("The internal combustion engine", "model INTERNAL_TOOLS", "an aborted landing of flight 3"):
        assert classify(text).code == "UNKNOWN" or classify(text).rule.startswith("phrase"), text


# --- C17: the handler decides about dependants that escalate (S-spec 6.1, S-tests 5.2) --------------------------------


class Deciding(Listening):
    """An Error Handler with its own opinion on skipped calls."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def handle(self, report: ErrorReport) -> Decision:
        decision = await super().handle(report)
        if report.fault.rule != "dependency_failed" or self.answer is None:
            return decision
        if isinstance(self.answer, Exception):
            raise self.answer
        return Decision(self.answer, "because")


@pytest.mark.parametrize(
    ("answer", "strategy", "reason"),
    [
        (None, "escalate", "Required tool skipped due to dependency failure"),
        ("escalate", "escalate", "because"),
        ("fail_gracefully", "fail_gracefully", "because"),
        ("retry", "escalate", "Required tool skipped due to dependency failure"),
        (RuntimeError("gone"), "escalate", "Required tool skipped due to dependency failure"),
    ],
)
@pytest.mark.parametrize("error", [INVALID, DOWN])
@virtual
async def test_c17_the_handler_is_asked_about_required_dependants(
    answer: Any, strategy: str, reason: str, error: Any
) -> None:
    handler = Deciding(answer)
    told: list[Any] = []
    rt = Runtime(error_handler=handler, on_escalation=told.append)
    rt.add(Scripted(error), id="flight_search", retry=ONCE)
    rt.add(Scripted("x"), id="compare_prices")
    rt.add(Scripted("x"), id="create_itinerary")
    async with rt.turn() as turn:
        flights = turn.call("flight_search", id="A")
        turn.call("compare_prices", {"of": flights}, id="B", required=False)
        turn.call("create_itinerary", {"of": flights}, id="C", required=True)
    await rt.flush()
    outcome = turn.report.outcomes["C"]
    asked = [report for report in handler.reports if report.fault.rule == "dependency_failed"]
    assert [(report.call_id, report.tool_id, report.required, report.attempt) for report in asked] == [
        ("C", "create_itinerary", True, 0)
    ]
    assert outcome.decision is not None
    assert (outcome.status, outcome.decision.strategy, outcome.decision.reason) == ("skipped", strategy, reason)
    assert outcome.escalated == (strategy == "escalate")
    assert [one.call_id for one in turn.report.escalations][1:] == (["C"] if strategy == "escalate" else [])
    assert [one.id for one in told] == [one.call_id for one in turn.report.escalations]
    (event,) = [record for record in records(turn.report, "CallSkipped") if record["call_id"] == "C"]
    assert event["message"] == "Required tool skipped due to dependency failure"
    assert (event["decision"], event["reason"], event["retry_count"]) == (strategy, reason, 0)
    assert event["classification"] == ("permanent" if error is INVALID else "transient")


@virtual
async def test_c17_a_turn_that_breaks_off_escalates_all_the_same() -> None:
    rt = Runtime(error_handler=Deciding("fail_gracefully"))
    rt.add(Scripted(INVALID), id="search")
    with pytest.raises(KeyError):
        async with rt.turn() as turn:
            found = turn.call("search", id="A")
            await turn.call("search", {"of": found}, id="B", required=True)
            raise KeyError
    assert turn.report.outcomes["B"].escalated
    assert len(records(turn.report, "CallSkipped")) == 1


# --- C1: every decision is recorded whole (S-spec 8.2) ----------------------------------------------------------------

WHOLE = {"error", "classification", "circuit_breaker_state", "retry_count", "decision", "timestamp", "tool_id"}


@pytest.mark.parametrize("how", ["by name", "with an id", "guarded", "sync", "careful"])
def test_c1_refusals_outside_of_turns_are_recorded_whole(how: str) -> None:
    rt = Runtime()

    async def search() -> None:
        raise DOWN

    def search_now() -> None:
        raise DOWN

    options: dict[str, Any] = {"retry": ONCE, "breaker": {"failure_threshold": 1}, "id": "search"}
    if how == "careful":
        options["idempotent"] = False
    guarded: Any = rt.add(search_now if how == "sync" else search, **options)

    async def call() -> Any:
        try:
            if how == "by name":
                return await rt.call("search")
            if how == "with an id":
                return await rt.call("search", id=f"mine-{len(records(rt))}")
            return guarded() if how == "sync" else await guarded()
        except failsoft.CallFailed as failed:
            return failed.outcome

    async def main() -> list[Any]:
        return [await call() for _ in range(4)]

    outcomes = asyncio.run(main())
    refusals = records(rt, "CallRefused")
    assert [record["call_id"] for record in refusals] == [outcome.id for outcome in outcomes[1:]]
    assert len({record["call_id"] for record in refusals}) == 3
    for record in refusals:
        assert set(record) >= WHOLE
        assert record["error"] == "Circuit breaker open for search after UNAVAILABLE"
        assert (record["classification"], record["retry_count"]) == ("transient", 0)
        assert (record["circuit_breaker_state"], record["decision"]) == ("open", "fail_gracefully")
        assert record["reason"] == "Transient error (circuit open); no alternative"
    assert rt.metrics("search")["refused_count"] == 3
    assert all(each.same for each in replay(records(rt)))


@virtual
async def test_c1_other_refusals_too() -> None:
    rt = Runtime()
    rt.add(FaultPlan("429(retry_after=60)").wrap(Scripted("x")), id="busy", retry=ONCE)
    rt.add(lambda a: a, id="picky")
    await rt.call("busy")
    refused = [await rt.call("busy"), await rt.call("nowhere"), await rt.call("picky", [1])]  # type: ignore[call-overload]
    refused.append(await rt.threads["chat"].retry("busy"))
    recorded = [record for record in records(rt) if record["event_type"] in ("CallRefused", "ToolError")][1:]
    assert [record["call_id"] for record in recorded] == [outcome.id for outcome in refused]
    for record in recorded:
        assert set(record) >= WHOLE


# --- C4: timeout_count (S-spec 8.1, R48) ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [TimeoutError("Read timed out"), RuntimeError("Connection timeout after 30s")])
@virtual
async def test_c4_timeouts_of_the_tools_own_client_are_counted(error: Exception) -> None:
    rt = Runtime()
    rt.add(Scripted(error, "x", error, error, "x"), id="search", breaker=OFTEN)
    for _ in range(2):  # the second call takes the short way
        await rt.call("search")
    assert rt.metrics("search")["timeout_count"] == 3
    assert [event["kind"] for event in records(rt, "ToolTimeout")] == ["client"] * 3
    assert [event["call_id"] for event in records(rt, "ToolTimeout")] == ["search-1", "search-2", "search-2"]


@virtual
async def test_c4_the_tools_own_timeout_is_counted_separately() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5)), id="search", timeout="1s", retry=ONCE)
    rt.add(Scripted(RuntimeError("504 Gateway Timeout"), DOWN), id="other", retry=ONCE)
    await rt.call("search")
    await rt.call("other")
    await rt.call("other")
    (event,) = records(rt, "ToolTimeout")
    assert (event["kind"], event["timeout_ms"], event["tool_id"]) == ("tool", 1000, "search")
    assert (rt.metrics("search")["timeout_count"], rt.metrics("other")["timeout_count"]) == (1, 0)


@virtual
async def test_c4_a_timeout_inside_is_counted_where_it_was() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5)), id="inner", timeout="1s", retry=ONCE)

    @rt.tool(retry=ONCE)
    async def outer() -> Any:
        return (await rt.call("inner")).unwrap()

    await rt.call("outer")
    assert (rt.metrics("inner")["timeout_count"], rt.metrics("outer")["timeout_count"]) == (1, 0)


# --- C3: "Tool doesn't exist or is disabled" (S-spec 1.2) -------------------------------------------------------------


@pytest.mark.parametrize("how", ["disable", "by function", "manifest", "before", "option"])
@virtual
async def test_c3_a_disabled_tool_is_unavailable(how: str) -> None:
    search = Scripted("x")
    rt = Runtime({"tools": {"search": {"enabled": False}}} if how == "manifest" else None)
    if how == "before":
        rt.disable("search", "maintenance")
    guarded = rt.add(search, id="search", **({"enabled": False} if how == "option" else {}))
    if how in ("disable", "by function"):
        await rt.call("search")
        rt.disable("search" if how == "disable" else guarded, "maintenance")
    before = search.attempts
    async with rt.turn() as turn:
        turn.call("search", id="t")
    for outcome in (await rt.call("search"), await rt.call("search", thread="chat"), turn.report.outcomes["t"]):
        assert outcome.fault is not None
        assert (outcome.status, outcome.attempts) == ("failed", 0)
        assert (outcome.fault.category, outcome.fault.classification) == ("tool_unavailable", "permanent")
        assert outcome.fault.rule == "tool_disabled"
        assert ("maintenance" in outcome.fault.message) == (how not in ("manifest", "option"))
        assert outcome.explanation.user == "This capability isn’t available in this deployment yet."
    with pytest.raises(failsoft.ToolUnavailable):
        await guarded()
    assert search.attempts == before
    assert not rt.health("search").available
    assert rt.threads["chat"].unavailable == ("search",)  # what adapters go by
    rt.enable("search")
    assert (await rt.call("search", thread="chat")).value == "x"
    assert rt.health("search").available
    assert rt.threads["chat"].unavailable == ()


@virtual
async def test_c3_a_disabled_tool_stays_disabled_when_it_is_registered_again() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search")
    rt.disable("search", "maintenance")
    rt.add(Scripted("y"), id="search")
    assert (await rt.call("search")).status == "failed"
    rt.enable("search")
    assert (await rt.call("search")).value == "y"


@virtual
async def test_c3_an_open_circuit_does_not_hide_it_and_retries_end() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="search", retry={"initial_delay": "1s", "max_delay": "1s"}, breaker={"failure_threshold": 9})
    call = asyncio.ensure_future(rt.call("search"))
    await asyncio.sleep(0.5)
    rt.disable("search", "maintenance")
    assert (await call).status == "failed"
    assert search.attempts == 1
    rt.add(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("down")
    rt.disable("down")
    refused = (await rt.call("down")).fault
    assert refused is not None
    assert refused.rule == "tool_disabled"


@virtual
async def test_c3_a_fallback_serves_but_the_tool_is_not_offered() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search", fallbacks=["backup"])
    rt.add(Scripted("y"), id="backup")
    rt.disable("search", "maintenance")
    assert (await rt.call("search")).via == "backup"
    assert rt.threads["chat"].unavailable == ("search",)
    rt.disable("backup", "maintenance")
    assert (await rt.call("search")).status == "failed"
    assert [record["tool_id"] for record in records(rt, "ToolDisabled")] == ["search", "backup"]


# --- C9: misconfigured, "Do not keep retrying" (S-norm, R47) ----------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    ["Authentication failed (401)", "missing api key", "You exceeded your current quota, check your billing details"],
)
@virtual
async def test_c9_a_misconfigured_tool_runs_once_in_a_thread_whatever_the_arguments(error: str) -> None:
    rt = Runtime()
    search = Scripted(RuntimeError(error))
    rt.add(search, id="search")
    outcomes = [await rt.call("search", {"q": number}, thread="chat") for number in range(8)]
    assert search.attempts == 1
    assert {outcome.explanation.user for outcome in outcomes} == {outcomes[0].explanation.user}
    for outcome in outcomes[1:]:
        assert outcome.fault is not None
        assert outcome.fault.category == "tool_misconfigured"
        assert "Do not call it again" in outcome.explanation.model
    await rt.call("search", thread="other")
    assert search.attempts == 2
    await asyncio.sleep(600)
    await rt.call("search", {"q": 9}, thread="chat")
    assert search.attempts == 3  # ten minutes later one call finds out


@pytest.mark.parametrize("how", ["register", "clear", "clear all", "success elsewhere"])
@virtual
async def test_c9_until_its_configuration_changes_or_it_is_reset(how: str) -> None:
    rt = Runtime()
    search = Scripted(RuntimeError("Authentication failed (401)"), "x")
    rt.add(search, id="search")
    rt.add(Scripted("y"), id="other")
    await rt.call("search", {"q": 1}, thread="chat")
    if how == "register":
        rt.add(search, id="search")
    elif how != "success elsewhere":
        rt.threads["chat"].clear(*(["search"] if how == "clear" else []))
    else:
        await rt.call("other", thread="chat")
    outcome = await rt.call("search", {"q": 2}, thread="chat")
    assert outcome.status == ("failed" if how == "success elsewhere" else "succeeded")


@virtual
async def test_c9_a_fallback_serves_meanwhile() -> None:
    rt = Runtime()
    search = Scripted(RuntimeError("Authentication failed (401)"))
    rt.add(search, id="search", fallbacks=["backup"])
    rt.add(Scripted("y"), id="backup")
    outcomes = [await rt.call("search", {"q": number}, thread="chat") for number in range(4)]
    assert ({outcome.value for outcome in outcomes}, search.attempts) == ({"y"}, 1)


@pytest.mark.parametrize(
    "error", ["403 Forbidden", "Name or service not known", "certificate verify failed", "No space left on device"]
)
@virtual
async def test_c9_other_faults_of_the_setup_answer_identical_arguments_only(error: str) -> None:
    rt = Runtime()
    search = Scripted(RuntimeError(error))
    rt.add(search, id="search")
    for number in (1, 1, 1, 2, 2, 1):
        await rt.call("search", {"q": number}, thread="chat")
    assert search.attempts == 2


@virtual
async def test_c9_an_explicit_list_of_retries_still_holds_within_a_call() -> None:
    rt = Runtime()
    search = Scripted(RuntimeError("Authentication failed (401)"), "x")
    retries = [{"maxAttempts": 2, "handleErrors": ["UNAUTHENTICATED"]}]
    rt.add(search, id="search", error_handling={"retries": retries})
    assert (await rt.call("search", thread="chat")).value == "x"
