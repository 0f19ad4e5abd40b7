"""Tools for worker processes to import: good ones, stuck ones and deadly ones."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import functools
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST")
NOT_A_VARIABLE = 7

log = logging.getLogger("tests.isolation.tool")

# --- good ones -------------------------------------------------------------------------------------------------------


def echo(value: Any, *, twice: bool = False) -> Any:
    return (value, value) if twice else value


async def echo_async(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def pid() -> int:
    return os.getpid()


def is_loaded(module: str) -> bool:
    return module in sys.modules


def pause(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)


def surroundings() -> dict[str, Any]:
    """What a worker finds itself in."""
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "group": os.getpgid(0),
        "stdin": sys.stdin.read(),
        "main_thread": threading.current_thread() is threading.main_thread(),
        "threads": threading.active_count(),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "fds": len(list(Path("/proc/self/fd").iterdir())),
        "child_sigterm": subprocess.run(
            [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip(),
    }


def request() -> str:
    return REQUEST.get("none")


def set_request(value: str) -> str:
    REQUEST.set(value)
    return REQUEST.get()


def say(*texts: str, level: int = logging.WARNING) -> None:
    for text in texts:
        log.log(level, "said %s", text, extra={"odd": threading.Lock()})


def say_error() -> None:
    try:
        raise ValueError("logged")
    except ValueError:
        log.exception("it broke")


def megabytes(count: int) -> bytes:
    return bytes(count * 1_000_000)


def hold(count: int) -> int:
    """Allocate, and keep it: the worker grows."""
    _held.append(bytearray(os.urandom(1000) * (count * 1000)))
    return os.getpid()


_held: list[bytearray] = []


def signal_self(number: int) -> str:
    os.kill(os.getpid(), number)
    return "lived on"


def decorated_once(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def inner(*args: Any) -> Any:
        return ["decorated", fn(*args)]

    return inner


def guarded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """As a runtime guards it: must not run in a worker."""

    @functools.wraps(fn)
    def inner(*args: Any) -> Any:
        raise AssertionError("the guard ran in the worker")

    inner.__failsoft__ = "a tool"  # type: ignore[attr-defined]
    return inner


@guarded
@decorated_once
def doubly_wrapped(value: Any) -> Any:
    return value


@decorated_once
@guarded
def wrapped_outside(value: Any) -> Any:
    return value


class Box:
    @staticmethod
    def stored(value: Any) -> Any:
        return ("boxed", value)

    def method(self) -> None: ...


def boxed() -> Any:
    return Box()


# --- stuck ones: each marks a file once it is under way, and again should it ever come to its end ----------------------


def _mark(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{text}\n")


def sleeps(path: str, seconds: float = 30) -> None:
    _mark(path, "begun")
    time.sleep(seconds)
    _mark(path, "ended")


def spins(path: str) -> None:
    _mark(path, "begun")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        pass
    _mark(path, "ended")


def holds_the_gil(path: str) -> None:
    """One call into C that never lets go of the interpreter."""
    _mark(path, "begun")
    re.match(r"(a+)+$", "a" * 30 + "b")  # about a minute
    _mark(path, "ended")


def ignores_sigterm(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sleeps(path)


def swallows_everything(path: str) -> None:
    _mark(path, "begun")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(BaseException):
            time.sleep(0.01)
    _mark(path, "ended")


def reads_a_socket(path: str) -> None:
    ours, _theirs = socket.socketpair()
    _mark(path, "begun")
    ours.recv(1)
    _mark(path, "ended")


def forks(path: str) -> None:
    """A child in the same group, that ignores SIGTERM."""
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _mark(path, f"child {os.getpid()}")
        time.sleep(30)
        os._exit(0)
    sleeps(path)


def forks_a_daemon(path: str) -> None:
    """A grandchild in a session of its own, whose parent has ended: the classic escape."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            _mark(path, f"child {os.getpid()}")
            time.sleep(30)
        os._exit(0)
    os.waitpid(middle, 0)
    sleeps(path)


def starts_a_session(path: str) -> None:
    """A program in a session of its own, whose parent lives."""
    child = subprocess.Popen(["sleep", "30"], start_new_session=True)
    _mark(path, f"child {child.pid}")
    sleeps(path)


def logs_for_ever(path: str) -> None:
    _mark(path, "begun")
    while True:
        log.warning("still here")


STUCK = (
    sleeps,
    spins,
    holds_the_gil,
    ignores_sigterm,
    swallows_everything,
    reads_a_socket,
    forks,
    forks_a_daemon,
    starts_a_session,
    logs_for_ever,
)


# --- deadly ones -----------------------------------------------------------------------------------------------------


def segfaults() -> None:
    ctypes.string_at(0)


def aborts() -> None:
    os.abort()


def exits(status: int = 3) -> None:
    os._exit(status)


def stops_the_supervisor() -> str:
    os.kill(os.getppid(), signal.SIGSTOP)
    return "stopped"


def kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def eats_memory() -> int:
    held = []
    while True:
        held.append(bytearray(8_000_000))


def returns_a_lock() -> Any:
    return threading.Lock()


def dies_sending() -> bytes:
    """It dies in the middle of a large answer."""
    here = threading.get_ident()

    def die() -> None:
        while sys._current_frames()[here].f_code.co_name != "send":
            time.sleep(0.0001)
        os._exit(5)

    threading.Thread(target=die, daemon=True).start()
    return bytes(30_000_000)


# --- failing ones ----------------------------------------------------------------------------------------------------


class NotFound(LookupError):
    """Survives pickling."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Response:
    def __init__(self) -> None:
        self.status_code = 503
        self.headers = {"Retry-After": "7"}
        self.lock = threading.Lock()


class Refused(ConnectionError):
    """Cannot be pickled, and says what it is in its attributes."""

    def __init__(self) -> None:
        super().__init__("the service says no")
        self.response = Response()
        self.retries = 3
        self.lock = threading.Lock()


class Unreadable(Exception):
    @property
    def status_code(self) -> int:
        raise RuntimeError("no status")

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Changed(Exception):
    """Pickles into something else."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueError, ("changed",)


def fails(name: str) -> None:
    raise {
        "not_found": NotFound("PAR"),
        "value": ValueError("bad airport"),
        "timeout": TimeoutError(110, "timed out"),
        "refused": Refused(),
        "unreadable": Unreadable(),
        "changed": Changed("original"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "huge": ValueError("x" * 5_000_000),
        "group": ExceptionGroup("two", [ValueError("one"), Refused()]),
    }[name]


def fails_because() -> None:
    try:
        raise Refused
    except Refused as refused:
        raise NotFound("HEL") from refused


def fails_unloaded() -> None:
    """An exception whose module the application has not loaded."""
    from tests.runtime.execution.processes import fake_library

    raise fake_library.LibraryError("from afar")


def pays_inside(what: str, paid: str) -> None:
    """Fail in a worker, with guarded calls of another runtime that act or fail."""
    from failsoft import NothingDone, Runtime

    rt = Runtime()

    def act() -> None:
        with Path(paid).open("a") as file:
            file.write("paid\n")

    pay = rt.add(act, id="pay", idempotent=False)
    if what == "refused":
        pay()
        raise ConnectionRefusedError(111, "Connection refused")
    if what == "stated":
        pay()
        raise NothingDone("no seats", code="UNAVAILABLE")
    act()
    rt.call_sync("nobody_knows").unwrap()


async def sends_two_orders(order: str) -> None:
    """Be refused in a worker, while another request is on its way."""

    async def post(seconds: float) -> None:
        await asyncio.sleep(seconds)
        if not seconds:
            raise ConnectionRefusedError(111, "Connection refused")
        print(order)

    await asyncio.gather(post(0), post(60))


def raises_after_paying(what: str) -> None:
    """Fail in a worker, in one of several ways."""
    from failsoft import NothingDone

    errors: dict[str, Exception] = {
        "local": ValueError("no receipt"),
        "remote": ConnectionRefusedError(111, "Connection refused"),
        "stated": NothingDone("no seats", code="UNAVAILABLE"),
        "disputed": RuntimeError("429: payment captured, but the receipt was refused"),
    }
    raise errors[what]
