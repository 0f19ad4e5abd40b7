"""HTTP status -> kind, used if neither body nor headers are more specific."""

from __future__ import annotations

from failsoft.core.classify.tables import Group, merge

GROUPS: tuple[Group[int], ...] = (
    Group(
        "RFC 9110, RFC 6585, RFC 8470, RFC 4918: what the server says the client did",
        {
            400: "invalid",
            401: "unauthenticated",
            402: "quota",
            403: "forbidden",
            404: "not_found",
            405: "no_such_method",
            406: "invalid",
            407: "unauthenticated",
            408: "request_timeout",
            409: "conflict_state",
            410: "not_found",
            411: "invalid",
            412: "precondition",
            413: "too_large",
            414: "too_large",
            415: "invalid",
            416: "out_of_range",
            417: "precondition",
            418: "invalid",
            421: "wrong_place",
            422: "invalid",
            423: "locked",
            424: "precondition",
            425: "busy",
            426: "misconfigured",
            428: "precondition",
            429: "rate_limited",
            431: "too_large",
            451: "forbidden",
        },
    ),
    Group(
        "RFC 9110, RFC 4918: what the server says of itself",
        {
            500: "server_error",
            501: "no_such_method",
            502: "bad_gateway",
            503: "unavailable",
            504: "timeout",
            505: "misconfigured",
            506: "misconfigured",
            507: "storage_full",
            508: "misconfigured",
            510: "misconfigured",
            511: "unauthenticated",
        },
    ),
    Group(
        "vendors: nginx 444 494 495 496 497 499; Cloudflare 520-530; Anthropic 529; Esri 498 499; AWS ELB 460 463 561; Microsoft 440 449; proxies 598 599",
        {
            419: "unauthenticated",
            420: "rate_limited",
            440: "unauthenticated",
            444: "disconnected",
            449: "conflict",
            460: "cancelled",
            494: "too_large",
            495: "certificate",
            496: "certificate",
            497: "misconfigured",
            498: "unauthenticated",
            499: "cancelled",
            520: "bad_gateway",
            521: "unavailable",
            522: "connect_timeout",
            523: "unreachable",
            524: "timeout",
            525: "certificate",
            526: "certificate",
            527: "bad_gateway",
            529: "overloaded",
            530: "misconfigured",
            598: "timeout",
            599: "connect_timeout",
        },
    ),
    Group(
        "RFC 9110: a redirect that was not followed leads to a login page or another address",
        {
            300: "wrong_place",
            301: "wrong_place",
            302: "wrong_place",
            303: "wrong_place",
            305: "wrong_place",
            307: "wrong_place",
            308: "wrong_place",
        },
    ),
)

STATUS = merge(GROUPS)

# Reason phrases (RFC 9110, 15; nginx; Cloudflare): a number before its own phrase is a status
REASONS = {
    300: "multiple choices",
    301: "moved permanently",
    302: "found",
    303: "see other",
    305: "use proxy",
    307: "temporary redirect",
    308: "permanent redirect",
    400: "bad request",
    401: "unauthorized",
    402: "payment required",
    403: "forbidden",
    404: "not found",
    405: "method not allowed",
    406: "not acceptable",
    407: "proxy authentication required",
    408: "request timeout",
    409: "conflict",
    410: "gone",
    411: "length required",
    412: "precondition failed",
    413: "request entity too large",
    414: "request-uri too long",
    415: "unsupported media type",
    416: "requested range not satisfiable",
    417: "expectation failed",
    418: "i'm a teapot",
    421: "misdirected request",
    422: "unprocessable entity",
    423: "locked",
    424: "failed dependency",
    425: "too early",
    426: "upgrade required",
    428: "precondition required",
    429: "too many requests",
    431: "request header fields too large",
    451: "unavailable for legal reasons",
    500: "internal server error",
    501: "not implemented",
    502: "bad gateway",
    503: "service unavailable",
    504: "gateway timeout",
    505: "http version not supported",
    506: "variant also negotiates",
    507: "insufficient storage",
    508: "loop detected",
    510: "not extended",
    511: "network authentication required",
    499: "client closed request",
    520: "web server",
    521: "web server is down",
    522: "connection timed out",
    523: "origin is unreachable",
    524: "a timeout occurred",
    526: "invalid ssl",
    529: "site is overloaded",
}

# Statuses whose kind has no effect, and which can come after the request was carried out or sent on: 302 and 303 lead from a
# form that was accepted to its result (RFC 9110, 15.4.4), 507 and 508 come in the middle of it (RFC 4918, RFC 5842), 522
# also when the origin does not acknowledge the request, 599 for whatever went wrong.
PERHAPS_SENT = frozenset({302, 303, 507, 508, 522, 599})

# As classes are named: InternalServer(Error), TooManyRequests. A RequestTimeout is the client's own, as a rule.
NAMED = {
    words.title().replace(" ", "").removesuffix("Error"): status
    for status, words in REASONS.items()
    if 400 <= status < 512 and status not in (408, 499) and words.replace(" ", "").isalpha()
}

# status -> kinds with which firm words in the body may replace it ("*": any). Other statuses cannot be overruled.
# Source: the providers of ``tables.providers``.
NOTHING: frozenset[str] = frozenset()
ANYTHING = frozenset({"*"})
_LIMITS = frozenset({"rate_limited", "quota", "storage_full", "misconfigured"})
OVERRULED: dict[int, frozenset[str]] = {
    400: ANYTHING,
    402: frozenset({"declined", "quota"}),
    403: _LIMITS | {"unauthenticated", "blocked_content", "certificate", "unknown_model", "too_large", "read_only"},
    404: frozenset({"no_such_tool", "no_such_method", "unknown_model", "wrong_address", "contract"}),
    409: ANYTHING,
    413: frozenset({"quota"}),
    422: ANYTHING,
    424: ANYTHING,
    429: frozenset({"quota", "too_large", "per_minute", "storage_full"}),
    500: _LIMITS
    | {
        "timeout",
        "statement_timeout",
        "conflict",
        "locked",
        "overloaded",
        "pool_exhausted",
        "certificate",
        "unknown_model",
        "no_such_tool",
        "contract",
        "exists",
    },
    502: _LIMITS,
    503: _LIMITS,
    # Tornado uses it for every network failure
    599: frozenset(
        {
            "timeout",
            "connect_timeout",
            "disconnected",
            "refused",
            "unreachable",
            "unknown_host",
            "certificate",
            "garbled",
        }
    ),
}
# kind of a code -> kinds with which the code's own text may replace it
OVERRULED_CODE: dict[str, frozenset[str]] = {
    "rate_limited": OVERRULED[429],
    "refused": frozenset({"unauthenticated", "certificate", "unknown_host", "no_such_database"}),  # SQLSTATE 08001
    "conflict": frozenset({"precondition"}),  # DynamoDB: the reason for a cancelled transaction
    "forbidden": frozenset({"quota", "storage_full"}),  # MongoDB Atlas: one code for everything that it forbids
    "server_error": frozenset({"storage_full"}),
    "not_found": OVERRULED[404],
    "unauthenticated": frozenset({"declined"}),  # Stripe: a card that needs its owner's confirmation
}
# status -> kinds that a code cannot replace it with: a server that checks permissions has already read the arguments
NOT_REPLACED_BY: dict[int, frozenset[str]] = {
    401: frozenset({"invalid", "unsupported"}),
    403: frozenset({"invalid", "unsupported"}),
}
# Kinds that only say that the other side failed: a status is more specific
UNSPECIFIC = frozenset({"unknown", "server_error", "disconnected"})
# Phrases that weigh less than a status and a FAILED_PRECONDITION that agree: waiting does not repair such a state
# (see google.rpc.Code)
WEAK_PHRASES = frozenset({"come back later", "for the time being"})
# The kind of a 409 that asks for a retry: another request is in progress (RFC 9110, 15.5.10)
IN_PROGRESS = frozenset({"unavailable", "overloaded", "busy"})
OVERRULED_KIND: dict[str, frozenset[str]] = {
    # gRPC and similar codes, by kind
    "invalid": ANYTHING,
    "unknown": ANYTHING,
    "conflict_state": ANYTHING,
    "disconnected": ANYTHING,  # JSON-RPC -32000, which many servers use for every failure
    "precondition": ANYTHING,
    "server_error": OVERRULED[500],
    "rate_limited": OVERRULED[429],
    "forbidden": OVERRULED[403],
    "not_found": OVERRULED[404],
    "unavailable": _LIMITS
    | {
        "refused",
        "disconnected",
        "unknown_host",
        "certificate",
        "connect_timeout",
        "name_lookup_failed",
        "bad_gateway",
    },
}


def by_status(status: int) -> str | None:
    """The kind of a status; one without a row goes by its class (RFC 9110, 15)."""
    return STATUS.get(status) or {4: "invalid", 5: "server_error"}.get(status // 100)
