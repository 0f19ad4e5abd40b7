"""Routes about writes whose effect is unknown."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from failsoft.core.model.errors import LedgerError
from failsoft.core.redact.sanitise import sanitise
from failsoft.surfaces.daemon.messages import ResolveRequest
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, RouteSpec
from failsoft.surfaces.daemon.steering import TENANT, TOOL, named_tenant

_STATUS = {"unknown_id": 404, "store": 503}


async def get_ledger(on: Exchange) -> Response:
    """List writes whose effect is unknown."""
    tool = on.request.query_params.get("tool") or None
    tenant = named_tenant(on)
    try:
        found = await asyncio.to_thread(lambda: on.daemon.rt.ledger.unknown(tenant=tenant, tool=tool))
    except LedgerError as error:
        raise _ledger_problem(error) from None
    return JsonAnswer({"unknown": [entry.to_dict() for entry in found]})


async def post_resolve(on: Exchange) -> Response:
    """Resolve a case: record whether the write happened."""
    body: ResolveRequest = on.body
    tenant, who = on.grant.tenant, on.grant.name
    try:
        entry = await asyncio.to_thread(
            lambda: on.daemon.rt.ledger.resolve(on.id, body.verdict, body.value, by=who, tenant=tenant)
        )
    except LedgerError as error:
        raise _ledger_problem(error) from None
    on.daemon.audit.record(
        on.grant, "resolve", entry.id, tenant=entry.tenant, address=on.address, verdict=body.verdict, tool=entry.tool
    )
    await on.daemon.confirm()
    return JsonAnswer(entry.to_dict())


def _ledger_problem(error: LedgerError) -> Problem:
    return Problem(_STATUS.get(error.problem, 409), sanitise(error))


ROUTES = (
    RouteSpec(method="GET", path="/v1/ledger", role="read", handler=get_ledger, tag="ledger",
              summary="List writes of unknown effect", parameters=(TOOL, TENANT)),
    RouteSpec(method="POST", path="/v1/ledger/{id:path}/resolve", role="operate", handler=post_resolve, tag="ledger",
              summary="Say what became of a write", body=ResolveRequest, also=(409,)),
)  # fmt: skip
