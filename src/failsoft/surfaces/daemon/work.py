"""Routes that run tools: calls and turns."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from failsoft.analysis.waterfall import build
from failsoft.analysis.why import explain_turn
from failsoft.config.manifest import load_plan
from failsoft.core.model.durations import Seconds
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import ManifestError
from failsoft.runtime.turn.plan_runner import refuse_lost_keys
from failsoft.surfaces.daemon.jobs import Job
from failsoft.surfaces.daemon.messages import CallRequest, JobAnswer, TurnRequest
from failsoft.surfaces.daemon.problems import Problem, find_nothing
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, Parameter, RouteSpec, read_number
from failsoft.surfaces.daemon.scoping import full_id, owner_of, scoped, tenant_for

MOST_EVENTS = 20_000  # in a trace
MOST_SUMMARISED = 500  # events per turn that are read for the list of turns


async def post_call(on: Exchange) -> Response:
    """Call a tool of the manifest."""
    body: CallRequest = on.body
    daemon, tenant = on.daemon, tenant_for(on.grant, body.tenant)
    if body.tool not in daemon.rt.tools:
        raise find_nothing("tool", body.tool)
    id = scoped(tenant, body.id or f"call-{secrets.token_hex(6)}")
    options: dict[str, Any] = {
        "id": id,
        "thread": body.thread,
        "tenant": tenant,
        "idempotency_key": body.idempotency_key,
    }
    if body.timeout is not None:
        options["timeout"] = Seconds(body.timeout)

    again = body.id is not None and await asyncio.to_thread(_may_repeat, daemon, id, body.tool, tenant)

    async def run() -> dict[str, Any]:
        if body.id is not None:
            daemon.used_ids.begin(id, body.tool)
        outcome = await daemon.rt.call(body.tool, body.args, **{k: v for k, v in options.items() if v is not None})
        if body.id is not None:
            daemon.used_ids.end(id, body.tool, outcome.status)
        daemon.escalations.note_outcome(tenant, outcome)
        data: dict[str, Any] = outcome.to_dict()
        return data

    job = daemon.jobs.start("call", id, run, again=again)
    daemon.audit.record(on.grant, "call", body.tool, tenant=tenant, address=on.address, call=id)
    return await _answer(on, job, body.wait, f"/v1/calls/{quote(id)}")


def _may_repeat(daemon: Any, id: str, tool: str, tenant: str | None) -> bool:
    """True if a call with a used id may run again, False if the id is new; raise for any other used id."""
    if daemon.jobs.find("call", id) is None and daemon.used_ids.find(id) is None:
        return False
    if daemon.used_ids.may_run(id, tool, tenant):
        return True
    raise Problem(409, f"there is a call {id!r:.200} already")


async def post_turn(on: Exchange) -> Response:
    """Run a plan."""
    body: TurnRequest = on.body
    daemon, tenant = on.daemon, tenant_for(on.grant, body.tenant)
    try:
        plan = load_plan(body.plan, name="plan")
        refuse_lost_keys(plan, daemon.services.toolbox.tools)
    except ManifestError as error:
        errors = [{"pointer": "/plan", "detail": sanitise(problem)} for problem in error.problems]
        raise Problem(422, "the plan has mistakes", errors=errors) from None
    if any(call.id is not None and call.id.startswith("@") for call in plan.calls):
        raise Problem(422, "ids of calls must not start with @, which is reserved for tenants")
    id = scoped(tenant, body.id or f"turn-{secrets.token_hex(6)}")
    if await asyncio.to_thread(lambda: daemon.store.read(limit=1, turn_id=id)):
        raise Problem(409, f"there is a turn {id!r:.200} already")
    timeout = None if plan.timeout is None else Seconds(plan.timeout)
    thread = plan.thread if body.thread is None else body.thread

    async def run() -> dict[str, Any]:
        async with daemon.rt.turn(
            timeout=timeout, thread=thread, tenant=tenant, id=id, max_calls=plan.max_calls,
            max_calls_per_tool=plan.max_calls_per_tool,
        ) as turn:  # fmt: skip
            turn.submit_plan(plan)
        for outcome in turn.report.outcomes.values():
            daemon.escalations.note_outcome(tenant, outcome, id)
        data: dict[str, Any] = turn.report.to_dict()
        del data["trace"]
        return data

    job = daemon.jobs.start("turn", id, run)
    daemon.audit.record(on.grant, "turn", id, tenant=tenant, address=on.address, turn_id=id)
    return await _answer(on, job, body.wait, f"/v1/turns/{quote(id)}")


async def _answer(on: Exchange, job: Job, wait: float, place: str) -> Response:
    """Answer with the result if it comes in time, else with its future address."""
    await on.daemon.jobs.wait(job, wait)
    await on.daemon.confirm()
    running = job.state == "running"
    return _json(_state(job), 202 if running else 200, {"location": place} if running else {})


def _state(job: Job) -> dict[str, Any]:
    name = "outcome" if job.kind == "call" else "report"
    return {"id": job.id, "state": job.state, name: job.result, **({"error": job.error} if job.error else {})}


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with values of tools, which may be any objects."""
    body = json.dumps(data, default=repr).encode()
    return Response(body, status, headers, "application/json")


def _find(on: Exchange, kind: Any) -> Job:
    id = full_id(on.grant, on.id)
    job: Job | None = on.daemon.jobs.find(kind, id)
    if job is None:
        raise find_nothing(kind, on.id)
    return job


async def get_call(on: Exchange) -> Response:
    """Return a call's state, and its outcome once it has ended. After a restart the outcome is not known."""
    id = full_id(on.grant, on.id)
    job = on.daemon.jobs.find("call", id)
    if job is None:
        known = await asyncio.to_thread(on.daemon.used_ids.find, id)
        if known is None:
            raise find_nothing("call", on.id)
        state = "interrupted" if known["status"] is None else "finished"
        return _json({"id": id, "state": state, "outcome": None, **known})
    await on.daemon.jobs.wait(job, read_number(on.request, "wait", 0, most=60))
    return _json(_state(job))


async def delete_call(on: Exchange) -> Response:
    """Cancel a call."""
    return await _cancel(on, _find(on, "call"))


async def delete_turn(on: Exchange) -> Response:
    """Cancel a turn and the calls in it."""
    return await _cancel(on, _find(on, "turn"))


async def _cancel(on: Exchange, job: Job) -> Response:
    cancelled = await on.daemon.jobs.cancel(job)
    if cancelled:
        on.daemon.audit.record(on.grant, "cancel", job.id, tenant=owner_of(job.id), address=on.address)
    await on.daemon.confirm()
    return _json({**_state(job), "cancelled": cancelled})


async def get_turns(on: Exchange) -> Response:
    """List the latest turns."""
    limit = read_number(on.request, "limit", 100, most=1_000, least=1)
    tenant = tenant_for(on.grant, on.request.query_params.get("tenant") or None)
    many = limit if tenant is None else 100_000
    ids = await asyncio.to_thread(on.daemon.store.turns, many)
    own = [id for id in ids if tenant is None or owner_of(id) == tenant][:limit]
    return JsonAnswer({"turns": await asyncio.to_thread(lambda: [_summarise(on, id) for id in own])})


def _summarise(on: Exchange, id: str) -> dict[str, Any]:
    """Return a turn's state, with the facts in its first and its last event."""
    trace = [event for _, event in on.daemon.store.read(limit=MOST_SUMMARISED, turn_id=id)]
    job = on.daemon.jobs.find("turn", id)
    ended = _find_event(trace, "TurnEnded")
    state = _state_by(trace) if job is None else job.state
    return {
        "id": id,
        "state": None if job is None and ended is None and len(trace) == MOST_SUMMARISED else state,
        "began": trace[0]["timestamp"] if trace else None,
        "thread": next((event["thread"] for event in trace if event.get("thread") is not None), None),
        "runtime": trace[0].get("runtime") if trace else None,
        **{name: None if ended is None else ended.get(name) for name in ("duration_ms", "calls", "succeeded")},
    }


def _find_event(trace: list[dict[str, Any]], event_type: str) -> dict[str, Any] | None:
    return next((event for event in trace if event["event_type"] == event_type), None)


def _state_by(trace: list[dict[str, Any]]) -> str:
    """Derive the state of a turn from its events, for a turn that this process does not run."""
    if _find_event(trace, "TurnEnded") is not None:
        return "finished"
    started = _find_event(trace, "TurnStarted")
    return "reported" if started is None or "runtime" in started else "interrupted"


async def get_turn(on: Exchange) -> Response:
    """Return a turn: its state, its report, its trace, its waterfall, and where its time went."""
    id = full_id(on.grant, on.id)
    job = on.daemon.jobs.find("turn", id)
    if job is not None:
        await on.daemon.jobs.wait(job, read_number(on.request, "wait", 0, most=60))
    trace = await _read_trace(on, id)
    if job is None and not trace:
        raise find_nothing("turn", on.id)
    data = {"id": id, "state": "", "report": None} if job is None else _state(job)
    if job is None:
        data["state"] = _state_by(trace)
    waterfall = build(trace, turn_id=id)
    why = explain_turn(id, trace, on.daemon.rt.memory.families(tenant=owner_of(id)))
    return _json({**data, "trace": trace, "waterfall": waterfall.to_dict(), "why": why.to_dict()})


async def _read_trace(on: Exchange, id: str) -> list[dict[str, Any]]:
    await on.daemon.commits.wait()
    rows = await asyncio.to_thread(lambda: on.daemon.store.read(limit=MOST_EVENTS, turn_id=id))
    return [event for _, event in rows]


async def get_running(on: Exchange) -> Response:
    """List the calls in flight."""
    tenant = tenant_for(on.grant, on.request.query_params.get("tenant") or None)
    calls = [
        call._asdict()
        for call in on.daemon.rt.running()
        if tenant is None or tenant == owner_of(call.turn_id or call.call_id)
    ]
    return JsonAnswer({"running": calls})


WAIT = Parameter(
    name="wait", about="Seconds to wait for the end.", schema={"type": "integer", "minimum": 0, "maximum": 60}
)
TENANT = Parameter(name="tenant", about="Only this tenant's.", schema={"type": "string", "minLength": 1})

ROUTES = (
    RouteSpec(
        method="POST", path="/v1/calls", role="operate", handler=post_call, tag="work", summary="Call a tool",
        about="A tool of the manifest. 202 with a place to poll if it takes longer than `wait`.",
        body=CallRequest, answer=JobAnswer, also=(202, 404, 409, 503),
    ),
    RouteSpec(
        method="GET", path="/v1/calls/{id:path}", role="read", handler=get_call, tag="work",
        summary="Get a call and its outcome", answer=JobAnswer, parameters=(WAIT,),
    ),
    RouteSpec(
        method="DELETE", path="/v1/calls/{id:path}", role="operate", handler=delete_call, tag="work",
        summary="Cancel a call", answer=JobAnswer,
    ),
    RouteSpec(
        method="POST", path="/v1/turns", role="operate", handler=post_turn, tag="work", summary="Run a plan as a turn",
        about="202 with a place to poll if it takes longer than `wait`; /v1/events?turn_id=… follows it.",
        body=TurnRequest, answer=JobAnswer, also=(202, 409, 503),
    ),
    RouteSpec(
        method="GET", path="/v1/turns", role="read", handler=get_turns, tag="work", summary="List the latest turns",
        parameters=(
            Parameter(name="limit", about="How many.", schema={"type": "integer", "minimum": 1, "maximum": 1000}), TENANT,
        ),
    ),
    RouteSpec(
        method="GET", path="/v1/turns/{id:path}", role="read", handler=get_turn, tag="work",
        summary="Get a turn with its trace and waterfall", answer=JobAnswer, parameters=(WAIT,),
    ),
    RouteSpec(
        method="DELETE", path="/v1/turns/{id:path}", role="operate", handler=delete_turn, tag="work",
        summary="Cancel a turn", answer=JobAnswer,
    ),
    RouteSpec(
        method="GET", path="/v1/running", role="read", handler=get_running, tag="work",
        summary="List the calls in flight", parameters=(TENANT,),
    ),
)  # fmt: skip
