"""The supervisor: a small process that starts, watches and ends all the others.

Rules
-----
- It runs our code only, in one thread: forking it is safe however many threads the application has, and it always
  answers. What it starts leads a session and a process group of its own.
- Every child is tied to one socket. The application hanging up is the order to end the child; the child's death is
  told as the last frame on that socket. A child is reaped once both have happened, so its pid means nobody else while
  the application may still kill it.
- Ending means everything: the child, its group, and whatever it has started that left the group. On Linux each child
  adopts its own orphans and the supervisor adopts those of a dead child: any child it did not start itself is such an
  orphan, and is killed.
- A worker is killed at once. A command gets SIGTERM and a moment to tidy up.
- When the application ends, however it ends, its socket closes: everything is killed, then the supervisor goes.
  When the supervisor is killed, the kernel kills its children.

Why not fork from the application: a forked copy of a process with threads may hang on a lock that nobody holds any
more. Why not start interpreters: a fork of this process is ready in two milliseconds.
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
    """Ask the kernel, where it is one that can be asked."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Child:
    """A process that was started for the application, and the socket that it is tied to."""

    __slots__ = ("dead", "grace", "kept", "kill_at", "left", "pid", "sock", "status")

    def __init__(self, pid: int, sock: socket.socket, grace: float, kept: list[int]) -> None:
        self.pid = pid
        self.sock = sock
        self.grace = grace
        self.kept = kept  # the reading ends of its output: a program that tidies up must not die of a broken pipe
        self.left = False  # the application has hung up
        self.dead = False
        self.status = 0
        self.kill_at: float | None = None

    def signal(self, number: int) -> None:
        for send in (os.killpg, os.kill):  # the group may not be there yet, or outlive its leader
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, number)


class Supervisor:
    """The loop: requests and hang-ups from the application, deaths from the kernel."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self.control = control
        self.parent = parent
        self.children: dict[int, Child] = {}  # by pid
        self.tied: dict[int, Child] = {}  # by the descriptor of their socket, until the application hangs up
        self.poll = select.poll()
        self.wake, self.wakes = socket.socketpair()
        self.wake.setblocking(False)
        self.wakes.setblocking(False)
        self.poll.register(control, select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)
        signal.set_wakeup_fd(self.wakes.fileno(), warn_on_full_buffer=False)
        # SIGHUP is how the kernel tells that the thread which started us has ended; perhaps with its whole process
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _heard)
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
                    self._tell(self.tied[fd])
                else:
                    self._end(self.tied.pop(fd))
            self._kill_overdue()
            self._reap()

    def _accept(self) -> bool:
        """Start what the application asks for. False once the application is gone."""
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
        if fds:  # none: too many are open here
            what, options = pickle.loads(request)  # noqa: S301 - from the application that started us
            self._start(what, options, fds)
        return True

    def _start(self, what: str, options: Any, fds: list[int]) -> None:
        sock = socket.socket(fileno=fds[0])
        try:
            pid = os.fork()
        except OSError:  # no room for one more process: it has died before it was born
            sock.send(wire.death(os.EX_OSERR))
            sock.close()
            for fd in fds[1:]:
                os.close(fd)
            return
        if pid == 0:
            self._become(_run_worker if what == "worker" else _run_command, sock, fds[1:], options)
        for fd in fds[1:4]:
            os.close(fd)
        child = Child(pid, sock, 0 if what == "worker" else GRACE, fds[4:])
        self.children[pid] = self.tied[sock.fileno()] = child
        self.poll.register(sock, 0)  # a hang-up is always told

    def _become(
        self, run: Callable[[socket.socket, list[int], Any], None], sock: socket.socket, fds: list[int], options: Any
    ) -> NoReturn:
        """The other side of the fork: leave everything of the supervisor's behind, then run."""
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.pid:
                os._exit(0)  # it died before the kernel knew that we wanted to be told
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
            signal.set_wakeup_fd(-1)
            for own in (self.control, self.wake, self.wakes, *(child.sock for child in self.tied.values())):
                own.close()
            run(sock, fds, options)
        except BaseException:  # nothing may return into the supervisor's loop
            traceback.print_exc()
        os._exit(70)

    def _end(self, child: Child) -> None:
        child.left = True
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
        """Tell of the dead, end what they left, and let go of those that nobody asks for any more."""
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
                if not child.left:
                    self._tell(child)
            if child.dead and child.left:
                os.waitpid(child.pid, 0)
                del self.children[child.pid]
                for fd in child.kept:
                    os.close(fd)
        self._kill_orphans()

    def _tell(self, child: Child) -> None:
        """Say how the process died; for all who hold its socket, the stream ends here."""
        try:
            child.sock.send(wire.death(child.status), socket.MSG_DONTWAIT)
        except BlockingIOError:  # it has filled the socket before it died
            self.poll.modify(child.sock, select.POLLOUT)
            return
        except OSError:
            pass  # the application hangs up in this moment
        self.poll.modify(child.sock, 0)
        with contextlib.suppress(OSError):
            child.sock.shutdown(socket.SHUT_WR)

    def _kill_orphans(self) -> None:
        """Kill the children that we did not start. Their death wakes us again, and brings their own children."""
        for pid in _children():
            if pid not in self.children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def end_all(self) -> None:
        """Kill everything, and wait for it as long as that makes sense."""
        until = time.monotonic() + LAST
        for child in self.children.values():
            child.left = True
            child.signal(signal.SIGKILL)
        while time.monotonic() < until:
            self._reap()
            if not self.children and not _children():
                return
            select.select([self.wake], [], [], 0.05)
            with contextlib.suppress(BlockingIOError):
                self.wake.recv(4096)


def _heard(number: int, frame: object) -> None:
    """A signal that only has to wake the loop."""


def _children() -> list[int]:
    """The processes whose parent we are, adopted ones included."""
    own = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _run_worker(sock: socket.socket, _fds: list[int], options: Any) -> None:
    # A handler instead of SIG_IGN: programs that the tool starts must get the defaults
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _heard)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_listen_again)
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


def _listen_again() -> None:
    """Let processes that a tool forks be ended by signals: ``multiprocessing`` ends its pools so, and waits for them."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is _heard:
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
        if sock.recv(len(wire.GO)) != wire.GO:  # the application no longer wants it
            os._exit(127)
        os.execvpe(argv[0], argv, env)  # noqa: S606 - without a shell, as the manifest says
    except OSError as error:
        sock.sendall(wire.pack(wire.MISSING, (error.errno, error.strerror)))
    os._exit(127)


def main(parent: int, shared: Iterable[str]) -> NoReturn:
    """Run as the supervisor of the process ``parent``, whose socket is our standard input.

    The modules ``shared`` are loaded here, once, for all workers; a tool's own modules never are: they may start threads.
    """
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # what the application lets its children inherit is not for us
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    supervisor = Supervisor(control, parent)
    for module in shared:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    gc.freeze()  # what is here now never changes: the workers share its pages
    try:
        supervisor.run()
    except Exception:
        traceback.print_exc()
    finally:
        supervisor.end_all()
        os._exit(0)
