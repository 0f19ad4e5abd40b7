"""The OpenAPI 3.1 document, made from the route table and the classes of ``messages``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import models_json_schema

from failsoft._version import __version__
from failsoft.surfaces.daemon.problems import MEDIA_TYPE, TITLES
from failsoft.surfaces.daemon.routes import RouteSpec

USUAL = (400, 401, 403, 421, 429, 503)  # problems of every route
WITH_BODY = (408, 413, 415, 422)
_CONVERTED = re.compile(r"\{(\w+):\w+\}")
_REF = "#/components/schemas/{model}"
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}


def describe(routes: Iterable[RouteSpec]) -> dict[str, Any]:
    """Make the document."""
    routes = list(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _CONVERTED.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    paths["/healthz"] = {
        "get": {
            "operationId": "get_healthz",
            "summary": "Ask whether the daemon runs",
            "tags": ["daemon"],
            "security": [],
            "responses": {
                "204": {"description": "It does."},
                **{str(status): _problem(status) for status in (403, 405, 421)},
            },
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "failsoft Error Handler",
            "version": __version__,
            "summary": "Decides what to do about errors of tools, and shows and steers them.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**_schemas(routes), "Problem": PROBLEM},
        },
    }


def _schemas(routes: list[RouteSpec]) -> dict[str, Any]:
    bodies = {model for route in routes for model in route.models}
    answers = {route.answer for route in routes if route.answer is not None}
    named = sorted(bodies, key=lambda model: model.__name__), sorted(answers, key=lambda model: model.__name__)
    _, made = models_json_schema(
        [*((model, "validation") for model in named[0]), *((model, "serialization") for model in named[1])],
        ref_template=_REF,
    )
    found: dict[str, Any] = made.get("$defs", {})
    return found


def _operation(route: RouteSpec) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "description": f"{route.about}\n\nRole: {route.role}.".strip(),
        "tags": [route.tag],
        "responses": _responses(route),
    }
    ids = re.findall(r"\{(\w+)", route.path)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in ids
    ]
    parameters += [
        {"name": each.name, "in": each.where, "description": each.about, "schema": each.schema}
        for each in route.parameters
    ]
    if parameters:
        made["parameters"] = parameters
    if models := route.models:
        schemas = [{"$ref": _REF.format(model=model.__name__)} for model in models]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _responses(route: RouteSpec) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if route.answer is not None:
        schema = {"$ref": _REF.format(model=route.answer.__name__)}
    content = {
        media: {"schema": schema if media == "application/json" else {"type": "string"}} for media in route.media
    }
    answer: dict[str, Any] = {"description": route.summary, "content": content}
    problems = {*USUAL, *(WITH_BODY if route.body is not None else ())}
    if "{" in route.path:
        problems.add(404)
    made = {str(route.status): answer}
    for status in sorted({*problems, *route.also}):
        made[str(status)] = {**answer, "description": "Accepted"} if status < 400 else _problem(status)
    return made


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model="Problem")}
    return {"description": TITLES[status][1], "content": {MEDIA_TYPE: {"schema": schema}}}
