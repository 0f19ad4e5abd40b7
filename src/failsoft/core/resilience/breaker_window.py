"""The window of a circuit breaker: its latest results, and when the failures among them open the circuit.

A window is a text, oldest result first: ``+`` for a success, ``-`` for a failure. It is bounded, can be read in a store, and
means the same in every process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.model.durations import MOMENT

if TYPE_CHECKING:
    from failsoft.core.model.options import BreakerOptions


def remember(recent: str, window: int, result: str) -> str:
    """Add a result to the window; the oldest one leaves it."""
    return (recent + result)[-window:]


def failure_rate(recent: str) -> float | None:
    """The share of failures among the results in a window; None if it is empty."""
    return recent.count("-") / len(recent) if recent else None


def exceeds_rate(recent: str, options: BreakerOptions) -> bool:
    """True if the failures in the window open the circuit."""
    if options.window is None or len(recent) < options.needed_calls:
        return False
    return recent.count("-") >= options.opening_rate * len(recent) - MOMENT
