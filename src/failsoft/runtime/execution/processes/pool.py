"""The processes of one runtime: warm workers for tools, and commands.

Rules
-----
- A worker serves one call at a time, of any tool. A call takes a free worker, else starts one, else waits in order.
- ``spare`` idle workers are kept ready, with the modules loaded that calls have needed so far: a call after a kill does
  not wait for a new worker to start.
- The tool's time begins when a worker that has loaded its module gets the call.
- A worker whose call was not answered is always killed. A worker that has served ``max_calls``, or grown beyond
  ``max_memory``, is replaced.
- The pool has no thread: each caller waits for its worker's socket, on its event loop or blocking.
- Tools with ``values: json`` have workers and a supervisor of their own: no process that has run one of them ever sends
  a pickle that is loaded here.
- After each call the supervisor is sent SIGCONT: a tool may have stopped it, and a stopped one reports no deaths.
- A forked child starts over without workers; the existing ones belong to its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from failsoft.core.model.entrypoint import Command
from failsoft.core.model.options import Isolation, Values
from failsoft.runtime.execution.clock import outside_finished, outside_started
from failsoft.runtime.execution.processes import command_attempt as commands
from failsoft.runtime.execution.processes import worker as this_process
from failsoft.runtime.execution.processes.process_handle import EndedBy, Process, Supervisor
from failsoft.runtime.execution.processes.readiness import Blocking, OnLoop, Waiting
from failsoft.runtime.execution.processes.reply import Reply
from failsoft.runtime.execution.processes.target import Target
from failsoft.runtime.execution.processes.timing import Timing, ignore
from failsoft.runtime.execution.processes.worker_attempt import WorkerCall, call
from failsoft.runtime.execution.waiting import Signal, run_blocking
from failsoft.runtime.progress import Activity

IDLE_SECONDS: Final = 60.0  # after which a worker beyond the spare ones is ended
_DEFAULT: Final = Isolation(kind="process")


class Counts(NamedTuple):
    """The numbers of current and ended processes."""

    alive: int
    busy: int
    waiting: int  # calls that wait for a worker
    started: int
    kills: int  # processes killed during a call: deadline, cancellation, close
    crashes: int  # processes that died during a call
    respawns: int  # workers started in place of one that was lost or replaced


class _WaitingCaller:
    """A call that waits for a worker. Used with the lock of the workers held."""

    __slots__ = ("answered", "failed", "process", "signal")

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.answered = False
        self.process: Process | None = None  # None: the pool was closed
        self.failed: OSError | None = None  # no process can be started

    def give(self, process: Process | None, failed: OSError | None = None) -> None:
        self.process, self.failed, self.answered = process, failed, True
        self.signal.give()


class Workers:
    """Starts processes when they are first needed; usable from any thread and any number of event loops."""

    def __init__(
        self, *, spare: int = 1, limit: int = 32, start_timeout: float = 60.0, values: Values = "pickle"
    ) -> None:
        self._values: Values = values
        self._others: Workers | None = None  # the workers for the other encoding of values
        self._spare = spare
        self._limit = limit
        self.start_timeout = start_timeout
        _all.add(self)
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may end a forgotten call in a thread that holds it
        self._supervisor = Supervisor(self._values)
        self._workers: set[Process] = set()
        self._commands: set[Process] = set()
        self._idle: deque[Process] = deque()  # the one used last is at the end
        self._waiting: deque[_WaitingCaller] = deque()
        self._modules: dict[str, None] = {}
        self.closed = False
        self._started = self._kills = self._crashes = self._lost = self._respawns = 0

    # --- running tools and commands ---------------------------------------------------------------------------------

    async def run(
        self,
        target: Target,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        timeout: float | None,  # noqa: ASYNC109 - of the tool, whose process is killed at it
        options: Isolation = _DEFAULT,
        begun: Callable[[], None] = ignore,
        activity: Activity | None = None,
    ) -> Reply:
        """Run one attempt of a tool in a worker; call ``begun`` when its time begins. Cancelling kills the worker."""
        loop = asyncio.get_running_loop()
        outside_started(loop)
        try:
            wanted = WorkerCall(target, args, kwargs, options)
            return await call(self._for(options), OnLoop(loop), wanted, Timing(timeout, begun, activity))
        finally:
            outside_finished(loop)

    def run_blocking(
        self,
        target: Target,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        timeout: float | None,
        options: Isolation = _DEFAULT,
        begun: Callable[[], None] = ignore,
        activity: Activity | None = None,
    ) -> Reply:
        """Like ``run``, for callers without an event loop."""
        wanted = WorkerCall(target, args, kwargs, options)
        return run_blocking(call(self._for(options), Blocking(), wanted, Timing(timeout, begun, activity)))

    async def run_command(
        self,
        command: Command,
        args: Mapping[str, Any],
        *,
        timeout: float | None,  # noqa: ASYNC109 - of the program, which is ended at it
        begun: Callable[[], None] = ignore,
        activity: Activity | None = None,
    ) -> Reply:
        """Run a program; call ``begun`` when its time begins. Cancelling ends the program."""
        loop = asyncio.get_running_loop()
        outside_started(loop)
        try:
            return await commands.run(self, OnLoop(loop), command, args, Timing(timeout, begun, activity))
        finally:
            outside_finished(loop)

    def run_command_blocking(
        self,
        command: Command,
        args: Mapping[str, Any],
        *,
        timeout: float | None,
        begun: Callable[[], None] = ignore,
        activity: Activity | None = None,
    ) -> Reply:
        """Like ``run_command``, for callers without an event loop."""
        return run_blocking(commands.run(self, Blocking(), command, args, Timing(timeout, begun, activity)))

    def prepare(self, *targets: Target) -> None:
        """Start the spare workers before the first call, with the modules of these tools."""
        with self._lock:
            self._check_usable()
            self._modules.update(dict.fromkeys(target.module for target in targets))
            if not self.closed:
                self._assign_workers()

    @property
    def counts(self) -> Counts:
        with self._lock:
            alive = len(self._workers)
            counts = Counts(
                alive,
                alive - len(self._idle),
                len(self._waiting),
                self._started,
                self._kills,
                self._crashes,
                self._respawns,
            )
        if self._others is None:
            return counts
        return Counts(*map(sum, zip(counts, self._others.counts, strict=True)))

    def _for(self, options: Isolation) -> Workers:
        """Return the workers with the encoding that ``options`` name.

        The two kinds share no process: docs/security.md.
        """
        if options.values == self._values:
            return self
        with self._lock:
            if self._others is None:
                self._others = Workers(
                    spare=self._spare, limit=self._limit, start_timeout=self.start_timeout, values=options.values
                )
                self._others.closed = self.closed
            return self._others

    def close(self) -> None:
        """Kill all processes and wait until they are gone. Calls under way end as ``cancelled``."""
        with self._lock:
            self.closed = True
            while self._idle:
                self._remove(self._idle.pop())
            for process in (*self._workers, *self._commands):
                process.cut()  # its caller notices, and cleans up
            while self._waiting:
                self._waiting.popleft().give(None)
            self._supervisor.close()
            others = self._others
        if others is not None:
            others.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # when the interpreter ends, modules may be gone already
            self.close()

    # --- the workers of a call --------------------------------------------------------------------------------------

    async def take(self, waiting: Waiting) -> Process | None:
        """Wait for a worker and return it; None if the pool is closed."""
        with self._lock:
            self._check_usable()
            if self.closed:
                return None
            if self._idle:
                return self._idle.pop()
            if len(self._workers) < self._limit:
                return self._start_worker()
            place = _WaitingCaller(waiting.signal())
            self._waiting.append(place)
        return await self._wait_in_line(place)

    async def _wait_in_line(self, place: _WaitingCaller) -> Process | None:
        try:
            await place.signal.wait()
        except BaseException:
            with self._lock:
                if place.answered:
                    process = place.process  # assigned at the moment when the caller was cancelled
                else:
                    process = None
                    with contextlib.suppress(ValueError):  # a forked child has its own queue
                        self._waiting.remove(place)
            if process is not None:
                self.give_back(process)
            raise
        if place.failed is not None:
            raise place.failed
        return place.process

    def give_back(self, process: Process) -> None:
        """Return a worker whose call has been answered."""
        now = time.monotonic()
        with self._lock:
            if self.closed:
                self._remove(process)
                return
            self._supervisor.wake()
            process.idle_since, process.started, process.asked = now, None, False
            self._idle.append(process)
            self._assign_workers()
            oldest = self._idle[0] if len(self._idle) > self._spare else None
            if oldest is not None and now - oldest.idle_since > IDLE_SECONDS:
                self._remove(self._idle.popleft())

    def drop(self, process: Process, why: EndedBy) -> None:
        """End a worker or a command now."""
        with self._lock:
            self._kills += why == "killed"
            self._crashes += why == "crashed"
            if why in ("crashed", "lost") and not process.ready:
                self._modules.clear()  # loading one of them may have killed the worker
            self._supervisor.wake()
            is_worker = process in self._workers
            self._lost += is_worker
            self._remove(process)
            if is_worker and not self.closed:
                self._assign_workers()

    def lose_supervisor(self, pid: int | None) -> None:
        """Drop the idle workers of a supervisor that was killed: they died with it."""
        with self._lock:
            if self._supervisor.pid == pid and not self.closed:
                while self._idle:
                    self._remove(self._idle.pop())
                self._supervisor.close()

    def replenish(self) -> None:
        """Start missing spare workers. Called once a call is under way, so that the call does not wait for them."""
        if len(self._idle) < self._spare:
            with self._lock:
                if not self.closed:
                    self._assign_workers()

    def remember(self, module: str) -> None:
        """Let workers that start from now on load a module in advance."""
        with self._lock:
            self._modules[module] = None

    def start_command(self, argv: tuple[str, ...], env: Mapping[str, str], streams: list[int]) -> Process | None:
        """Start a program for one call; None if the pool is closed."""
        with self._lock:
            self._check_usable()
            if self.closed:
                return None
            process = self._supervisor.command(argv, env, streams)
            self._commands.add(process)
            return process

    # --- with the lock held -------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if this_process.importing:
            raise RuntimeError(
                "a module calls an isolated tool while it is imported, and a worker imports it to find the tool: "
                'call the tool under `if __name__ == "__main__":` or in a function'
            )

    def _assign_workers(self) -> None:
        """Give workers to waiting calls, then start missing spare workers, as far as processes can be started."""
        try:
            while self._waiting and (self._idle or len(self._workers) < self._limit):
                process = self._idle.pop() if self._idle else self._start_worker()
                self._waiting.popleft().give(process)
            while len(self._idle) < self._spare and len(self._workers) < self._limit:
                self._idle.appendleft(self._start_worker())
        except OSError as error:
            while self._waiting and not self._workers:  # otherwise one of the others becomes free
                self._waiting.popleft().give(None, error)

    def _start_worker(self) -> Process:
        process = self._supervisor.worker(tuple(self._modules))
        process.modules.update(self._modules)
        process.idle_since = time.monotonic()
        self._workers.add(process)
        self._started += 1
        if self._lost:
            self._lost -= 1
            self._respawns += 1
        return process

    def _remove(self, process: Process) -> None:
        if process in self._commands:
            self._commands.remove(process)
            process.hang_up()  # SIGTERM first
        else:
            self._workers.discard(process)
            process.end()

    def _forget_all(self) -> None:
        """Forget all processes in a forked child: they belong to the parent."""
        for process in (*self._workers, *self._commands):
            process.forget()
        self._supervisor.forget()
        self._renew()


_all: weakref.WeakSet[Workers] = weakref.WeakSet()


def _start_over() -> None:
    for workers in list(_all):
        workers._forget_all()


os.register_at_fork(after_in_child=_start_over)
