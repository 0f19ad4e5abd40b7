"""Daemon threads for tools that block.

Rules
-----
- Daemon threads, not an executor: the interpreter does not wait for a tool that hangs when it exits.
- A job that has begun is never interrupted; a caller that gives up abandons it. At ``MOST_ABANDONED`` abandoned jobs new
  jobs are refused: a tool that always hangs must not use up all threads of the process.
- Jobs wait in order for a free thread. A thread with an abandoned job is replaced. If it cannot be replaced and no other
  thread is left, the waiting jobs are refused as well.
- A thread whose job waits for another job does not count as busy, and the other job runs next. So nested jobs cannot
  use up all threads and then wait for each other.
- Jobs run in the submitter's context variables.
- A signal handler or a finaliser may interrupt a thread that holds the lock, and make a call that waits for its job. The
  threads of the pool cannot take a job before the lock is free, so this job gets a thread of its own.
- The garbage collector may end a forgotten call at any point, in the same thread, and that abandons its job. Therefore
  the lock is reentrant, and no thread is started while it is held.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import Context, copy_context
from threading import get_ident
from types import CoroutineType
from typing import Any

MOST_ABANDONED = 64
MOST_THREADS = 64
IDLE_SECONDS = 10.0


class Job:
    """One function to run in a thread."""

    __slots__ = ("abandoned", "begun", "context", "done", "error", "outer", "refused", "run", "thread", "value")

    def __init__(self, run: Callable[[], Any], done: Callable[[Job], None]) -> None:
        self.run = run
        self.done = done
        self.context: Context = copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self.thread: int | None = None  # the thread that runs it
        self.abandoned = False
        self.begun = False  # a thread runs the job, or has run it
        self.refused = False  # it will never run: no thread was left, or it was withdrawn
        self.outer: int | None = None  # the pool's thread that waits for this job


def _perform(job: Job) -> None:
    job.begun = True
    try:
        job.value = job.context.run(job.run)
    except BaseException as error:  # any exception is passed to the caller
        job.error = error
    finally:
        del job  # the error's traceback keeps this frame


def _close_result(job: Job) -> None:
    if job.abandoned and isinstance(job.value, CoroutineType):
        job.value.close()  # Python warns of coroutines that are never awaited


def _ignore(_: Job) -> None:
    """Do nothing: no caller waits for a job that was withdrawn."""


class _IdleWorker:
    """The wait of an idle worker thread: woken with the job that it is to run."""

    __slots__ = ("job", "retired", "wake")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.retired = False  # its thread ends: do not wake it again
        self.wake = threading.Lock()
        self.wake.acquire()


class ThreadPool:
    """The threads of one runtime."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start over without threads, as in a forked child."""
        self._lock = threading.RLock()
        self._jobs: deque[Job] = deque()  # waiting, while no thread is idle
        self._idle: list[_IdleWorker] = []  # the one that worked last is next: its caches are warm
        self._busy = self._threads = 0
        self._ours: set[int] = set()  # threads
        self._lost: dict[int, str] = {}  # thread whose job was abandoned -> name of the job
        self._waiting: Counter[int] = Counter()  # thread -> number of jobs that it waits for

    @property
    def abandoned(self) -> int:
        return len(self._lost)

    def abandoned_names(self) -> list[str]:
        """The names of the abandoned jobs that still run."""
        with self._lock:
            return [name for name in self._lost.values() if name]

    def submit(self, run: Callable[[], Any], done: Callable[[Job], None]) -> Job | None:
        """Run a function as soon as a thread is free, then call ``done`` there. None if no thread is left."""
        job = Job(run, done)
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return job if self._run_alone(job) else None
        caller = get_ident()
        with self._lock:
            if len(self._lost) >= MOST_ABANDONED:
                return None
            if caller in self._ours:
                job.outer = caller
                self._waiting[caller] += 1
            if self._idle:
                worker = self._idle.pop()
                worker.job = job
                self._busy += 1
                worker.wake.release()
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

    def _run_alone(self, job: Job) -> bool:
        """Run a job in a thread of its own, which needs the lock only after ``done``; False if the system refuses."""

        def run() -> None:
            me = job.thread = get_ident()
            if job.abandoned:
                job.refused = True
            else:
                _perform(job)
            _close_result(job)
            job.done(job)
            with self._lock:
                job.thread = None
                self._lost.pop(me, None)

        try:
            threading.Thread(target=run, name="failsoft tool", daemon=True).start()
        except RuntimeError:
            return False
        return True

    def _active(self) -> int:
        """The number of threads that can serve waiting jobs: neither lost nor waiting themselves."""
        return self._threads - len(self._lost.keys() | self._waiting.keys())  # a thread may be both

    def _go_on(self, job: Job) -> None:
        """Note that the thread that waited for this job continues."""
        if job.outer is not None:
            self._waiting[job.outer] -= 1
            if not self._waiting[job.outer]:
                del self._waiting[job.outer]
            job.outer = None

    def _start(self) -> bool:
        """Start a thread that has been counted; False if the system refuses."""
        try:
            threading.Thread(target=self._work, name="failsoft tool", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
            return False
        return True

    def withdraw(self, job: Job) -> bool:
        """Withdraw a job that has not begun. False if it may have begun; then it goes on."""
        with self._lock:
            job.abandoned = True  # set before ``thread`` is read: a thread uses the opposite order
            if job.thread is not None or job.begun:
                return False
            if job in self._jobs:
                self._jobs.remove(job)
            self._go_on(job)
            job.done = _ignore
            return True

    def abandon(self, job: Job, name: str = "") -> bool:
        """Stop waiting for a job. True if it is running and goes on."""
        with self._lock:
            job.abandoned = True  # a thread that is about to take it does not run it
            self._go_on(job)
            if job.thread is None:
                if job in self._jobs:
                    self._jobs.remove(job)
                return False
            self._lost[job.thread] = name
            # Otherwise every waiting job has a thread that will take it.
            more = len(self._lost) < MOST_ABANDONED and self._threads - self._busy < len(self._jobs)
            self._threads += more
            stranded = self._mark_abandoned()
        if more:
            self._start()
        for other in stranded:
            other.done(other)
        return True

    def _mark_abandoned(self) -> list[Job]:
        """Remove and return the waiting jobs that no thread will ever run."""
        if len(self._lost) < MOST_ABANDONED or self._active() > 0:
            return []
        stranded = list(self._jobs)
        self._jobs.clear()
        for job in stranded:
            self._go_on(job)
            job.refused = True
            job.error = RuntimeError("no worker thread is free: too many are busy with abandoned calls")
        return stranded

    def _work(self) -> None:
        worker = _IdleWorker()
        me = get_ident()
        with self._lock:
            self._ours.add(me)
            job = self._take(worker)
        while job is not None or (job := self._wait(worker)) is not None:
            job.thread = me
            if job.abandoned:  # read after ``thread`` is set: ``abandon`` uses the opposite order
                job.refused = True
            else:
                _perform(job)
            with self._lock:
                job.thread = None
                self._busy -= 1
                self._lost.pop(me, None)
                if job.outer is not None:
                    self._go_on(job)
                following = self._take(worker)
            _close_result(job)
            job.done(job)
            job = following  # an idle thread must not keep the last value alive

    def _take(self, worker: _IdleWorker) -> Job | None:
        """Return the next job; None if there is none: the thread is then idle, or ends if it was an extra one."""
        if self._threads > MOST_THREADS and self._active() > MOST_THREADS:
            self._retire(worker)
        elif self._jobs:
            self._busy += 1
            return self._jobs.popleft()
        else:
            self._idle.append(worker)
        return None

    def _wait(self, worker: _IdleWorker) -> Job | None:
        """Wait for a job; None after a long time without one: the thread ends."""
        if worker.retired:
            return None
        if not worker.wake.acquire(timeout=IDLE_SECONDS):
            with self._lock:
                if worker in self._idle:
                    self._idle.remove(worker)
                    self._retire(worker)
                    return None
            worker.wake.acquire()  # a job arrived at the last moment
        job, worker.job = worker.job, None
        return job

    def _retire(self, worker: _IdleWorker) -> None:
        worker.retired = True
        self._threads -= 1
        self._ours.discard(get_ident())
