"""Deadlines of attempts with an idle timeout.

Such an attempt has its own deadline queue, and so its own timer. The timer fires when the idle timeout would have
passed, and is set again if there was progress meanwhile. The attempt is ended as at its deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.runtime.execution.deadline import LoopDeadlines, Place, Queue, Timed, finish_in
from failsoft.runtime.execution.stepping import Stepper

if TYPE_CHECKING:
    from failsoft.runtime.progress import Activity


class IdleQueue(Queue):
    """The queue of one attempt with an idle timeout."""

    __slots__ = ("_activity",)

    def __init__(self, deadlines: LoopDeadlines, timeout: float, activity: Activity) -> None:
        super().__init__(deadlines, timeout)
        self._activity = activity

    def remaining(self, started: float, now: float) -> float:
        """The time until the deadline, or until the idle timeout if that comes first."""
        cap, idle = started + self.timeout - now, self._activity.remaining(now)
        if idle <= 0 < cap:
            self._activity.expire()
        return min(cap, idle)


async def finish_watched(
    stepper: Stepper,
    waiting: Any,
    timed: Timed,
    timeout: float,  # noqa: ASYNC109 - of the tool
    started: float,
    place: Place,
    owner: Any,
    activity: Activity,
) -> None:
    """Run a tool like ``deadline.finish``, and also end it if it makes no progress."""
    shared, task = place(timed, timeout)
    deadlines = shared.deadlines
    queue = IdleQueue(deadlines, timeout, activity)
    deadlines.own_queues[queue] = None
    try:
        await finish_in(queue, task, stepper, waiting, timed, started, owner)
    finally:
        queue.disarm()
        deadlines.own_queues.pop(queue, None)
