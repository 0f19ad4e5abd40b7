"""Parts that the conformance suites of stores share: a wall clock, calls at once, and the name of a broken rule."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Wall:
    """A wall clock that a check can set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def broken_rule(check: Callable[..., Any], error: Exception) -> AssertionError:
    """Make the error of a check that failed: its rule, and what was found."""
    found = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return AssertionError(f"{(check.__doc__ or '').strip()}: {found}")


def run_at_once(number: int, do: Callable[[int], T]) -> list[T]:
    """Return the result of each of several OS threads that start at once."""
    found: list[Any] = [None] * number
    ready = threading.Barrier(number)

    def work(who: int) -> None:
        ready.wait()
        found[who] = do(who)

    workers = [threading.Thread(target=work, args=(who,)) for who in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found
