"""The tokens of the daemon, kept in a file that only its owner can read.

Rules
-----
- The file is made with one random token of the role *operate* at the first start, and has mode 0600. A file that other
  users can read is refused.
- A token has a name, roles and possibly a tenant. *operate* includes *read* and *report*.
- Tokens are compared by their SHA-256 in constant time. A running daemon notices a change of the file within a second, and
  a new token as soon as it is used.
- The file is replaced as a whole, so a reader never sees half of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from failsoft.errors import FailsoftError

Role = Literal["report", "read", "operate"]
ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "fsd_"  # secret scanners find it
FIRST = "operator"  # name of the token made at the first start
LOOK_EVERY = 1.0  # seconds
LOOK_AGAIN = 0.05  # seconds, for a token that is not known
_SHORTEST = 20  # characters of a token that was written by hand


class TokenError(FailsoftError):
    """A token file that cannot be used."""


class Grant(NamedTuple):
    """The rights of a token's owner."""

    name: str
    roles: frozenset[Role]
    tenant: str | None = None  # None: all tenants

    def allows(self, role: Role) -> bool:
        """True if the roles include this one."""
        return role in self.roles or "operate" in self.roles


class Token(NamedTuple):
    """One entry of the file."""

    secret: str
    grant: Grant

    def to_dict(self) -> dict[str, Any]:
        name, roles, tenant = self.grant
        return {"name": name, "token": self.secret, "roles": sorted(roles), "tenant": tenant}


def make_secret() -> str:
    """Draw a new token."""
    return PREFIX + secrets.token_urlsafe(32)


def read_tokens(path: Path) -> list[Token]:
    """Read a token file; raise ``TokenError`` if it is not private or not valid."""
    try:
        data = _read_private(path)
    except OSError as error:
        raise TokenError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return _parse(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TokenError(f"{path} is not a token file: {error}") from None


def _read_private(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would block
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise TokenError(f"{path} is not a regular file")
        if found.st_mode & 0o077:
            raise TokenError(f"{path} can be read by others: chmod 600 {path}")
        if found.st_uid not in (0, os.geteuid()):
            raise TokenError(f"{path} belongs to another user, who knows its tokens: chown it")
        return os.read(descriptor, 1_000_000)
    finally:
        os.close(descriptor)


def _parse(data: Any) -> list[Token]:
    made: list[Token] = []
    for entry in data["tokens"]:
        unknown = entry.keys() - {"name", "token", "roles", "tenant"}
        if unknown:
            raise ValueError(f"{min(unknown)!r} is not a field of a token")
        name, secret, roles, tenant = entry["name"], entry["token"], entry["roles"], entry.get("tenant")
        if not (isinstance(name, str) and name) or any(name == other.grant.name for other in made):
            raise ValueError(f"the name {name!r:.80} is empty or used twice")
        if not (isinstance(secret, str) and secret.isascii() and len(secret) >= _SHORTEST):
            raise ValueError(f"the token {name!r:.80} is shorter than {_SHORTEST} characters")
        if not (isinstance(roles, list) and roles and {*roles} <= {*ROLES}):
            raise ValueError(f"the roles of {name!r:.80} are not among {', '.join(ROLES)}")
        if not (tenant is None or (isinstance(tenant, str) and tenant)):
            raise ValueError(f"the tenant of {name!r:.80} is not a text")
        made.append(Token(secret, Grant(name, frozenset(roles), tenant)))
    return made


def write_tokens(path: Path, tokens: Iterable[Token]) -> None:
    """Replace the token file, readable by its owner only."""
    text = json.dumps({"tokens": [token.to_dict() for token in tokens]}, indent=2) + "\n"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def open_tokens(path: Path) -> list[Token]:
    """Read the token file, or make it with one token for the operator."""
    if not path.exists():
        write_tokens(path, [Token(make_secret(), Grant(FIRST, frozenset({"operate"})))])
    return read_tokens(path)


class TokenBook:
    """The tokens of a running daemon."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._grants = _by_digest(open_tokens(path))
        self._seen = _state_of(path)
        self._looked = clock()

    def find(self, secret: str) -> Grant | None:
        """Return the grant of a token; None if there is no such token."""
        digest = _digest(secret)
        self._look(LOOK_EVERY)
        found = self._match(digest)
        if found is None and self._look(LOOK_AGAIN):  # the token may have been made just now
            found = self._match(digest)
        return found

    def _match(self, digest: bytes) -> Grant | None:
        found = None
        for known, grant in self._grants.items():  # compare with all: the time must not show which one matches
            if hmac.compare_digest(known, digest):
                found = grant
        return found

    def _look(self, seconds: float) -> bool:
        """Check the file for changes; return False if the latest check was less than ``seconds`` ago."""
        now = self._clock()
        if now - self._looked < seconds:
            return False
        self._looked = now
        self._refresh()
        return True

    def _refresh(self) -> None:
        state = _state_of(self.path)
        if state is not None and state == self._seen:
            return
        self._grants = {}  # no token is valid while the file is broken or readable by others
        self._seen = None  # read an unreadable file again, even if it does not change
        with contextlib.suppress(TokenError):
            self._grants = _by_digest(read_tokens(self.path))
            self._seen = state


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _by_digest(tokens: Iterable[Token]) -> Mapping[bytes, Grant]:
    return {_digest(token.secret): token.grant for token in tokens}


def _state_of(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode, found.st_uid
