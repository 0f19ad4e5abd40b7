"""The retry budget: how many retries a tool may still spend (R25).

Rules
-----
- A tool starts with ``FULL`` tokens and never has more. A retry costs one; a success brings back a tenth, ten seconds
  bring back one.
- Without a whole token there is no retry, and nothing is taken.
- A clock that stands still or is set back brings nothing and costs nothing; the count goes on from its new time.

Why a budget beside ``max_attempts``: attempts limit one call, and in an outage every call spends all of them, so the
load on a dying service is multiplied just when it can bear it least. The budget ties retries to successes: in a long
outage at most one call in ten seconds is retried (T18), while a short one is not noticed. Per tool, so that a dead
tool starves nobody else. 90 tokens let S-tests 2.1 run twenty times (80 retries).
"""

from __future__ import annotations

from typing import NamedTuple

FULL = 90.0
_PER_SUCCESS = 0.1
_PER_SECOND = 0.1
_ENOUGH = 1 - 1e-9  # ten times 0.1 is a whole token, whatever binary fractions make of it


class Budget(NamedTuple):
    """What is left, and when that was counted."""

    tokens: float = FULL
    at: float = 0.0


def is_ample(budget: Budget, *, now: float, successes: int, more: int) -> bool:
    """Is a retry paid for, and would up to so many ``more`` successes be worth the same before it as after it?

    They would not where they fill the budget: what a full one cannot hold is lost.
    """
    tokens = budget.tokens + successes * _PER_SUCCESS + max(0.0, now - budget.at) * _PER_SECOND
    return _ENOUGH <= tokens <= FULL - more * _PER_SUCCESS


def spend(budget: Budget, *, now: float, successes: int = 0) -> tuple[Budget, bool]:
    """Pay for one retry; False when there is not enough. ``successes`` are those since the last time."""
    waited = max(0.0, now - budget.at)
    tokens = min(FULL, budget.tokens + successes * _PER_SUCCESS + waited * _PER_SECOND)
    if tokens < _ENOUGH:
        return Budget(tokens, now), False
    return Budget(tokens - 1, now), True
