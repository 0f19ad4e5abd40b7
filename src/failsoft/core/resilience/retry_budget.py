"""The retry budget: a token bucket per tool that limits retries across calls.

Rules
-----
- A tool starts with ``FULL`` tokens, which is also the maximum. A retry costs one token. Each success adds a tenth of a
  token, and each second adds another tenth.
- With less than one token there is no retry, and no token is taken.
- A clock that stops or is set back changes nothing; counting continues from the new time.

``max_attempts`` limits one call. In an outage every call would use all its attempts and multiply the load on a failing
service. The budget ties retries to successes: in a long outage a tool retries about once in ten seconds, while a short
outage is not affected. One tool's budget never limits another tool.
"""

from __future__ import annotations

from failsoft.core.startup.named_tuple import NamedTuple

FULL = 90.0
_PER_SUCCESS = 0.1
_PER_SECOND = 0.1
_ENOUGH = 1 - 1e-9  # tolerates rounding: ten times 0.1 counts as one token


class Budget(NamedTuple):
    """The tokens at the time ``at``."""

    tokens: float = FULL
    at: float = 0.0


def is_ample(budget: Budget, *, now: float, successes: int, more: int) -> bool:
    """True if a token is available and crediting up to ``more`` successes first could not overflow the bucket."""
    tokens = budget.tokens + successes * _PER_SUCCESS + max(0.0, now - budget.at) * _PER_SECOND
    return _ENOUGH <= tokens <= FULL - more * _PER_SUCCESS


def level(budget: Budget, *, now: float, successes: int = 0) -> float:
    """The share of tokens that a tool has: 1.0 is full, 0.0 is empty."""
    tokens = budget.tokens + successes * _PER_SUCCESS + max(0.0, now - budget.at) * _PER_SECOND
    return min(FULL, tokens) / FULL


def spend(budget: Budget, *, now: float, successes: int = 0) -> tuple[Budget, bool]:
    """Pay for one retry; False if there are too few tokens. ``successes`` counts those since the previous call."""
    waited = max(0.0, now - budget.at)
    tokens = min(FULL, budget.tokens + successes * _PER_SUCCESS + waited * _PER_SECOND)
    if tokens < _ENOUGH:
        return Budget(tokens, now), False
    return Budget(tokens - 1, now), True
