"""Limits on requests: size, depth and media type of bodies, and the time in which they must arrive."""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request

from failsoft.core.redact.sanitise import sanitise
from failsoft.surfaces.daemon.body_mistakes import list_mistakes
from failsoft.surfaces.daemon.problems import Problem

T = TypeVar("T")

LARGEST_BODY: Final = 1_000_000  # bytes
DEEPEST: Final = 64  # levels of JSON
BODY_SECONDS: Final = 10.0
MOST_ERRORS: Final = 20  # mistakes named in one answer
_TEXTS: Final = re.compile(rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"?')  # also a text that never ends, in linear time
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one level deeper, one level up
_OTHERS: Final = bytes({*range(256)} - {*b"[{]}"})


async def read_body(request: Request) -> bytes:
    """Read a JSON body within the limits."""
    headers = dict(request.scope["headers"])
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media != b"application/json":
        raise Problem(415, "send the body as application/json")
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Problem(415, "send the body uncompressed", headers={"accept-encoding": "identity"})
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > LARGEST_BODY:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Problem(400, "the body is incomplete")
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
                size += len(parts[-1])
                if size > LARGEST_BODY:
                    raise _too_large()
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {BODY_SECONDS:g} s", headers={"connection": "close"}
        ) from None
    body = b"".join(parts)
    if is_deep(body):
        raise Problem(422, f"the body is nested deeper than {DEEPEST} levels")
    return body


def _too_large() -> Problem:
    return Problem(413, f"the body is larger than {LARGEST_BODY} bytes", headers={"connection": "close"})


def is_deep(body: bytes) -> bool:
    """True if a JSON text is nested too deeply. A loop in Python would block others for 200 ms: use none."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    steps = _TEXTS.sub(b"", body).translate(_STEPS, _OTHERS)
    return max(accumulate(array("b", steps)), default=0) > DEEPEST


def refuse_repeated_keys(body: bytes) -> None:
    """Raise if an object of a JSON text has a key twice: parsers differ in which value they keep."""
    try:
        _UNIQUE_KEYS.decode(body.decode())
    except ValueError:  # not JSON: ``parse`` says where
        return


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            detail = sanitise(f"the key {name[:200]!r} is given more than once")
            raise Problem(422, "an object in the body has a key more than once", errors=[{"detail": detail}])
        seen.add(name)


_UNIQUE_KEYS: Final = json.JSONDecoder(object_pairs_hook=_refuse_repeated)


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
