"""The rate hold: when a service says "not before …", nobody asks before (R14).

Rules
-----
- A failed attempt whose error names a time (``retry_after``) in a header or a field of its own holds back all calls of
  that tool, for that tenant, until then. A later time replaces an earlier one, never the other way round.
- A time that was only read in words holds back the calls of the same thread, and without a thread no other call: words
  may quote what a user has written.
- A call that is held back waits, if the sum of its waits for servers stays within its ``max_hint_wait`` and the hold ends
  before its turn's deadline. Else it fails at once, with the time that is left. Waiting costs no attempt and no retry
  budget: nothing was tried.
- Those who wait come back a little apart, later and never sooner: up to ``jitter_percent`` of the wait.
- Bounded: ``LONGEST`` seconds, ``MOST`` holds a tool. Holds of threads are dropped first, then those that end first.

Why ``LONGEST``: the time comes from outside. A tool that fetches pages from everywhere must not be silenced for a day
because one server said so; after that long one call finds out again.
"""

from __future__ import annotations

from collections.abc import Mapping

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.resilience.retry import NoRetry, Retry

LONGEST = 300.0  # seconds
MOST = 1_000

Who = tuple[str | None, str | None]  # a tenant, and one of its threads or None for all of them
Holds = Mapping[Who, float]  # until when


def hold(holds: Holds, tenant: str | None, seconds: float, *, now: float, thread: str | None = None) -> Holds:
    """Hold back the calls of a tenant, or of one of its threads; drop the holds that are over."""
    kept = dict(release(holds, now=now))
    who = (tenant, thread)
    kept[who] = max(kept.get(who, 0.0), now + min(seconds, LONGEST))
    while len(kept) > MOST:
        del kept[min(kept, key=lambda one: (one[1] is None, kept[one]))]
    return kept


def release(holds: Holds, *, now: float) -> Holds:
    """What is left of the holds."""
    return {who: until for who, until in holds.items() if until - now > MOMENT}


def left(holds: Holds, tenant: str | None, *, now: float, thread: str | None = None) -> float:
    """Seconds for which a call of this tenant and thread is held back; 0 if it is not."""
    seconds = max(holds.get((tenant, None), 0.0), holds.get((tenant, thread), 0.0)) - now
    return seconds if seconds > MOMENT else 0.0


def plan_wait(
    seconds: float, *, waited: float, patience: float, turn_left: float | None, jitter: float, jitter_percent: float
) -> Retry | NoRetry:
    """Whether a call that is held back for ``seconds`` waits; ``jitter`` is a random number in [0, 1)."""
    wait = seconds * (1 + jitter * jitter_percent / 100)
    if waited + seconds > patience + MOMENT or (turn_left is not None and wait >= turn_left):
        return NoRetry(f"held back for {text(seconds)}")
    return Retry(wait, hinted=True)
