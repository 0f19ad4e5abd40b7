"""The supervisor: a small process that starts, watches and ends all the others.

Rules
-----
- It runs only failsoft's code, in one thread, so forking it is safe however many threads the application has. Every child
  leads its own session and process group.
- Every child has one socket to the application. If the application closes its end, the child is ended. If the child dies,
  that is reported in a last frame on the socket. A child is reaped once both have happened: its pid cannot be reused while
  the application may still kill it.
- Ending a child means the child, its process group, and everything that it has started outside the group. On Linux each
  child adopts its own orphans, and the supervisor adopts those of a dead child: a child that the supervisor did not start
  is an orphan, and is killed.
- A worker is killed at once. A command gets SIGTERM, and SIGKILL after ``GRACE`` seconds.
- When the application ends in any way, its socket closes: everything is killed, then the supervisor ends. When the
  supervisor is killed, the kernel kills its children.

Why not fork the application: a forked copy of a process with threads may hang on a lock whose owner does not exist there.
Why not start interpreters: a fork of this process is ready in two milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

from failsoft.runtime.execution.processes import encoding, wire, worker

GRACE: Final = 1.0  # seconds that a command has between SIGTERM and SIGKILL
LAST: Final = 1.5  # seconds that are given to ending everything

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_MOST_FDS: Final = 6


def _prctl(option: int, value: int) -> None:
    """Call ``prctl`` if there is one (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Child:
    """A process that was started for the application, and its socket."""

    __slots__ = ("dead", "grace", "hung_up", "kept", "kill_at", "pid", "sock", "status")

    def __init__(self, pid: int, sock: socket.socket, grace: float, kept: list[int]) -> None:
        self.pid = pid
        self.sock = sock
        self.grace = grace
        self.kept = kept  # the reading ends of its output: a broken pipe must not kill a program that cleans up
        self.hung_up = False  # the application has closed the socket
        self.dead = False
        self.status = 0
        self.kill_at: float | None = None

    def signal(self, number: int) -> None:
        for send in (os.killpg, os.kill):  # the group may not exist yet, or outlive its leader
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, number)


class Supervisor:
    """The event loop: requests and closed sockets of the application, deaths of children."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self.control = control
        self.parent = parent
        self.children: dict[int, Child] = {}  # by pid
        self.tied: dict[int, Child] = {}  # by the descriptor of the socket, until the application closes it
        self.poll = select.poll()
        self.wake, self.wakes = socket.socketpair()
        self.wake.setblocking(False)
        self.wakes.setblocking(False)
        self.poll.register(control, select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)
        signal.set_wakeup_fd(self.wakes.fileno(), warn_on_full_buffer=False)
        # The kernel sends SIGHUP when the thread that started the supervisor has ended, perhaps with its process
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _ignore_signal)
        self.pid = os.getpid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def run(self) -> None:
        while os.getppid() == self.parent:
            for fd, event in self.poll.poll(self._patience()):
                if fd == self.control.fileno():
                    if not self._accept():
                        return
                elif fd == self.wake.fileno():
                    with contextlib.suppress(BlockingIOError):
                        self.wake.recv(4096)
                elif event & select.POLLOUT:
                    self._report_death(self.tied[fd])
                else:
                    self._end(self.tied.pop(fd))
            self._kill_overdue()
            self._reap()

    def _accept(self) -> bool:
        """Start the process that the application asks for. False once the application is gone."""
        try:
            head, fds, _, _ = socket.recv_fds(self.control, 4, _MOST_FDS)
        except ConnectionError:
            return False
        if len(head) < 4:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)
        request = bytearray()
        while len(request) < (size := int.from_bytes(head, "little")):
            part = self.control.recv(size - len(request))
            if not part:
                return False
            request += part
        if fds:  # none if too many descriptors are open here
            what, options = pickle.loads(request)  # noqa: S301 - from the application that started us
            self._start(what, options, fds)
        return True

    def _start(self, what: str, options: Any, fds: list[int]) -> None:
        sock = socket.socket(fileno=fds[0])
        try:
            pid = os.fork()
        except OSError:  # no further process can be started: report it as dead
            sock.send(wire.death(os.EX_OSERR))
            sock.close()
            for fd in fds[1:]:
                os.close(fd)
            return
        if pid == 0:
            self._run_child(_run_worker if what == "worker" else _run_command, sock, fds[1:], options)
        for fd in fds[1:4]:
            os.close(fd)
        child = Child(pid, sock, 0 if what == "worker" else GRACE, fds[4:])
        self.children[pid] = self.tied[sock.fileno()] = child
        self.poll.register(sock, 0)  # 0: a closed socket is always reported

    def _run_child(
        self, run: Callable[[socket.socket, list[int], Any], None], sock: socket.socket, fds: list[int], options: Any
    ) -> NoReturn:
        """Run in the forked child: drop everything that belongs to the supervisor, then run the worker or program."""
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.pid:
                os._exit(0)  # the supervisor died before the kernel could watch it
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
            signal.set_wakeup_fd(-1)
            for own in (self.control, self.wake, self.wakes, *(child.sock for child in self.tied.values())):
                own.close()
            run(sock, fds, options)
        except BaseException:  # the child must not return into the supervisor's loop
            traceback.print_exc()
        os._exit(70)

    def _end(self, child: Child) -> None:
        child.hung_up = True
        self.poll.unregister(child.sock)
        child.sock.close()
        if child.grace:
            child.signal(signal.SIGTERM)
            child.signal(signal.SIGCONT)
            child.kill_at = time.monotonic() + child.grace
        else:
            child.signal(signal.SIGKILL)

    def _patience(self) -> float | None:
        """Milliseconds until the next command must be killed."""
        due = min((child.kill_at for child in self.children.values() if child.kill_at is not None), default=None)
        return None if due is None else max(0.0, (due - time.monotonic()) * 1000 + 1)

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self.children.values():
            if child.kill_at is not None and child.kill_at <= now:
                child.kill_at = None
                child.signal(signal.SIGKILL)

    def _reap(self) -> None:
        """Report dead children, kill what they have started, and reap those whose socket is closed."""
        for child in list(self.children.values()):
            if not child.dead:
                found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None:
                    continue
                child.dead = True
                child.kill_at = None
                child.signal(signal.SIGKILL)  # the rest of its group
                self._kill_orphans()
                child.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
                if not child.hung_up:
                    self._report_death(child)
            if child.dead and child.hung_up:
                os.waitpid(child.pid, 0)
                del self.children[child.pid]
                for fd in child.kept:
                    os.close(fd)
        self._kill_orphans()

    def _report_death(self, child: Child) -> None:
        """Report how the process died, and end its stream for all processes that hold the socket."""
        try:
            child.sock.send(wire.death(child.status), socket.MSG_DONTWAIT)
        except BlockingIOError:  # the child filled the socket before it died
            self.poll.modify(child.sock, select.POLLOUT)
            return
        except OSError:
            pass  # the application is closing the socket
        self.poll.modify(child.sock, 0)
        with contextlib.suppress(OSError):
            child.sock.shutdown(socket.SHUT_WR)

    def _kill_orphans(self) -> None:
        """Kill the children that the supervisor did not start. Each death wakes it again, with the next generation."""
        for pid in _children():
            if pid not in self.children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def end_all(self) -> None:
        """Kill everything, and wait for ``LAST`` seconds at most."""
        until = time.monotonic() + LAST
        for child in self.children.values():
            child.hung_up = True
            child.signal(signal.SIGKILL)
        while time.monotonic() < until:
            self._reap()
            if not self.children and not _children():
                return
            select.select([self.wake], [], [], 0.05)
            with contextlib.suppress(BlockingIOError):
                self.wake.recv(4096)


def _ignore_signal(number: int, frame: object) -> None:
    """Handle a signal whose only purpose is to wake the loop."""


def _children() -> list[int]:
    """Return the pids of all child processes, adopted ones included."""
    own = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _run_worker(sock: socket.socket, _fds: list[int], options: Any) -> None:
    # A handler instead of SIG_IGN: programs that the tool starts must have the default action
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ignore_signal)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_restore_signals)
    worker.serve(sock, *options)


_DEFAULTS: Final[dict[signal.Signals, Any]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_masks: dict[int, set[Any]] = {}  # of threads that are about to fork


def _hold_signals() -> None:
    _masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFAULTS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(threading.get_ident(), ()))


def _restore_signals() -> None:
    """Let signals end processes that a tool forks: ``multiprocessing`` ends its pools by signals, and waits for them."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is _ignore_signal:
            signal.signal(number, default)
    _release_signals()


def _run_command(sock: socket.socket, fds: list[int], options: Any) -> None:
    argv, env, cwd = options
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    for stream, fd in enumerate(fds[:3]):
        os.dup2(fd, stream)
    try:
        os.chdir(cwd)
        sock.sendall(encoding.pack_ready("pickle", 0, None, None))
        if sock.recv(len(wire.GO)) != wire.GO:  # the application has given up
            os._exit(127)
        os.execvpe(argv[0], argv, env)  # noqa: S606 - without a shell, as the manifest says
    except OSError as error:
        sock.sendall(wire.pack(wire.MISSING, (error.errno, error.strerror)))
    os._exit(127)


def main(parent: int, shared: Iterable[str]) -> NoReturn:
    """Run as the supervisor of the process ``parent``, whose socket is the standard input.

    The modules ``shared`` are loaded here, once for all workers. A tool's own modules are not: they may start threads.
    """
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # descriptors that the application lets its children inherit
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    supervisor = Supervisor(control, parent)
    for module in shared:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    gc.freeze()  # workers share the memory pages of these objects
    try:
        supervisor.run()
    except Exception:
        traceback.print_exc()
    finally:
        supervisor.end_all()
        os._exit(0)
