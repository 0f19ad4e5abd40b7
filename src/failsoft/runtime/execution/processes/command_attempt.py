"""One run of a program: arguments as one JSON object on stdin, the value as JSON on stdout, no shell.

Rules
-----
- The program gets the few environment variables that programs need, those that the manifest names, and those of
  instruments (``Instrument.carrier``), nothing else.
- Exit status 0 with JSON on stdout is the value; with nothing on stdout it is None; with anything else it is a fault.
  Any other status is a fault with the end of stderr in it.
- The process waits for a signal from here before it executes the program. So if a call is cancelled while the process
  starts, it is certain that the program has not run.
- Output of the program, on stdout or stderr, counts as progress of the call.
- At the deadline, after too long without progress, or if the output is too large, the process group gets SIGTERM, and
  SIGKILL a second later; the caller is answered at once. Processes that the program has started end with it.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from failsoft.core.classify.exit_status import judge_exit
from failsoft.core.classify.kinds import KINDS
from failsoft.core.model.entrypoint import Command
from failsoft.core.model.fault import Category, Code, Effect, Fault
from failsoft.core.redact.sanitise import sanitise
from failsoft.observe.instrument import carried
from failsoft.runtime.execution.processes import reply as replies
from failsoft.runtime.execution.processes import wire
from failsoft.runtime.execution.processes.process_handle import EndedBy, Process, ProcessGone
from failsoft.runtime.execution.processes.readiness import Waiting
from failsoft.runtime.execution.processes.reply import CommandError, Reply
from failsoft.runtime.execution.processes.timing import Timing
from failsoft.runtime.progress import Activity, next_deadline, report_progress

ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
TAIL: Final = 2048  # bytes of stderr that are kept
_PIECE: Final = 1 << 16


class Commands(Protocol):
    """The parts of a runtime's processes that a command needs."""

    @property
    def closed(self) -> bool: ...
    @property
    def start_timeout(self) -> float: ...
    def start_command(self, argv: tuple[str, ...], env: Mapping[str, str], streams: list[int]) -> Process | None: ...
    def drop(self, process: Process, why: EndedBy) -> None: ...


class Streams:
    """The application's ends of a program's three streams, and the output so far."""

    def __init__(self, given: bytes) -> None:
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()
        except OSError:
            for fd in pipes:
                os.close(fd)
            raise
        stdin, self._stdin, self._stdout, stdout, self._stderr, stderr = pipes
        self.theirs = [stdin, stdout, stderr]
        self.reads = [self._stdout, self._stderr]
        self.writes = [self._stdin]
        for fd in (*self.reads, *self.writes):
            os.set_blocking(fd, False)
        self._given = memoryview(given)
        self.out = bytearray()
        self.tail = b""
        self._cut = False
        self._news = False  # since the last call of has_news

    def move(self) -> bool:
        """Write to and read from each stream that is ready; False if none was."""
        moved = False
        for fd in tuple(self.writes):
            try:
                self._given = self._given[os.write(fd, self._given) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:  # the program does not read its input
                self._given = self._given[:0]
            moved = True
            if not self._given:
                self._close(self.writes, fd)
        for fd in tuple(self.reads):
            try:
                data = os.read(fd, _PIECE)
            except BlockingIOError:
                continue
            moved = True
            self._news = self._news or bool(data)
            if not data:
                self._close(self.reads, fd)
            elif fd == self._stdout:
                self.out += data
            else:
                self._cut = self._cut or len(self.tail) + len(data) > TAIL
                self.tail = (self.tail + data)[-TAIL:]
        return moved

    def has_news(self) -> bool:
        """True if the program has written something since the last look."""
        news, self._news = self._news, False
        return news

    def stderr_tail(self) -> str:
        """Return the end of stderr. If it was cut, it starts after a space: half a secret would not be recognised."""
        text = self.tail.decode(errors="replace")
        return re.sub(r"^\S*\s", "…", text) if self._cut else text

    def hand_over(self) -> None:
        """Close the program's ends in this process: the program has its own copies now."""
        while self.theirs:
            os.close(self.theirs.pop())

    def close(self) -> None:
        self.hand_over()
        for fds in (self.reads, self.writes):
            while fds:
                os.close(fds.pop())

    def _close(self, fds: list[int], fd: int) -> None:
        fds.remove(fd)
        os.close(fd)


class _TimeLimit:
    """The time limits of one run: for its start, then its deadline and its idle timeout."""

    __slots__ = ("_activity", "_cap")

    def __init__(self, start_until: float) -> None:
        self._cap: float | None = start_until
        self._activity: Activity | None = None

    def begin(self, now: float, timing: Timing) -> None:
        """Start the time limits: the program begins."""
        self._cap = None if timing.timeout is None else now + timing.timeout
        self._activity = timing.activity
        if self._activity is not None:
            self._activity.begin(now)

    def note_output(self, now: float, streams: Streams) -> None:
        """Note progress if the program has written something."""
        if streams.has_news() and self._activity is not None:
            self._activity.begin(now)  # the time of writing is not known: the event loop may have been blocked since
            report_progress(self._activity.outer)

    def until(self) -> float | None:
        return next_deadline(self._cap, self._activity)

    def is_up(self, now: float) -> bool:
        until = self.until()
        if until is None or now < until:
            return False
        if self._activity is not None and (self._cap is None or now < self._cap):
            self._activity.expire()
        return True


class _Program(NamedTuple):
    """A program that was started."""

    command: Command
    process: Process
    streams: Streams


async def run(workers: Commands, waiting: Waiting, command: Command, args: Mapping[str, Any], timing: Timing) -> Reply:
    """Run ``command`` with ``args`` and return its reply."""
    try:
        given = _encode(args)
    except wire.Unsendable as error:
        return Reply("unsendable", error=replies.unsendable(command.argv[0], str(error), ran=False))
    try:
        streams = Streams(given)
    except OSError as error:
        return Reply("crashed", error=replies.not_started(command.argv[0], error))
    process = None
    try:
        names = (*ENVIRONMENT, *command.env)
        env = {name: os.environ[name] for name in names if name in os.environ} | {**carried()}
        try:
            process = workers.start_command(command.argv, env, [*streams.theirs, *streams.reads])
        except OSError as error:
            return Reply("crashed", error=replies.not_started(command.argv[0], error))
        if process is None:
            return Reply("cancelled")
        streams.hand_over()
        reply = await _attend(workers, waiting, _Program(command, process, streams), timing)
    except BaseException:
        if process is not None:
            workers.drop(process, "killed")
        raise
    finally:
        streams.close()
    workers.drop(process, "killed" if reply.killed else "finished")
    return reply


async def _attend(workers: Commands, waiting: Waiting, started_program: _Program, timing: Timing) -> Reply:
    """Move data until the program ends or its deadline passes."""
    command, process, streams = started_program
    program = command.argv[0]
    started = failed = None
    time_limit = _TimeLimit(time.monotonic() + workers.start_timeout)
    while True:
        await waiting.ready((process.fd, *streams.reads), streams.writes, time_limit.until())
        now = time.monotonic()
        took = 0.0 if started is None else now - started
        try:
            frame = process.receive()
            while frame is not None:
                if frame.kind == wire.READY:
                    process.greet(frame)
                    timing.begun()
                    process.execute_program()
                    started = now
                    time_limit.begin(now, timing)
                else:
                    failed = pickle.loads(frame.content)  # noqa: S301 - written by our code, before the program starts
                frame = process.buffered()
        except ProcessGone as ended:
            if workers.closed:
                return Reply("cancelled", None, None, process.pid, True, started, took)
            while streams.move() and len(streams.out) <= command.max_output:
                pass
            if failed is not None:
                return Reply("missing", None, _not_started(program, *failed), process.pid, False, started, took)
            if started is None:
                return Reply("crashed", None, replies.crashed(program, ended.status, ran=False))
            value, error = _judge(command, ended.status, streams)
            return Reply("value" if error is None else "error", value, error, process.pid, False, started, took)
        streams.move()
        time_limit.note_output(now, streams)
        if len(streams.out) > command.max_output:
            return Reply("error", None, _overflowed(command), process.pid, True, started, took)
        if time_limit.is_up(now):
            if started is None:
                return Reply("crashed", None, replies.never_ready(program, workers.start_timeout), None, True)
            return Reply("timeout", None, None, process.pid, True, started, took)


def _encode(args: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(args)).encode()
    except (TypeError, ValueError, RecursionError):
        for name, value in args.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError, RecursionError) as error:
                why = f"argument {name} ({type(value).__qualname__}) cannot be written as JSON: {error}"
                raise wire.Unsendable(why) from error
        raise


def _judge(command: Command, status: int | None, streams: Streams) -> tuple[Any, CommandError | None]:
    """Return the value, or the error of a program that failed."""
    program = command.argv[0]
    if status is None:
        status = -9  # the supervisor was killed, and the program with it
    if status != 0:
        return None, CommandError(judge_exit(program, status, streams.stderr_tail(), command.exit_codes))
    if len(streams.out) > command.max_output:
        return None, _overflowed(command)
    if not streams.out.strip():
        return None, None
    try:
        return json.loads(streams.out), None
    except (ValueError, RecursionError) as error:
        return None, _fault(
            Code.DATA_LOSS,
            "internal_contract_bug",
            "happened",
            f"{program} did not write JSON to its standard output: {error}",
            "A program that writes something else will do so again",
            "command_output",
        )


def _overflowed(command: Command) -> CommandError:
    return _fault(
        Code.RESOURCE_EXHAUSTED,
        "internal_contract_bug",
        "unknown",
        f"{command.argv[0]} wrote more than {command.max_output} bytes to its standard output",
        "The same call would write as much again; raise max_output, or let the program write less",
        "command_output_size",
    )


def _not_started(program: str, number: int, why: str) -> CommandError:
    """Return the error of a program that could not be started: missing, or without permission."""
    kind = KINDS["no_such_tool" if number in (errno.ENOENT, errno.ENOTDIR) else "misconfigured"]
    return _fault(kind.code, kind.category, "none", f"{program} cannot be started: {why}", kind.reason, "command_start")


def _fault(code: Code, category: Category, effect: Effect, message: str, reason: str, rule: str) -> CommandError:
    return CommandError(Fault(code, "permanent", category, effect, sanitise(message), reason, rule))
