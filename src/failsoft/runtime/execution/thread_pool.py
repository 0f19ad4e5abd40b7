"""Daemon threads for tools that block.

Rules
-----
- Our own daemon threads, not an executor: an interpreter that wants to exit does not wait for a tool that hangs.
- A job that has begun is never interrupted; whoever gives up on it abandons it. ``MOST_ABANDONED`` of those may be
  busy at a time, then new jobs are refused: a tool that always hangs must not eat all threads of the process.
- Jobs wait for a free thread in order; waiting is not running. A thread that is lost to an abandoned job is replaced;
  when that may not be and none is left, those who wait are refused as well (T6).
- A thread whose job waits for another job is not counted, and that one is next: jobs inside jobs cannot use up all
  threads and then wait for each other.
- Context variables of the submitter are there (T24).
- The garbage collector may end a forgotten call in the middle of any of this, in the same thread, and that abandons its
  job: so the lock lets its own thread in, and no thread is started while it is held.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import Context, copy_context
from threading import get_ident
from typing import Any

MOST_ABANDONED = 64
MOST_THREADS = 64
IDLE_SECONDS = 10.0


class Job:
    """One function call on its way through a thread."""

    __slots__ = ("abandoned", "begun", "context", "done", "error", "outer", "refused", "run", "thread", "value")

    def __init__(self, run: Callable[[], Any], done: Callable[[Job], None]) -> None:
        self.run = run
        self.done = done
        self.context: Context = copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self.thread: int | None = None  # the one that runs it
        self.abandoned = False
        self.begun = False  # a thread runs it, or has run it
        self.refused = False  # it will never run: no thread is left, or it was withdrawn
        self.outer: int | None = None  # the thread of ours that waits for it


def _ignore(_: Job) -> None:
    """Nobody waits for a job that was withdrawn."""


class _IdleWorker:
    """The wait of an idle worker thread: woken with the job that it is to run."""

    __slots__ = ("job", "left", "wake")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.left = False  # nobody will ring it again
        self.wake = threading.Lock()
        self.wake.acquire()


class ThreadPool:
    """The threads of one runtime."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start over: also in a forked child, which has none of its parent's threads."""
        self._lock = threading.RLock()
        self._jobs: deque[Job] = deque()  # while nobody is idle
        self._idle: list[_IdleWorker] = []  # whoever has worked last is next: it is warm
        self._busy = self._threads = 0
        self._ours: set[int] = set()  # threads
        self._lost: set[int] = set()  # those of them whose jobs were abandoned
        self._waiting: Counter[int] = Counter()  # those of them that wait for other jobs: for how many

    @property
    def abandoned(self) -> int:
        return len(self._lost)

    def submit(self, run: Callable[[], Any], done: Callable[[Job], None]) -> Job | None:
        """Run it in a thread, as soon as one is free; then ``done`` is called there. None: no thread is left."""
        job = Job(run, done)
        caller = get_ident()
        with self._lock:
            if len(self._lost) >= MOST_ABANDONED:
                return None
            if caller in self._ours:
                job.outer = caller
                self._waiting[caller] += 1
            if self._idle:
                bell = self._idle.pop()
                bell.job = job
                self._busy += 1
                bell.wake.release()
                return job
            if job.outer is None:
                self._jobs.append(job)
            else:
                self._jobs.appendleft(job)
            more = self._active() < MOST_THREADS
            self._threads += more
        if more and not self._start():
            with self._lock:
                if self._active() <= 0 and job in self._jobs:
                    self._jobs.remove(job)
                    self._go_on(job)
                    return None
        return job

    def _active(self) -> int:
        """Threads that do something for those who wait, or will."""
        return self._threads - len(self._lost.union(self._waiting))  # one may be both

    def _go_on(self, job: Job) -> None:
        """Whoever has waited for this job does not any more."""
        if job.outer is not None:
            self._waiting[job.outer] -= 1
            if not self._waiting[job.outer]:
                del self._waiting[job.outer]
            job.outer = None

    def _start(self) -> bool:
        """Start a thread that has been counted; False if the system has none for us."""
        try:
            threading.Thread(target=self._work, name="failsoft tool", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
            return False
        return True

    def withdraw(self, job: Job) -> bool:
        """True if the job has not begun and now never will. A job that may have begun goes on as it was."""
        with self._lock:
            job.abandoned = True  # before the thread is looked at: a thread looks in the opposite order
            if job.thread is not None or job.begun:
                return False
            if job in self._jobs:
                self._jobs.remove(job)
            self._go_on(job)
            job.done = _ignore
            return True

    def abandon(self, job: Job) -> bool:
        """Nobody waits for it any more. True if it is running and goes on."""
        with self._lock:
            job.abandoned = True  # if a thread is on its way to it, it turns back
            self._go_on(job)
            if job.thread is None:
                if job in self._jobs:
                    self._jobs.remove(job)
                return False
            self._lost.add(job.thread)
            # Each of those who wait has a thread on its way otherwise.
            more = len(self._lost) < MOST_ABANDONED and self._threads - self._busy < len(self._jobs)
            self._threads += more
            stranded = self._mark_abandoned()
        if more:
            self._start()
        for other in stranded:
            other.done(other)
        return True

    def _mark_abandoned(self) -> list[Job]:
        """Those who wait and whom nobody will ever serve."""
        if len(self._lost) < MOST_ABANDONED or self._active() > 0:
            return []
        stranded = list(self._jobs)
        self._jobs.clear()
        for job in stranded:
            self._go_on(job)
            job.refused = True
            job.error = RuntimeError("no thread is left: too many are busy with calls that were abandoned")
        return stranded

    def _work(self) -> None:
        bell = _IdleWorker()
        me = get_ident()
        with self._lock:
            self._ours.add(me)
            job = self._take(bell)
        while job is not None or (job := self._wait(bell)) is not None:
            job.thread = me
            if job.abandoned:  # asked only now: whoever abandons it looks at the thread after saying so
                job.refused = True
            else:
                job.begun = True
                try:
                    job.value = job.context.run(job.run)
                except BaseException as error:  # it belongs to the caller, whatever it is
                    job.error = error
            with self._lock:
                job.thread = None
                self._busy -= 1
                self._lost.discard(me)
                if job.outer is not None:
                    self._go_on(job)
                following = self._take(bell)
            job.done(job)
            job = following  # an idle thread must not keep the last value alive

    def _take(self, bell: _IdleWorker) -> Job | None:
        """The next job; None: there is none, so the thread is idle now. Or it was one more while others waited, and ends."""
        if self._threads > MOST_THREADS and self._active() > MOST_THREADS:
            self._retire(bell)
        elif self._jobs:
            self._busy += 1
            return self._jobs.popleft()
        else:
            self._idle.append(bell)
        return None

    def _wait(self, bell: _IdleWorker) -> Job | None:
        """The job that an idle thread is given; None: there was none for long, and it is to end."""
        if bell.left:
            return None
        if not bell.wake.acquire(timeout=IDLE_SECONDS):
            with self._lock:
                if bell in self._idle:
                    self._idle.remove(bell)
                    self._retire(bell)
                    return None
            bell.wake.acquire()  # it was given a job in this very moment
        job, bell.job = bell.job, None
        return job

    def _retire(self, bell: _IdleWorker) -> None:
        bell.left = True
        self._threads -= 1
        self._ours.discard(get_ident())
