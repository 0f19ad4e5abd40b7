"""Numbers in sentences of the docs agree with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from failsoft.config.manifest import reading
from failsoft.core.conversation import thread_state as threads
from failsoft.core.explain import explanation
from failsoft.core.model.entrypoint import Command
from failsoft.core.model.options import BreakerOptions, RetryOptions, ToolOptions, TurnOptions
from failsoft.core.redact import sanitise
from failsoft.core.resilience import backoff, rate_hold, recovery_memory, retry_budget
from failsoft.observe import delivery
from failsoft.runtime.call import error_handler, user_text
from failsoft.runtime.execution import thread_pool
from failsoft.runtime.execution.processes import supervisor
from failsoft.runtime.persistence import event_writer

DOCS = Path(__file__).parents[2] / "docs"
HOUR, WEEK = 3600, 7 * 24 * 3600

SAID: list[tuple[str, str, object, object]] = [
    ("concepts/breaker.md", "for `timeout` (30 s)", BreakerOptions().timeout, 30),
    ("concepts/budget.md", "It starts with 90 tokens", retry_budget.FULL, 90),
    ("concepts/deadlines.md", "30 s unless you say otherwise", ToolOptions(id="x").timeout, 30),
    ("concepts/deadlines.md", "64 may be abandoned at a time", thread_pool.MOST_ABANDONED, 64),
    ("concepts/deadlines.md", "SIGKILL a second later", supervisor.GRACE, 1),
    ("concepts/explanations.md", "at most 500 characters", explanation.MODEL_LENGTH, 500),
    ("concepts/explanations.md", "It has two seconds", user_text.PATIENCE, 2),
    ("concepts/explanations.md", "at most 1,000 characters", explanation.USER_LENGTH, 1000),
    ("concepts/memory.md", "at least half an hour", recovery_memory.EPISODE_LEAST, HOUR / 2),
    ("concepts/memory.md", "or after eight hours", recovery_memory.EPISODE_MOST, 8 * HOUR),
    ("concepts/memory.md", "by half in a week", recovery_memory.HALF_LIFE, WEEK),
    ("concepts/memory.md", "twenty episodes without one cure", recovery_memory.ENOUGH, 20),
    ("concepts/memory.md", "every twentieth call", recovery_memory.EXPLORE, 20),
    ("concepts/memory.md", "2,000 families", recovery_memory.FAMILIES, 2000),
    ("concepts/recovery.md", "five minutes at most", rate_hold.LONGEST, 300),
    ("concepts/recovery.md", "It has two seconds", error_handler.PATIENCE, 2),
    ("concepts/threads.md", "for 30 minutes", threads.OFFER_LASTS, HOUR / 2),
    ("concepts/threads.md", "for ten minutes", threads.ABSENT_FOR, 600),
    ("concepts/threads.md", "The third identical call", threads.LOOP_AFTER + 1, 3),
    ("concepts/threads.md", "within a minute", threads.LOOP_WINDOW, 60),
    ("concepts/turns.md", "else five minutes", TurnOptions().timeout, 300),
    ("how-to/processes.md", "It may write 10 MB", Command(argv=["x"]).max_output, 10_000_000),
    ("how-to/trace.md", "longer than 50 ms is not waited for", delivery.PATIENCE, 0.05),
    ("is-it-safe-to-retry.md", "there are five attempts", RetryOptions().max_attempts, 5),
    ("is-it-safe-to-retry.md", "later than two seconds", RetryOptions().max_total_time, 2),
    ("is-it-safe-to-retry.md", "failsoft does not wait for more than an hour", backoff.LONGEST_HINT, HOUR),
    ("security.md", "at most 256 kB", reading.LARGEST, 256 * 1024),
    ("security.md", "cut to 8 kB", sanitise.LIMIT, 8 * 1024),
    ("security.md", "or expires (30 minutes)", threads.OFFER_LASTS, HOUR / 2),
    ("tour-why-40s.md", "waits 0.5 s at most for the store", event_writer.PATIENCE, 0.5),
]


@pytest.mark.parametrize(
    ("page", "sentence", "number", "said"), SAID, ids=[f"{page}: {words}" for page, words, *_ in SAID]
)
def test_numbers_in_sentences_agree_with_the_code(page: str, sentence: str, number: object, said: object) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert sentence in text, "the sentence has changed: change it here too"
    assert number == said, f"{page} says: {sentence}"
