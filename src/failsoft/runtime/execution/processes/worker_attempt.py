"""One attempt of a tool in a worker, from taking the worker to giving it back.

Rules
-----
- Starting the worker and importing the tool's module come before the tool's time begins.
- At the deadline, an answer that has arrived still counts if the tool ended in time. A tool that ended after its
  deadline is ``late``, never a value.
- If the caller stops waiting before the call is answered, the worker is killed.
- If a worker died before it read the call, the tool has not run: the call goes to another worker.
- A worker that has sent something before its call is not used. A worker that answers with another number, twice, or from
  another process is killed: its call fails with an unknown effect.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from failsoft.core.model.options import Isolation, Values
from failsoft.observe.instrument import CARRIED, CARRIED_PATH, OPENERS, OPENERS_PATH
from failsoft.runtime.execution.processes import encoding, wire
from failsoft.runtime.execution.processes import reply as replies
from failsoft.runtime.execution.processes.process_handle import EndedBy, OutOfStep, Process, ProcessGone
from failsoft.runtime.execution.processes.readiness import Waiting
from failsoft.runtime.execution.processes.remote_error import rebuild
from failsoft.runtime.execution.processes.reply import Reply, ReplyKind
from failsoft.runtime.execution.processes.target import Target, variable
from failsoft.runtime.execution.processes.timing import Timing
from failsoft.runtime.progress import Activity, next_deadline

_UNSET = object()
_TRIES = 3  # workers tried for one call, if each is found dead


class Workers(Protocol):
    """The parts of the pool of workers that an attempt needs."""

    @property
    def closed(self) -> bool: ...
    @property
    def start_timeout(self) -> float: ...
    async def take(self, waiting: Waiting) -> Process | None: ...
    def give_back(self, process: Process) -> None: ...
    def drop(self, process: Process, why: EndedBy) -> None: ...
    def lose_supervisor(self, pid: int | None) -> None: ...
    def replenish(self) -> None: ...
    def remember(self, module: str) -> None: ...


class WorkerCall(NamedTuple):
    """A function to run in a worker, with its arguments."""

    target: Target
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: Isolation


class _PackedCall(NamedTuple):
    """A call as one frame."""

    target: Target
    options: Isolation
    frame: bytes
    number: int


async def call(workers: Workers, waiting: Waiting, wanted: WorkerCall, timing: Timing) -> Reply:
    """Run a function in a worker and return its reply."""
    target, args, kwargs, options = wanted
    try:
        head = (
            target.module,
            target.qualname,
            _carried(options.context),
            options.max_memory,
            timing.activity is not None,
        )
        number = wire.new_number()
        packed = _PackedCall(target, options, wire.pack_call(head, args, kwargs, target.names, number), number)
    except wire.Unsendable as error:
        return Reply("unsendable", error=replies.unsendable(str(target), str(error), ran=False))
    for _ in range(_TRIES):
        process = await _take(workers, waiting, target)
        if isinstance(process, Reply):
            return process
        try:
            reply = None
            if not process.ready or target.module not in process.modules:
                reply = await _prepare(workers, waiting, process, target)
            if reply is None:
                timing.begun()
                process.let_report(number, timing.activity)
                reply = await _converse(workers, waiting, process, packed, timing)
        except ProcessGone as ended:
            reply = _reply_of_dead_worker(workers, process, target, ended)
            if reply is None:
                continue
        except OutOfStep as confused:
            reply = _end_untrusted_worker(workers, process, target, confused)
            if reply is None:
                continue
        except BaseException:
            workers.drop(process, "killed")
            raise
        if not process.ended:
            workers.give_back(process)
        return reply
    return Reply("crashed", error=replies.crashed(str(target), None, ran=False))


async def _take(workers: Workers, waiting: Waiting, target: Target) -> Process | Reply:
    try:
        process = await workers.take(waiting)
    except OSError as error:
        return Reply("crashed", error=replies.not_started(str(target), error))
    return Reply("cancelled") if process is None else process


def _carried(declared: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the values of the declared context variables that are set here, and of those of instruments; None without any."""
    paths = (*declared, CARRIED_PATH) if CARRIED.get() else declared
    paths = (*paths, OPENERS_PATH) if OPENERS.get() else paths
    if not paths:
        return None
    values = ((path, variable(path).get(_UNSET)) for path in paths)
    return {path: value for path, value in values if value is not _UNSET}


async def _prepare(workers: Workers, waiting: Waiting, process: Process, target: Target) -> Reply | None:
    """Wait until the worker has started and has loaded the tool's module. Return a reply only if that fails."""
    until = time.monotonic() + workers.start_timeout
    number = wire.new_number()
    if target.module not in process.modules:
        if process.ready:
            process.expect_silence()
        process.send(wire.pack(wire.LOAD, target.module, number))
    problem = None
    while not process.ready or (target.module not in process.modules and problem is None):
        frame = await next_frame(waiting, process, until)
        if frame is None:
            workers.drop(process, "killed")
            error = replies.never_ready(str(target), workers.start_timeout)
            return Reply("crashed", error=error, pid=process.pid, killed=True)
        if frame.number != (number if process.ready else 0):
            raise OutOfStep("it answers something that it was not asked")
        problem = process.greet(frame)
    if problem is not None:
        return Reply("missing", error=replies.missing(str(target), rebuild(problem)), pid=process.pid)
    workers.remember(target.module)
    return None


async def _converse(workers: Workers, waiting: Waiting, process: Process, packed: _PackedCall, timing: Timing) -> Reply:
    """Send the call, and wait for its answer until the deadline."""
    target, options, request, number = packed
    timeout, activity = timing.timeout, timing.activity
    process.expect_silence()
    started = process.started = time.monotonic()
    until = None if timeout is None else started + timeout
    pid = process.pid
    if activity is not None:
        activity.begin(started)
    sent = process.send(request)
    workers.replenish()
    while sent < len(request) and await waiting.ready((), (process.fd,), until):
        sent += process.send(memoryview(request)[sent:])
    frame = await _next_answer(waiting, process, until, activity)
    took = time.monotonic() - started
    if frame is None:
        workers.drop(process, "killed")
        return Reply("timeout", pid=pid, killed=True, started=started, duration=took)
    if frame.number != number:
        raise OutOfStep("it answered another call")
    if process.buffered() is not None:
        raise OutOfStep("it answered twice")
    kind, value, error, heavy = _read(target, process.values, frame, until, pid)
    process.calls += 1
    if heavy or (options.max_calls is not None and process.calls >= options.max_calls):
        workers.drop(process, "replaced")
    return Reply(kind, value, error, pid, False, started, took)


def _reply_of_dead_worker(workers: Workers, process: Process, target: Target, ended: ProcessGone) -> Reply | None:
    """Return the reply of a worker that has died; None if it had not read the call, so that another may run it."""
    pid, started = process.pid, process.started
    took = 0.0 if started is None else time.monotonic() - started
    if workers.closed:
        workers.drop(process, "killed")
        return Reply("cancelled", None, None, pid, True, started, took)
    if ended.status is None:
        workers.lose_supervisor(process.supervisor)
    if not process.has_read() or (started is None and ended.status is None):
        workers.drop(process, "lost")
        return None
    workers.drop(process, "crashed")
    error = replies.crashed(str(target), ended.status, ran=started is not None)
    return Reply("crashed", None, error, pid, False, started, took)


def _end_untrusted_worker(workers: Workers, process: Process, target: Target, confused: OutOfStep) -> Reply | None:
    """End a worker that cannot be trusted. None if it had not been called, so that another may run the call."""
    pid, started = process.pid, process.started
    workers.drop(process, "killed")
    if started is None:
        return None
    error = replies.confused(str(target), str(confused))
    return Reply("crashed", None, error, pid, True, started, time.monotonic() - started)


_CONTENTS: Final[dict[int, encoding.Content]] = {
    wire.VALUE: "value",
    wire.ERROR: "error",
    wire.MISSING: "error",
    wire.UNSENDABLE: "text",
}


def _read(
    target: Target, values: Values, frame: wire.Frame, until: float | None, pid: int | None
) -> tuple[ReplyKind, Any, Exception | None, bool]:
    """Read the worker's answer, and whether the worker has grown too large."""
    kind = frame.kind
    if kind not in _CONTENTS:
        raise OutOfStep("it sent something that is not an answer")
    try:
        ended, heavy, value = encoding.read_answer(values, frame.content, _CONTENTS[kind])
    except wire.Unloadable as error:
        if values == "json":  # failsoft's code in the worker never writes this
            raise OutOfStep(f"it sent something that is not an answer: {error}") from None
        why = f"the result cannot be loaded here: {error}"
        return "unsendable", None, replies.unsendable(str(target), why, ran=True), False
    if kind == wire.MISSING:
        return "missing", None, replies.missing(str(target), rebuild(value, pid)), heavy
    if kind == wire.UNSENDABLE:
        return "unsendable", None, replies.unsendable(str(target), value, ran=ended is not None), heavy
    if until is not None and ended is not None and ended > until:
        return "late", None, None, heavy
    if kind == wire.ERROR:
        return "error", None, rebuild(value, pid), heavy
    return "value", value, None, heavy


async def _next_answer(
    waiting: Waiting, process: Process, until: float | None, activity: Activity | None
) -> wire.Frame | None:
    """``next_frame``; None also if the tool makes no progress for too long."""
    if activity is None:
        return await next_frame(waiting, process, until)
    while True:
        frame = await next_frame(waiting, process, next_deadline(until, activity))
        if frame is not None:
            return frame
        now, due = time.monotonic(), next_deadline(until, activity)
        if until is not None and now >= until:
            return None
        if due is not None and now >= due:
            activity.expire()
            return None


async def next_frame(waiting: Waiting, process: Process, until: float | None) -> wire.Frame | None:
    """Wait for the next frame; None if the deadline comes first. Raises ``ProcessGone`` or ``OutOfStep``."""
    frame = process.buffered()  # one read may return two frames
    while frame is None:
        ready = await waiting.readable(process.fd, until)
        frame = process.receive()
        if frame is None and (not ready or (until is not None and time.monotonic() >= until)):
            return None
    return frame
