"""Connections to the daemon: its address, the token, and one request with a deadline.

Rules
-----
- The token travels in a header only. It is given, or read from the variable FAILSOFT_TOKEN, or from the file that
  FAILSOFT_TOKEN_FILE names.
- Redirects are not followed: they would carry the token along. Proxy settings in the environment are ignored.
- A whole request has one deadline, however its answer arrives (see ``deadlines``). Answers are limited in size, and are
  not decompressed.
- Cookies are not kept.
- Error messages never contain the token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from failsoft.client.deadlines import within
from failsoft.core.model.durations import Duration, seconds
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import FailsoftError, ManifestError

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("failsoft")

LARGEST_ANSWER = 8_000_000  # bytes
_SHOWN = 300  # characters of an answer that is not a problem document


class DaemonError(FailsoftError):
    """The daemon refused a request, or its answer is invalid."""

    def __init__(self, message: str, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})  # the daemon's problem document (RFC 9457)


class DaemonUnavailable(DaemonError):
    """The daemon could not be reached, or did not answer in time."""


class Request(NamedTuple):
    """One request."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] | None = None


class Address(NamedTuple):
    """The address of a daemon."""

    url: str  # without a trailing slash
    host: str  # with the port, for messages


def read_address(url: str, where: str) -> Address:
    """Check the address of a daemon; ``where`` names the option in the error message."""
    wanted = "give the address of a daemon, like https://failsoft.example:8585"
    if not isinstance(url, str):
        raise ManifestError(f"{where}: {url!r:.80} is not an address: {wanted}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ManifestError(f"{where}: {sanitise(url)!r:.80} is not an address ({error}): {wanted}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ManifestError(f"{where}: {sanitise(url)!r:.80} does not start with https:// or http://: {wanted}")
    if parts.username or parts.password:
        raise ManifestError(f"{where}: a token or password in an address ends up in logs: set FAILSOFT_TOKEN instead")
    if parts.query or parts.fragment:
        raise ManifestError(f"{where}: {sanitise(url)!r:.80} has a query or a fragment: {wanted}")
    if "/v1" in parts.path:
        base = sanitise(url[: url.index("/v1")])
        raise ManifestError(f"{where}: {sanitise(url)!r:.80} is the address of a route: write {base!r:.80}")
    host = parts.hostname if port is None else f"{parts.hostname}:{port}"
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        log.warning(
            "%s: the token goes to %s in clear text: write https://, or use a proxy that speaks TLS", where, host
        )
    return Address(url.rstrip("/"), host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_timeout(timeout: Duration) -> float:
    """Read the option ``timeout`` of a client, in seconds."""
    try:
        return seconds(timeout)
    except ValueError as error:
        raise ManifestError(f"timeout: {error}") from None


def find_token(given: str | None) -> str:
    """Return the given token, or the one in the environment."""
    if given is not None and not isinstance(given, str):
        raise ManifestError(f"token: expected the daemon's token as a text, got {type(given).__name__}")
    token = given or os.environ.get("FAILSOFT_TOKEN")
    if not token and (path := os.environ.get("FAILSOFT_TOKEN_FILE")):
        try:
            token = _read_token_file(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise ManifestError(f"FAILSOFT_TOKEN_FILE: {path} has no token ({type(error).__name__})") from None
    if not token:
        raise ManifestError(
            "the daemon needs a token: set FAILSOFT_TOKEN or FAILSOFT_TOKEN_FILE, or give token=… to a client "
            "(failsoft token add makes one)"
        )
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ManifestError("the daemon's token has characters that no header can carry")
    return token


def _read_token_file(text: str) -> str:
    """Return the token in a file: the file's text, or the first token of a daemon's own token file."""
    if not text.lstrip().startswith("{"):
        return text.strip()
    return str(json.loads(text)["tokens"][0]["token"])


def http_options(address: Address, token: str, timeout: float) -> dict[str, Any]:
    """The arguments of an httpx client, sync or async."""
    try:
        import httpx
    except ImportError:
        raise FailsoftError('the client of the daemon needs httpx: pip install "failsoft[client]"') from None
    return {
        "base_url": address.url,
        "headers": {
            "authorization": f"Bearer {token}",
            "accept": "application/json",
            "accept-encoding": "identity",  # a small compressed answer could take all memory
        },
        "timeout": httpx.Timeout(timeout),
        "follow_redirects": False,
        "trust_env": False,
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # a daemon could set more with every answer
        "limits": httpx.Limits(max_connections=16, max_keepalive_connections=8, keepalive_expiry=30.0),
    }


@contextmanager
def translate() -> Iterator[None]:
    """Turn errors of the connection into ``DaemonUnavailable``."""
    import httpx

    try:
        yield
    except httpx.TimeoutException as error:
        raise DaemonUnavailable(f"no answer in time ({type(error).__name__})") from None
    except httpx.HTTPError as error:
        raise DaemonUnavailable(sanitise(f"{type(error).__name__}: {error}")) from None


class Body:
    """The parts of an answer, limited in size and time."""

    def __init__(self, deadline: float, largest: int = LARGEST_ANSWER) -> None:
        self._deadline = deadline
        self._left = largest
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        """Add a part; raise if the answer takes too long, or is too large."""
        self._parts.append(part)
        self._left -= len(part)
        if time.monotonic() > self._deadline:
            raise DaemonUnavailable("no whole answer in time")
        if self._left < 0:
            raise DaemonError("the answer is too large")

    def read(self) -> bytes:
        """Return the whole answer."""
        return b"".join(self._parts)


def _arguments(request: Request, timeout: float) -> dict[str, Any]:
    content = None if request.body is None else json.dumps(request.body, allow_nan=False).encode()
    headers = {} if request.body is None else {"content-type": "application/json"}
    params = dict(request.query or {})
    return {
        "method": request.method,
        "url": request.path,
        "content": content,
        "params": params,
        "headers": headers,
        "timeout": timeout,
    }


def send(client: httpx.Client, request: Request, timeout: float) -> Any:
    """Send a request and return the JSON answer, all of it within ``timeout`` seconds."""
    return send_until(client, request, time.monotonic() + timeout)


def send_until(client: httpx.Client, request: Request, deadline: float, largest: int = LARGEST_ANSWER) -> Any:
    """``send`` with a deadline by the monotonic clock, and a limit to the size of the answer."""
    body = Body(deadline, largest)
    with translate(), within(deadline) as allowed:
        timeout = max(0.0, deadline - time.monotonic())
        with client.stream(**_arguments(request, timeout)) as answer:
            allowed.begin_body()
            for part in answer.iter_raw():
                body.add(part)
            return read_answer(answer.status_code, body.read())


async def send_async(client: httpx.AsyncClient, request: Request, limit: float) -> Any:
    """``send`` for an event loop; ``limit`` is its timeout."""
    deadline = time.monotonic() + limit
    body = Body(deadline)
    with translate(), within(deadline) as allowed:
        try:
            async with asyncio.timeout(limit), client.stream(**_arguments(request, limit)) as answer:
                allowed.begin_body()
                async for part in answer.aiter_raw():
                    body.add(part)
                return read_answer(answer.status_code, body.read())
        except TimeoutError:
            raise DaemonUnavailable(f"no whole answer within {limit:g} s") from None


def read_answer(status: int, content: bytes) -> Any:
    """Return the JSON value of an answer; raise ``DaemonError`` for any other answer."""
    try:
        value = json.loads(content) if content else None
    except (ValueError, RecursionError):
        value = None if status >= 400 else _NOT_JSON
    if 200 <= status < 300:
        if value is _NOT_JSON:
            raise DaemonError("the answer is not JSON", status)
        return value
    problem = value if isinstance(value, dict) else {}
    message = problem.get("detail") or problem.get("title") or content[:_SHOWN].decode("utf-8", "replace")
    kind = DaemonUnavailable if status in (429, 502, 503, 504) else DaemonError
    raise kind(sanitise(f"{status}: {message}"), status, problem)


_NOT_JSON: Any = object()
