"""A call of a turn, from its submission to its outcome; and the handles that hide in other calls' arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from failsoft.core.options import RetryOptions
from failsoft.core.outcome import Outcome
from failsoft.runtime.call import Call

if TYPE_CHECKING:
    from failsoft.runtime.tool import Tool
    from failsoft.runtime.turn import Turn

T = TypeVar("T")

PLAIN = frozenset({str, int, float, bool, type(None)})


class Handle(Generic[T]):
    """A call of a turn that has been submitted: await it for its outcome, or use it as another call's argument."""

    __slots__ = (
        "_future",
        "arguments",
        "call",
        "dozes",
        "extra",
        "id",
        "outcome",
        "refers",
        "started",
        "task",
        "tool",
        "turn",
    )

    def __init__(self, turn: Turn, id: str, tool: Tool | str, arguments: Mapping[str, Any]) -> None:
        self.turn = turn
        self.id = id
        self.tool = tool  # its bare name if there is no such tool
        self.arguments = arguments
        self.outcome: Outcome[T] | None = None  # None: still open
        self.started = 0.0
        self.dozes = False  # it has suspended
        self.refers = False  # other handles are in its arguments
        self.task: asyncio.Task[None] | None = None
        self.extra: Extra | None = None
        self.call: Call | None = None  # made when the happy path is not enough
        self._future: asyncio.Future[None] | None = None

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        while self.outcome is None:
            if self._future is None:
                self._future = self.turn.loop.create_future()
            yield from asyncio.shield(self._future).__await__()
        return self.outcome

    def settled(self) -> asyncio.Future[None]:
        """Done when the outcome is there; for the one who waits alone."""
        if self._future is None:
            self._future = self.turn.loop.create_future()
        return self._future

    async def value(self) -> T:
        """The call's value; raises ``CallFailed`` if it has none."""
        return (await self).unwrap()

    def done(self) -> bool:
        """Has it come to its end?"""
        return self.outcome is not None

    def __repr__(self) -> str:
        return f"<Handle {self.id!r}, {'open' if self.outcome is None else self.outcome.status}>"

    def settle(self, outcome: Outcome[Any]) -> None:
        """It has come to its end."""
        self.outcome = outcome
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def whole(self) -> Call:
        """The call with everything that was said about it."""
        if self.call is None:
            turn, extra = self.turn, self.extra or NOTHING
            tool = cast("Tool", self.tool)
            self.call = Call(
                self.id,
                tool,
                (),
                cast("dict[str, Any]", self.arguments),
                self.started,
                turn=turn,
                thread=turn.thread,
                tenant=turn.tenant,
                timeout=extra.timeout,
                retry=extra.retry,
                key=extra.key,
                required=tool.options.required if extra.required is None else extra.required,
            )
        return self.call

    def fill_in(self, substitutes: Mapping[str, Any]) -> None:
        """Put values in the place of handles, and defaults in the place of what has failed."""
        arguments = {**self.arguments, **substitutes}
        self.arguments = {name: _resolved(value) for name, value in arguments.items()}


class Extra:
    """What few callers say about a call."""

    __slots__ = ("key", "required", "retry", "timeout")

    def __init__(
        self,
        required: bool | None = None,
        timeout: float | None = None,
        retry: RetryOptions | None = None,
        key: str | None = None,
    ) -> None:
        self.required = required
        self.timeout = timeout
        self.retry = retry
        self.key = key


NOTHING = Extra()


def handles_in(arguments: Mapping[str, Any]) -> list[tuple[str, Handle[Any]]]:
    """The handles in a call's arguments, also inside lists and dicts, each with the name of its argument."""
    return [
        (name, handle) for name, value in arguments.items() if type(value) not in PLAIN for handle in _search(value)
    ]


def _search(value: Any) -> list[Handle[Any]]:
    if isinstance(value, Handle):
        return [value]
    if isinstance(value, Mapping):
        return [handle for item in value.values() for handle in _search(item)]
    if isinstance(value, list | tuple):
        return [handle for item in value for handle in _search(item)]
    return []


def _resolved(value: Any) -> Any:
    if isinstance(value, Handle):
        return None if value.outcome is None else value.outcome.value
    if isinstance(value, Mapping) and _search(value):
        return {key: _resolved(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and _search(value):
        items = [_resolved(item) for item in value]
        make = getattr(value, "_make", type(value))  # a named tuple stays one
        return items if isinstance(value, list) else make(items)
    return value
