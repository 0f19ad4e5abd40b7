"""The audit's group C: smaller differences from the documents. One test at least for each row."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, records, virtual

import failsoft
from failsoft import Code, Decision, ErrorReport, Runtime

# --- C2: the state half-open is an input (S-spec 6.2, R42) ------------------------------------------------------------


class Listening:
    """An Error Handler that notes what it is asked and decides as the built-in one."""

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
