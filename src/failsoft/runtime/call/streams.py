"""Generators as tools: protected up to their first item, never replayed after it (T15).

A stream that has begun has been seen by its reader; another attempt would show the beginning twice. So the first item
is the attempt's result, and everything after it passes through untouched. Who reads a stream only when it is complete
(a model) has seen nothing before: for them the whole of it is one attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from failsoft.integration.framework_tool import Runner
    from failsoft.runtime.runtime import Runtime

_END: Any = object()


class AsyncStream(AsyncIterator[Any]):
    """An async generator that has delivered its first item."""

    def __init__(self, source: AsyncGenerator[Any, None], first: Any) -> None:
        self._source = source
        self._first = first
        self._begun = False

    async def __anext__(self) -> Any:
        if not self._begun:
            self._begun = True
            first, self._first = self._first, None
            if first is _END:
                raise StopAsyncIteration
            return first
        return await self._source.__anext__()

    async def aclose(self) -> None:
        await self._source.aclose()


class Stream(Iterator[Any]):
    """A generator that has delivered its first item."""

    def __init__(self, source: Generator[Any, None, Any], first: Any) -> None:
        self._source = source
        self._first = first
        self._begun = False

    def __next__(self) -> Any:
        if not self._begun:
            self._begun = True
            first, self._first = self._first, None
            if first is _END:
                raise StopIteration
            return first
        return next(self._source)

    def close(self) -> None:
        self._source.close()


async def begin(source: AsyncGenerator[Any, None]) -> AsyncStream:
    """The stream up to its first item."""
    try:
        return AsyncStream(source, await source.__anext__())
    except StopAsyncIteration:
        return AsyncStream(source, _END)


def begin_blocking(source: Generator[Any, None, Any]) -> Stream:
    """The stream up to its first item."""
    return Stream(source, next(source, _END))


def whole_stream(runtime: Runtime, tool: str, arguments: Mapping[str, Any]) -> Runner | None:
    """What runs in place of a tool that streams: all of it, as a list. None: it does not stream."""
    found = runtime._engine.tools.get(tool)
    if found is None or found.kind not in ("stream", "async stream"):
        return None
    misfit = found.misfit((), dict(arguments), typed=True)

    async def run(given: dict[str, Any]) -> list[Any]:
        if misfit is not None:
            from failsoft.integration.arguments import MisfitError  # not needed by most who import this

            raise MisfitError(misfit)
        check = found.argument_check
        given = given if check is None else dict(cast("Mapping[str, Any]", check(given)))
        if found.kind == "async stream":
            return [item async for item in found.fn(**given)]
        from failsoft.runtime.execution.executor import executor_of  # not importable in Temporal's workflow sandbox

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor_of(runtime), lambda: list(found.fn(**given)))

    return run
