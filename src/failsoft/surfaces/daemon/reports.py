"""Routes for executors and runtimes elsewhere: errors, outcomes, events."""

from __future__ import annotations

from starlette.responses import Response

from failsoft.surfaces.daemon.messages import (
    DecisionAnswer,
    EventBatch,
    EventsAnswer,
    OutcomeAnswer,
    ReportedError,
    ReportedOutcome,
    ReportedReport,
)
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, RouteSpec
from failsoft.surfaces.daemon.scoping import tenant_for


async def post_error(on: Exchange) -> Response:
    """Decide about an error."""
    body: ReportedError | ReportedReport = on.body
    desk, grant = on.daemon.desk, on.grant
    if isinstance(body, ReportedReport):
        answer = desk.review(body.report, tenant_for(grant, body.report.tenant), grant.name)
    else:
        answer = desk.handle(body, tenant_for(grant, body.tenant), grant.name)
    await on.daemon.confirm()
    return JsonAnswer(answer)


async def post_outcome(on: Exchange) -> Response:
    """Count how a call ended."""
    body: ReportedOutcome = on.body
    answer = on.daemon.desk.conclude(body, tenant_for(on.grant, body.tenant), on.grant.name)
    await on.daemon.confirm()
    return JsonAnswer(answer)


async def post_events(on: Exchange) -> Response:
    """Store events of a runtime elsewhere."""
    body: EventBatch = on.body
    accepted = on.daemon.inbox.accept(body, on.grant)
    try:
        await on.daemon.confirm()
    except Problem:
        on.daemon.inbox.reject(body, on.grant)
        raise
    return JsonAnswer({"accepted": accepted})


ROUTES = (
    RouteSpec(
        method="POST", path="/v1/errors", role="report", handler=post_error, tag="reports",
        summary="Report an error and get the decision",
        about="The error as text or with its details, from any language; or a complete report of a failsoft runtime. The "
        "answer comes after the decision is recorded. A report that is sent again (same call_id, tool and attempt) is "
        "counted once. Report outcomes as well: a circuit that only hears of failures stays open for too long.",
        body=(ReportedError, ReportedReport), answer=DecisionAnswer,
    ),
    RouteSpec(
        method="POST", path="/v1/outcomes", role="report", handler=post_outcome, tag="reports",
        summary="Report how a call ended", about="Closes circuits, and feeds metrics, trace and recovery memory.",
        body=ReportedOutcome, answer=OutcomeAnswer,
    ),
    RouteSpec(
        method="POST", path="/v1/events", role="report", handler=post_events, tag="reports",
        summary="Store a batch of events", about="For runtimes elsewhere. The batch is stored as a whole, or refused.",
        body=EventBatch, answer=EventsAnswer,
    ),
)  # fmt: skip
