"""Calls and turns that the daemon runs for clients: started, waited for, looked up, cancelled.

Rules
-----
- A client waits for up to ``wait`` seconds. A longer job continues, and the client polls it or follows its events.
- An id is used once (``used_ids``). The latest ``KEPT`` finished jobs are kept in memory; a turn's trace stays in the store.
- A call cannot end the daemon, whatever its tool raises.
- A turn is in the store before it is acknowledged, so that it can be found after a crash: its state is then ``interrupted``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Literal, TypeVar

from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import FailsoftError
from failsoft.surfaces.daemon.problems import Problem

T = TypeVar("T")
log = logging.getLogger("failsoft")

MOST_RUNNING: Final = 500
KEPT: Final = 1_000
LONGEST_WAIT: Final = 60.0  # seconds

Kind = Literal["call", "turn"]
State = Literal["running", "finished", "cancelled", "failed"]


class Job:
    """A call or a turn."""

    __slots__ = ("error", "id", "kind", "result", "state", "task")

    def __init__(self, kind: Kind, id: str) -> None:
        self.kind = kind
        self.id = id
        self.state: State = "running"
        self.result: dict[str, Any] | None = None
        self.error = ""  # why it could not run
        self.task: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        try:
            self.result = await contain(work)
            self.state = "finished"
        except asyncio.CancelledError:
            self.state = "cancelled"
        except Exception as error:
            self.state = "failed"
            if isinstance(error, FailsoftError):  # the caller's or the manifest's mistake, not the daemon's
                self.error = sanitise(error)
            log.error("the %s %s failed: %s", self.kind, self.id, sanitise(f"{type(error).__name__}: {error}"))  # noqa: TRY400


class ToolExit(Exception):
    """A tool has tried to end the process."""


async def contain(work: Awaitable[T]) -> T:
    """Run a tool so that it cannot end the daemon, for example with ``sys.exit`` or its own interrupt."""
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise ToolExit(f"a tool raised {type(error).__name__}") from None


class Jobs:
    """All jobs of a daemon."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[Kind, str], Job] = {}

    def start(
        self, kind: Kind, id: str, begin: Callable[[], Coroutine[Any, Any, dict[str, Any]]], *, again: bool = False
    ) -> Job:
        """Start a job; raise if too many run, or if the id is taken. ``again`` allows it to replace a finished job."""
        known = self._jobs.get((kind, id))
        if known is not None and not (again and known.state != "running"):
            raise Problem(409, f"there is a {kind} {id!r:.200} already")
        if sum(job.state == "running" for job in self._jobs.values()) >= MOST_RUNNING:
            raise Problem(503, f"{MOST_RUNNING} calls and turns are running", headers={"retry-after": "1"})
        self._jobs.pop((kind, id), None)  # finished jobs are forgotten in the order of their entries
        job = self._jobs[kind, id] = Job(kind, id)
        job.task = asyncio.create_task(job.run(begin()))
        job.task.add_done_callback(_retrieve)
        self._forget_old()
        return job

    def _forget_old(self) -> None:
        done = [key for key, job in self._jobs.items() if job.state != "running"]
        for key in done[: max(0, len(done) - KEPT)]:
            del self._jobs[key]

    def find(self, kind: Kind, id: str) -> Job | None:
        """Return a job; None if it is unknown or was forgotten."""
        return self._jobs.get((kind, id))

    async def wait(self, job: Job, seconds: float) -> None:
        """Wait for the end of a job, for some seconds at most."""
        assert job.task is not None
        if not job.task.done() and seconds > 0:
            await asyncio.wait({job.task}, timeout=seconds)

    async def cancel(self, job: Job) -> bool:
        """Cancel a job, and wait briefly for its end; False if it had ended."""
        assert job.task is not None
        if job.task.done():
            return False
        job.task.cancel()
        await asyncio.wait({job.task}, timeout=1.0)
        return True

    def cancel_all(self) -> set[asyncio.Task[None]]:
        """Cancel all running jobs; clients that wait for them are answered."""
        tasks = {job.task for job in self._jobs.values() if job.task is not None and not job.task.done()}
        for task in tasks:
            task.cancel()
        return tasks

    async def close(self, seconds: float) -> None:
        """Cancel all running jobs, and wait for some seconds."""
        if tasks := self.cancel_all():
            await asyncio.wait(tasks, timeout=seconds)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
