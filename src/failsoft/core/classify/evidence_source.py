"""Evidence sources: whether evidence comes from the other side, from this process, or from words.

Rules
-----
- ``remote``: a status, a provider's code, a SQLSTATE and the like; a connection that was never made (for a timeout only
  if the client's exception says that it was connecting); words that state a status or name a refusal ("rate limit
  exceeded"). Quoted words do not count.
- ``local``: the type of an exception, a parser, an errno, a program's exit status, a database in this process (SQLite).
- ``words``: any other text, and codes that are read as words.

A local exception says nothing about what the other side did before it. ``core.effects.call_effect`` uses the source to
decide whether a call may claim that nothing happened.
"""

from __future__ import annotations

from typing import Final

from failsoft.core.classify.lookup import GENERIC_CODE, KindMatch, is_known
from failsoft.core.model.fault import Source

# The connection was never made, so nothing was sent
UNCONNECTED: Final = frozenset(
    "refused unreachable name_lookup_failed connect_timeout lookup_timeout unknown_host certificate".split()
)
# Refusals that only the other side issues: their name is enough
REFUSALS: Final = UNCONNECTED | frozenset("rate_limited per_minute quota unauthenticated declined".split())

# Prefixes of rules that are not code spaces of a remote side
_LOCAL: Final = frozenset("type name text page answer errno winsock exit program sqlite curl".split())
_NAMES: Final = frozenset({"type", "name"})  # a class named after a refusal counts like its words
# Classes for a server's refusal, and for a request that was never sent
_REPLIES: Final = frozenset(
    f"type: {name}"
    for name in (
        "httpx.PoolTimeout redis.BusyLoadingError redis.ReadOnlyError redis.ClusterDownError redis.MasterDownError "
        "redis.TryAgainError redis.NoPermissionError redis.OutOfMemoryError redis.ClusterCrossSlotError redis.NoScriptError"
    ).split()
)
_NOT_ONLY_NAMES: Final = "ENODATA"  # of a name server, but also of a file's attributes
# "Connection timed out" may also mean that an established connection got no answer
_TIMEOUTS: Final = frozenset({"connect_timeout", "lookup_timeout"})
_WORDS: Final = frozenset({"phrase", "unknown", "says of itself"})
_VAGUE: Final = _WORDS | {"errno", "winsock"}


def find_source(verdict: KindMatch) -> Source:
    """Return the source of a match, from its rule and kind."""
    evidence, _, detail = verdict.rule.partition(": ")
    unsure = evidence in _VAGUE and (verdict.kind in _TIMEOUTS or detail == _NOT_ONLY_NAMES)
    if verdict.kind in UNCONNECTED and not unsure:
        return "remote"
    if verdict.rule in _REPLIES:
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
