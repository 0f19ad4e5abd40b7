"""The rate hold: after a server says "retry after …", hold back further calls until then.

Rules
-----
- A failed attempt with a ``retry_after`` from a header or a structured field holds back all calls of that tool and
  tenant. A later time replaces an earlier one, never the reverse.
- A time found only in an error's text holds back only calls of the same thread: the text may quote a user. Without a
  thread it holds back nothing.
- A call that is held back waits if its total wait for servers stays within ``max_hint_wait`` and the hold ends before
  its turn's deadline. Otherwise it fails at once and reports the remaining time. Waiting uses no attempt and no retry
  budget.
- Waiting calls resume spread out: each adds up to ``jitter_percent`` to its wait.
- A hold lasts at most ``LONGEST`` seconds, and a tool has at most ``MOST`` holds. Beyond that, holds of threads are
  dropped first, then those that end first.

``LONGEST`` exists because the time comes from outside. A tool that fetches arbitrary pages must not be blocked for a day
because one server said so.
"""

from __future__ import annotations

from collections.abc import Mapping

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.resilience.retry import NoRetry, Retry

LONGEST = 300.0  # seconds
MOST = 1_000

Who = tuple[str | None, str | None]  # tenant and thread; thread None: all threads of the tenant
Holds = Mapping[Who, float]  # the time at which each hold ends


def hold(holds: Holds, tenant: str | None, seconds: float, *, now: float, thread: str | None = None) -> Holds:
    """Hold back the calls of a tenant or of one of its threads, and drop expired holds."""
    kept = dict(release(holds, now=now))
    who = (tenant, thread)
    kept[who] = max(kept.get(who, 0.0), now + min(seconds, LONGEST))
    while len(kept) > MOST:
        del kept[min(kept, key=lambda one: (one[1] is None, kept[one]))]
    return kept


def release(holds: Holds, *, now: float) -> Holds:
    """Return the holds that have not expired."""
    return {who: until for who, until in holds.items() if until - now > MOMENT}


def remaining(holds: Holds, tenant: str | None, *, now: float, thread: str | None = None) -> float:
    """Return the seconds for which a call of this tenant and thread is held back; 0 if it is not."""
    seconds = max(holds.get((tenant, None), 0.0), holds.get((tenant, thread), 0.0)) - now
    return seconds if seconds > MOMENT else 0.0


def plan_wait(
    seconds: float, *, waited: float, patience: float, turn_left: float | None, jitter: float, jitter_percent: float
) -> Retry | NoRetry:
    """Decide whether a call that is held back for ``seconds`` waits; ``jitter`` is a random number in [0, 1)."""
    wait = seconds * (1 + jitter * jitter_percent / 100)
    if waited + seconds > patience + MOMENT or (turn_left is not None and wait >= turn_left):
        return NoRetry(f"held back for {text(seconds)}")
    return Retry(wait, hinted=True)
