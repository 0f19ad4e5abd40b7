"""Backoff: the wait before each retry.

Rules
-----
- The wait before retry n (the first is 1) is ``initial_delay * multiplier ** (n - 1)``, capped at ``max_delay``.
- Jitter is applied last: uniform, ``jitter_percent`` either way. A wait may therefore exceed ``max_delay`` slightly.
- A server's hint is a minimum. Neither jitter nor ``max_delay`` shortens it.
- The wait starts when the failed attempt ends. It is always finite and never negative.

A hint longer than ``LONGEST_HINT`` means no retry at all (see ``plan_retry``). Without that limit a server could hold a
call for a year.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failsoft.core.model.options import RetryOptions

LONGEST_HINT = 3600.0  # seconds; most rate limits reset within an hour, daily or monthly quotas do not


def delay(options: RetryOptions, retry: int, *, jitter: float, hint: float | None = None) -> float:
    """Return the seconds to wait before ``retry``; ``jitter`` is a random number in [0, 1), ``hint`` the server's wait."""
    try:
        grown = options.initial_delay * float(options.multiplier) ** (retry - 1)
    except OverflowError:
        grown = math.inf if options.initial_delay else 0.0
    spread = options.jitter_percent / 100 * (2 * jitter - 1)
    wait = min(grown, options.max_delay) * (1 + spread)
    if hint is not None and hint > wait:  # False for NaN
        return max(wait, min(hint, LONGEST_HINT))
    return wait
