"""Routes about the daemon itself: readiness, and its description."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from failsoft.surfaces.daemon.openapi import describe
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, RouteSpec

PATIENCE = 2.0  # seconds


async def get_ready(on: Exchange) -> Response:
    """Say whether the daemon takes reports: its store must confirm."""
    if on.daemon.stopping:
        raise Problem(503, "the daemon is stopping")
    try:
        async with asyncio.timeout(PATIENCE):
            await on.daemon.confirm()
    except TimeoutError:
        raise Problem(503, "the store does not answer") from None
    return JsonAnswer({"ready": True})


async def get_openapi(on: Exchange) -> Response:
    """Return the OpenAPI document."""
    return JsonAnswer(describe(on.daemon.routes))


ROUTES = (
    RouteSpec(
        method="GET", path="/readyz", role="read", handler=get_ready, tag="daemon", also=(503,),
        summary="Ask whether the daemon takes reports",
    ),
    RouteSpec(
        method="GET", path="/openapi.json", role="read", handler=get_openapi, tag="daemon",
        summary="Get this document",
    ),
)  # fmt: skip
