"""The audit's group B: sentences of the documents that 0.1.0 kept only in part. One test at least for each row."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, TIMEOUT, Scripted, records, virtual

import failsoft
from failsoft import Decision, ErrorReport, Runtime

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


def test_b1_what_is_no_report_or_decision_is_refused() -> None:
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
