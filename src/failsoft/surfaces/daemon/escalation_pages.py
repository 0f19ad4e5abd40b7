"""Routes about escalations: what an operator must know about."""

from __future__ import annotations

from starlette.responses import Response

from failsoft.core.redact.sanitise import sanitise
from failsoft.surfaces.daemon.escalations import place_of
from failsoft.surfaces.daemon.messages import AcknowledgeRequest
from failsoft.surfaces.daemon.problems import Problem, find_nothing
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, Parameter, RouteSpec, read_number
from failsoft.surfaces.daemon.steering import TENANT, TOOL, named_tenant

LONGEST_PAGE = 1_000  # entries
STATES = {"open": False, "acknowledged": True, "all": None}
STATE = Parameter(
    name="state", about="Which ones. Default: open.", schema={"type": "string", "enum": [*STATES], "default": "open"}
)
LIMIT = Parameter(
    name="limit",
    about="How many, the latest ones. Default: 100. `total` counts all of them.",
    schema={"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE, "default": 100},
)
AFTER = Parameter(
    name="after",
    about="Only those that follow this one in the list: the id of the last entry of the page before.",
    schema={"type": "string", "minLength": 1, "maxLength": 200},
)


async def get_escalations(on: Exchange) -> Response:
    """List escalations, latest first."""
    query = on.request.query_params
    state = query.get("state", "open")
    if state not in STATES:
        raise Problem(400, f"state: expected one of {', '.join(STATES)}")
    found = on.daemon.escalations.entries(named_tenant(on), query.get("tool") or None, acknowledged=STATES[state])
    limit = read_number(on.request, "limit", 100, most=LONGEST_PAGE, least=1)
    total = len(found)
    if (after := query.get("after")) is not None:
        latest = on.daemon.escalations.find(after, named_tenant(on))
        if latest is None:
            raise Problem(400, f"after: there is no escalation {after!r:.200}: begin again without it")
        found = [entry for entry in found if place_of(entry) < place_of(latest)]
    return JsonAnswer({"escalations": found[:limit], "total": total, "more": len(found) > limit})


async def post_acknowledge(on: Exchange) -> Response:
    """Acknowledge an escalation. It is reopened when the same failure happens again."""
    body: AcknowledgeRequest = on.body
    note = sanitise(body.note)
    entry = on.daemon.escalations.acknowledge(on.id, on.grant.tenant, on.grant.name, note)
    if entry is None:
        raise find_nothing("escalation", on.id)
    on.daemon.audit.record(
        on.grant, "acknowledge", entry["id"], tenant=entry["tenant"], address=on.address, tool=entry["tool"], note=note
    )
    await on.daemon.confirm()
    return JsonAnswer(entry)


ROUTES = (
    RouteSpec(method="GET", path="/v1/escalations", role="read", handler=get_escalations, tag="escalations",
              summary="List what an operator must know about",
              about="One entry per tool, error code and sender, with a count and the latest call.",
              parameters=(STATE, LIMIT, AFTER, TOOL, TENANT)),
    RouteSpec(method="POST", path="/v1/escalations/{id:path}/acknowledge", role="operate", handler=post_acknowledge,
              tag="escalations", summary="Acknowledge an escalation",
              about="It is open again when the same happens once more.", body=AcknowledgeRequest),
)  # fmt: skip
