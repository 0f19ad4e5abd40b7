"""Exact deadlines for tools that suspend, without a timer or a task per call.

Rules
-----
- A tool's coroutine is stepped inside its caller's task. Only when it suspends does it get a place in a deadline queue.
- Equal timeouts expire in the order in which they were set, so there is one queue per timeout value and event loop, and
  one loop timer per queue. If every call has a timeout of its own, empty queues are dropped.
- At the deadline the caller's task is cancelled, and the cancellation is thrown into the tool. The caller is answered
  at once in any case. A tool that suspends again is abandoned, and continues in a task of its own.
- If the tool waits for another task, that task gets the cancellation first and may swallow it. The tool then keeps
  waiting, so it cleans up no earlier than the task that it waits for.
- If ``task.cancelling()`` is higher than deadlines and the timeouts inside the tool explain, the caller was cancelled,
  and that takes precedence. Our cancellations are taken back before the tool sees them, because timeouts inside it
  count cancellations as well.
- An exception is thrown into the tool outside of its ``except`` block here. Otherwise all later exceptions of the tool
  would have it as their context.

Why: a task per call costs fifty times a bare await, ``asyncio.timeout`` almost as much, this module about three times.
"""

from __future__ import annotations

import asyncio
import math
import sys
from asyncio import _get_running_loop as get_running_loop
from asyncio import current_task
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextvars import Context
from threading import get_ident
from types import GeneratorType, coroutine
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

from failsoft.runtime.execution.outliving import Outliving, log_end, wake
from failsoft.runtime.execution.stepping import ENDS, OVER, Stepper, cancel, has_ended, run_abandoned
from failsoft.runtime.scope import step_out

Suspended = tuple[float, "asyncio.Task[Any]", Any]  # an attempt: its start, its caller's task, its owner
QUEUES = 64  # queues of one loop, above which empty ones are dropped
PATIENCE = 20  # rounds of the loop: cancelling tasks that wait for each other takes a few
CANCELS: dict[asyncio.Task[Any], int] = {}  # cancellations by deadlines of any runtime that were not taken back yet


class Expired(Exception):
    """The tool's own deadline has passed."""

    def __init__(self, *, late: bool = False, abandoned: asyncio.Task[None] | None = None) -> None:
        super().__init__()
        self.late = late  # it returned a value when it was cancelled: the effect happened
        self.abandoned = abandoned  # the tool, if it cannot be cancelled


class Watch(Protocol):
    """Reports calls that take long, by a timer of its own."""

    def arm(self) -> None:
        """Set the timer unless it is set."""

    def renew(self) -> None:
        """Set the timer again."""


class LoopDeadlines:
    """The deadlines of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self.loop = loop
        self.context = Context()  # for timers, which would keep a caller's context alive
        self.thread = get_ident()
        self.now = now
        self.hits: dict[Stepper, int] = {}  # attempts past their deadline -> rounds since then
        self.before: WeakKeyDictionary[Stepper, int] = WeakKeyDictionary()  # cancellations from before it began
        self.abandoned: dict[asyncio.Task[None], str] = {}  # tools that could not be cancelled, with their names
        self._queues: dict[float, Queue] = {}
        self.own_queues: dict[Queue, None] = {}  # queues of attempts that do not share a timer
        self._most = QUEUES
        self.watch: Watch | None = None
        _ALL.add(self)

    def suspended(self) -> Iterator[Suspended]:
        """The attempts that are suspended now. Any OS thread may call this."""
        for queue in (*list(self._queues.values()), *list(self.own_queues)):
            yield from [of for stepper, of in list(queue.live.items()) if not has_ended(stepper, of[1])]

    def start_watch(self) -> None:
        """Report calls that take long from now on."""
        if self.watch is not None:
            self.watch.arm()

    def unwatched(self) -> None:
        """Stop the watch. The next attempt that suspends starts it again."""
        for queue in (*self._queues.values(), *self.own_queues):
            queue.armed = False

    def renew_timers(self) -> None:
        """Set all timers again."""
        if self.watch is not None:
            self.watch.renew()
        for queue in (*self._queues.values(), *self.own_queues):
            queue.disarm()
            if queue.live:
                queue.arm(0.0)

    def queue(self, timeout: float) -> Queue:
        found = self._queues.get(timeout)
        if found is None:
            if len(self._queues) >= self._most:
                self._drop_empty()
            found = self._queues[timeout] = Queue(self, timeout)
        return found

    def _drop_empty(self) -> None:
        for queue in self._queues.values():
            if not queue.live:
                queue.disarm()  # a tool may still refer to it, and use it
        self._queues = {timeout: queue for timeout, queue in self._queues.items() if queue.live}
        self._most = max(QUEUES, 2 * len(self._queues))

    def others(self, stepper: Stepper, task: asyncio.Task[Any]) -> int:
        """The number of cancellations of the task since the attempt began, without our own."""
        return task.cancelling() - CANCELS.get(task, 0) - self.before.get(stepper, 0)

    @staticmethod
    def outside(stepper: Stepper, task: asyncio.Task[Any]) -> int:
        """The number of cancellations of an abandoned tool's task that do not come from inside the tool."""
        from failsoft.runtime.execution.abandoned import count_requests  # most tools can be cancelled

        return task.cancelling() - CANCELS.get(task, 0) - count_requests(stepper, task)

    def take_back(self, stepper: Stepper, task: asyncio.Task[Any]) -> None:
        del self.hits[stepper]
        remaining = CANCELS.pop(task) - 1
        if remaining:
            CANCELS[task] = remaining
        task.uncancel()


_ALL: WeakSet[LoopDeadlines] = WeakSet()


def renew_timers(loop: asyncio.AbstractEventLoop) -> None:
    """Set the timers of a loop again: an interrupt inside asyncio may have lost one, and later deadlines with it."""
    for deadlines in list(_ALL):
        if deadlines.loop is loop:
            deadlines.renew_timers()


class Queue:
    """The attempts of one loop that share one timeout, oldest first."""

    __slots__ = ("armed", "deadlines", "hits", "live", "loop", "thread", "timeout", "timer")

    def __init__(self, deadlines: LoopDeadlines, timeout: float) -> None:
        self.deadlines = deadlines
        self.loop = deadlines.loop
        self.timeout = timeout
        self.hits = deadlines.hits
        self.live: dict[Stepper, Suspended] = {}
        self.thread = deadlines.thread
        self.armed = False
        self.timer: asyncio.TimerHandle | None = None

    def arm(self, delay: float) -> None:
        if self.timer is None and delay < math.inf:
            self.timer = self.loop.call_later(max(delay, 0.0), self._fire, context=self.deadlines.context)
        self.deadlines.start_watch()
        self.armed = True  # not before: an interrupt may have kept the timer from being set

    def disarm(self) -> None:
        self.armed = False
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def remaining(self, started: float, now: float) -> float:
        """The time that an attempt has left."""
        return started + self.timeout - now

    def _fire(self) -> None:
        self.armed, self.timer = False, None
        now = self.deadlines.now()
        hits = self.hits
        waits = False
        delay: float | None = None
        ended: list[Stepper] = []
        for stepper, (started, task, _) in self.live.items():
            if has_ended(stepper, task):
                ended.append(stepper)
                continue
            remaining = self.remaining(started, now)
            if remaining > 0:
                delay = 0.0 if waits else remaining
                break
            rounds = hits.get(stepper, 0)
            hits[stepper] = rounds + 1
            if rounds == 0:
                CANCELS[task] = CANCELS.get(task, 0) + 1
                task.cancel()
            elif rounds == PATIENCE:
                wake(task)
            waits |= rounds < PATIENCE
        else:
            delay = 0.0 if waits else None
        for stepper in ended:
            self.take_back(stepper)
            self.live.pop(stepper, None)
        if delay is not None:
            self.arm(delay)

    def throw(self, stepper: Stepper, error: BaseException, waiting: Any, timed: Timed) -> Any:
        """Throw an exception into the tool, for the deadline or for others. Returns what the tool waits for next."""
        if stepper not in self.hits:
            return stepper.throw(error)
        started, task = self.live[stepper][:2]
        deadlines = self.deadlines
        others = deadlines.others(stepper, task)
        if others > 0:
            from failsoft.runtime.execution.abandoned import (
                count_requests,  # rare: another cancellation at the deadline
            )

            others -= count_requests(stepper, task)
        woken = self.hits[stepper] > PATIENCE
        deadlines.take_back(stepper, task)  # do this first: timeouts inside the tool count cancellations as well
        if not isinstance(error, ENDS) or getattr(error, "outer_expired", False):
            return stepper.throw(error)  # the exception is not about this attempt
        late = False
        if not woken and others <= 0:
            vars(error)["outer_expired"] = True  # guarded calls inside must let it through
            waiting, late = cancel(stepper, error)
        elif not woken:
            waiting, late = cancel(stepper, error)
            others = deadlines.others(stepper, task)
            if others <= 0 and waiting is not OVER:
                return waiting  # it came from inside the tool: the deadline has not passed yet
        abandoned = None if waiting is OVER else _abandon(stepper, waiting, task, deadlines, timed, started)
        if others <= 0:
            raise Expired(late=late, abandoned=abandoned)
        if not isinstance(error, asyncio.CancelledError):
            error = asyncio.CancelledError()  # the tool's own exception is not the caller's
        if abandoned is not None:
            vars(error)["abandoned"] = timed  # for the event
        raise error

    def take_back(self, stepper: Stepper) -> bool:
        """Take back the deadline's cancellation if there was one. It has not reached the tool."""
        if stepper not in self.hits:
            return False
        self.deadlines.take_back(stepper, self.live[stepper][1])
        return True


class Timed(Protocol):
    """An owner of attempts with deadlines. It remembers the queue that it used last."""

    queue: Queue | None


Place = Callable[[Any, float], tuple[Queue, "asyncio.Task[Any]"]]


def finish(
    stepper: Stepper, waiting: Any, timed: Timed, timeout: float, started: float, place: Place, owner: Any
) -> Awaitable[None]:
    """Run a tool that has suspended on ``waiting``, until it ends or its deadline passes.

    The queue used last is almost always the right one, and looking up the task in its loop is cheaper than looking up
    the loop. Otherwise ``place`` finds the right queue. ``owner`` identifies the attempt in the list of calls in
    flight: a Call, a Handle, a fast attempt, or the key of a call in the fast retry loop.
    """
    if timeout == math.inf and (get_running_loop() is None or current_task() is None):
        return run_abandoned(stepper, waiting)
    queue = timed.queue
    task = None
    if queue is not None and queue.timeout == timeout and queue.thread == get_ident():
        task = current_task(queue.loop)
    if task is None or queue is None:
        queue, task = place(timed, timeout)
    queue.live[stepper] = (started, task, owner)
    if not queue.armed:
        queue.arm(started + timeout - queue.deadlines.now())
    if task.cancelling():
        queue.deadlines.before[stepper] = task.cancelling()
    return _finish(stepper, waiting, timed, queue)


def finish_in(
    queue: Queue, task: asyncio.Task[Any], stepper: Stepper, waiting: Any, timed: Timed, started: float, owner: Any
) -> Awaitable[None]:
    """``finish`` in a queue that holds no other attempt."""
    queue.live[stepper] = (started, task, owner)
    queue.arm(queue.remaining(started, queue.deadlines.now()))
    if task.cancelling():
        queue.deadlines.before[stepper] = task.cancelling()
    return _finish(stepper, waiting, timed, queue)


@coroutine
def _finish(stepper: Stepper, waiting: Any, timed: Timed, queue: Queue) -> Generator[Any, None, None]:
    thrown: BaseException | None = None  # into the caller's task
    try:
        while True:
            try:
                yield waiting
            except BaseException:
                thrown = sys.exception()  # without a name of its own: every call in flight keeps this frame
            if thrown is None:
                for waiting in stepper:  # noqa: B007, PLR1704 - one step, without a StopIteration
                    break
                else:
                    break
            else:
                try:
                    waiting = queue.throw(stepper, thrown, waiting, timed)
                finally:
                    thrown = None  # its traceback holds this frame
    except StopIteration:  # it returned when the exception was thrown in
        pass
    except BaseException:
        queue.take_back(stepper)
        del queue.live[stepper]
        raise
    if queue.hits and queue.take_back(stepper):
        del queue.live[stepper]
        raise Expired(late=True)  # the task that the tool waited for has swallowed the cancellation
    del queue.live[stepper]


_FINISH = _finish.__code__


def _hand_over(inside: GeneratorType[Any, Any, Any], caller: asyncio.Task[Any], new_task: asyncio.Task[None]) -> None:
    """If a suspended generator is an attempt in ``_finish``, let its deadline cancel ``new_task`` instead of the caller."""
    if inside.gi_code is not _FINISH or inside.gi_frame is None:
        return
    attempt = inside.gi_frame.f_locals
    queue, stepper = attempt["queue"], attempt["stepper"]
    placed = queue.live.get(stepper)
    if placed is not None and placed[1] is caller:
        if queue.take_back(stepper):
            queue.disarm()
            queue.arm(0.0)
        queue.deadlines.before[stepper] = -1  # the call around it has ended, even if its cancellation was swallowed
        queue.live[stepper] = (placed[0], new_task, placed[2])


def _abandon(
    stepper: Stepper, waiting: Any, task: asyncio.Task[Any], deadlines: LoopDeadlines, timed: Timed, started: float
) -> asyncio.Task[None]:
    """Let a tool that cannot be cancelled continue in a task of its own."""
    from failsoft.runtime.execution.abandoned import transfer_scopes  # most tools can be cancelled

    if getattr(waiting, "_asyncio_future_blocking", None) is False:
        waiting._asyncio_future_blocking = True  # asyncio's mark of an awaited future
    name = getattr(timed, "id", "")
    outliving = Outliving(stepper, waiting, name, deadlines.outside).run()
    outliving.send(None)
    new_task = deadlines.loop.create_task(outliving)
    transfer_scopes(stepper, task, new_task, deadlines.others(stepper, task), _hand_over)
    step_out(timed, started)
    deadlines.abandoned[new_task] = name
    new_task.add_done_callback(lambda ended: deadlines.abandoned.pop(ended, None))
    new_task.add_done_callback(log_end)
    return new_task
