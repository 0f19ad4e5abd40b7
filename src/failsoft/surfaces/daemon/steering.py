"""Routes that show and steer tools: health, metrics, disable, enable, reset; threads, recovery memory."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from failsoft.core.redact.sanitise import sanitise
from failsoft.prometheus import exposition
from failsoft.runtime.registry import reset_health
from failsoft.surfaces.daemon.jobs import contain
from failsoft.surfaces.daemon.messages import DisableRequest, EmptyRequest, RetryRequest
from failsoft.surfaces.daemon.problems import Problem, find_nothing
from failsoft.surfaces.daemon.reported_tools import ReportedTool
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, Parameter, RouteSpec
from failsoft.surfaces.daemon.scoping import tenant_for

TENANT = Parameter(name="tenant", about="Only this tenant's.", schema={"type": "string", "minLength": 1})
TOOL = Parameter(name="tool", about="Only of this tool.", schema={"type": "string", "minLength": 1})


def named_tenant(on: Exchange) -> str | None:
    """The tenant that a request is about."""
    return tenant_for(on.grant, on.request.query_params.get("tenant") or None)


# --- tools ------------------------------------------------------------------------------------------------------------


def _list_tools(on: Exchange) -> list[dict[str, Any]]:
    """All tools that a caller may see. A tenant sees its own circuits and metrics, not those of others."""
    tenant = named_tenant(on)
    daemon = on.daemon
    tools: list[dict[str, Any]] = daemon.rt.inspect().to_dict()["tools"]
    own = {tool.id: tool for tool in daemon.book.tools(tenant)}
    if tenant is not None:
        tools = [{**tool, **_reported(own.pop(tool["id"], None))} for tool in tools]
    made = [{**tool, "in_manifest": True} for tool in tools]
    made += [{"id": tool.id, "in_manifest": False, **_reported(tool), **_availability(tool)} for tool in own.values()]
    return made


def _reported(tool: ReportedTool | None) -> dict[str, Any]:
    if tool is None:
        return {
            "circuit": None,
            "metrics": None,
            "retry_budget": None,
            "rate_holds": None,
            "running": None,
            "waiting": None,
        }
    return {
        "circuit": {"tool": tool.id, "fallback_of": None, "opened_by": None, **tool.circuit()},
        "metrics": tool.metrics.as_dict(),
        "retry_budget": None, "rate_holds": None, "running": None, "waiting": None,
    }  # fmt: skip


def _availability(tool: ReportedTool) -> dict[str, Any]:
    because = f"disabled: {tool.disabled}" if tool.disabled else "disabled"
    return {"available": not tool.is_disabled, "unavailable_because": because if tool.is_disabled else None}


async def get_tools(on: Exchange) -> Response:
    """List all tools with schema, health and metrics."""
    return JsonAnswer({"tools": _list_tools(on)})


async def get_tool(on: Exchange) -> Response:
    """Return one tool."""
    found = next((tool for tool in _list_tools(on) if tool["id"] == on.id), None)
    if found is None:
        raise find_nothing("tool", on.id)
    return JsonAnswer(found)


def _tool_to_steer(on: Exchange) -> ReportedTool | str:
    """Return a tool that only executors of the request's tenant have, or the id of a tool in the manifest."""
    tenant = named_tenant(on)
    if on.id in on.daemon.rt.tools:
        if tenant is not None:
            raise Problem(403, "all tenants share this tool: only an operator of all of them can steer it")
        return on.id
    found: ReportedTool | None = on.daemon.book.find(tenant, on.id)
    if found is None:
        raise find_nothing("tool", on.id)
    return found


async def _steered(on: Exchange, action: str, **details: Any) -> Response:
    on.daemon.audit.record(on.grant, action, on.id, tenant=named_tenant(on), address=on.address, **details)
    await on.daemon.confirm()
    return await get_tool(on)


async def post_disable(on: Exchange) -> Response:
    """Refuse calls of a tool, or advise executors elsewhere against repeating them."""
    tool = _tool_to_steer(on)
    reason = sanitise(on.body.reason)
    if isinstance(tool, str):
        on.daemon.disable(tool, reason)
    else:
        on.daemon.disable_reported(tool, reason)
    return await _steered(on, "disable", reason=reason)


async def post_enable(on: Exchange) -> Response:
    """Accept calls of a tool again."""
    tool = _tool_to_steer(on)
    if isinstance(tool, str):
        on.daemon.enable(tool)
    else:
        on.daemon.enable_reported(tool)
    return await _steered(on, "enable")


async def post_reset(on: Exchange) -> Response:
    """Close the circuit of a tool, fill its retry budget, and drop its rate holds."""
    tool = _tool_to_steer(on)
    if isinstance(tool, str):
        reset_health(on.daemon.services, tool)
    else:
        tool.reset()
    return await _steered(on, "reset")


# --- threads ----------------------------------------------------------------------------------------------------------


async def get_thread(on: Exchange) -> Response:
    """Return a conversation: retry offers, unanswered calls, unavailable tools."""
    thread = on.daemon.rt.threads(on.id, tenant=named_tenant(on))

    def look() -> dict[str, Any]:
        return {
            "thread": on.id,
            "offers": [
                {"tool": offer.tool, "when": offer.when, "explanation": offer.explanation.to_dict()}
                for offer in thread.offers
            ],
            "unanswered": [each.to_dict() for each in thread.dangling],
            "unavailable": list(thread.unavailable),
        }

    return JsonAnswer(await asyncio.to_thread(look))


async def post_retry(on: Exchange) -> Response:
    """Repeat an offered call, because the user has asked for it."""
    body: RetryRequest = on.body
    tenant = named_tenant(on)
    outcome = await contain(on.daemon.rt.threads(on.id, tenant=tenant).retry(body.tool))
    on.daemon.escalations.note_outcome(tenant, outcome)
    on.daemon.audit.record(on.grant, "retry", body.tool, tenant=tenant, address=on.address, thread=on.id)
    await on.daemon.confirm()
    return JsonAnswer(outcome.to_dict())


async def delete_thread(on: Exchange) -> Response:
    """Forget offers, loops and missing tools of a conversation."""
    tenant = named_tenant(on)
    await asyncio.to_thread(on.daemon.rt.threads(on.id, tenant=tenant).clear)
    on.daemon.audit.record(on.grant, "clear thread", on.id, tenant=tenant, address=on.address)
    await on.daemon.confirm()
    return JsonAnswer({"cleared": on.id})


# --- the recovery memory, runtimes elsewhere ---------------------------------------------------------------------------


async def get_memory(on: Exchange) -> Response:
    """Return the recovery memory: which strategies helped against which errors."""
    tool = on.request.query_params.get("tool") or None
    return JsonAnswer({"families": on.daemon.rt.memory.families(tenant=named_tenant(on), tool=tool)})


async def delete_memory(on: Exchange) -> Response:
    """Forget the recovery memory."""
    tool, tenant = on.request.query_params.get("tool") or None, named_tenant(on)
    forgotten = on.daemon.rt.memory.forget(tenant=tenant, tool=tool)
    on.daemon.audit.record(on.grant, "forget", tool or "all tools", tenant=tenant, address=on.address)
    await on.daemon.confirm()
    return JsonAnswer({"forgotten": forgotten})


async def get_runtimes(on: Exchange) -> Response:
    """List the remote runtimes that have sent events."""
    return JsonAnswer({"runtimes": on.daemon.inbox.runtimes(on.grant)})


async def get_status(on: Exchange) -> Response:
    """Return versions, subscribers, store and streams of the daemon."""
    if on.grant.tenant is not None:
        raise Problem(403, "a token that is bound to a tenant sees its own resources only")
    snapshot = on.daemon.rt.inspect().to_dict()
    names = ("at", "versions", "closed", "circuits", "subscribers", "store", "abandoned_threads", "processes")
    feed = on.daemon.feed
    streams = {"clients": feed.clients, "dropped": feed.dropped}
    return JsonAnswer({**{name: snapshot[name] for name in names}, "streams": streams})


async def get_metrics(on: Exchange) -> Response:
    """Return all metrics in Prometheus' format."""
    if on.grant.tenant is not None:
        raise Problem(403, "a token that is bound to a tenant sees its own resources only")
    text, media = exposition(on.daemon.rt, on.request.headers.get("accept", ""))
    return Response(text, headers={"content-type": media})


ROUTES = (
    RouteSpec(method="GET", path="/v1/tools", role="read", handler=get_tools, tag="tools", summary="List the tools",
              parameters=(TENANT,)),
    RouteSpec(method="POST", path="/v1/tools/{id:path}/disable", role="operate", handler=post_disable, tag="tools",
              summary="Disable a tool", body=DisableRequest,
              parameters=(TENANT,)),
    RouteSpec(method="POST", path="/v1/tools/{id:path}/enable", role="operate", handler=post_enable, tag="tools",
              summary="Enable a tool", body=EmptyRequest,
              parameters=(TENANT,)),
    RouteSpec(method="POST", path="/v1/tools/{id:path}/reset", role="operate", handler=post_reset, tag="tools",
              summary="Reset a tool's circuit, budget and rate holds", body=EmptyRequest,
              parameters=(TENANT,)),
    RouteSpec(method="GET", path="/v1/tools/{id:path}", role="read", handler=get_tool, tag="tools",
              summary="Get a tool with schema, health and metrics", parameters=(TENANT,)),
    RouteSpec(method="GET", path="/v1/threads/{id:path}", role="read", handler=get_thread, tag="threads",
              summary="Get a conversation", parameters=(TENANT,)),
    RouteSpec(method="POST", path="/v1/threads/{id:path}/retry", role="operate", handler=post_retry, tag="threads",
              summary="Repeat an offered call", body=RetryRequest, parameters=(TENANT,)),
    RouteSpec(method="DELETE", path="/v1/threads/{id:path}", role="operate", handler=delete_thread, tag="threads",
              summary="Forget a conversation's state", parameters=(TENANT,)),
    RouteSpec(method="GET", path="/v1/memory", role="read", handler=get_memory, tag="memory",
              summary="Get the recovery memory", parameters=(TOOL, TENANT)),
    RouteSpec(method="DELETE", path="/v1/memory", role="operate", handler=delete_memory, tag="memory",
              summary="Forget the recovery memory", parameters=(TOOL, TENANT)),
    RouteSpec(method="GET", path="/v1/runtimes", role="read", handler=get_runtimes, tag="runtimes",
              summary="List the runtimes elsewhere"),
    RouteSpec(method="GET", path="/v1/status", role="read", handler=get_status, tag="daemon",
              summary="Get the daemon's own state"),
    RouteSpec(method="GET", path="/metrics", role="read", handler=get_metrics, tag="daemon",
              summary="Get metrics for Prometheus", media=("text/plain",)),
)  # fmt: skip
