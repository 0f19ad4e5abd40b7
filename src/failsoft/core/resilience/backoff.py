"""How long to wait before the next retry (S-spec 2.1-2.3).

Rules
-----
- Before retry n (1 is the first) the wait is ``initial_delay * multiplier ** (n - 1)``, at most ``max_delay``.
- Jitter comes last: uniform, ``jitter_percent`` to either side, so a wait can pass ``max_delay`` by that much (R6).
- A server's hint is never shortened, neither by jitter nor by ``max_delay`` (R6, T20): the longer of the two counts.
- The wait is measured from the end of the failed attempt (R5). It is finite and never negative, for any retry (T19).

Why a hint has an end: it comes from outside, and "come back in a year" must not hold a call for a year. A hint beyond
``LONGEST_HINT`` is no wait but a refusal: ``plan_retry`` does not retry then, so nothing is shortened by the limit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failsoft.core.model.options import RetryOptions

LONGEST_HINT = 3600.0  # seconds; rate limits reset within the hour, quotas of a day or a month are not waited for


def delay(options: RetryOptions, retry: int, *, jitter: float, hint: float | None = None) -> float:
    """Seconds to wait before the given retry; ``jitter`` is a random number in [0, 1), ``hint`` the server's wish."""
    try:
        grown = options.initial_delay * float(options.multiplier) ** (retry - 1)
    except OverflowError:
        grown = math.inf if options.initial_delay else 0.0
    spread = options.jitter_percent / 100 * (2 * jitter - 1)
    wait = min(grown, options.max_delay) * (1 + spread)
    if hint is not None and hint > wait:  # a hint that is NaN is none
        return max(wait, min(hint, LONGEST_HINT))
    return wait
