"""Kinds of callables, and exceptions that must pass through: T14, T15."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

from bench.peers.cases.case import Seen, case
from bench.peers.library import Fn, Library
from bench.peers.service import Service, Step, down

ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


@case(
    "T14",
    "KeyboardInterrupt, SystemExit, GeneratorExit are swallowed, repeated or counted",
    "retry|breaker|breaker_sync",
)
def ends(library: Library) -> Seen:
    wrong = []
    for part in ("retry", "breaker"):
        for end in ENDS:
            wrong += [f"{end.__name__} {what} by its {part}" for what in _end(library, part, end)]
    return Seen(bool(wrong), "; ".join(wrong) if wrong else "they pass, and count for nothing")


def _end(library: Library, part: str, end: type[BaseException]) -> list[str]:
    settings: dict[str, Any] = {"attempts": 3} if part == "retry" else {"failures": 2, "window": 60}
    service = Service()
    if library.has(part):
        guarded = getattr(library, part)(service.tool(), **settings)
        call: Fn = lambda: asyncio.run(_await(guarded()))  # noqa: E731
    elif library.has(f"{part}_sync"):
        call = getattr(library, f"{part}_sync")(service.blocking(), **settings)
    else:
        return []
    wrong = []
    for _ in range(3):
        raised, before = end("now"), service.reached
        service.usual = Step(0, raised)
        try:
            call()
        except BaseException as error:
            if error is not raised and service.reached > before:
                wrong.append("replaced")
        else:
            wrong.append("swallowed")
        if service.reached > before + 1:
            wrong.append("repeated")
    service.works()
    before = service.reached
    try:
        call()
    except Exception:
        if service.reached == before:
            wrong.append("counted as a failure")
    return list(dict.fromkeys(wrong))


async def _await(call: Any) -> Any:
    return await call


def shapes(service: Service) -> dict[str, Any]:
    """Return the same tool as every kind of callable."""
    search = service.tool()

    async def with_argument(city: str) -> Any:
        return city, await search()

    async def stream() -> AsyncIterator[Any]:
        yield await search()

    def hands_back() -> Any:
        return search()

    class Searcher:
        __name__ = "search"

        async def __call__(self) -> Any:
            return await search()

    return {
        "async def": search,
        "partial": functools.partial(with_argument, "PAR"),
        "object with async __call__": Searcher(),
        "function that returns a coroutine": hands_back,
        "async generator": stream,
    }


@case("T15", "some callables are silently not protected", "decorator")
async def callables(library: Library) -> Seen:
    found: dict[str, list[str]] = {"not protected": [], "refused": [], "protected": []}
    for name in shapes(Service()):
        service = Service()
        found[await _protection(library, shapes(service)[name], service)].append(name)
    words = "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in found.items() if names)
    return Seen(bool(found["not protected"]), words)


async def _protection(library: Library, shape: Any, service: Service) -> str:
    try:
        guarded = library.decorator(shape)
    except Exception:
        return "refused"
    if library.decorates == "retry":
        service.script = [Step(0, down())]
        ended = await _whole(guarded)
        if isinstance(ended, ConnectionError) and service.reached == 1:
            return "not protected"
        return "refused" if isinstance(ended, Exception) else "protected"
    service.fails()
    ends = [await _whole(guarded) for _ in range(4)]  # opens after two
    if service.reached == 2:
        return "protected"
    return "not protected" if service.reached == 4 else "refused" if isinstance(ends[0], Exception) else "protected"


async def _whole(guarded: Callable[[], Any]) -> Any:
    """Return the final result, whatever kind of callable it is."""
    try:
        value = guarded()
        if inspect.isawaitable(value):
            value = await value
        if hasattr(value, "__aiter__"):
            value = [item async for item in value]
    except Exception as error:
        return error
    return value


@case("T15 stream", "a stream that has begun is replayed from its beginning", "decorator")
async def streams(library: Library) -> Seen:
    begun = 0

    async def stream() -> AsyncIterator[int]:
        nonlocal begun
        begun += 1
        for number in range(4):
            if number == 2 and begun == 1:
                raise down()
            yield number

    seen: list[int] = []
    try:
        found = library.decorator(stream)()
        if not hasattr(found, "__aiter__"):
            if inspect.iscoroutine(found):
                found.close()
            return Seen(False, "takes no async generators")
        async for item in found:
            seen.append(item)  # noqa: PERF401 - the items before an error are needed as well
    except Exception as error:
        how = f"then {type(error).__name__}"
    else:
        how = "then its end"
    return Seen(seen.count(0) > 1, f"items: {', '.join(map(str, seen)) or 'none'}, {how}")
