"""Tools that misuse their worker: they fork it and write to its socket."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from failsoft.runtime.execution.processes import wire
from failsoft.runtime.execution.processes.worker import Line

log = logging.getLogger("tests.torture.forking")


def echo(number: int) -> int:
    return number


def fork_and_return(number: int) -> int:
    """Both come back out of the tool."""
    return number if os.fork() else -number


def fork_and_return_first(number: int) -> int:
    """The child comes back first, and the worker a moment later."""
    if os.fork():
        time.sleep(0.02)
        return number
    return -number


def fork_and_return_later(number: int) -> int:
    """The child comes back in the middle of a later call."""
    if os.fork():
        return number
    time.sleep(0.01 + number % 7 / 200)
    return -number


def fork_and_raise(number: int) -> int:
    if os.fork():
        return number
    raise ValueError(f"child of {number}")


def fork_and_exit(number: int) -> int:
    child = os.fork()
    if child == 0:
        sys.exit(number % 5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == number % 5
    return number


def fork_unseen(number: int) -> int:
    """A fork that Python does not hear of: the child keeps the socket."""
    return number if ctypes.CDLL(None).fork() else -number


def fork_twice(number: int) -> int:
    os.fork()
    os.fork()
    return number if os.getppid() != 1 and _is_worker() else -number


def fork_from_a_thread(number: int) -> int:
    thread = threading.Thread(target=os.fork)
    thread.start()
    thread.join()
    return number


def fork_and_log(number: int) -> int:
    if os.fork():
        log.warning("worker %d", number)
        return number
    for _ in range(20):
        log.warning("child %d %s", number, "x" * 10_000)
    return -number


def _child(number: int) -> None:
    log.warning("child %d", number)


def use_multiprocessing(number: int) -> int:
    child = multiprocessing.get_context("fork").Process(target=_child, args=(number,))
    child.start()
    child.join()
    return number


def use_pools(number: int) -> int:
    """A pool ends its processes by a signal, and waits until they have ended."""
    for _ in range(3):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            number = pool.map(abs, [number])[0]
    return number


def fork_and_terminate(number: int) -> int:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(1)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    return number


async def fork_in_a_coroutine(number: int) -> int:
    await asyncio.sleep(0)
    return number if os.fork() else -number


def fork_and_hang(number: int) -> int:
    if os.fork():
        time.sleep(60)
    return -number


def fork_and_die(number: int) -> int:
    """The worker dies; its child keeps the socket, and comes back out of the tool."""
    if ctypes.CDLL(None).fork():
        os._exit(3)
    time.sleep(0.01)
    return -number


def _is_worker() -> bool:
    return _line().is_ours


def _line() -> Line:
    return next(one for one in gc.get_objects() if type(one) is Line)


def _socket() -> Any:
    return _line()._sock


def _answer(number: int, value: Any, pid: int | None = None) -> bytes:
    data = pickle.dumps((time.monotonic(), False, value), 5)
    return wire.HEADER.pack(len(data), wire.VALUE, number, pid or os.getpid()) + data


def _current() -> int:
    """The number of the call that this worker is busy with."""
    frame: Any = sys._getframe()
    while "number" not in frame.f_locals or frame.f_code.co_name != "_answer":
        frame = frame.f_back
    return int(frame.f_locals["number"])


def answer_twice(number: int) -> int:
    _socket().sendall(_answer(_current(), number))
    return -number


def answer_another_call(number: int) -> int:
    _socket().sendall(_answer(_current() ^ 1, -number))
    time.sleep(1)  # no second answer follows while the call waits: only the number shows whose this one is
    return -number


def answer_as_another(number: int) -> int:
    _socket().sendall(_answer(_current(), -number, pid=1))
    return -number


def answer_after_the_end(number: int) -> int:
    """A thread goes on, and answers the same call again: before, during or after the next one."""
    ours, sock = _current(), _socket()
    threading.Timer(0.05 + number % 5 / 500, sock.sendall, [_answer(ours, -number)]).start()
    return number


def send_half_a_frame(number: int) -> int:
    threading.Timer(0.05, _socket().sendall, [_answer(_current(), -number)[:30]]).start()
    return number


def send_too_much(number: int) -> int:
    _socket().sendall(wire.HEADER.pack(0xFFFF_FFFF, wire.VALUE, _current(), os.getpid()))
    time.sleep(60)
    return -number


class Raises:
    """Raises when it is loaded."""

    def __init__(self, what: Callable[..., Any], *args: Any) -> None:
        self.what, self.args = what, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.what, self.args


class FailsToLoad(Exception):
    """An exception that exits when it is loaded in a process other than the one that made it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return load_elsewhere, (os.getpid(),)


def load_elsewhere(pid: int) -> Exception:
    if os.getpid() != pid:
        raise SystemExit("not here")
    return FailsToLoad()


def interrupt() -> None:
    raise KeyboardInterrupt


def cancel() -> None:
    raise asyncio.CancelledError


def leave() -> None:
    raise SystemExit(3)


def close() -> None:
    raise GeneratorExit


def value_that_raises(how: str) -> Any:
    return Raises({"interrupt": interrupt, "cancel": cancel, "exit": leave, "close": close}[how])


def error_that_exits() -> None:
    raise FailsToLoad


def log_that_exits(number: int) -> int:
    log.warning("with something odd", extra={"odd": Raises(leave)})
    return number


def write_pickles(path: str) -> str:
    """Write every kind of frame with a pickle in it that makes a file when it is loaded."""
    pickled = pickle.dumps(Raises(os.mkdir, path), 5)
    for kind in (wire.LOG, wire.READY, wire.ERROR, wire.MISSING, wire.UNSENDABLE, wire.VALUE):
        _socket().sendall(wire.HEADER.pack(len(pickled), kind, _current(), os.getpid()) + pickled)
    return "written"


def write_one_pickle(kind: int, path: str) -> NoReturn:
    pickled = pickle.dumps(Raises(os.mkdir, path), 5)
    _socket().sendall(wire.HEADER.pack(len(pickled), kind, _current(), os.getpid()) + pickled)
    time.sleep(0.02)
    os._exit(0)


def write_json(kind: int, text: str) -> NoReturn:
    """Answer the call with a text of one's own."""
    data = text.encode("utf-8", "surrogatepass")
    _socket().sendall(wire.HEADER.pack(len(data), kind, _current(), os.getpid()) + data)
    time.sleep(0.02)
    os._exit(0)


def give(value: Any) -> Any:
    return value


ODD: dict[str, Any] = {
    "set": {1, 2},
    "bytes": b"x",
    "NaN": {"a": [1, float("nan")]},
    "infinity": float("inf"),
    "key": {1: "a"},
    "object": {"deep": [object]},
    "complex": 1j,
}
ODD["cycle"] = []
ODD["cycle"].append(ODD["cycle"])
ODD["deep"] = []
for _ in range(5_000):
    ODD["deep"] = [ODD["deep"]]


def give_odd(name: str) -> Any:
    return ODD[name]


def give_part() -> Any:
    from failsoft import partial

    return partial(["page 1"], missing=["page 2"])


def fail(text: str) -> None:
    error = ValueError(text)
    error.status_code = 503  # type: ignore[attr-defined]
    error.body = b"\x00\xff"  # type: ignore[attr-defined]
    raise error


def log_something(number: int) -> int:
    log.warning("said %d", number, extra={"plain": {"a": 1}, "odd": threading.Lock()})
    return number
