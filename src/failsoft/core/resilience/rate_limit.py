"""The rate limit: a token bucket per tool and tenant.

Rules
-----
- A bucket holds ``calls`` tokens and is full at first. One token comes back every ``seconds / calls``. Every attempt takes one:
  the first, retries, and those of fallbacks from the fallback's own bucket.
- An attempt that finds no token reserves the next one that comes back. So attempts run in the order in which they asked, and
  each knows at once how long it waits: waiting needs no queue and no wake-up.
- An attempt waits if its token comes before the turn's deadline, and within ``LONGEST_WAIT`` if there is none. Otherwise it gives
  its place back and is refused.
- A place that is given back is free for the next attempt that asks. Attempts that already wait keep their times.

A bucket is one number: the time at which it will be full again if no token is taken. (This is the generic cell rate algorithm.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.resilience.retry import NoRetry, Retry

if TYPE_CHECKING:
    from failsoft.core.model.rates import Rate

LONGEST_WAIT = 300.0  # seconds, for a call without a deadline: the default time of a turn
MOST_BUCKETS = 1_000  # per tool; the fullest ones are dropped first: a full bucket is the same as none

FULL = 0.0  # a bucket from which no token was taken


def take(full_at: float, rate: Rate, *, now: float) -> tuple[float, float]:
    """Take the next token. Returns the bucket, and the seconds until the token is there; 0 if it is."""
    full_at = max(full_at, now) + rate.seconds / rate.calls
    wait = full_at - rate.seconds - now
    return full_at, wait if wait > MOMENT else 0.0


def give_back(full_at: float, rate: Rate) -> float:
    """Return the bucket after a token that was not used has been given back."""
    return full_at - rate.seconds / rate.calls


def plan_turn(seconds: float, *, turn_left: float | None) -> Retry | NoRetry:
    """Decide whether an attempt waits for a token that comes in ``seconds``."""
    if seconds > LONGEST_WAIT + MOMENT if turn_left is None else seconds >= turn_left:
        return NoRetry(f"the rate limit leaves no room for {text(seconds)}")
    return Retry(seconds)
