"""The description of a route, for the route table, the checks and the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json
from starlette.requests import Request
from starlette.responses import Response

from failsoft.core.model.json_values import plain
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.tokens import Role

Method = Literal["GET", "POST", "DELETE"]
Handler = Callable[[Any], Awaitable[Response]]  # gets an ``Exchange``


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A query parameter or a header."""

    name: str
    about: str
    schema: dict[str, Any]
    where: Literal["query", "header"] = "query"


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteSpec:
    """One method of one path."""

    method: Method
    path: str  # with {id:path} for ids
    role: Role
    handler: Handler
    summary: str
    about: str = ""
    body: type[BaseModel] | tuple[type[BaseModel], ...] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    also: tuple[int, ...] = ()  # further statuses besides the usual ones
    parameters: tuple[Parameter, ...] = ()
    media: tuple[str, ...] = ("application/json",)
    tag: str = ""

    @property
    def models(self) -> tuple[type[BaseModel], ...]:
        """The forms that the body may have; none if there is no body."""
        if self.body is None:
            return ()
        return self.body if isinstance(self.body, tuple) else (self.body,)

    @property
    def adapter(self) -> TypeAdapter[Any] | None:
        """Checks the body; None if there is none."""
        if not self.models:
            return None
        union: Any = self.models[0]
        for other in self.models[1:]:
            # A form that fits is taken at once: no other one can fit, because each refuses the fields of the others.
            union = Annotated[union | other, Field(union_mode="left_to_right")]
        return TypeAdapter(union)

    @property
    def query(self) -> tuple[str, ...]:
        """The names of the query's parameters."""
        return tuple(each.name for each in self.parameters if each.where == "query")


class JsonAnswer(Response):
    """An answer in JSON. The headers of all answers are in it, because most requests get one of these."""

    def __init__(self, content: Any, status_code: int = 200) -> None:
        self.status_code = status_code
        self.background = None
        self.body = _encode(content)
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), *_JSON_HEADERS]


def _encode(content: Any) -> bytes:
    try:
        return to_json(content, inf_nan_mode="null")
    except PydanticSerializationError:  # a value of a tool: half a surrogate pair, or any object
        return json.dumps(plain(content)).encode()


_JSON_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class Exchange:
    """A request on its way through a handler: its grant, its body, its ids."""

    __slots__ = ("body", "daemon", "grant", "request")

    def __init__(self, daemon: Any, request: Request, body: Any) -> None:
        self.daemon = daemon
        self.request = request
        self.body = body
        self.grant = request.scope["grant"]

    @property
    def id(self) -> str:
        """The id in the path."""
        found: str = self.request.path_params["id"]
        return found

    @property
    def address(self) -> str | None:
        """The address that the request came from."""
        client = self.request.scope.get("client")
        return None if client is None else str(client[0])


def read_number(request: Request, name: str, default: int, *, most: int = 2**53, least: int = 0) -> int:
    """Read a number from the query; raise if it is not one within the limits."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 17 and least <= int(given) <= most):
        raise Problem(400, f"{name}: expected a whole number from {least} to {most}")
    return int(given)
