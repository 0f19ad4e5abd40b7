"""Calls in flight: ``rt.running()``, and the event ``CallRunning`` for calls that take long.

Rules
-----
- A call that has been running for ``LONG`` seconds is reported once, so that a stuck call is visible from outside.
- One timer per event loop does this. It is armed when a tool suspends, and runs only while there are calls that have not
  been reported. Calls that succeed at once never touch it.
- A blocking tool that is called directly without a timeout runs in its caller's OS thread and is not listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextvars import Context
from typing import TYPE_CHECKING, Any, Literal

from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.observe.events import CALL_RUNNING
from failsoft.observe.success_runs import iso
from failsoft.runtime.call.model import Call, TurnCall
from failsoft.runtime.scope import LightAttempt, name_of

if TYPE_CHECKING:
    import asyncio

    from failsoft.runtime.call.ports import RunningServices
    from failsoft.runtime.execution.deadline import LoopDeadlines
    from failsoft.runtime.progress import Activity

LONG = 1.0  # seconds
_ALMOST = LONG - 0.001  # timers are not exact: a timer must not be armed again for 0 s

WaitsFor = Literal["tool", "next attempt", "rate limit", "verify"]


class RunningCall(NamedTuple):
    """A call in flight."""

    tool: str
    call_id: str
    turn_id: str | None
    thread: str | None
    since: str  # ISO time
    seconds: float  # so far
    attempt: int  # the number of the current attempt
    # the tool's answer, the start of the next attempt (backoff, a slot, a worker), the tool's rate, or verify
    waits_for: WaitsFor
    progress: str = ""  # the latest message of ``failsoft.progress``


class _Found(NamedTuple):
    key: Hashable
    tool: Any
    call_id: str
    turn_id: str | None
    thread: str | None
    started: float
    attempt: int
    waits_for: WaitsFor
    parent_id: str | None = None
    activity: Activity | None = None


def list_running(rt: RunningServices) -> list[RunningCall]:
    """Every call in flight, the oldest first."""
    now, wall = rt.time.now(), rt.time.wall()
    return [
        RunningCall(
            found.tool.id, found.call_id, found.turn_id, found.thread, iso(wall - (now - found.started)),
            round(max(0.0, now - found.started), 3), found.attempt, found.waits_for, "" if found.activity is None else found.activity.shown(),
        )
        for found in sorted((make(*of) for _, make, of in _find(rt)), key=lambda found: found.started)
    ]  # fmt: skip


def _name(tool: Any, call_id: str | int) -> str:
    return f"{tool.id}-{call_id}" if isinstance(call_id, int) else call_id


def _find(rt: RunningServices) -> Iterator[tuple[float, Callable[..., _Found], tuple[Any, ...]]]:
    """Find the calls in the pipeline, in the fast retry loop, and suspended on the fast path.

    Yield each call's start, and the function and arguments that describe it: most callers describe few of the calls.
    """
    calls = dict(rt.in_flight.calls)
    for call in calls:
        yield call.started, _of_call, (call,)
    retrying = dict(rt.in_flight.retrying)
    for deadlines in rt.loops():
        for started, _, who in deadlines.suspended():
            if isinstance(who, tuple):
                if (found := retrying.pop(who, None)) is not None:
                    yield found[1], _of_retry, (who, *found, "tool")
            elif isinstance(who, list):
                yield started, _of_light, (who, started)
            elif not isinstance(who, Call):
                yield who.started, _of_handle, (who,)
            elif who not in calls:
                yield who.started, _of_call, (who,)
    for key, found in retrying.items():
        yield found[1], _of_retry, (key, *found, "next attempt")


def _of_retry(key: tuple[str, str | int], tool: Any, began: float, attempt: int, waits_for: WaitsFor) -> _Found:
    name = _name(tool, key[1])
    return _Found((tool.id, name), tool, name, None, None, began, attempt, waits_for)


def _of_light(light: LightAttempt, started: float) -> _Found:
    _, id, _, (_, tool), _, _, outer = light[:7]
    name = _name(tool, id)
    parent_id = None if outer is None else name_of(outer)
    return _Found((tool.id, name), tool, name, None, None, started, 1, "tool", parent_id)


def _of_call(call: Call) -> _Found:
    turn_id = None if call.turn is None else call.turn.id
    waits_for: WaitsFor = "verify" if call.verifying else "tool" if call.is_running else "next attempt"
    attempt = call.attempts + (waits_for == "next attempt")
    if call.rate_limited and waits_for == "next attempt":
        waits_for = "rate limit"
    name = call.shown_id
    key = (turn_id or call.tool.id, name)
    parent_id = None if call.parent is None else call.parent.shown_id
    return _Found(
        key, call.tool, name, turn_id, call.thread, call.started, attempt, waits_for, parent_id, call.activity
    )


def _of_handle(handle: TurnCall) -> _Found:
    turn = handle.turn
    return _Found((turn.id, handle.id), handle.tool, handle.id, turn.id, turn.thread, handle.started, 1, "tool")


class Watch:
    """Reports the calls of one event loop that take long."""

    __slots__ = ("_context", "_deadlines", "_reported", "_rt", "timer")

    def __init__(self, rt: RunningServices, deadlines: LoopDeadlines) -> None:
        self._rt = rt
        self._deadlines = deadlines
        self._reported: set[Hashable] = set()
        self._context = Context()
        self.timer: asyncio.TimerHandle | None = None

    def arm(self, delay: float = LONG) -> None:
        """Plan a check for calls that take long, unless one is planned already."""
        if self.timer is None:
            self.timer = self._deadlines.loop.call_later(max(delay, 0.0), self._look, context=self._context)

    def renew(self) -> None:
        """Check now and set the timer again: an interrupt inside asyncio may have lost it."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.arm(0.0)

    def _look(self) -> None:
        self.timer = None
        rt, now = self._rt, self._rt.time.now()
        old, first = [], math.inf  # the earliest start of the others
        for started, make, of in _find(rt):
            if now - started >= _ALMOST:
                old.append(make(*of))
            elif started < first:
                first = started
        for call in old:
            if call.key not in self._reported:
                report(rt, call, now)
        self._reported = {call.key for call in old}
        if first < math.inf:
            self.arm(first + LONG - now)
        else:
            self._deadlines.unwatched()


def report(rt: RunningServices, found: _Found, now: float) -> None:
    """Record that a call has been running for a long time."""
    fields: dict[str, Any] = {
        "duration_ms": round((now - found.started) * 1000, 3),
        "attempt": found.attempt,
        "waits_for": found.waits_for,
    }
    if found.parent_id is not None:
        fields["parent_id"] = found.parent_id
    rt.log.record_event(CALL_RUNNING, found.tool, found.call_id, found.turn_id, fields)
    rt.log.trace.drain()


def report_blocking(rt: RunningServices, call: Call) -> None:
    """``report`` for a call whose caller blocks."""
    report(rt, _of_call(call), rt.time.now())
