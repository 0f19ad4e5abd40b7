"""Numbers that stand in sentences are the code's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from failsoft.core import backoff, budget, explain, hold, memory, redact, threads
from failsoft.core.entrypoint import Command
from failsoft.core.manifest import reading
from failsoft.core.options import BreakerOptions, RetryOptions, ToolOptions, TurnOptions
from failsoft.observe import delivery
from failsoft.runtime import consulting, keeping, offload, phrasing
from failsoft.runtime.isolation import supervisor

DOCS = Path(__file__).parents[2] / "docs"
HOUR, WEEK = 3600, 7 * 24 * 3600

SAID: list[tuple[str, str, object, object]] = [
    ("concepts/breaker.md", "for `timeout` (30 s)", BreakerOptions().timeout, 30),
    ("concepts/budget.md", "It starts with 90 tokens", budget.FULL, 90),
    ("concepts/deadlines.md", "30 s unless you say otherwise", ToolOptions(id="x").timeout, 30),
    ("concepts/deadlines.md", "64 may be abandoned at a time", offload.MOST_ABANDONED, 64),
    ("concepts/deadlines.md", "SIGKILL a second later", supervisor.GRACE, 1),
    ("concepts/explanations.md", "at most 500 characters", explain.MODEL_LENGTH, 500),
    ("concepts/explanations.md", "It has two seconds", phrasing.PATIENCE, 2),
    ("concepts/explanations.md", "at most 1,000 characters", explain.USER_LENGTH, 1000),
    ("concepts/memory.md", "at least half an hour", memory.EPISODE_LEAST, HOUR / 2),
    ("concepts/memory.md", "or after eight hours", memory.EPISODE_MOST, 8 * HOUR),
    ("concepts/memory.md", "by half in a week", memory.HALF_LIFE, WEEK),
    ("concepts/memory.md", "twenty episodes without one cure", memory.ENOUGH, 20),
    ("concepts/memory.md", "every twentieth call", memory.EXPLORE, 20),
    ("concepts/memory.md", "2,000 families", memory.FAMILIES, 2000),
    ("concepts/recovery.md", "five minutes at most", hold.LONGEST, 300),
    ("concepts/recovery.md", "It has two seconds", consulting.PATIENCE, 2),
    ("concepts/threads.md", "for 30 minutes", threads.OFFER_LASTS, HOUR / 2),
    ("concepts/threads.md", "for ten minutes", threads.ABSENT_FOR, 600),
    ("concepts/threads.md", "The third identical call", threads.LOOP_AFTER + 1, 3),
    ("concepts/threads.md", "within a minute", threads.LOOP_WINDOW, 60),
    ("concepts/turns.md", "else five minutes", TurnOptions().timeout, 300),
    ("how-to/processes.md", "It may write 10 MB", Command(argv=["x"]).max_output, 10_000_000),
    ("how-to/trace.md", "they wait 50 ms at most", delivery.PATIENCE, 0.05),
    ("is-it-safe-to-retry.md", "there are five attempts", RetryOptions().max_attempts, 5),
    ("is-it-safe-to-retry.md", "later than two seconds", RetryOptions().max_total_time, 2),
    ("is-it-safe-to-retry.md", "More than an hour is not waited for", backoff.LONGEST_HINT, HOUR),
    ("security.md", "at most 256 kB", reading.LARGEST, 256 * 1024),
    ("security.md", "cut to 8 kB", redact.LIMIT, 8 * 1024),
    ("security.md", "or expires (30 minutes)", threads.OFFER_LASTS, HOUR / 2),
    ("tour-why-40s.md", "waits 0.5 s at most for the store", keeping.PATIENCE, 0.5),
]


@pytest.mark.parametrize(
    ("page", "sentence", "number", "said"), SAID, ids=[f"{page}: {words}" for page, words, *_ in SAID]
)
def test_a_number(page: str, sentence: str, number: object, said: object) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert sentence in text, "the sentence has changed: change it here too"
    assert number == said, f"{page} says: {sentence}"
