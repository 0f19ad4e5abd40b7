"""A second breaker, written from the rules and in another way, to check the first one against.

It remembers nothing but the story so far, a letter for everything that has happened, and answers every question by
reading the story backwards: no counters, no states, no generations, no tickets. A call is known by its place in the
story. Times are whole milliseconds.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Phase = Literal["closed", "open", "half_open"]

CALL = "c"  # an ordinary call was let in
ASK = "a"  # somebody asked while the circuit was not closed
PROBE = "p"  # and was let in
RETURNED = "r"  # the latest probe has answered
GOOD, BAD = "+", "-"
OPENED, CLOSED = "O", "C"


class Refused(NamedTuple):
    wait: float
    phase: Phase


class Model:
    def __init__(
        self,
        failure_threshold: int,
        success_threshold: int,
        timeout: int,
        window: int = 0,
        rate: float = 1.0,
        least: int = 1,
    ) -> None:
        self.window, self.rate, self.least = window, rate, least  # no window: 0
        self.failure_threshold = failure_threshold
        self.success_threshold = success_threshold
        self.timeout = timeout
        self.story = ""
        self.times: list[float] = []  # for each letter that waits are reckoned from, when it was; else infinity
        self.leases: dict[int, int] = {}  # for each probe

    # --- what happens ---

    def ask(self, now: int, lease: int) -> int | Refused:
        """A call wants to start: its place in the story, or the refusal."""
        if self.phase(now) == "closed":
            return self._tell(CALL)
        self._tell(ASK, now)
        wait = self._wait(now)
        if wait > 0:
            return Refused(wait, self.phase(now))
        place = self._tell(PROBE, now)
        self.leases[place] = lease
        return place

    def report(self, place: int, result: str, now: int) -> None:
        """The call that started at this place in the story has ended."""
        story = self.story
        probing = place in self.leases
        if place < story.rfind(OPENED):
            return
        if probing:
            if place < story.rfind(PROBE) or place < story.rfind(RETURNED) or self._wait(now) <= 0:
                return
            self._tell(RETURNED)
        if result == "success":
            self._tell(GOOD)
            if probing and self.successes() >= self.success_threshold:
                self._tell(CLOSED)
        if result == "failure":
            self._tell(BAD)
            if probing or self.failures() >= self.failure_threshold or self._is_too_bad():
                self._tell(OPENED, now)

    # --- what can be asked ---

    def phase(self, now: int) -> Phase:
        opened = self.story.rfind(OPENED)
        if opened <= self.story.rfind(CLOSED):  # both -1: neither has ever happened
            return "closed"
        return "half_open" if self.story.rfind(PROBE) > opened or self._wait(now) <= 0 else "open"

    def failures(self) -> int:
        """How many bad results since the last good one."""
        return self.story.count(BAD, self.story.rfind(GOOD) + 1)

    def recent(self) -> str:
        """The results in the window: those since the circuit was last closed."""
        results = [letter for letter in self.story[self.story.rfind(CLOSED) + 1 :] if letter in (GOOD, BAD)]
        return (
            "".join(results[len(results) - self.window :] if self.window < len(results) else results)
            if self.window
            else ""
        )

    def _is_too_bad(self) -> bool:
        recent = self.recent()
        return bool(self.window) and len(recent) >= self.least and recent.count(BAD) >= self.rate * len(recent)

    def successes(self) -> int:
        """How many good results since it opened, while that lasts."""
        opened = self.story.rfind(OPENED)
        return self.story.count(GOOD, opened) if opened > self.story.rfind(CLOSED) else 0

    def _wait(self, now: int) -> float:
        """The time until the next call can be admitted. A clock that was set back is noticed by this query."""
        opened, probe = self.story.rfind(OPENED), self.story.rfind(PROBE)
        if probe < opened:
            return min(self.times[opened:]) + self.timeout - now
        if probe < self.story.rfind(RETURNED):
            return 0
        return min(self.times[probe:]) + self.leases[probe] - now

    def _tell(self, letter: str, time: float = math.inf) -> int:
        self.story += letter
        self.times.append(time)
        return len(self.story) - 1
