"""The application's side of the supervisor, and of each process that it has started.

Rules
-----
- The supervisor is started for the first process, and again if it has died.
- Closing the socket of a process tells the supervisor to end it, and everything it has started. A worker is also killed
  from here: when ``end`` returns, it does not run another instruction of the tool.
- A forked child must not use any of this: it only closes its copies of the sockets.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pickle
import signal
import socket
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from failsoft.core.model.options import Values
from failsoft.runtime.execution.processes import encoding, wire
from failsoft.runtime.execution.processes.remote_error import Described
from failsoft.runtime.progress import Activity, report_progress

_log = logging.getLogger(__name__)

# Slow imports for the declaration of tools. If they are loaded here, every worker needs them. None starts a thread
_SHARED = ("failsoft.config.manifest",)


EndedBy = Literal["killed", "crashed", "replaced", "lost", "finished"]  # why a pool drops a process
_PATIENCE: Final = 1_000  # most log records read before a call: a worker may log without end


class ProcessGone(Exception):
    """The process is gone. ``status`` is its exit status, minus its signal, or None: its supervisor is gone too."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class OutOfStep(Exception):
    """A process has sent something other than the expected answer. It can no longer be trusted."""


class Process:
    """A process that the supervisor runs for the application, and the socket to it."""

    __slots__ = (
        "_buffer",
        "_reporting",
        "_wanted",
        "asked",
        "calls",
        "dead",
        "ended",
        "fd",
        "idle_since",
        "modules",
        "pid",
        "ready",
        "sock",
        "started",
        "supervisor",
        "values",
    )

    def __init__(self, sock: socket.socket, supervisor: int | None, values: Values = "pickle") -> None:
        self.sock = sock
        self.values: Values = values
        self.supervisor = supervisor
        self.fd = sock.fileno()
        self.pid: int | None = None  # known once it is ready
        self.ready = False
        self.ended = False  # by the application
        self.dead = False
        self.calls = 0
        self.asked = False  # something was sent for the current call
        self.modules: set[str] = set()
        self.idle_since = 0.0
        self.started: float | None = None  # when it got its current call
        self._buffer = bytearray()
        self._reporting: tuple[int, Activity] | None = None  # the call that may report progress
        self._wanted = 0  # bytes of the incoming frame

    def send(self, data: bytes | memoryview) -> int:
        """Send as much as fits; return the number of bytes."""
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the process died before it got everything; reading shows how
            self.asked = False
            return len(data)
        self.asked = True
        return sent

    def receive(self) -> wire.Frame | None:
        """Read once; return the next frame, or None if it is incomplete. Raises ``ProcessGone`` or ``OutOfStep``."""
        return self.buffered() if self._read() else None

    def _read(self) -> bool:
        try:
            data = self.sock.recv(min(max(self._wanted - len(self._buffer), wire.CHUNK), wire.LARGE))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.dead = True
            raise ProcessGone(wire.death_of(self._buffer))
        self._buffer += data
        return True

    def buffered(self) -> wire.Frame | None:
        """Return the next frame that has been read, and handle log records before it. Raises ``OutOfStep``."""
        buffer = self._buffer
        while len(buffer) >= wire.HEADER.size:
            length, kind, number, pid = wire.HEADER.unpack_from(buffer)
            size = wire.HEADER.size + length
            if kind == wire.DEATH:  # it is read at the end of the stream
                if len(buffer) > wire.LAST_SIZE:
                    raise OutOfStep("it sends something after its end")
                self._wanted = 0
                break
            if length > wire.LIMIT:
                raise OutOfStep(f"it sends {wire.megabytes(length)} at once")
            if self.pid is not None and pid != self.pid:
                raise OutOfStep("another process answered in its place")
            if len(buffer) < size:
                self._wanted = size
                break
            content = bytes(memoryview(buffer)[wire.HEADER.size : size])
            del buffer[:size]
            self._wanted = 0
            if kind == wire.PROGRESS:
                self._note_progress(number, content)
                continue
            if kind != wire.LOG:
                return wire.Frame(kind, content, number, pid)
            _handle_log(self.values, content)
        return None

    def let_report(self, number: int, activity: Activity | None) -> None:
        """Note the progress of the call with this number from now on; that of other calls is ignored."""
        self._reporting = None if activity is None else (number, activity)

    def _note_progress(self, number: int, content: bytes) -> None:
        if self._reporting is not None and self._reporting[0] == number:
            made, message = wire.read_progress(content)
            if self._reporting[1].note(message, made=made):
                report_progress(self._reporting[1].outer, message)

    def expect_silence(self) -> None:
        """Raise ``OutOfStep`` if anything but log records and progress came unrequested, or ``ProcessGone``."""
        for _ in range(_PATIENCE):
            if not self._read():
                break
            if self.buffered() is not None:
                raise OutOfStep("it answers without having been asked")
        if self._buffer:
            raise OutOfStep("it sends something without having been asked")

    def has_read(self) -> bool:
        """True if the worker may have read its whole call. If not, a dead worker has not run it."""
        if not self.asked:
            return False
        unsent = bytearray(4)
        fcntl.ioctl(self.fd, termios.TIOCOUTQ, unsent)
        return int.from_bytes(unsent, sys.byteorder) == 0

    def greet(self, frame: wire.Frame) -> Described | None:
        """Handle the message that it is ready or has tried to load a module; return the problem, if there was one."""
        if frame.kind != wire.READY:
            raise OutOfStep("it answers without having been asked")
        try:
            module, problem = encoding.read_ready(self.values, frame.content)
        except wire.Unloadable as error:
            raise OutOfStep(str(error)) from None
        self.pid = frame.pid
        self.ready = True
        if module is not None and problem is None:
            self.modules.add(module)
        return problem

    def execute_program(self) -> None:
        """Let the process execute its program."""
        with contextlib.suppress(OSError):  # it has died, which is noticed elsewhere
            self.sock.send(wire.GO)

    def end(self) -> None:
        """Kill the process now, with everything that it has started."""
        if not self.ended and not self.dead and self.pid is not None:
            # The pid is not reused before the supervisor sees the socket close
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.hang_up()

    def hang_up(self) -> None:
        """Let the supervisor end the process: a command gets SIGTERM first."""
        if not self.ended:
            self.ended = True
            self.cut()
            self.sock.close()

    def cut(self) -> None:
        """End the stream, so that its reader wakes up. This is all that another thread may do to a socket."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # also for a forked child of ours that holds the socket

    def forget(self) -> None:
        """Close the socket in a forked child: the process belongs to the parent."""
        self.ended = True
        self.sock.close()


def _handle_log(values: Values, content: bytes) -> None:
    try:
        record = logging.makeLogRecord(encoding.read_log(values, content))
        logger = logging.getLogger(record.name)
        if logger.isEnabledFor(record.levelno):
            logger.handle(record)
    except Exception:
        _log.exception("a log record of a worker could not be handled")


class Supervisor:
    """The application's end of its supervisor. Not safe for threads: the owner's lock guards it."""

    def __init__(self, values: Values = "pickle") -> None:
        self._values: Values = values
        self._control: socket.socket | None = None
        self.pid: int | None = None

    def worker(self, modules: tuple[str, ...]) -> Process:
        """Start a worker that imports ``modules`` before it reports that it is ready."""
        surroundings = (str(Path.cwd()), dict(os.environ), list(sys.path))
        return self._start("worker", (surroundings, modules, _log_levels(), self._values), [])

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], streams: list[int]) -> Process:
        """Start a program on three descriptors; two more stay open while it runs. The caller closes them all."""
        return self._start("command", (argv, dict(env), str(Path.cwd())), streams)

    def _start(self, what: str, options: Any, fds: list[int]) -> Process:
        request = pickle.dumps((what, options), 5)
        self.wake()
        ours, theirs = socket.socketpair()
        with theirs:
            ours.setblocking(False)
            message = len(request).to_bytes(4, "little") + request
            for fresh in (self._control is None, True):
                if fresh:
                    self._launch()
                if self._send(message, [theirs.fileno(), *fds]):
                    break
        return Process(ours, self.pid, self._values)

    def _send(self, message: bytes, fds: list[int]) -> bool:
        assert self._control is not None
        try:
            sent = socket.send_fds(self._control, [message], fds)
            self._control.sendall(message[sent:])
        except OSError:  # it was killed
            return False
        return True

    def _launch(self) -> None:
        self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            shared = [name for name in _SHARED if name in sys.modules]
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; "
                f"from failsoft.runtime.execution.processes.supervisor import main; main({os.getpid()}, {shared!r})"
            )
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, *_flags(), "-c", code],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setsid=True,  # so that Ctrl-C in a terminal reaches the application only
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
        self._control = ours

    def wake(self) -> None:
        """Let the supervisor go on if a tool has stopped it: it reports the end of workers, and starts new ones."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        self.wake()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self.pid is not None:
            _wait(self.pid)
            self.pid = None

    def forget(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control = self.pid = None


def _flags() -> list[str]:
    """Return the interpreter options that change behaviour, for the supervisor and its workers."""
    flags = sys.flags
    given = (("E", flags.ignore_environment), ("s", flags.no_user_site), ("S", flags.no_site), ("O", flags.optimize))
    return ["-" + letter * count for letter, count in given if count]


def _wait(pid: int) -> None:
    """Wait for the supervisor to end; kill it after a while, and with it its children."""
    until = time.monotonic() + 2.0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.001)


def _log_levels() -> dict[str, int]:
    """Return the log levels that are set here, so that workers do not send records that are not wanted."""
    root = logging.getLogger()
    named = {
        name: logger.level
        for name, logger in list(root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and logger.level
    }
    return {"": max(root.level, root.manager.disable + 1), **named}
