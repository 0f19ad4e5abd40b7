"""Write docs/reference/classification.md from the classification tables: ``python tools/classification_page.py``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from failsoft.core.classify import lookup
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.retry_after import LONGEST
from failsoft.core.classify.tables import codes, errnos, http, phrases, providers, sql, text_patterns, types
from failsoft.core.classify.weigh import FIRM_TYPE, FIRM_WORDS, GUESS, TEXT, WORDS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "classification.md"

INTRO = """# How errors are classified

<!-- Written by tools/classification_page.py from the tables in src/failsoft/core/classify/tables. Change those. -->

`failsoft.classify(error_or_text)` reads what an error says of itself and names one *kind*; the kind says everything
else: code, classification, category, effect. `Fault.rule` names the row that decided, `Fault.reason` says why a retry
can help or not. Nothing is imported to find out: types are known by `package.Class` over their bases, attributes by
the names that libraries use.

What decides, the weightiest first. Within a chain of exceptions (`__cause__`, wrapped errors, then `__context__`) the
weightiest verdict stands, of equals the outermost.

| weight | what | example |
|---|---|---|
| override | the tool's own `classification:` rows, the first that matches | `{http_status: 503, as: permanent}` |
"""

ORDER = (
    (
        FIRM_TYPE,
        "a type that says it whatever else is claimed; a web page where data was due",
        "`aiohttp.ContentTypeError`",
    ),
    (lookup.CODE, "a code: errno, SQLSTATE, a provider's own", "`insufficient_quota`"),
    (
        FIRM_WORDS,
        "unmistakable words of the body, where the status leaves room",
        '"credit balance is too low" in a 400',
    ),
    (lookup.STATUS, "the HTTP status; gRPC and JSON-RPC codes", "503"),
    (lookup.TYPE, "the type", "`httpx.ReadTimeout`"),
    (lookup.NAME, "the words in the type's name", "`acme.RateLimitError`"),
    (TEXT, "codes, statuses and firm phrases in the text", '"connect ECONNREFUSED"'),
    (WORDS, "other phrases in the text", '"invalid city"'),
    (lookup.GENERIC_CODE, "codes that say little", "`invalid_request_error`"),
    (lookup.WEAK_NAME, "words in the type's name that only hint", "`acme.ConnectionProblem`"),
    (lookup.WEAK_TYPE, "types that only hint", "`ValueError`"),
    (GUESS, "sentences that say how things are", '"the order has no items"'),
    (lookup.NOTHING, "nothing is known: transient, because that is the safer default", '"something went wrong"'),
)


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(*titles: str) -> list[str]:
    return [row(*titles), "|" + "---|" * len(titles)]


def kinds() -> list[str]:
    lines = ["## Kinds", "", *table("kind", "code", "classification", "category", "effect", "reason")]
    lines += [
        row(f"`{name}`", kind.code.name, kind.classification, kind.category, kind.effect, kind.reason)
        for name, kind in KINDS.items()
    ]
    return [*lines, ""]


def groups(title: str, signal: str, found: Iterable[Any], note: str = "") -> list[str]:
    lines = [f"## {title}", ""]
    if note:
        lines += [note, ""]
    for group in found:
        by_kind: dict[str, list[str]] = {}
        for key, kind in group.rows.items():
            by_kind.setdefault(kind, []).append(f"`{key}`")
        lines += [f"**{group.source}**", "", *table("kind", signal)]
        lines += [row(f"`{kind}`", " ".join(keys)) for kind, keys in by_kind.items()]
        lines.append("")
    return lines


def room(found: Mapping[Any, frozenset[str]]) -> list[str]:
    lines = table("said", "may be overruled by")
    lines += [
        row(f"`{key}`", "anything" if kinds_ is http.ANYTHING else " ".join(f"`{kind}`" for kind in sorted(kinds_)))
        for key, kinds_ in found.items()
    ]
    return [*lines, ""]


def words() -> list[str]:
    note = (
        "Read from top to bottom; the first that fits decides. Messages, codes and type names are spelled out first: "
        "`RateLimitError` and `rate_limit_error` are both read as `rate limit error`. A firm phrase states what happened "
        "beyond doubt; a guess goes by the wording alone, and any type or cause knows better. The patterns stand in `tables/phrases.py`."
    )
    lines = ["## Phrases", "", note, "", *table("phrase", "kind", "")]
    lines += [
        row(one.name, f"`{one.kind}`", "firm" if one.firm else "guess" if one.guess else "") for one in phrases.PHRASES
    ]
    return [*lines, ""]


def places() -> list[str]:
    lines = ["## Codes in text", "", *table("space", "who writes it so")]
    lines += [row(pattern.space, pattern.source) for pattern in text_patterns.TEXT_PATTERNS]
    return [*lines, ""]


def page() -> str:
    lines = [INTRO.rstrip()]
    lines += [row(weight, what, example) for weight, what, example in ORDER]
    lines += [
        "",
        f"When to come back is read from headers, bodies and words, up to {LONGEST:.0f} s; a permanent error has none.",
        "",
        *kinds(),
        *groups("HTTP status", "status", http.GROUPS, "Where neither body nor headers say more."),
        "### What the body may put in a status's place",
        "",
        *room(http.OVERRULED),
        "And in the place of gRPC and JSON-RPC codes, by the kind that they name:",
        "",
        *room(http.OVERRULED_KIND),
        *groups("gRPC", "code", codes.GRPC),
        *groups("JSON-RPC and MCP", "code", codes.JSONRPC),
        *groups("Providers", "code", (*providers.GROUPS, *providers.STATUS_GROUPS, *providers.GENERIC_GROUPS)),
        *groups("errno and name look-ups", "name", errnos.GROUPS),
        *groups("SQLSTATE", "code", sql.SQLSTATE_GROUPS, "Two characters stand for a whole class."),
        *groups("Databases' own codes", "code", (*sql.MYSQL_GROUPS, *sql.ORACLE_GROUPS)),
        *groups("Other stores", "code", (*codes.REDIS, *codes.SQLITE, *codes.MONGODB, *codes.KAFKA, *codes.CLICKHOUSE)),
        *groups(
            "Mail, directories, queues, sockets",
            "code",
            (*codes.SMTP, *codes.ENHANCED, *codes.LDAP, *codes.AMQP, *codes.WEBSOCKET),
        ),
        *groups("Programs", "code", (*codes.EXIT, *codes.CURL, *codes.WINSOCK)),
        *groups("Twilio", "code", codes.TWILIO),
        *groups("Types that beat the status", "type", types.FIRM_GROUPS),
        *groups("Types that beat the text", "type", types.STRONG_GROUPS),
        *groups("Types that others' classes are derived from", "type", types.ADOPTED_GROUPS),
        *groups("Types that only hint", "type", types.WEAK_GROUPS),
        *groups("Names in text", "name", types.SPOKEN_GROUPS),
        *words(),
        *places(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
