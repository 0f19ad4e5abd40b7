"""A worker: one tool call at a time, in a process that may be killed at any moment.

Rules
-----
- The tool runs in the main thread, in a context of its own, with nothing on its standard input.
- Only this process answers. A child that a tool forks has no socket to the application, and exits when it returns from
  the tool.
- A call is answered with a value, an error, or a reason why there is neither; the worker serves further calls.
- Every answer says when the tool ended (the monotonic clock is the same in all processes) and whether the worker
  has grown beyond ``max_memory``, and so should be replaced.
- Log records are sent to the application and handled there.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import io
import logging
import math
import os
import pickle
import resource
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from failsoft.core.classify.returned import find_returned, value_inside
from failsoft.core.model.options import Values
from failsoft.observe.instrument import OPENERS, OPENERS_PATH, carried
from failsoft.runtime import scope
from failsoft.runtime.execution.processes import encoding, target, wire
from failsoft.runtime.execution.processes.remote_error import Described, describe
from failsoft.runtime.execution.running_tasks import note_running_tasks
from failsoft.runtime.progress import ACTIVITY, Activity, formatted

# The kind of memory that is limited: private writable pages where the kernel counts them (Linux), else the address space
_MEMORY: Final = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS

importing = False  # True while this process is a worker that imports a tool's module


class Line:
    """The socket to the application. Threads of a tool may log while the worker answers."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=sock.close)

    @property
    def is_ours(self) -> bool:
        """False in a child that was forked by a tool."""
        return os.getpid() == self._pid

    def send(self, frame: bytes) -> None:
        if not self.is_ours:
            os._exit(0)  # the tool may have forked without Python's hooks
        try:
            with self._lock:
                self._sock.sendall(frame)
        except OSError:
            os._exit(0)  # the application has closed the socket

    def receive(self) -> tuple[int, memoryview, int]:
        """Return the next request: kind, content, number. Only one is sent at a time, so a read never gets two."""
        data = self._read(wire.CHUNK)
        length, kind, number, _ = wire.HEADER.unpack_from(data)
        size = wire.HEADER.size + length
        if len(data) < size:
            parts = bytearray(data)
            while len(parts) < size:
                parts += self._read(min(size - len(parts), wire.LARGE))
            data = parts
        return kind, memoryview(data)[wire.HEADER.size :], number

    def _read(self, most: int) -> bytes | bytearray:
        try:
            data = self._sock.recv(most)
        except OSError:
            data = b""
        if not data:
            os._exit(0)  # the application has closed the socket
        return data


class _ToApplication(logging.Handler):
    """Sends log records to the application."""

    def __init__(self, line: Line, values: Values) -> None:
        super().__init__()
        self._line = line
        self._values: Values = values
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        if not self._line.is_ours:
            if logging.lastResort is not None:
                logging.lastResort.handle(record)
            return
        try:
            fields = dict(vars(record), msg=record.getMessage(), args=None, exc_info=None)
            if record.exc_info and not record.exc_text:
                fields["exc_text"] = self._formatter.formatException(record.exc_info)
            self._line.send(encoding.pack_log(self._values, fields))
        except Exception:
            self.handleError(record)


class _Reporter(Activity):
    """Sends the progress of one call to the application."""

    __slots__ = ("_line", "_number")

    def __init__(self, line: Line, number: int) -> None:
        super().__init__(math.inf, time.monotonic)
        self._line = line
        self._number = number

    def note(self, message: object = None, args: tuple[object, ...] = (), made: float | None = None) -> bool:  # noqa: ARG002
        """Send progress."""
        if not self.over and self._line.is_ours:
            text = "" if message is None else formatted(message, args)
            self._line.send(wire.progress(text, time.monotonic(), self._number))
        return False


def serve(
    sock: socket.socket,
    surroundings: tuple[str, Mapping[str, str], list[str]],
    modules: Iterable[str],
    levels: Mapping[str, int],
    values: Values,
) -> NoReturn:
    """Answer calls until the application closes the socket."""
    _adopt_surroundings(*surroundings)
    line = Line(sock)
    logging.getLogger().addHandler(_ToApplication(line, values))
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    for module in modules:
        _load(module)
    line.send(encoding.pack_ready(values, 0, None, None))
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    while True:
        kind, content, number = line.receive()
        if kind == wire.LOAD:
            module = pickle.loads(content)  # noqa: S301 - the application's
            line.send(encoding.pack_ready(values, number, module, _load(module)))
        else:
            line.send(_answer(line, content, number, found, values))


def _adopt_surroundings(directory: str, environment: Mapping[str, str], path: list[str]) -> None:
    """Use the application's current directory, environment and path: the supervisor has those of its start."""
    with suppress(OSError):
        os.chdir(directory)
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    sys.path[:] = path
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a worker that is killed flushes nothing


def _load(module: str) -> Any:
    """Import a module; return the described error, or None."""
    global importing  # noqa: PLW0603 - it is the process that is importing, or not
    importing = True
    try:
        importlib.import_module(module)
    except BaseException as error:  # a module that exits at import must not end the worker
        return _describe(error)
    finally:
        importing = False
    return None


def _answer(
    line: Line, content: memoryview, number: int, found: dict[tuple[str, str], Callable[..., Any]], values: Values
) -> bytes:
    """Run one call, and return the packed answer."""
    try:
        module, qualname, carried, max_memory, reports, args, kwargs = pickle.loads(content)  # noqa: S301 - the application's
    except BaseException as error:
        why = f"the arguments cannot be loaded in a worker: {wire.name_of(error)}"
        return encoding.pack_answer(values, wire.UNSENDABLE, number, None, False, why, "text")
    fn = found.get((module, qualname))
    if fn is None:
        try:
            fn = found[module, qualname] = target.unwrap(target.find(module, qualname))
        except BaseException as error:
            return encoding.pack_answer(values, wire.MISSING, number, None, False, _describe(error), "error")
    attempt = scope.watch_alone()
    reporter = _Reporter(line, number) if reports else None
    run = partial(_run, partial(fn, *args, **kwargs), attempt, reporter, carried)
    if max_memory is None:
        kind, value = run()
        ended, heavy = time.monotonic(), False
    else:
        with _limited(max_memory):
            kind, value = run()
        ended, heavy = time.monotonic(), isinstance(value, MemoryError) or _resident() > max_memory
    if not line.is_ours:
        _exit_child(value if kind == wire.ERROR else None)
    try:
        if kind == wire.ERROR:
            described = _with_effect(_describe(value), attempt)
            return encoding.pack_answer(values, kind, number, ended, heavy, described, "error")
        return encoding.pack_answer(values, kind, number, ended, heavy, value, "value")
    except wire.Unsendable as error:
        return encoding.pack_answer(values, wire.UNSENDABLE, number, ended, heavy, str(error), "text")


def _exit_child(error: BaseException | None) -> NoReturn:
    """Exit a forked child that has returned from the tool, as a script would exit."""
    status = 0
    with suppress(BaseException):
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status & 0xFF)


def _describe(error: BaseException) -> Described:
    """Describe an exception, even if its own code exits while it is read."""
    try:
        return describe(error)
    except BaseException as another:
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        why = f"<{name} that cannot be described: {type(another).__name__}>"
        return Described((name,), why, {}, "", None, None, None, None, False, ())


def _with_effect(described: Described, attempt: scope.LightAttempt) -> Described:
    """Add the effect of guarded calls inside the tool to a described error."""
    call, fault = scope.made_call_of(attempt), described.fault
    if call is None or fault is None or fault.effect != "none" or not call.may_have_acted_inside:
        return described
    return described._replace(fault=fault._replace(effect="unknown"))


def _run(
    fn: Callable[[], Any], attempt: scope.LightAttempt, reporter: _Reporter | None, values: Mapping[str, Any] | None
) -> tuple[int, Any]:
    context = contextvars.Context()
    context.run(scope.SCOPE.set, attempt)
    if reporter is not None:
        context.run(ACTIVITY.set, reporter)
    try:
        if values:
            for path, value in values.items():
                context.run(target.variable(path).set, value)
            if OPENERS_PATH in values:
                context.run(_open)
        value = context.run(fn)
        if inspect.iscoroutine(value):
            value = context.run(asyncio.run, _await(value, attempt))
        failure = find_returned(value)  # here, where it is complete
        return (wire.VALUE, value_inside(value)) if failure is None else (wire.ERROR, failure)
    except BaseException as error:  # an exit or interrupt counts as an error of the tool
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # without this frame
        return wire.ERROR, error
    finally:
        if reporter is not None:
            reporter.over = True


async def _await(running: Coroutine[Any, Any, Any], attempt: scope.LightAttempt) -> Any:
    """Await an async tool. If it fails, its tasks that still run may have acted; they end with its event loop."""
    try:
        return await running
    except Exception:
        call = scope.call_of(attempt)
        call.acted |= note_running_tasks(call)
        raise


def _open() -> None:
    """Call the openers of instruments in the tool's context. One that fails never affects the tool."""
    for path in OPENERS.get():
        with suppress(Exception):
            target.find(*path.split(":", 1))(carried())


@contextmanager
def _limited(most: int) -> Iterator[None]:
    """Limit memory while the tool runs, but not while its answer is packed."""
    soft, hard = resource.getrlimit(_MEMORY)
    resource.setrlimit(_MEMORY, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(_MEMORY, (soft, hard))


def _resident() -> int:
    """Bytes of memory that this process holds now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes, where there is no /proc
