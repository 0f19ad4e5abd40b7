"""The ASGI application: the route table behind the protections of ``access`` and ``limits``."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from failsoft.core.redact.sanitise import sanitise
from failsoft.surfaces.daemon import effect_ledger, escalation_pages, event_pages, health, reports, steering, work
from failsoft.surfaces.daemon.access import Access, AccessOptions
from failsoft.surfaces.daemon.body_mistakes import check_query
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.limits import parse, read_body
from failsoft.surfaces.daemon.problems import TITLES, Problem
from failsoft.surfaces.daemon.routes import Exchange, JsonAnswer, RouteSpec
from failsoft.surfaces.daemon.tokens import TokenBook

log = logging.getLogger("failsoft")

ROUTES: tuple[RouteSpec, ...] = (
    *reports.ROUTES,
    *event_pages.ROUTES,
    *work.ROUTES,
    *steering.ROUTES,
    *effect_ledger.ROUTES,
    *escalation_pages.ROUTES,
    *health.ROUTES,
)


def build_app(
    daemon: Daemon, tokens: TokenBook, options: AccessOptions | None = None, clock: Callable[[], float] = monotonic
) -> ASGIApp:
    """Make the application."""
    daemon.routes = ROUTES

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await daemon.close()

    by_path: dict[str, dict[str, RouteSpec]] = {}
    for spec in ROUTES:
        by_path.setdefault(spec.path, {})[spec.method] = spec
    ordered = sorted(by_path.items(), key=lambda item: item[0].endswith("{id:path}"))  # an id may contain slashes
    endpoints = {path: _Endpoint(daemon, specs) for path, specs in ordered}
    routes = [Route(path, endpoint, include_in_schema=False) for path, endpoint in endpoints.items()]
    router = Router(routes, redirect_slashes=False, default=_not_found, lifespan=lifespan)
    return Access(_ProblemAnswers(_FixedPaths(endpoints, router)), tokens, options or AccessOptions(), clock)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await Problem(404, "there is no such path").respond()(scope, receive, send)


class _Endpoint:
    """All methods of one path. The role is checked here, for the route that answers."""

    def __init__(self, daemon: Daemon, specs: dict[str, RouteSpec]) -> None:
        self._daemon = daemon
        self._specs = {method: (spec, spec.adapter) for method, spec in specs.items()}
        if "GET" in self._specs:
            self._specs["HEAD"] = self._specs["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._specs.get(scope["method"])
        if found is None:
            allowed = ", ".join(sorted(self._specs))
            raise Problem(405, f"allowed methods: {allowed}", headers={"allow": allowed})
        spec, adapter = found
        grant = scope["grant"]
        if not grant.allows(spec.role):
            raise Problem(403, f"this token does not have the role {spec.role}")
        request = Request(scope, receive, send)
        if (
            scope["query_string"]
            and spec.path.startswith("/v1/")
            and (mistake := check_query(request.query_params.multi_items(), spec.query)) is not None
        ):
            raise Problem(400, mistake)
        body: Any = None
        if adapter is not None:
            body = parse(adapter, await read_body(request), spec.models)
        if self._daemon.stopping:
            raise Problem(503, "the daemon is stopping", headers={"retry-after": "1", "connection": "close"})
        response: Response = await spec.handler(Exchange(self._daemon, request, body))
        if not isinstance(response, JsonAnswer):
            response.headers.setdefault("cache-control", "no-store")
            response.headers.setdefault("x-content-type-options", "nosniff")
        await response(scope, receive, send)


class _FixedPaths:
    """Finds paths without an id at once; the router tries one pattern after the other."""

    def __init__(self, endpoints: Mapping[str, ASGIApp], router: ASGIApp) -> None:
        self._fixed = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._fixed.get(scope["path"]) if scope["type"] == "http" else None
        await (endpoint or self._router)(scope, receive, send)


class _ProblemAnswers:
    """Turns every failure of a handler into problem details. No text of an unexpected error reaches the caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            await _as_problem(error).respond()(
                scope, receive, send
            )  # raises if an answer has begun: it cannot be completed


def _as_problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        status = error.status_code if error.status_code in TITLES else 400
        return Problem(status, sanitise(error.detail))
    log.error("the daemon failed to answer: %s", sanitise(f"{type(error).__name__}: {error}"))
    return Problem(500, "the daemon failed to answer; its log says why")
