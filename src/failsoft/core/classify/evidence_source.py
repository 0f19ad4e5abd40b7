"""Where a verdict comes from: the other side, this side, or words.

Rules
-----
- ``remote``: a status, a provider's code, SQLSTATE and the like; a connection that was never made (a timeout only if the
  client's own exception says that it was connecting); and words that state a status or name a refusal ("rate limit exceeded"). Words in quotation marks are somebody
  else's and do neither.
- ``local``: the type of an exception, a parser, an errno of the operating system, a program's exit status, a database
  inside this process (SQLite).
- ``words``: any other text, and codes that are only read as words.

Why: an exception that was raised on this side says nothing about what the other side had done before. ``core.effects.call_effect``
uses the source to decide whether a call may claim that nothing happened.
"""

from __future__ import annotations

from typing import Final

from failsoft.core.classify.lookup import GENERIC_CODE, KindMatch, is_known
from failsoft.core.model.fault import Source

# The connection was never made, so nothing was sent
UNCONNECTED: Final = frozenset(
    "refused unreachable name_lookup_failed connect_timeout lookup_timeout unknown_host certificate".split()
)
# Only the other side refuses like this: its name for the refusal is enough
REFUSALS: Final = UNCONNECTED | frozenset("rate_limited per_minute quota unauthenticated declined".split())

# The beginning of a verdict's rule, where that is not the space of a remote code
_LOCAL: Final = frozenset("type name text page answer errno winsock exit program sqlite curl".split())
_NAMES: Final = frozenset({"type", "name"})  # classes that are named after a refusal are as good as its words
_ERRNOS: Final = frozenset({"errno", "winsock"})
# "Connection timed out" is also said of a connection that was made, and whose answer did not come
_TIMEOUTS: Final = frozenset({"connect_timeout", "lookup_timeout"})
_WORDS: Final = frozenset({"phrase", "unknown", "says of itself"})


def find_source(verdict: KindMatch) -> Source:
    """The source of a verdict, from its rule and its kind."""
    evidence, _, detail = verdict.rule.partition(": ")
    if verdict.kind in UNCONNECTED and not (evidence in _WORDS | _ERRNOS and verdict.kind in _TIMEOUTS):
        return "remote"
    if evidence in _LOCAL:
        return "remote" if evidence in _NAMES and verdict.kind in REFUSALS else "local"
    if verdict.kind in _TIMEOUTS and evidence in _WORDS:
        return "words"
    worded = evidence in _WORDS or (evidence == "code" and not is_known(detail))
    stated = verdict.status is not None and (evidence != "http_status" or verdict.weight >= GENERIC_CODE)
    if worded or (evidence == "http_status" and not stated):
        return "remote" if stated or verdict.kind in REFUSALS else "words"
    return "remote"
