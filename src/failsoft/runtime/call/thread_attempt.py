"""One attempt in an OS thread of the pool. ``attempt_on_loop`` and ``attempt_blocking`` wait for its end.

Rules
-----
- The call waits until a thread begins with it, and can be withdrawn until then. The wait does not count as the tool's
  time.
- If no thread is free for it, the attempt is refused, at once or while it waits.
- A caller that stops waiting abandons the attempt. If the tool is running, it continues in its thread, and that is
  recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.observe import events
from failsoft.runtime.call.attempt_result import not_run
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.call.tool_body import run_tool
from failsoft.runtime.execution.thread_pool import Job

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.tools.tool import Tool


class ThreadAttempt:
    """An attempt in an OS thread: submit it, wait for its end, then close it.

    The job refers to the attempt, so the attempt does not keep the job: the cycle would keep the tool's value alive.
    """

    __slots__ = ("_activity", "_begun", "_call", "_done", "_number", "_pool", "_rt", "_tool", "began", "ended")

    began: float  # when the tool began; set when a thread has begun
    ended: float  # when the tool ended; set unless the attempt was refused

    def __init__(
        self, rt: AttemptServices, call: Call, tool: Tool, begun: Callable[[], object], done: Callable[[], object]
    ) -> None:
        """Make an attempt whose thread calls ``begun`` when it begins, and ``done`` when it has ended or is refused."""
        self._rt = rt
        self._call = call
        self._tool = tool
        self._number = call.attempts_ended + 1  # set now: the thread may begin after the call has abandoned it
        self._pool = rt.places.thread_pool
        self._activity = call.activity
        self._begun = begun
        self._done = done

    def submit(self) -> Job | None:
        """Run the tool as soon as a thread is free. None if no thread is left."""
        self._call.waiting = True
        job = self._pool.submit(self._run, self._end)
        if job is None:
            self._call.begin()
        else:
            self._call.withdraw = partial(self._pool.withdraw, job)
        return job

    def _run(self) -> Any:
        self._begin()
        try:
            return run_tool(self._rt, self._tool, self._call, self._number)
        finally:
            self.ended = ended = self._rt.time.now()  # here: the tool is not to blame if its caller is woken late
            if self._activity is not None:
                self._activity.finish(ended)

    def _begin(self) -> None:
        self._call.begin()
        self.began = self._rt.time.now()
        if self._activity is not None:
            self._activity.begin(self.began)
        self._begun()

    def _end(self, job: Job) -> None:
        if job.refused:
            self._begin()
        self._done()

    def refused(self) -> AttemptResult:
        """The result if no thread was left."""
        return not_run(self._rt, builtin_faults.thread_limit(self._tool.id, self._pool.abandoned))

    def abandon(self, job: Job | None) -> bool:
        """Stop waiting for the tool. True if it is running and goes on."""
        if job is None or not self._pool.abandon(job, self._tool.id):
            return False
        self._call.begin()  # the thread may not have reported it yet
        message = f"{self._tool.id} goes on in its thread"
        self._rt.log.emit(events.ATTEMPT_ABANDONED, self._tool, self._call, {"message": message})
        return True

    def close(self) -> None:
        """Note that the attempt can no longer be withdrawn."""
        self._call.withdraw = None
