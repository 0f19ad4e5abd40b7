"""The places where tools run: OS threads, worker processes, event loops; and the deadlines on each loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from failsoft.errors import FailsoftError
from failsoft.runtime.call.running import Watch
from failsoft.runtime.execution.clock import SYSTEM, current
from failsoft.runtime.execution.deadline import LoopDeadlines, Queue
from failsoft.runtime.execution.outliving import log_end
from failsoft.runtime.execution.thread_pool import ThreadPool

if TYPE_CHECKING:
    from failsoft.runtime.call.in_flight import InFlight
    from failsoft.runtime.call.ports import CallEvents
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.time_source import TimeSource
    from failsoft.runtime.tools.tool import Tool

log = logging.getLogger("failsoft")


class Places:
    """The OS threads, worker processes and event loops of a runtime."""

    def __init__(self, time: TimeSource, log: CallEvents, in_flight: InFlight) -> None:
        self.time = time
        self.log = log
        self.in_flight = in_flight
        self.thread_pool = ThreadPool()
        self._lock = threading.RLock()
        self._workers: Workers | None = None
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopDeadlines] = WeakKeyDictionary()
        self._abandoned_tasks: set[asyncio.Task[None]] = set()  # of turns that did not wait for them

    def renew_after_fork(self) -> None:
        """Start anew in a forked child: it has none of its parent's threads and runs none of its event loops."""
        self._lock = threading.RLock()
        self.thread_pool.renew()
        self._loops.clear()

    # -- worker processes --------------------------------------------------------------------------------------------

    @property
    def workers(self) -> Workers:
        """The worker processes; loaded with the first tool that needs one."""
        from failsoft.runtime.execution.processes.pool import Workers

        with self._lock:
            if self._workers is None:
                self._workers = Workers()
            return self._workers

    def worker_counts(self) -> dict[str, int]:
        """The counts of the worker processes; empty if none has been needed."""
        return {} if self._workers is None else self._workers.counts._asdict()

    def close_workers(self) -> None:
        """End the worker processes, if there are any."""
        if self._workers is not None:
            self._workers.close()

    # -- event loops -------------------------------------------------------------------------------------------------

    def loops(self) -> list[LoopDeadlines]:
        """The deadlines of every event loop that has been used."""
        return list(self._loops.values())

    def deadline_queue(self, tool: Tool, timeout: float) -> tuple[Queue, asyncio.Task[Any]]:
        """The deadline queue for this timeout on the running loop, and the current task."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise FailsoftError(f"{tool.id}: a guarded tool is awaited in an asyncio task; here is none")
        tool.queue = self.deadlines_of(loop).queue(timeout)
        return tool.queue, task

    def deadlines_of(self, loop: asyncio.AbstractEventLoop) -> LoopDeadlines:
        """The deadlines of an event loop, and the watch over its calls."""
        of_loop = self._loops.get(loop)
        if of_loop is None:
            for other in self._loops.keyrefs():
                if (known := other()) is not None and known.is_closed():
                    self._loops.pop(known, None)  # its deadlines refer to it
            of_loop = self._loops[loop] = LoopDeadlines(loop, self.time.now)
            of_loop.watch = Watch(self, of_loop)
            self.warn_of_clock()
        return of_loop

    def warn_of_clock(self) -> None:
        """Log a warning if the current clock is not the runtime's."""
        if current() not in (SYSTEM, self.time.clock):
            log.warning(
                "this Runtime was made outside of virtual_time() and does not live by its clock: "
                "deadlines and circuits take real time. Make the Runtime inside."
            )

    # -- abandoned tasks ---------------------------------------------------------------------------------------------

    def abandon_task(self, task: asyncio.Task[None]) -> None:
        """Keep a reference to a task that its turn does not wait for, until it ends."""
        self._abandoned_tasks.add(task)
        task.add_done_callback(self._abandoned_tasks.discard)
        task.add_done_callback(log_end)

    def abandoned_tools(self) -> Counter[str]:
        """The number of abandoned attempts of each tool that still run, on event loops and in OS threads."""
        on_loops = [name for of_loop in self.loops() for task, name in [*of_loop.abandoned.items()] if not task.done()]
        return Counter([*on_loops, *self.thread_pool.abandoned_names()])

    def tasks_on(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
        """The tasks on an event loop that neither a turn nor a call waits for."""
        tasks: list[asyncio.Task[Any]] = [task for task in self._abandoned_tasks if task.get_loop() is loop]
        of_loop = self._loops.get(loop)
        return tasks if of_loop is None else [*tasks, *of_loop.abandoned]
