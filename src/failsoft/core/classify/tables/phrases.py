"""Words -> kind, read from top to bottom: the first phrase that fits decides.

The same words are read in messages, in provider codes and in class names: ``RateLimitError``, ``rate_limit_exceeded``
and "Rate limit exceeded" are all spelled out as "rate limit ..." first (see ``words``). Patterns are lower case.
``keys`` are the beginnings (four letters) of words of which one must occur before the pattern is tried at all.
"""

from __future__ import annotations

from typing import NamedTuple


class Phrase(NamedTuple):
    """What an error of this kind says of itself."""

    name: str
    keys: str
    pattern: str
    kind: str


PHRASES: tuple[Phrase, ...] = (
    # S-norm's signals
    Phrase("extension request", "inva", r"invalid extension\.gateway\.execute\.request", "no_such_tool"),
    Phrase("gateway request", "inva", r"invalid [\w.]+\.gateway\.[\w.]+\.request", "contract"),
    Phrase(
        "missing tool id",
        "miss unkn inst regi",
        r"(?:missing|unknown) (?:tool|extension)(?: id)?\b|\b(?:tool|extension) (?:is )?not (?:installed|registered)",
        "no_such_tool",
    ),
    # limits
    Phrase(
        "quota",
        "quot cred",
        r"(?:insufficient|exceeded|exhausted) (?:\w+ ){0,3}(?:quota|credits?)\b|quota exceeded",
        "quota",
    ),
    Phrase(
        "rate limit",
        "rate thro requ",
        r"rate ?limit(?:s|ed|ing)?\b|\bthrottl|too many requests",
        "rate_limited",
    ),
    # credentials
    Phrase(
        "credentials",
        "auth unau cred key toke pass logi",
        r"\bunauthori[sz]ed|unauthenticated|authentication (?:failed|error|required)"
        r"|(?:invalid|incorrect|missing|expired|bad) (?:\w+ ){0,2}(?:api key|credentials?|token|password)",
        "unauthenticated",
    ),
    Phrase("permission", "perm forb deni", r"permission denied|\bforbidden\b|access denied|not permitted", "forbidden"),
    # the network
    Phrase("connect timeout", "conn", r"connect(?:ion|ing)? (?:attempt )?(?:timed out|timeout)", "timeout"),
    Phrase(
        "timeout",
        "time dead",
        r"\btimed out|\btime ?out (?:after|error|expired|exceeded|while|waiting|of|on|reading)|(?:read|request|gateway|network|socket|response) time ?out"
        r"|^time ?out\b|deadline exceeded",
        "timeout",
    ),
    Phrase("refused", "refu", r"connection refused|refused (?:the|to) connect", "refused"),
    Phrase(
        "lost connection",
        "rese clos disc brok abor hang",
        r"connection (?:was )?(?:\w+ )?(?:reset|closed|aborted|lost|dropped)|broken pipe|disconnected|hang up",
        "disconnected",
    ),
    Phrase(
        "unavailable",
        "unav over temp",
        r"service unavailable|unavailable\b|overloaded|temporar(?:y|ily)",
        "unavailable",
    ),
    Phrase("bad gateway", "gate", r"bad gateway", "bad_gateway"),
    Phrase("server error", "inte", r"internal (?:server )?error", "server_error"),
    # arguments
    Phrase("exists", "exis dupl", r"already exists|duplicate (?:key|entry)", "exists"),
    Phrase("not found", "foun such exis", r"not found\b|no such\b|does not exist|doesn't exist", "not_found"),
    Phrase("unsupported", "supp impl", r"\bunsupported|not supported|not implemented", "unsupported"),
    Phrase(
        "invalid",
        "inva malf miss vali requ must",
        r"\binvalid\b|\bmalformed|missing (?:required )?(?:argument|parameter|field|property)|validation (?:failed|error)"
        r"|is required|must be\b|is a required",
        "invalid",
    ),
)
