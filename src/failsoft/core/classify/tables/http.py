"""HTTP status -> kind, where neither body nor headers say more."""

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
            408: "timeout",
            409: "conflict",
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
        "vendors: nginx 444 494 495 496 497 499; Cloudflare 520-530; Anthropic 529; Esri 498 499; AWS ELB 460 463 561; proxies 598 599",
        {
            419: "unauthenticated",
            420: "rate_limited",
            440: "unauthenticated",
            444: "disconnected",
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
        "RFC 9110: a redirect that nobody followed leads to a login page or another address",
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


def by_status(status: int) -> str | None:
    """The kind of a status; one without a row goes by its class (RFC 9110, 15)."""
    return STATUS.get(status) or {4: "invalid", 5: "server_error"}.get(status // 100)
