"""Nothing that a tool can raise or say makes ``classify`` raise: 100,000 texts and exceptions, half of each.

``FAILSOFT_FUZZ`` sets the count.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from failsoft.core.classify import classify
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.tables.code_spaces import WANTED
from failsoft.core.model.fault import Fault

COUNT = int(os.environ.get("FAILSOFT_FUZZ", "100000"))
SHARDS = 4  # so that several processes can share the work
REASONS = {kind.reason for kind in KINDS.values()}

WORDS = (
    "connection timeout refused reset invalid not found rate limit exceeded quota 503 (429) [Errno 111] ECONNRESET"
    ' SQLSTATE 40P01 -32601 {"error": {"code": "x" }}} \'\'\' """ ``` <html> </Code> Traceback (most recent call last):'
    " try again in 20s 6m0s HTTP/1.1 status= http://x/y /a/b/c \n \t \x00 \x1b[31m \ud800 \u202e é 日本 NaN Infinity"
    " RateLimitError httpx.ReadTimeout KeyError: curl: (7) exit code 127 ORA-00942 StatusCode.UNAVAILABLE per minute"
).split(" ")
ATTRIBUTES = sorted(WANTED)
NAMES = ("RateLimitError", "NotFound", "TimeoutException", "E", "ÜberFehler", "A" * 300, "_", "ValidationError")
PACKAGES = (
    "acme",
    "httpx",
    "grpc",
    "pymongo",
    "pymysql",
    "smtplib",
    "botocore",
    "mcp",
    "builtins",
    "",
    "aiohttp",
    "ssl",
)


def text(chance: random.Random) -> str:
    if chance.random() < 0.1:
        return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(40)))
    joined = chance.choice((" ", "", ": ", "\n")).join(chance.choices(WORDS, k=chance.randrange(1, 8)))
    return joined if chance.random() < 0.98 else joined * 40


class Liar:
    """An object that answers everything with another surprise."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        if self._chance.random() < 0.5:
            raise RuntimeError(name)
        return value(self._chance, 3)

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise ValueError("no equal")

    __hash__ = None  # type: ignore[assignment]  # not hashable either

    def __bool__(self) -> bool:
        raise ValueError("neither")

    def __iter__(self) -> Any:
        raise ValueError("no items")


def value(chance: random.Random, depth: int = 0) -> Any:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: chance.choice((None, True, 0, -1, 429, 503, 10**40, -32601, 1213, 3.5, float("nan"), float("inf"))),
        lambda: text(chance),
        lambda: text(chance).encode("utf-8", "replace"),
        lambda: chance.choice(("23505", "UNAVAILABLE", "insufficient_quota", "SlowDown", "500", "١٢٣")),
        lambda: Liar(chance),
        lambda: error(chance, depth + 1) if depth < 3 else None,
        lambda: {text(chance): value(chance, depth + 1) for _ in range(chance.randrange(4))} if depth < 3 else {},
        lambda: (
            {chance.choice(("error", "code", "message", "errors", "retry_after", 7)): value(chance, depth + 1)}
            if depth < 3
            else {}
        ),
        lambda: [value(chance, depth + 1) for _ in range(chance.randrange(4))] if depth < 3 else [],
        lambda: tuple(value(chance, depth + 1) for _ in range(chance.randrange(3))) if depth < 3 else (),
        lambda: {"retry-after": chance.choice(("5", "-1", "x", "nan", "9" * 400, "Fri, 99 Foo 2026 99:99:99 GMT"))},
        lambda: lambda: 1 / 0,
        lambda: object(),
        lambda: type,
    )
    return chance.choice(makers)()


def odd_type(chance: random.Random) -> type[Exception]:
    body: dict[str, Any] = {"__module__": chance.choice(PACKAGES)}
    for name in chance.sample(ATTRIBUTES, chance.randrange(4)):
        if chance.random() < 0.5:
            body[name] = property(lambda _: 1 / 0)
        else:
            made = value(chance, 2)
            body[name] = property(lambda _, made=made: made)
    if chance.random() < 0.1:
        body["__str__"] = lambda _: 1 / 0
    if chance.random() < 0.1:
        body["code"] = lambda _: value(chance, 2)
    base = chance.choice((Exception, ValueError, OSError, KeyError, RuntimeError, TimeoutError))
    return type(chance.choice(NAMES), (base,), body)


def error(chance: random.Random, depth: int = 0) -> BaseException:
    if depth < 3 and chance.random() < 0.08:
        return BaseExceptionGroup("several", [error(chance, depth + 1) for _ in range(chance.randrange(1, 4))])
    known = (ValueError, OSError, RuntimeError, TimeoutError, KeyError, ConnectionError, SystemExit, MemoryError)
    kind = odd_type(chance) if chance.random() < 0.2 else chance.choice(known)
    made = kind(*(value(chance, 2) for _ in range(chance.randrange(3))))
    for name in chance.sample(ATTRIBUTES, chance.randrange(4)):
        try:
            setattr(made, name, value(chance, depth + 1))
        except AttributeError:
            continue  # a property of the odd type
    if depth < 3 and chance.random() < 0.3:
        made.__cause__ = error(chance, depth + 1)
    if chance.random() < 0.1:
        made.__context__ = made.__cause__ or error(chance, 3)
        made.__context__.__context__ = made  # a cycle
    return made


def check(fault: Fault, subject: BaseException | str) -> None:
    assert type(fault) is Fault
    assert (fault.classification == "transient") == (fault.category == "tool_transient")
    assert fault.reason in REASONS
    assert fault.rule
    assert isinstance(fault.message, str)
    assert len(fault.message) <= 8192
    assert fault.retry_after is None or 0 <= fault.retry_after <= 86_400
    assert fault.http_status is None or 300 <= fault.http_status <= 599
    assert fault.cause is (subject if isinstance(subject, BaseException) else None)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_makes_it_raise(shard: int) -> None:
    chance = random.Random(shard)
    for number in range(COUNT // SHARDS):
        subject = text(chance) if number % 2 else error(chance)
        check(classify(subject), subject)
