"""Timeouts: the second half of T3, T5 to T8, the second half of T24."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.peers import tools
from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, end_of

LATE = 0.3  # allowance for a busy machine


@case("T3 timeout", "a task is left cancelled after a timeout that was handled", "timeout")
async def left_cancelled(library: Library) -> Seen:
    left: list[str] = []

    async def ask(form: str) -> None:
        service = Service(Step(5))
        task = asyncio.current_task()
        assert task is not None
        try:
            if form == "decorator":
                await library.timeout(service.tool(), seconds=0.1)()
            else:
                async with library.timeout_block(0.1):
                    await service.tool()()
        except Exception:
            if task.cancelling():
                left.append(form)

    forms = ["decorator", *(["context manager"] if library.has("timeout_block") else [])]
    for form in forms:
        await asyncio.create_task(ask(form))
    return Seen(bool(left), f"left cancelled by the {', the '.join(left)}" if left else f"clean ({', '.join(forms)})")


@case("T5", "a tool that timed out after its effect is run again", "retry_timeout")
async def effects(library: Library) -> Seen:
    charges = []

    async def pay() -> str:
        charges.append(1)  # the effect; its answer gets lost
        await asyncio.sleep(5)
        return "paid"

    await end_of(library.retry_timeout(pay, attempts=3, seconds=0.1)())
    return Seen(len(charges) > 1, f"one payment was made {len(charges)} {'time' if len(charges) == 1 else 'times'}")


@case("T6", "a blocking tool is waited for beyond its timeout", "timeout_sync|isolated")
async def blocking_tools(library: Library) -> Seen:
    if library.has("timeout_sync"):
        blocking = library.timeout_sync(Service(Step(3)).blocking(), seconds=0.2)

        async def call() -> Any:
            return await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), blocking)

    else:
        await library.isolated(tools.echo, seconds=10)()  # starts a worker
        call = library.isolated(tools.sleep_3, seconds=0.2)
    began = time.monotonic()
    ended = await end_of(call())
    took = time.monotonic() - began
    got = "an error" if isinstance(ended, Exception) else "its value"
    return Seen(took > 0.2 + LATE, f"timeout 0.2 s: the caller got {got} after {took:.1f} s")


HUNG = 12


@case(
    "T6 left", "hung calls leave threads behind, or take the place of healthy ones", "timeout_sync|isolated", limit=60
)
async def what_is_left(library: Library) -> Seen:
    loop = asyncio.get_running_loop()
    if library.has("timeout_sync"):
        pool, service = ThreadPoolExecutor(HUNG), Service(Step(60))
        guarded = library.timeout_sync(service.blocking(), seconds=0.3)
        await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 0.05) for _ in range(HUNG)))  # our threads

        async def hangs() -> Any:
            return await loop.run_in_executor(pool, guarded)

        async def healthy() -> Any:
            service.works()
            return await hangs()

    else:
        hangs = library.isolated(tools.sleep_60, seconds=0.3)
        healthy = library.isolated(tools.echo, seconds=10)
        await asyncio.gather(*(end_of(healthy()) for _ in range(4)))  # starts the workers
    threads, processes = threading.active_count(), tools.descendants()
    await asyncio.gather(*(end_of(hangs()) for _ in range(HUNG)))
    works = not isinstance(await end_of(healthy()), Exception)
    await asyncio.sleep(0.5)
    more, busy = max(0, threading.active_count() - threads), max(0, tools.descendants() - processes)
    words = f"{HUNG} hung calls: {more} threads and {busy} processes more; a healthy call after them "
    return Seen(bool(more or busy or not works), words + ("works" if works else "fails"))


@case("T7", "a tool that swallows its cancellation is waited for, or called a success", "timeout")
async def swallowed(library: Library) -> Seen:
    async def stubborn() -> str:
        for _ in range(3):
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
        return "too late"

    began = time.monotonic()
    ended = await end_of(library.timeout(stubborn, seconds=0.1)())
    took = time.monotonic() - began
    got = "a timeout" if isinstance(ended, Exception) else "a success"
    return Seen(took > 0.1 + LATE or got == "a success", f"timeout 0.1 s: {got} after {took:.1f} s")


@case("T8", "a tool that blocks the loop past its timeout is a success", "timeout")
async def blocked_loop(library: Library) -> Seen:
    async def blocks() -> str:
        time.sleep(0.4)  # noqa: ASYNC251 - blocks on purpose
        return "flights"

    ended = await end_of(library.timeout(blocks, seconds=0.1)())
    if isinstance(ended, Exception):
        return Seen(False, f"reported: {type(ended).__name__}")
    return Seen(True, "timeout 0.1 s: a success after 0.4 s")


WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="lost")


@case("T24 context", "context variables do not reach a blocking tool with a timeout", "timeout_sync")
def context(library: Library) -> Seen:
    WHERE.set("here")

    def search() -> str:
        return WHERE.get()

    found = library.timeout_sync(search, seconds=5)()
    return Seen(found != "here", "they arrive" if found == "here" else "the tool saw the default")
