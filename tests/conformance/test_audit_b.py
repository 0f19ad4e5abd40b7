"""The audit's group B: sentences of the documents that 0.1.0 kept only in part. One test at least for each row."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel
from tests.fakes import DOWN, INVALID, ONCE, TIMEOUT, Scripted, Takes, records, virtual

import failsoft
from failsoft import Decision, ErrorReport, ManifestError, Runtime, classify
from failsoft.config.manifest import check, load, load_plan
from failsoft.core.explain.named_inputs import find_inputs

# --- B1: the Error Handler as a function (S-spec 6.1) -----------------------------------------------------------------


class Recording:
    """An Error Handler that decides as the built-in one does, from the report as JSON."""

    def __init__(self) -> None:
        self.reports: list[ErrorReport] = []

    async def handle(self, report: ErrorReport) -> Decision:
        self.reports.append(report)
        sent = json.loads(json.dumps(report.to_dict()))
        answer = failsoft.decide(ErrorReport.from_dict(sent))
        return Decision.from_dict(json.loads(json.dumps(answer.to_dict())))


@virtual
async def test_b1_a_remote_handler_decides_as_the_built_in_one() -> None:
    policies = [
        {"name": "patience", "when": {"tool": "mail", "attempt": 2}, "then": {"strategy": "retry", "delay": "3s"}},
        {"name": "words", "when": {"tool": "mail"}, "then": {"message": "Mail is slow."}},
    ]
    endings = []
    for handler in (Recording(), None):
        rt = Runtime(policies=policies, error_handler=handler)
        rt.add(Scripted(DOWN), id="search", fallbacks=["backup"])
        rt.add(Scripted(INVALID), id="backup")
        rt.add(Scripted(DOWN, DOWN, "sent"), id="mail", read_only=True)
        async with rt.turn(timeout="1m") as turn:
            turn.call("search", id="s")
            turn.call("mail", id="m", required=False)
        endings.append([
            (o.status, o.value, o.attempts, o.decision, o.escalated) for o in turn.report.outcomes.values()
        ])  # fmt: skip
    assert endings[0] == endings[1]


@virtual
async def test_b1_a_report_comes_back_from_its_plain_form() -> None:
    handler = Recording()
    rt = Runtime(error_handler=handler)
    rt.add(Scripted(DOWN, INVALID), id="search", fallbacks=["backup"])
    rt.add(Scripted("x"), id="backup")
    await rt.call("search", thread="t", tenant="acme")
    for report in handler.reports:
        back = ErrorReport.from_dict(report.to_dict())
        assert back == report._replace(fault=report.fault._replace(cause=None))
        assert failsoft.decide(back) == failsoft.decide(report)


def test_b1_invalid_reports_and_decisions_are_rejected() -> None:
    with pytest.raises(ValueError, match="fault"):
        ErrorReport.from_dict({"tool_id": "search"})
    with pytest.raises(ValueError, match="strategy: 'pray'"):
        Decision.from_dict({"strategy": "pray", "reason": ""})
    assert Decision.from_dict({"strategy": "retry", "reason": "r", "delay": 1.0}) == Decision("retry", "r", 1.0)


# --- B4: "Multiple fallbacks in priority order" (S-layers, R35) -------------------------------------------------------


async def fail_for_days(rt: Runtime, *, days: int) -> list[str | None]:
    served = []
    for _ in range(days * 4):
        outcome = await rt.call("search")
        served.append(outcome.via)
        await asyncio.sleep(6 * 3600)
    return served


def with_two_fallbacks(memory: Any, first: Scripted) -> Runtime:
    rt = Runtime(memory=memory)
    rt.add(Scripted(DOWN), id="search", retry=ONCE, fallbacks=["first", "second"])
    rt.add(first, id="first", retry=ONCE, breaker={"failure_threshold": 10_000})
    rt.add(Scripted("second"), id="second")
    return rt


@virtual
async def test_b4_fallbacks_are_asked_in_the_authors_order_whatever_the_memory_knows() -> None:
    first = Scripted(*[DOWN] * 20, "first")
    rt = with_two_fallbacks(None, first)
    served = await fail_for_days(rt, days=10)
    assert served == ["second"] * 20 + ["first"] * 20
    assert first.attempts == 40
    reasons = [record["reason"] for record in records(rt, "ToolError") if record["decision"] == "alternative_tool"]
    assert any("worked" in reason for reason in reasons)  # what is known is quoted


@virtual
async def test_b4_the_memory_reorders_only_with_act() -> None:
    first = Scripted(*[DOWN] * 20, "first")
    await fail_for_days(with_two_fallbacks("act", first), days=10)
    assert first.attempts < 30


# --- B9: `retries: []` (S-layers, R39) --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {"errorHandling": {"retries": []}},
        {"error_handling": {"retries": []}},
        {"retry": {"rules": []}},
    ],
)
@virtual
async def test_b9_an_empty_list_of_retries_means_no_retry(said: dict[str, Any]) -> None:
    for rt in (Runtime({"tools": {"search": said}}), Runtime()):
        search = Scripted(TIMEOUT)
        rt.add(search, id="search", **({} if rt._settings.tools else said))
        outcome = await rt.call("search")
        assert (outcome.attempts, search.attempts) == (1, 1)
        assert outcome.decision is not None
        assert "no retry rule lists DEADLINE_EXCEEDED" in outcome.decision.reason


@virtual
async def test_b9_a_fallback_may_have_none_either() -> None:
    rt = Runtime()
    backup = Scripted(TIMEOUT)
    chain = [{"nodeId": "backup", "errorHandling": {"retries": []}}]
    rt.add(Scripted(TIMEOUT), id="search", retry=ONCE, fallbacks=chain)
    rt.add(backup, id="backup")
    await rt.call("search")
    assert backup.attempts == 1


# --- B2: missing tools are graceful, in workflows too (S-norm, R34) ---------------------------------------------------

PLAN = {
    "calls": [
        {"id": "flights", "tool": "flight_search"},
        {"id": "hotels", "tool": "hotel_serch"},
        {"id": "compare", "tool": "compare_prices", "args": {"of": {"$ref": "hotels"}}},
        {"id": "weather", "tool": "weather"},
    ]
}


def travel(manifest: Any = None) -> Runtime:
    rt = Runtime(manifest)
    for id in ("flight_search", "hotel_search", "compare_prices", "weather"):
        rt.add(Scripted(id), id=id)
    return rt


@pytest.mark.parametrize("form", ["mapping", "text", "file"])
@virtual
async def test_b2_a_plan_with_an_unknown_tool_runs_the_rest(form: str) -> None:
    text = json.dumps(PLAN)
    path = Path(mkdtemp()) / "plan.json"
    path.write_text(text)
    report = await travel().run_plan({"mapping": PLAN, "text": text, "file": path}[form])
    outcome = report.outcomes["hotels"]
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.category, outcome.attempts) == ("failed", "tool_unavailable", 0)
    assert outcome.explanation.user == "This capability isn’t available in this deployment yet."
    assert "did you mean hotel_search?" in outcome.fault.message
    assert (report.outcomes["compare"].status, report.outcomes["compare"].root) == ("skipped", "hotels")
    assert report.results == {"flights": "flight_search", "weather": "weather"}
    assert [escalation.call_id for escalation in report.escalations] == ["hotels"]


@pytest.mark.parametrize(
    "wrong",
    [
        [{"id": "a", "tool": "weather", "depends_on": ["b"]}, {"id": "b", "tool": "weather", "depends_on": ["a"]}],
        [{"id": "a", "tool": "weather"}, {"id": "a", "tool": "weather"}],
        [{"id": "a", "tool": "weather", "depends_on": ["nowhere"]}],
        [{"id": "a", "tool": "weather", "args": {"x": {"$ref": "nowhere"}}}],
        [{"id": "a", "tool": "weather", "args": {"x": {"$ref": 3}}}],
    ],
)
@virtual
async def test_b2_a_plan_with_an_invalid_structure_is_rejected_as_a_whole(wrong: Any) -> None:
    ran = Scripted("x")
    rt = Runtime()
    rt.add(ran, id="weather")
    with pytest.raises(ManifestError):
        await rt.run_plan({"calls": [*wrong, {"id": "other", "tool": "weather"}]})
    assert ran.attempts == 0


def test_b2_check_reports_it_as_an_error(tmp_path: Path) -> None:
    tools = {id: {"read_only": True} for id in ("flight_search", "hotel_search", "compare_prices", "weather")}
    problems = check(load({"tools": tools}), load_plan(PLAN))
    assert [(problem.severity, problem.field) for problem in problems] == [("error", "calls[1].tool")]
    assert "did you mean hotel_search?" in problems[0].message


# --- B10: the printed templates (S-layers, R40) -----------------------------------------------------------------------

TRANSIENT = ["ErrorStatusCode.Unavailable", "ErrorStatusCode.DeadlineExceeded", "ErrorStatusCode.Internal"]
TEMPLATE_1 = {"retries": [{"maxAttempts": 3, "handleErrors": TRANSIENT}]}
TEMPLATE_2 = {"fallbacks": [{"nodeId": "fallback_completion", "handleErrors": TRANSIENT}]}


async def attempts_of(tool: Scripted, handling: dict[str, Any], *, executions: int, **more: Any) -> list[int]:
    """How often a failing tool runs in each of several executions."""
    rt = Runtime({"tools": {"completion": {"errorHandling": handling, **more}}})
    rt.add(tool, id="completion")
    rt.add(Scripted("from the fallback"), id="fallback_completion")
    counts = []
    for _ in range(executions):
        before = tool.attempts
        await rt.call("completion")
        counts.append(tool.attempts - before)
    return counts


@virtual
async def test_b10_template_1_retries_three_times_in_every_execution_until_the_threshold_of_executions() -> None:
    assert await attempts_of(Scripted(DOWN), TEMPLATE_1, executions=7) == [3, 3, 3, 3, 3, 0, 0]


@virtual
async def test_b10_template_2_keeps_the_default_retries_in_every_execution() -> None:
    assert await attempts_of(Scripted(DOWN), TEMPLATE_2, executions=7) == [5, 5, 5, 5, 5, 0, 0]


@virtual
async def test_b10_an_explicit_breaker_wins() -> None:
    said = {"breaker": {"failure_threshold": 5}}
    assert await attempts_of(Scripted(DOWN), TEMPLATE_1, executions=3, **said) == [3, 2, 0]
    rt = Runtime({"defaults": said, "tools": {"completion": {"errorHandling": TEMPLATE_1}}})
    rt.add(tool := Scripted(DOWN), id="completion")
    for _ in range(3):
        await rt.call("completion")
    assert tool.attempts == 5


@virtual
async def test_b10_the_same_block_in_python() -> None:
    tool = Scripted(DOWN)
    rt = Runtime()
    rt.add(tool, id="completion", errorHandling=TEMPLATE_1)  # type: ignore[call-arg]
    for _ in range(7):
        await rt.call("completion")
    assert tool.attempts == 15


# --- B5: Aborted and OutOfRange in words (S-layers, R43) --------------------------------------------------------------


@pytest.mark.parametrize("make", [str, RuntimeError, OSError])
@pytest.mark.parametrize(
    ("text", "code", "retryable"),
    [
        ("Operation aborted", "ABORTED", True),
        ("The operation was aborted", "ABORTED", True),
        ("request aborted by server", "ABORTED", True),
        ("aborted by server", "ABORTED", True),
        ("Aborted: too much contention", "ABORTED", True),
        ("Value out of range", "OUT_OF_RANGE", False),
        ("value is out of range: 300", "OUT_OF_RANGE", False),
        ("cancelled by the caller", "CANCELLED", False),
        ("aborted by the user", "CANCELLED", False),
        ("CANCELLED", "CANCELLED", False),
    ],
)
def test_b5_aborted_and_out_of_range_in_words(make: Any, text: str, code: str, retryable: bool) -> None:
    fault = classify(make(text))
    assert (fault.code, fault.retryable) == (code, retryable)


# --- B7: "Ask for the missing/invalid input explicitly" (S-norm, R46) -------------------------------------------------

NAMING_CITY = [
    "missing required field: city",
    "Missing required argument: 'city'",
    "Missing input: city",
    "Missing required query parameter: city",
    "field 'city' is required",
    "Parameter 'city' is missing",
    "The city field is required.",
    "city is required",
    "city must be a string",
    "'city' must not be empty",
    "city cannot be null",
    "city: field required",
    "city: this field is required",
    "'city' is a required property",
    "must have required property 'city'",
    "data.city must be string",
    "Invalid value for parameter 'city'",
    "Invalid city: Atlantis",
    "No city provided",
    "You must provide a valid city.",
]


@pytest.mark.parametrize("text", NAMING_CITY)
@virtual
async def test_b7_the_input_is_named_wherever_the_error_names_it(text: str) -> None:
    rt = Runtime()
    rt.add(Scripted(ValueError(text)), id="weather")
    async with rt.turn() as turn:
        turn.call("weather", id="w")
    outcome = turn.report.outcomes["w"]
    assert outcome.explanation.user == "For weather I need a valid city."
    assert "correct city" in outcome.explanation.model
    assert turn.report.message == "Weather failed. For weather I need a valid city."


@virtual
async def test_b7_all_fields_of_a_pydantic_error() -> None:
    class Address(BaseModel):
        zip_code: int

    class Trip(BaseModel):
        city: str
        days: int
        address: Address

    rt = Runtime()
    rt.add(lambda trip: Trip.model_validate(trip), id="plan")
    outcome = await rt.call("plan", {"trip": {"days": "many", "address": {}}})
    assert outcome.explanation.user == "For plan I need a valid city, days and address.zip code."


@pytest.mark.parametrize(
    ("value", "named"),
    [({}, "city"), ({"city": 3}, "city"), ({"city": "x", "guests": [{"age": "old"}]}, "guests.0.age")],
)
@virtual
async def test_b7_jsonschemas_required_and_path(value: Any, named: str) -> None:
    guests = {"type": "array", "items": {"properties": {"age": {"type": "integer"}}}}
    schema = {"required": ["city"], "properties": {"city": {"type": "string"}, "guests": guests}}
    rt = Runtime()
    rt.add(lambda: jsonschema.validate(value, schema), id="weather")
    outcome = await rt.call("weather")
    assert outcome.explanation.user == f"For weather I need a valid {named}."


@pytest.mark.parametrize("text", ["Invalid input", "invalid argument", "Bad request", "value must be positive"])
def test_b7_an_error_that_names_no_input_asks_for_none(text: str) -> None:
    assert find_inputs(text) == ()


# --- B6: "Measure error recovery times" (S-layers) --------------------------------------------------------------------


@virtual
async def test_b6_recovery_seconds_counts_recoveries_by_fallback() -> None:
    rt = Runtime()
    slow = {"max_attempts": 2, "initial_delay": "1s", "max_delay": "1s", "jitter_percent": 0}
    rt.add(Scripted(DOWN), id="search", retry=slow, fallbacks=["backup"], breaker={"failure_threshold": 100})
    rt.add(Scripted(Takes(2, "x")), id="backup")
    await rt.call("search")
    assert rt.metrics("search")["recovery_seconds"] == pytest.approx(3)  # one second of backoff, two of the fallback
    assert rt.metrics("search")["retry_success_rate"] == 0
    assert rt.metrics("backup")["recovery_seconds"] is None


@virtual
async def test_b6_recovery_seconds_counts_recoveries_by_a_circuit_that_closes() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, DOWN, "up"), id="search", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    await rt.call("search")
    await asyncio.sleep(10)
    await rt.call("search")  # a probe that fails does not begin anew
    await asyncio.sleep(15)
    await rt.call("search")
    (closed,) = records(rt, "CircuitClosed")
    assert closed["recovery_ms"] == 25_000
    assert rt.metrics("search")["recovery_seconds"] == pytest.approx(25)
    assert rt.metrics("search")["retry_success_rate"] is None


@virtual
async def test_b6_recovery_seconds_is_the_mean_of_all_kinds() -> None:
    rt = Runtime()
    rt.add(
        Scripted(DOWN, "x", DOWN), id="search", retry={"initial_delay": "1s", "max_delay": "1s", "jitter_percent": 0}
    )
    await rt.call("search")
    assert rt.metrics("search")["recovery_seconds"] == pytest.approx(1)
    assert rt.metrics("search")["retry_success_rate"] == 100
