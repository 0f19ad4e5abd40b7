"""Routes for readers of events: pages, and a stream."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from failsoft.analysis.source import EventFilter
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.redact.printable import quote
from failsoft.observe import events
from failsoft.surfaces.daemon.event_stream import MEDIA_TYPE, EventStream, accepts_gzip
from failsoft.surfaces.daemon.feed import MOST_CLIENTS, MOST_EVENTS, Positioned, Wanted
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, Parameter, RouteSpec, read_number
from failsoft.surfaces.daemon.scoping import full_id, tenant_for

EVENT_TYPES = frozenset(value for name, value in vars(events).items() if name.isupper() and isinstance(value, str))
LONGEST_PAGE = 1_000  # events
MOST_READ = 20_000  # events read for one page
_TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
_POSITION = {"type": "integer", "minimum": 0, "maximum": 2**53}
FILTERS = (
    Parameter(name="turn_id", about="Only events of this turn.", schema=_TEXT),
    Parameter(name="call_id", about="Only events of this call.", schema=_TEXT),
    Parameter(name="tool", about="Only events of this tool.", schema=_TEXT),
    Parameter(name="type", about="Only events of these types, separated by commas.", schema=_TEXT),
    Parameter(name="runtime", about="Only events of this runtime elsewhere.", schema=_TEXT),
    Parameter(name="tenant", about="Only events of this tenant.", schema=_TEXT),
)


def read_wanted(on: Exchange) -> Wanted:
    """Read the filters of a request."""
    query = on.request.query_params

    turn_id, call_id = (query.get(name) or None for name in ("turn_id", "call_id"))
    types = query.get("type")
    for name in types.split(",") if types else ():
        if name not in EVENT_TYPES and (hint := did_you_mean(name, EVENT_TYPES)):  # newer runtimes may have other types
            raise Problem(400, f"type: there is no event {quote(name)}{hint}")
    only = EventFilter(
        None if turn_id is None else full_id(on.grant, turn_id),
        None,
        query.get("tool") or None,
        None if not types else frozenset(types.split(",")),
    )
    tenant = tenant_for(on.grant, query.get("tenant") or None)
    # the ids of calls in a turn have no tenant's prefix: the turn's id has it
    calls = None if call_id is None else frozenset({call_id, full_id(on.grant, call_id)})
    return Wanted(only, tenant, query.get("runtime") or None, calls)


async def get_events(on: Exchange) -> Response:
    """Return a page of events, or a stream if the client accepts one."""
    wanted = read_wanted(on)
    if MEDIA_TYPE in on.request.headers.get("accept", "") and on.request.method == "GET":
        return _stream(on, wanted)
    limit = read_number(on.request, "limit", 100, most=LONGEST_PAGE, least=1)
    after = read_number(on.request, "after", 0)
    last = read_number(on.request, "last", 0, most=LONGEST_PAGE)
    feed = on.daemon.feed
    if last:
        after = max(0, await feed.latest() - last)
    found, position, more = await _collect(feed, wanted, after, limit)
    return JsonAnswer({"events": [{"id": at, **event} for at, event in found], "next": position, "more": more})


async def _collect(feed: Any, wanted: Wanted, after: int, limit: int) -> tuple[list[Positioned], int, bool]:
    """Read until the page is full, the events end, or ``MOST_READ`` events were read."""
    found: list[Positioned] = []
    position = after
    for _ in range(MOST_READ // MOST_EVENTS):
        rows = await feed.read(position, MOST_EVENTS)
        for at, event in rows:
            position = at
            if wanted.matches(event):
                found.append((at, event))
                if len(found) == limit:
                    return found, position, at != rows[-1][0] or len(rows) == MOST_EVENTS
        if len(rows) < MOST_EVENTS:
            return found, position, False
    return found, position, True


def _stream(on: Exchange, wanted: Wanted) -> Response:
    feed = on.daemon.feed
    if not feed.make_room(on.grant.name):
        raise Problem(503, f"there are {MOST_CLIENTS} streams already", headers={"retry-after": "10"})
    gzip = accepts_gzip(on.request.headers.get("accept-encoding", ""))
    is_granted = on.request.scope["is_granted"]
    return EventStream(
        feed.stream(wanted, _resume_after(on.request), is_granted, gzip=gzip, owner=on.grant.name), gzip=gzip
    )


def _resume_after(request: Request) -> int | None:
    given = request.headers.get("last-event-id")
    if given is not None:
        if not (given.isascii() and given.isdecimal() and len(given) < 17):
            raise Problem(400, "Last-Event-ID is not an id of this stream")
        return int(given)
    return read_number(request, "after", 0) if "after" in request.query_params else None


ROUTES = (
    RouteSpec(
        method="GET", path="/v1/events", role="read", handler=get_events, tag="events",
        summary="Read events, or follow them",
        about="JSON by default: a page of events, oldest first; `next` is the position to continue after. With `Accept: "
        "text/event-stream` a stream of batches: each message has a JSON array of events, and an id to resume after. A "
        "client that is too slow gets the message `dropped`, and may resume; at the end of the daemon it gets `end`.",
        parameters=(
            Parameter(name="after", about="Only events after this position.", schema=_POSITION),
            Parameter(name="limit", about="Events of a page.", schema={"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE}),
            Parameter(name="last", about="Start this many events before the latest one.", schema={"type": "integer", "minimum": 0, "maximum": LONGEST_PAGE}),
            *FILTERS,
        ),
        media=("application/json", MEDIA_TYPE), also=(400, 503),
    ),
)  # fmt: skip
