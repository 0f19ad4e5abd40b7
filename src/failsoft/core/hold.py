"""The rate hold: when a service says "not before …", nobody asks before (R14).

Rules
-----
- A failed attempt whose error names a time (``retry_after``) holds back all calls of that tool, for that tenant, until
  then. A later time replaces an earlier one, never the other way round.
- A call that is held back waits, if the sum of its waits for servers stays within its ``max_hint_wait`` and the hold ends
  before its turn's deadline. Else it fails at once, with the time that is left. Waiting costs no attempt and no retry
  budget: nothing was tried.
- Those who wait come back a little apart, later and never sooner: up to ``jitter_percent`` of the wait.
- Bounded: ``LONGEST`` seconds, ``TENANTS`` tenants a tool; those that end first are dropped first.

Why ``LONGEST``: the time comes from outside. A tool that fetches pages from everywhere must not be silenced for a day
because one server said so; after that long one call finds out again.
"""

from __future__ import annotations

from collections.abc import Mapping

from failsoft.core.durations import MOMENT, text
from failsoft.core.retry import NoRetry, Retry

LONGEST = 300.0  # seconds
TENANTS = 1_000

Holds = Mapping[str | None, float]  # by tenant: until when


def hold(holds: Holds, tenant: str | None, seconds: float, *, now: float) -> Holds:
    """Hold a tenant's calls back for so long; what is over is dropped."""
    kept = {who: until for who, until in holds.items() if until - now > MOMENT}
    kept[tenant] = max(kept.get(tenant, 0.0), now + min(seconds, LONGEST))
    while len(kept) > TENANTS:
        del kept[min(kept, key=kept.__getitem__)]
    return kept


def release(holds: Holds, *, now: float) -> Holds:
    """What is left of the holds."""
    return {who: until for who, until in holds.items() if until - now > MOMENT}


def left(holds: Holds, tenant: str | None, *, now: float) -> float:
    """For how many seconds a tenant's calls are held back; 0: they are not."""
    seconds = holds.get(tenant, 0.0) - now
    return seconds if seconds > MOMENT else 0.0


def plan_wait(
    seconds: float, *, waited: float, patience: float, turn_left: float | None, jitter: float, jitter_percent: float
) -> Retry | NoRetry:
    """Whether a call that is held back for ``seconds`` waits; ``jitter`` is a random number in [0, 1)."""
    wait = seconds * (1 + jitter * jitter_percent / 100)
    if waited + seconds > patience + MOMENT or (turn_left is not None and wait >= turn_left):
        return NoRetry(f"held back for {text(seconds)}")
    return Retry(wait, hinted=True)
