"""Lookup of signals: codes in the table of their space, types along their MRO, names as words.

Rules
-----
- A code's own row decides. A provider's code without a row is read as words. A code that says no more than a status
  (``INTERNAL``, ``invalid_request_error``) has little weight.
- Types are looked up once and cached. The cache is bounded.
"""

from __future__ import annotations

import builtins
import errno
from functools import lru_cache
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Final

from failsoft.core.classify.tables import codes, errnos, http, providers, sql, types
from failsoft.core.classify.tables.code_spaces import SPACES, UNREAD, WANTED
from failsoft.core.classify.text_reader import phrase_of_name, spell
from failsoft.core.startup.lazy_pattern import lazy_pattern
from failsoft.core.startup.named_tuple import NamedTuple

CODE: Final = 90
STATUS: Final = 70
TYPE: Final = 60
NAME: Final = 58
GENERIC_CODE: Final = 40
FIRM_NAME: Final = 31  # beats weak words, but not firm ones
WEAK_NAME: Final = 30
WEAK_TYPE: Final = 20
NOTHING: Final = 0

_TYPES_KEPT: Final = 1024
_LIKE_STATUS: Final = frozenset({"grpc", "jsonrpc"})  # spaces whose codes are as unspecific as an HTTP status
_PLAIN_TEXTS: Final = (BaseException.__str__, OSError.__str__)
_DESCRIPTORS: Final = (property, MemberDescriptorType, GetSetDescriptorType)
_OF_ALL: Final = frozenset({"__dict__", "__weakref__"})  # attributes of every class
_NOT_WORD: Final = lazy_pattern(r"[^a-z0-9]+")
# a parser of the caller's text means the end of that text, not of a connection
_PARSER: Final = lazy_pattern(
    r"[^.]*\.(?!\w*(?:Response|Reply|Message|Protocol))\w*(?:Pars(?:e|er|ing)|Decode|Lex|Syntax|Unpack)(?:Error|Exception)\Z"
)
# raised only after the request was sent
_SENT: Final = lazy_pattern(r"\.(?:Read|Write|Server|Remote|Incomplete|Chunked|Payload)\w*$")
# raised when a part was done
_IN_PART: Final = lazy_pattern(
    r"\.(?:\w*(?:Bulk|Batch)(?:Index|Write|Insert|Update|Delete|Operation|Execution|Request)?(?:Error|Exception|Failure)"
    r"|\w*Partial\w*|\w*WriteConcern\w*)$"
)
_ENDS: Final = frozenset({"disconnected", "garbled"})
# kinds that a class name only hints at: the text is more reliable
_HINTS: Final = frozenset(
    "disconnected timeout connect_timeout refused unreachable unavailable invalid server_error garbled constraint "
    "cancelled bad_gateway overloaded precondition conflict_state name_lookup_failed".split()
)


class KindMatch(NamedTuple):
    """The kind that one link of a chain shows, and the weight of that evidence."""

    weight: int
    kind: str
    rule: str
    status: int | None = None


UNKNOWN: Final = KindMatch(NOTHING, "unknown", "unknown")


class TypeFacts:
    """Facts about an exception type that hold for all its instances."""

    __slots__ = (
        "attributes",
        "claims",
        "connecting",
        "fetcher",
        "firm",
        "in_part",
        "lookup",
        "mail",
        "names",
        "package",
        "plain",
        "refuses",
        "rule",
        "sent",
        "spaces",
        "tls",
        "verdict",
        "wanted",
        "wrapper",
    )

    def __init__(self, cls: type[BaseException]) -> None:
        packages: list[str] = []
        self.names: list[str] = []  # package.Class along the MRO, aliases resolved, most derived first
        for base in cls.__mro__[:-1]:
            module = base.__module__
            package = module.partition(".")[0] if isinstance(module, str) else "?"
            if package not in packages:
                packages.append(package)
            self.names.append(f"{types.ALIASES.get(package, package)}.{base.__name__}")
        self.package = packages[0]
        unread = UNREAD.get(self.package, ())
        self.spaces = tuple(row for package in packages for row in SPACES.get(package, ()) if row[0] not in unread)
        self.wanted = WANTED.difference(unread)  # attributes to read if an instance has them
        # attributes of the class itself: class attributes, properties, slots
        self.attributes = frozenset(name for base in cls.__mro__[:-1] for name in vars(base).keys() & self.wanted)
        self.mail = "smtplib" in packages or "aiosmtplib" in packages
        self.tls = "ssl.SSLError" in self.names
        self.lookup = any(name.endswith((".gaierror", ".herror")) for name in self.names)
        self.connecting = any(name in types.CONNECTING for name in self.names)
        self.sent = _SENT.search(self.names[0]) is not None
        self.in_part = any(_IN_PART.search(name) for name in self.names)
        self.fetcher = types.ALIASES.get(packages[0], packages[0]) in types.FETCHERS
        self.wrapper = any(name in types.WRAPPERS for name in self.names)
        self.plain = _is_plain(cls)
        self.refuses = "builtins.ValueError" in self.names[1:] and self.package != "builtins"
        self.verdict = _judge_names(self.names)
        self.claims = _claimed_status(self.names)
        firm = next((name for name in self.names if name in types.FIRM), None)
        self.firm = None if firm is None else types.FIRM[firm]
        self.rule = f"type: {firm}"


_FACTS: dict[type[BaseException], TypeFacts] = {}


def facts_of(cls: type[BaseException]) -> TypeFacts:
    """Return the facts about a type, cached."""
    try:
        facts = _FACTS.get(cls)
    except Exception:  # the metaclass has a __hash__ or an __eq__ that raises
        return TypeFacts(cls)
    if facts is None:
        facts = TypeFacts(cls)
        if len(_FACTS) >= _TYPES_KEPT:
            _FACTS.clear()
        _FACTS[cls] = facts
    return facts


def _is_plain(cls: type[BaseException]) -> bool:
    """True if type and arguments fully describe an instance without attributes."""
    if (
        type(cls) is not type
        or cls.__str__ not in _PLAIN_TEXTS
        or cls.__getattribute__ is not BaseException.__getattribute__
    ):
        return False
    if cls is FileNotFoundError:  # its traceback counts too
        return False
    return all(
        base.__module__ == "builtins"
        or not any(isinstance(value, _DESCRIPTORS) for name, value in vars(base).items() if name not in _OF_ALL)
        for base in cls.__mro__
    )


def _judge_names(names: list[str]) -> KindMatch:
    weak, settled = UNKNOWN, False
    parser = any(_PARSER.match(name) for name in names)
    for name in names:
        if name in types.ADOPTED and names[0][:9] != "builtins.":
            return weak if weak.weight else KindMatch(FIRM_NAME, types.ADOPTED[name], f"type: {name}, derived from")
        if name in types.STRONG:
            return KindMatch(TYPE, types.STRONG[name], f"type: {name}")
        if name in types.WEAK:
            return weak if weak.weight else KindMatch(WEAK_TYPE, types.WEAK[name], f"type: {name}")
        package, _, simple = name.partition(".")
        if package != "builtins" and not settled and (phrase := phrase_of_name(simple)):
            if parser and phrase.kind in _ENDS:
                return KindMatch(NAME, "invalid", "name: a parser's")
            if phrase.kind not in _HINTS:
                return KindMatch(NAME, phrase.kind, f"name: {phrase.name}")
            if not weak.weight:
                weight = FIRM_NAME if phrase.firm else WEAK_NAME
                weak, settled = KindMatch(weight, phrase.kind, f"name: {phrase.name}"), phrase.firm
    return weak


def _claimed_status(names: list[str]) -> int | None:
    """Return the HTTP status after which a class is named: ``InternalServerError`` counts as a 500."""
    for name in names:
        if name in types.STRONG:
            return None
        package, _, simple = name.partition(".")
        status = None if package == "builtins" else _status_of(simple)
        if status is not None:
            return status
    return None


def _status_of(name: str) -> int | None:
    return http.NAMED.get(name.removesuffix("Error").removesuffix("Exception"))


@lru_cache(maxsize=512)
def by_code(space: str, code: str | int) -> KindMatch:
    """Match a code of this space."""
    if space == "provider":
        return _by_provider(str(code))
    if space == "type":
        return _by_type(str(code))
    if space == "key":
        return KindMatch(GENERIC_CODE, "bug", "text: a KeyError's")
    if space == "name":
        return _by_name(str(code))
    if space == "grpc":
        code = _as_status(str(code))
    if space == "errno_number":
        number = int(code)
        space, code = "errno", errnos.LOOKUP.get(number, "") if number < 0 else errno.errorcode.get(number, "")
    kind = _row(space, code)
    if kind is None:
        kind = _by_family(space, str(code))
    weight = STATUS if space in _LIKE_STATUS else CODE
    return KindMatch(weight, kind, f"{space}: {code}") if kind else UNKNOWN


def _as_status(code: str) -> str:
    """Convert ``OutOfRange`` to ``OUT_OF_RANGE``."""
    return code if code.isupper() else spell(code).replace(" ", "_").upper()


def _row(space: str, code: str | int) -> str | None:
    table: dict[str | int, str] = codes.TABLES.get(space, {})  # type: ignore[assignment]  # keys may be either type
    if isinstance(code, str) and code.lstrip("-").isdigit():
        return table.get(int(code)) or table.get(code)
    return table.get(code)


def _by_family(space: str, code: str) -> str | None:
    """Match a code without a row by its family, if its space has families."""
    if space == "sqlstate":
        return sql.SQLSTATE.get(code[:2])
    if space == "sqlite":
        return _row(space, "_".join(code.split("_")[:2]))
    if space == "enhanced":
        subject, _, detail = code.removeprefix("5.").partition(".")
        return _row(space, f"{subject}.{detail}") or _row(space, subject)
    if space in ("smtp", "ftp"):
        return {"4": "unavailable", "5": "invalid"}.get(code[:1])
    return None


def _by_provider(code: str) -> KindMatch:
    key = _NOT_WORD.sub("", code.lower())
    if key in providers.PROVIDERS:
        return KindMatch(CODE, providers.PROVIDERS[key], f"code: {code}")
    if key in providers.STATUS:
        return KindMatch(STATUS, providers.STATUS[key], f"code: {code}")
    if key in providers.GENERIC:
        return KindMatch(GENERIC_CODE, providers.GENERIC[key], f"code: {code}")
    if code[:1].isupper() and (kind := _row("grpc", _as_status(code))) is not None:
        return KindMatch(STATUS, kind, f"code: {code}")
    phrase = phrase_of_name(code)
    if phrase is not None:
        return KindMatch(CODE if phrase.firm else GENERIC_CODE, phrase.kind, f"code: {code}")
    for prefix, kind in providers.PREFIXES.items():
        if key.startswith(prefix):
            return KindMatch(CODE, kind, f"code: {code}")
    return UNKNOWN


def is_known(code: str) -> bool:
    """True if a provider's code has its own row and need not be read as words."""
    key = _NOT_WORD.sub("", code.lower())
    return key in providers.PROVIDERS or key in providers.STATUS


def _by_type(name: str) -> KindMatch:
    package, simple = name.partition(".")[0], name.rpartition(".")[2]
    known = f"{types.ALIASES.get(package, package)}.{simple}"
    if known in types.STRONG:
        return KindMatch(CODE, types.STRONG[known], f"type: {known}")
    verdict = _by_name(simple)
    if verdict is UNKNOWN and known in types.WEAK:
        return KindMatch(WEAK_TYPE, types.WEAK[known], f"type: {known}")
    return verdict


def _by_name(name: str) -> KindMatch:
    """Match the name of an exception; for a built-in exception also its bases (``UnboundLocalError``)."""
    kind = types.SPOKEN.get(name)
    if kind is not None:
        return KindMatch(GENERIC_CODE, kind, f"name: {name}")
    cls = getattr(builtins, name, None)
    for base in cls.__mro__ if isinstance(cls, type) else ():
        known = f"builtins.{base.__name__}"
        if known in types.STRONG:
            return KindMatch(GENERIC_CODE, types.STRONG[known], f"name: {name}")
        if known in types.WEAK:
            return KindMatch(WEAK_TYPE, types.WEAK[known], f"name: {name}")
    return _by_named_status(name)


def _by_named_status(name: str) -> KindMatch:
    status = _status_of(name)
    return UNKNOWN if status is None else KindMatch(STATUS, http.STATUS[status], f"name: {name}")
