"""Show a turn while it runs: a growing waterfall on a terminal, one line per event elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.analysis.waterfall import Row, Segment, Waterfall, build
from failsoft.analysis.waterfall.verdict import format_seconds
from failsoft.runtime.execution import clock as clocks
from failsoft.surfaces.cli.console import clean, is_live

if TYPE_CHECKING:
    from rich.console import Console

    from failsoft.observe.events import Event
    from failsoft.runtime.runtime import Runtime
    from failsoft.runtime.turn.handle import Handle

INTERVAL = 0.1  # seconds between updates
_SPANS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

Handles = Mapping[str, "Handle[Any]"]


class View(Protocol):
    """A view of a running turn."""

    def update(self, events: list[Event]) -> None: ...
    def close(self) -> None: ...


@asynccontextmanager
async def watching(
    rt: Runtime, console: Console, handles: Handles, *, span: float | None = None
) -> AsyncIterator[None]:
    """Show the turn that runs in the body. ``handles`` may still grow; ``span`` is the expected duration, if known."""
    events: list[Event] = []
    stop = rt.subscribe(events.append)
    view: View = Chart(console, handles, span) if is_live(console) else Lines(console)
    follower = asyncio.create_task(_follow(rt, view, events))
    try:
        yield
    finally:
        follower.cancel()
        try:
            with suppress(asyncio.CancelledError):
                await follower
            await asyncio.to_thread(stop)  # delivers the remaining events, even if the store is unavailable
            view.update(events)
        finally:
            view.close()
            stop()


async def _follow(rt: Runtime, view: View, events: list[Event]) -> None:
    while True:
        await rt.flush("100ms")
        view.update(events)
        await asyncio.sleep(INTERVAL)


class Lines:
    """View for pipes and logs: one line for every event with a description."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = 0
        self._began: float | None = None

    def update(self, events: list[Event]) -> None:
        for event in events[self._shown :]:
            self._shown += 1
            if self._began is None:
                self._began = event.timestamp
            line = None if event.event_type == "CallRunning" else describe(event)  # the call's end is shown
            if line:
                at = f"{event.timestamp - self._began:7.2f} s"
                name = f"{clean(event.call_id)}: " if event.call_id else ""
                self._console.print(f"{at}  {name}{clean(line)}", soft_wrap=True)

    def close(self) -> None:
        self._console.print()


class Chart:
    """View for terminals: the waterfall, redrawn until the turn ends."""

    def __init__(self, console: Console, handles: Handles, span: float | None) -> None:
        from rich.live import Live

        self._console = console
        self._handles = handles
        self._span = span
        self._now = clocks.current().monotonic
        self._began = self._now()
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def update(self, events: list[Event]) -> None:
        from failsoft.surfaces.cli.drawing import show_waterfall

        elapsed = self._now() - self._began
        span = self._span or next((span for span in _SPANS if span >= elapsed), elapsed)
        picture = grow(build(events), self._handles, began=self._began, elapsed=elapsed)
        picture = replace(picture, duration=max(span, elapsed), rows=self._fitting(picture.rows))
        self._live.update(show_waterfall(picture, self._console.width), refresh=True)

    def _fitting(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Choose as many rows as the terminal has lines: open calls first, then the latest."""
        most = max(1, self._console.height - 6)
        if len(rows) <= most:
            return rows
        order = sorted(rows, key=lambda row: (row.status is not None, -row.end))[:most]
        kept = {row.id for row in order}
        return tuple(row for row in rows if row.id in kept)

    def close(self) -> None:
        self._live.stop()


def grow(picture: Waterfall, handles: Handles, *, began: float, elapsed: float) -> Waterfall:
    """Add running and waiting calls to the picture of the events so far."""
    rows = {row.id: replace(row, critical=False) for row in picture.rows}
    order = [*handles, *(id for id in rows if id not in handles)]
    for id, handle in handles.items():
        tool = handle.tool if isinstance(handle.tool, str) else handle.tool.id
        row = rows.setdefault(id, Row(id, tool))
        if handle.outcome is not None or handle.task is None:
            continue
        segments = row.segments
        start = segments[-1].end if segments else handle.started - began
        if start < elapsed:
            running = Segment("running", segments[-1].tool if segments else tool, max(0.0, start), elapsed)
            rows[id] = replace(row, segments=(*segments, running))
        elif segments:
            rows[id] = replace(row, segments=(*segments[:-1], segments[-1]._replace(end=elapsed)))
    return replace(picture, rows=tuple(rows[id] for id in order))


def describe(event: Event) -> str | None:
    """Describe an event in one line; None if other events say the same."""
    return describe_record(event.to_dict()) if event.event_type in _DESCRIBERS else None


def describe_record(fields: Mapping[str, Any]) -> str | None:
    """Describe an event given as a flat record."""
    describer = _DESCRIBERS.get(fields["event_type"])
    try:
        return None if describer is None else describer(fields)
    except KeyError:  # traces of other versions have other fields
        return str(fields.get("message") or fields["event_type"])


def _describe_error(fields: Mapping[str, Any]) -> str:
    line = f"{fields['tool_id']} failed: {fields['error']}"
    return f"{line}; trying again in {format_seconds(fields['delay_ms'] / 1000)}" if "delay_ms" in fields else line


def _describe_failure(fields: Mapping[str, Any]) -> str:
    acted = fields["effect"] != "none" and fields.get("safe_to_repeat") is not True
    return f"failed with {fields['code']}" + (
        "; it may have taken effect, so look before repeating it" if acted else ""
    )


def _describe_success(fields: Mapping[str, Any]) -> str:
    attempts = "" if fields["attempts"] == 1 else f" after {fields['attempts']} attempts"
    via = fields["tool_id"] if fields.get("primary", fields["tool_id"]) != fields["tool_id"] else None
    return f"ok{attempts}" + ("" if via is None else f", by {via}")


_DESCRIBERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "ToolError": _describe_error,
    "CallSucceeded": _describe_success,
    "CallFailed": _describe_failure,
    "CallRefused": lambda fields: f"refused: {fields.get('error') or fields.get('reason')}",
    "CallHeld": lambda fields: fields["error"],
    "CallSkipped": lambda fields: f"skipped: {fields['root']} failed" if fields["root"] else "skipped: no time left",
    "CallLeft": lambda _: "still running at the turn's deadline: abandoned",
    "CallCancelled": lambda _: "cancelled",
    "CircuitOpened": lambda fields: fields["message"],
    "FallbackUsed": lambda fields: f"{fields['tool_id']} falls back to {fields['alternative']}",
    "CallRunning": lambda fields: f"still running after {format_seconds(fields['duration_ms'] / 1000)}",
    "DefaultUsed": lambda fields: fields["message"],
    "PartialUsed": lambda fields: fields["message"],
    "TurnTimedOut": lambda fields: f"the turn's {format_seconds(fields['timeout_ms'] / 1000)} are up",
}
