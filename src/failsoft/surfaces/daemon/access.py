"""Access control: Host and Origin allow-lists, tokens, and the rate of requests.

Rules
-----
- Requests are checked in this order, before routing: at most one body length, one Host (400), an allowed Host
  (421), Origin and Sec-Fetch-Site (403), the token (401, or 429 if the address is refused too often), the token's rate
  (429). Refused requests never use up the rate of a valid token, even if both come from one address, such as a proxy's.
- Only ``GET`` and ``HEAD`` of ``/healthz`` need no token; their answer is empty.
- The token is in the header ``Authorization: Bearer …`` and nowhere else.
- Paths are compared as the server has received them, in ``scope["path"]``.
- HTTP/1.0 requests may omit Host. The allow-list protects browsers, and browsers always send Host.
- The Host allow-list has the addresses that the daemon is bound to and ``localhost``; others must be listed. No origin is
  allowed unless it is listed, ``null`` included.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.tokens import Grant, TokenBook

OPEN_PATH: Final = "/healthz"
LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
REFUSED_RATE: Final = 20.0  # refused requests per second and address
ADDRESSES: Final = 1_000  # addresses whose refused requests are counted
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
_SAME: Final = frozenset({b"same-origin", b"none"})


class AccessOptions(NamedTuple):
    """The allow-lists, and the rate of requests."""

    hosts: frozenset[str] = frozenset(LOCAL)  # without port
    origins: frozenset[str] = frozenset()  # as browsers send them
    rate: float = 2_000.0  # requests per second and token


class Bucket:
    """A token bucket that holds one second's worth."""

    __slots__ = ("_at", "_level", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._level = max(rate, 1.0)
        self._at = now

    def take(self, now: float) -> bool:
        """Take one token; False if there is none."""
        self._level = min(max(self._rate, 1.0), self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True


class Access:
    """ASGI middleware that lets only authorised requests through. It puts their grant into ``scope["grant"]``."""

    def __init__(self, app: ASGIApp, tokens: TokenBook, options: AccessOptions, clock: Callable[[], float]) -> None:
        self._app = app
        self._tokens = tokens
        self._options = options
        self._clock = clock
        self._rates: dict[str, Bucket] = {}  # by token name
        self._refused: OrderedDict[str, Bucket] = OrderedDict()  # by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        if scope["type"] != "http":  # the lifespan; the server is started without WebSockets
            await self._app(scope, receive, send)
            return
        try:
            grant = self._check(scope)
        except Problem as problem:
            await problem.respond()(scope, receive, send)
            return
        if grant is None:
            await send({"type": "http.response.start", "status": 204, "headers": [(b"cache-control", b"no-store")]})
            await send({"type": "http.response.body"})
            return
        scope["grant"] = grant
        scope["is_granted"] = lambda: self._is_granted(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> Grant | None:
        """Return the grant of a request; None for the open path."""
        hosts, origins, site, secrets, lengths = read_headers(scope)
        if lengths > 1:  # a proxy may use the other length, and forward the rest of the body as a separate request
            raise Problem(400, "the length of the body is given twice", headers={"connection": "close"})
        if len(hosts) > 1 or not (hosts or scope["http_version"] == "1.0"):
            raise Problem(400, "a request needs the header Host, once")
        if hosts and host_name(hosts[0]) not in self._options.hosts:
            raise Problem(421, "the daemon does not answer for this host: start it with --allow-host to allow it")
        if len(origins) > 1 or not self._options.origins.issuperset(origins):
            raise Problem(403, "this origin is not allowed: start the daemon with --allow-origin to allow it")
        if site is not None and site not in _SAME and not origins:
            raise Problem(403, "requests from other sites are not allowed")
        if scope["path"] == OPEN_PATH and scope["method"] in ("GET", "HEAD"):
            return None
        now = self._clock()
        grant = self._tokens.find(secrets[0]) if len(secrets) == 1 else None
        if grant is None:
            if not self._count_refused((scope.get("client") or ("",))[0], now):
                raise Problem(429, "too many requests without a valid token", headers={"retry-after": "1"})
            raise Problem(
                401, "a valid token is needed: Authorization: Bearer …", headers={"www-authenticate": "Bearer"}
            )
        rate = self._rates.get(grant.name)
        if rate is None:
            rate = self._rates[grant.name] = Bucket(self._options.rate, now)
        if not rate.take(now):
            raise Problem(429, "this token makes too many requests", headers={"retry-after": "1"})
        return grant

    def _is_granted(self, scope: Scope) -> bool:
        """True if the token of a long request is still valid."""
        (secret,) = read_headers(scope)[3]
        return bool(self._tokens.find(secret) == scope["grant"])

    def _count_refused(self, address: str, now: float) -> bool:
        """Count a request without a valid token; False if its address has sent too many."""
        bucket = self._refused.get(address)
        if bucket is None:
            bucket = self._refused[address] = Bucket(REFUSED_RATE, now)
            if len(self._refused) > ADDRESSES:
                self._refused.popitem(last=False)
        return bucket.take(now)


def read_headers(scope: Scope) -> tuple[list[str], list[str], bytes | None, list[str], int]:
    """Return the hosts, the origins, the value of Sec-Fetch-Site, the tokens and the number of lengths of a request."""
    hosts: list[str] = []
    secrets: list[str] = []
    origins: list[str] = []
    site: bytes | None = None
    lengths = 0
    for name, value in scope["headers"]:
        if name == b"host":
            hosts.append(value.decode("latin-1"))
        elif name == b"origin":
            origins.append(value.decode("latin-1"))
        elif name == b"sec-fetch-site":
            site = value
        elif name == b"authorization":
            scheme, _, secret = value.decode("latin-1").partition(" ")
            secrets.append(secret.strip() if scheme.lower() == "bearer" else "")
        elif name in _LENGTHS:
            lengths += 1
    return hosts, origins, site, secrets, lengths


def host_name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    if host.startswith("["):
        name, found, port = host.partition("]")
        return (name + found).lower() if not port or (port[0] == ":" and port[1:].isdecimal()) else ""
    name, found, port = host.partition(":")
    return name.lower() if not found or port.isdecimal() else ""


def allowed_hosts(bound: str, more: Iterable[str]) -> frozenset[str]:
    """Return the hosts that a daemon answers for: this machine's own names, the bound address, and ``more``."""
    own = f"[{bound}]" if ":" in bound else bound
    return frozenset({*LOCAL, own.lower(), *(name.lower() for name in more)})
