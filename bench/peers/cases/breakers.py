"""Circuit breakers: T1 to T4, the breaker's half of T9, T13, T23."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path

from bench.peers.cases.case import Seen, case
from bench.peers.library import Fn, Library
from bench.peers.service import Service, Step, cancel_soon, down, end_of, guard, reaches
from bench.peers.wall_clock import set_wall_clock

TASKS = 1_000
THREADS = 50
WINDOW = 0.3
ANY = "breaker|breaker_sync"


async def open_up(service: Service, guarded: Fn, failures: int) -> None:
    """Fail until the circuit is open, and check that it is."""
    service.fails()
    for _ in range(failures):
        await end_of(guarded())
    assert not await reaches(service, guarded), "the circuit did not open"


@case("T1", "half-open lets many tasks in at once", "breaker")
async def probes(library: Library) -> Seen:
    service = Service()
    guarded = library.breaker(service.tool(), failures=1, window=WINDOW)
    await open_up(service, guarded, 1)
    await asyncio.sleep(WINDOW + 0.1)
    service.began.clear()
    service.ended.clear()
    service.works(seconds=0.3)
    await asyncio.gather(*(end_of(guarded()) for _ in range(TASKS)))
    count = service.before_the_first_end()
    return Seen(count != 1, f"{count:,} of {TASKS:,} tasks got in while the probe was under way")


@case("T1 threads", "half-open lets many threads in at once", "breaker_sync")
def probing_threads(library: Library) -> Seen:
    service = Service(Step(0, down()))
    guarded = library.breaker_sync(service.blocking(), failures=1, window=WINDOW)
    _try(guarded)
    time.sleep(WINDOW + 0.1)
    service.began.clear()
    service.ended.clear()
    service.works(seconds=0.5)
    together = threading.Barrier(THREADS)

    def ask() -> None:
        together.wait(10)
        _try(guarded)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    count = service.before_the_first_end()
    return Seen(count != 1, f"{count} of {THREADS} threads got in while the probe was under way")


def _try(guarded: Fn) -> None:
    try:
        guarded()
    except Exception:
        return


@case("T2", "a cancelled probe moves the circuit, or keeps its slot", "breaker")
async def cancelled_probe(library: Library) -> Seen:
    service = Service()
    guarded = library.breaker(service.tool(), failures=3, window=WINDOW)
    await open_up(service, guarded, 3)
    await asyncio.sleep(WINDOW + 0.1)
    service.works(seconds=5)
    await cancel_soon(guarded())
    service.fails()
    if not await reaches(service, guarded):
        await asyncio.sleep(WINDOW + 0.1)
        if await reaches(service, guarded):
            return Seen(True, "the cancelled probe opened the circuit for another window")
        return Seen(True, "the cancelled probe kept its slot: nobody else got in for another window")
    if await reaches(service, guarded):  # the last failure should have reopened it
        return Seen(True, "the cancelled probe closed the circuit")
    return Seen(False, "the next call was the probe, and its failure opened the circuit again")


@case("T3", "the caller's cancellation counts as a failure or as a success", "breaker")
async def cancellations(library: Library) -> Seen:
    service = Service(Step(5))
    guarded = library.breaker(service.tool(), failures=3, window=60)
    for _ in range(10):
        await cancel_soon(guarded(), 0.01)
    service.works()
    if not await reaches(service, guarded):
        return Seen(True, "ten cancelled calls opened the circuit of a healthy tool")
    service.fails()
    for _ in range(2):
        await end_of(guarded())
    service.works(seconds=5)
    await cancel_soon(guarded(), 0.01)
    service.fails()
    await end_of(guarded())
    if await reaches(service, guarded):
        return Seen(True, "a cancelled call between the failures kept the circuit from opening")
    return Seen(False, "cancelled calls changed nothing")


@case("T4", "results of calls admitted before the trip move the circuit", ANY)
async def stale_results(library: Library) -> Seen:
    service = Service()
    guarded = guard(library, "breaker", service, failures=3, window=60)
    service.script = [Step(0.3)]
    early = asyncio.ensure_future(end_of(guarded()))
    await asyncio.sleep(0.05)
    service.fails()
    for _ in range(3):
        await end_of(guarded())
    waited = early.done()
    await early
    if waited:
        return Seen(False, "cannot happen: calls run one after another")
    if await reaches(service, guarded):
        return Seen(True, "a success from before the trip closed the open circuit")
    service = Service()
    guarded = guard(library, "breaker", service, failures=3, window=1.0)
    service.script = [Step(0.7, down())]
    early = asyncio.ensure_future(end_of(guarded()))
    await asyncio.sleep(0.05)
    await open_up(service, guarded, 3)
    await early  # 0.65 s after the trip
    await asyncio.sleep(0.55)
    if not await reaches(service, guarded):
        return Seen(True, "a failure from before the trip made the open window longer")
    return Seen(False, "neither a late success nor a late failure changed anything")


@case("T9 breaker", "calls with bad arguments open the circuit of a healthy tool", ANY)
async def bad_calls(library: Library) -> Seen:
    service = Service()
    guarded = guard(library, "breaker", service, failures=3, window=60)
    service.fails(TypeError("search() got an unexpected keyword argument 'place'"))
    for _ in range(10):
        await end_of(guarded())
    service.works()
    if await reaches(service, guarded):
        return Seen(False, "ten bad calls left the circuit closed")
    return Seen(True, "bad calls opened the circuit")


@case("T13", "a wall clock that is set moves the open window", ANY, clock=True)
async def clocks(library: Library) -> Seen:
    service = Service()
    guarded = guard(library, "breaker", service, failures=1, window=WINDOW)
    await open_up(service, guarded, 1)
    set_wall_clock(-3600)
    await asyncio.sleep(WINDOW + 0.3)
    if not await reaches(service, guarded):
        return Seen(True, "the clock was set back an hour, and the circuit stayed open")
    service = Service()
    guarded = guard(library, "breaker", service, failures=1, window=60)
    await open_up(service, guarded, 1)
    set_wall_clock(+3600)
    if await reaches(service, guarded):
        return Seen(True, "the clock was set forward an hour, and the open circuit let calls in at once")
    return Seen(False, "the window stayed as long as it was")


REJECTIONS = 20_000
MEGABYTE = 1 << 20


@case("T23", "rejections use up memory", ANY, limit=60)
async def rejections(library: Library) -> Seen:
    service = Service(Step(0, down()))
    if library.has("breaker"):
        guarded = library.breaker(service.tool(), failures=1, window=3600)
        await end_of(guarded())

        async def reject(count: int) -> None:
            for _ in range(count):
                await end_of(guarded())

    else:
        blocking = library.breaker_sync(service.blocking(), failures=1, window=3600)
        _try(blocking)

        async def reject(count: int) -> None:
            for _ in range(count):
                _try(blocking)

    await reject(2_000)
    before, reached = _memory(), service.reached
    await reject(REJECTIONS)
    grown = (_memory() - before) / MEGABYTE
    assert service.reached == reached, "the circuit did not stay open"
    size = f"{grown:.0f} MB" if grown >= 1 else "less than 1 MB"
    return Seen(grown > 5, f"{REJECTIONS:,} rejections: {size} more")


def _memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
