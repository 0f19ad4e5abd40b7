"""Repair an asyncio event loop after an interrupt inside asyncio.

Rules
-----
- An interrupt while asyncio compares timers leaves its heap of timers out of order: a new timer may fire minutes late.
  The heap is put in order.
- An interrupt after asyncio has taken a timer from its queue loses the timer. The timers of deadlines are set again.
- From Python 3.13 on, an interrupt in the clean-up of ``run_forever`` leaves the loop marked as running. The clean-up is
  repeated.
- An interrupt after asyncio has taken a step of a task from its queue loses the step: the task waits forever, even when it
  is cancelled. Such a task is ended.

The heap, the clean-up and ``_must_cancel`` are private attributes of asyncio. On a loop without them nothing is changed.
"""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from typing import Any

from failsoft.runtime.execution.deadline import renew_timers


def mend_timers(loop: asyncio.AbstractEventLoop) -> None:
    """Put the timers of a loop in order, and set those of deadlines again."""
    sort_timers(loop)
    renew_timers(loop)


def end_run(loop: asyncio.AbstractEventLoop) -> None:
    """Repeat the clean-up of ``run_forever``, which has ended in this OS thread."""
    clean_up = getattr(loop, "_run_forever_cleanup", None)
    if callable(clean_up):
        clean_up()


def sort_timers(loop: asyncio.AbstractEventLoop) -> None:
    """Put the timers of a loop in order."""
    timers = getattr(loop, "_scheduled", None)
    if isinstance(timers, list):
        heapq.heapify(timers)


def end_stuck_tasks(suspects: set[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop) -> set[asyncio.Task[Any]]:
    """End tasks whose next step was lost; return the tasks that may be stuck, to be checked in the next round.

    The next step of a task clears its cancellation request. If a whole round of the loop has not done this, the task
    has no next step in the queue.
    """
    unaware = {task for task in asyncio.all_tasks(loop) if getattr(task, "_must_cancel", False)}
    for task in unaware & suspects:
        coroutine = task.get_coro()
        with suppress(Exception):  # its clean-up may fail, or await
            coroutine.close()
        asyncio.Future.cancel(task)  # not the task's own method, which leaves the end to the next step
    return unaware - suspects
