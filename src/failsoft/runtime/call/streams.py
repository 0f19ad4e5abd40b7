"""Generators as tools: protected up to their first item, never replayed after it.

A reader has seen the beginning of a stream, and another attempt would show it twice. So the first item is the result of
the attempt, and the other items pass through unchanged. A model reads a stream only when it is complete, so there the
whole stream is one attempt: see ``integration.streams``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failsoft.observe.instrument import Entered

_END: Any = object()


class AsyncStream(AsyncIterator[Any]):
    """An async generator that has delivered its first item."""

    def __init__(self, source: AsyncGenerator[Any, None], first: Any) -> None:
        self._source = source
        self._first = first
        self._begun = False
        self.surround: Callable[[], Entered] | None = None  # enters the instruments around each further item

    async def __anext__(self) -> Any:
        if not self._begun:
            self._begun = True
            first, self._first = self._first, None
            if first is _END:
                raise StopAsyncIteration
            return first
        if self.surround is None:
            return await self._source.__anext__()
        entered = self.surround()
        try:
            return await self._source.__anext__()
        finally:
            entered.exit()

    @property
    def is_empty(self) -> bool:
        return self._first is _END

    @property
    def first(self) -> Any:
        """The first item, before it is read."""
        return self._first

    async def aclose(self) -> None:
        await self._source.aclose()


class Stream(Iterator[Any]):
    """A generator that has delivered its first item."""

    def __init__(self, source: Generator[Any, None, Any], first: Any) -> None:
        self._source = source
        self._first = first
        self._begun = False
        self.surround: Callable[[], Entered] | None = None  # enters the instruments around each further item

    def __next__(self) -> Any:
        if not self._begun:
            self._begun = True
            first, self._first = self._first, None
            if first is _END:
                raise StopIteration
            return first
        if self.surround is None:
            return next(self._source)
        entered = self.surround()
        try:
            return next(self._source)
        finally:
            entered.exit()

    @property
    def is_empty(self) -> bool:
        return self._first is _END

    @property
    def first(self) -> Any:
        """The first item, before it is read."""
        return self._first

    def close(self) -> None:
        self._source.close()


async def begin(source: AsyncGenerator[Any, None]) -> AsyncStream:
    """Run a generator up to its first item."""
    try:
        return AsyncStream(source, await source.__anext__())
    except StopAsyncIteration:
        return AsyncStream(source, _END)


def begin_blocking(source: Generator[Any, None, Any]) -> Stream:
    """Run a generator up to its first item."""
    return Stream(source, next(source, _END))
