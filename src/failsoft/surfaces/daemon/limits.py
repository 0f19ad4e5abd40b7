"""Limits on requests: size, depth and media type of bodies, and the time in which they must arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request

from failsoft.core.redact.sanitise import sanitise
from failsoft.surfaces.daemon.body_mistakes import list_mistakes
from failsoft.surfaces.daemon.problems import Problem

T = TypeVar("T")

LARGEST_BODY: Final = 1_000_000  # bytes
DEEPEST: Final = 64  # levels of JSON
BODY_SECONDS: Final = 10.0
MOST_ERRORS: Final = 20  # mistakes named in one answer


async def read_body(request: Request) -> bytes:
    """Read a JSON body within the limits."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem(415, "send the body as application/json")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > LARGEST_BODY:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > LARGEST_BODY:
                    raise _too_large()
                parts.append(part)
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {BODY_SECONDS:g} s", headers={"connection": "close"}
        ) from None
    except ClientDisconnect:
        raise Problem(400, "the body is incomplete") from None
    body = b"".join(parts)
    if is_deep(body):
        raise Problem(422, f"the body is nested deeper than {DEEPEST} levels")
    return body


def _too_large() -> Problem:
    return Problem(413, f"the body is larger than {LARGEST_BODY} bytes", headers={"connection": "close"})


def is_deep(body: bytes) -> bool:
    """True if a JSON text is nested too deeply. Few texts have so many brackets that they must be looked through."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    depth, quoted, escaped = 0, False, False
    for char in body:
        if quoted:
            if escaped:
                escaped = False
            elif char == 0x5C:
                escaped = True
            elif char == 0x22:
                quoted = False
        elif char == 0x22:
            quoted = True
        elif char in (0x5B, 0x7B):
            depth += 1
            if depth > DEEPEST:
                return True
        elif char in (0x5D, 0x7D):
            depth -= 1
    return False


def refuse_repeated_keys(body: bytes) -> None:
    """Raise if an object of a JSON text has a key twice: readers differ in which of the values they take."""
    try:
        json.loads(body, object_pairs_hook=_refuse_repeated)
    except ValueError:  # not JSON: ``parse`` says where
        return


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            detail = sanitise(f"the key {name[:200]!r} is there more than once")
            raise Problem(422, "an object in the body has a key more than once", errors=[{"detail": detail}])
        seen.add(name)


def parse(adapter: TypeAdapter[T], body: bytes, models: Sequence[type[BaseModel]] = ()) -> T:
    """Parse and check a body of one of these forms; a mistake is named by its place, and its value is not repeated."""
    refuse_repeated_keys(body)
    try:
        return adapter.validate_json(body or b"null")
    except ValidationError as error:
        found = list_mistakes(error.errors(include_url=False, include_context=False, include_input=False), models)
        raise Problem(
            422,
            f"the body has {len(found)} mistakes" if len(found) > 1 else "the body has a mistake",
            errors=found[:MOST_ERRORS],
        ) from None
