"""The rate limit: a token bucket per tool and tenant.

Rules
-----
- A bucket holds ``calls`` tokens and is full at first. One token comes back every ``seconds / calls``. Every attempt
  takes a token: the first one, retries, and fallbacks (from their own bucket).
- An attempt that finds no token reserves the next one that comes back. So attempts run in the order of their requests,
  and each knows at once how long it waits. Waiting needs no queue and no wake-up.
- An attempt waits if its token comes before the turn's deadline, or within ``LONGEST_WAIT`` if there is no deadline.
  Otherwise it gives its place back and is refused.
- A place that is given back is free for the next attempt that asks before its time. Attempts that already wait keep their
  times. A place whose time passes before an attempt takes it is lost: a later attempt would run too close to its neighbours.

A bucket is the time at which it will be full again if no token is taken (the generic cell rate algorithm), and the times that
were given back.
"""

from __future__ import annotations

from bisect import bisect, insort
from typing import TYPE_CHECKING, Final

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.resilience.retry import NoRetry, Retry
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.rates import Rate

LONGEST_WAIT = 300.0  # seconds, for a call without a deadline: the default time of a turn
MOST_BUCKETS = 1_000  # per tool; the fullest ones are dropped first: a full bucket is the same as none


class Bucket(NamedTuple):
    """The tokens of one tool and tenant."""

    full_at: float  # when it will be full if no token is taken
    given_back: tuple[float, ...] = ()  # times between those of waiting attempts, the earliest first


FULL: Final = Bucket(0.0)  # a bucket from which no token was taken


def take(bucket: Bucket, rate: Rate, *, now: float) -> tuple[Bucket, float]:
    """Take the next token. Returns the bucket, and the seconds until the token is there; 0 if it is."""
    free = bucket.given_back[bisect(bucket.given_back, now) :] if bucket.given_back else ()
    if free:
        return Bucket(bucket.full_at, free[1:]), free[0] - now
    full_at = max(bucket.full_at, now) + rate.seconds / rate.calls
    wait = full_at - rate.seconds - now
    return Bucket(full_at), wait if wait > MOMENT else 0.0


def give_back(bucket: Bucket, rate: Rate, *, at: float) -> Bucket:
    """Return the bucket after a waiting attempt has given back its token of the time ``at``."""
    times = list(bucket.given_back)
    insort(times, at)
    full_at = bucket.full_at
    while times and times[-1] >= full_at - rate.seconds - MOMENT:  # the last token: as if it had never been taken
        times.pop()
        full_at -= rate.seconds / rate.calls
    return Bucket(full_at, tuple(times))


def plan_turn(seconds: float, *, turn_left: float | None) -> Retry | NoRetry:
    """Decide whether an attempt waits for a token that comes in ``seconds``."""
    if seconds > LONGEST_WAIT + MOMENT if turn_left is None else seconds >= turn_left:
        return NoRetry(f"the rate limit leaves no room for {text(seconds)}")
    return Retry(seconds)
