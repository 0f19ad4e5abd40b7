"""The services of a runtime that need no type of calls or tools: time, and the event stream.

Below ``services``, a module takes a protocol of the few objects that it needs, not ``Services`` as a whole. No protocol has
more than eight members. Protocols that mention tools and calls are in the package that uses them:
``conversation.ports``, ``call.ports``, ``fastpath.ports``, ``turn.ports``.
"""

from __future__ import annotations

from typing import Any, Protocol

from failsoft.observe.recorder import Recorder


class Time(Protocol):
    """The clock and the randomness of a runtime."""

    def now(self) -> float: ...
    def wall(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...
    def random(self) -> float: ...
    def new_key(self) -> str: ...


class EventLog(Protocol):
    """The event stream."""

    @property
    def trace(self) -> Recorder: ...
    def record_event(
        self, event_type: str, tool: Any, call_id: str | int | None, turn_id: str | None, fields: dict[str, Any],
        *, error: BaseException | None = None,
    ) -> None: ...  # fmt: skip
    def drain_if_due(self) -> None: ...
