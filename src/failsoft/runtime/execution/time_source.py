"""The time and the randomness of a runtime, bound once when the runtime is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from failsoft.runtime.execution.clock import Clock


class TimeSource:
    """Reads the clock, waits in blocking code, draws random numbers, makes idempotency keys."""

    __slots__ = ("_bits", "clock", "now", "random", "sleep", "wall")

    def __init__(self, clock: Clock, random: Random) -> None:
        self.clock = clock
        self.now = clock.monotonic
        self.wall = clock.wall
        self.sleep = clock.sleep
        self.random = random.random
        self._bits = random.getrandbits

    def new_key(self) -> str:
        """Make an idempotency key: unique, and not a secret."""
        return f"{self._bits(128):032x}"
