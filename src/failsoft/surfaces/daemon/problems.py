"""Errors of the API: problem details (RFC 9457), the only form in which a request is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:failsoft:problem:"

TITLES: dict[int, tuple[str, str]] = {
    400: ("bad-request", "Bad request"),
    401: ("unauthorised", "Unauthorised"),
    403: ("forbidden", "Forbidden"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    408: ("request-timeout", "Request timeout"),
    409: ("conflict", "Conflict"),
    413: ("content-too-large", "Content too large"),
    415: ("unsupported-media-type", "Unsupported media type"),
    421: ("misdirected-request", "Misdirected request"),
    422: ("invalid-content", "Invalid content"),
    429: ("too-many-requests", "Too many requests"),
    500: ("internal-error", "Internal error"),
    503: ("unavailable", "Service unavailable"),
}


class Problem(Exception):
    """A request that is refused, with its status and the reason."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the problem details."""
        name, title = TITLES[self.status]
        data: dict[str, Any] = {
            "type": PREFIX + name, "title": title, "status": self.status, "detail": self.detail,
        }  # fmt: skip
        return {**data, "errors": [*self.errors]} if self.errors else data

    def encode(self) -> bytes:
        """Return the body of the answer."""
        return json.dumps(self.to_dict()).encode()

    def respond(self) -> Response:
        """Return the answer."""
        return Response(self.encode(), self.status, {**self.headers, "cache-control": "no-store"}, MEDIA_TYPE)


def find_nothing(what: str, id: str) -> Problem:
    """Make the problem for something that does not exist, or that the caller may not see."""
    return Problem(404, f"there is no {what} {id!r:.200}")
