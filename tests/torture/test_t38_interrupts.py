"""T38: Ctrl-C between ``acquire`` and ``try`` left a lock held, and every other thread hung. Here none is ever left held."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted
from tests.torture.interrupting import At, is_in_finaliser, is_lost_by_with
from tests.torture.scale import times
from tests.torture.test_t24_fork_and_context import locks_of

from failsoft import Runtime
from failsoft.runtime.execution.blocking_loop import PATIENCE
from failsoft.runtime.scope import SCOPE
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.testing import virtual_time

pytestmark = [  # an interrupt may come between making a coroutine and awaiting it
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
]
INTERRUPTS = times(10_000, 400)
HANGS = 8.0  # seconds
Check = Callable[[str], None]


class Program:
    """A runtime with every object that has a lock, and one round of typical use."""

    def __init__(self, place: Path) -> None:
        self.heard: list[Any] = []
        self.store = SqliteStore(place / "a.db")
        self.rt = Runtime(store=self.store, memory="act", on_escalation=self.heard.append)
        self.rt.subscribe(self.heard.append)
        self.fails = 0
        quick = {"initial_delay": "0s", "jitter_percent": 0, "budget": False}
        never = {"failure_threshold": 1_000_000}
        self.rt.add(self.flaky, id="flaky", retry=quick, breaker=never, timeout=None)
        self.rt.add(self.down, id="down", retry={"max_attempts": 1}, breaker=never, timeout=None)
        self.rt.add(self.narrow, id="narrow", concurrency=1, timeout=None)
        self.plain = Runtime(memory="off")  # a memory would send some retries the long way
        self.plain.add(self.recovers, id="recovers", retry=quick, breaker=never)
        self.plain.add(self.awaits, id="awaits", read_only=True)
        self.rt.add(self.blocks, id="blocks")
        self.guarded = self.rt.add(self.works, id="works", timeout=None)
        self.once()
        self.retry()  # from now on its error is known, and retried on the short way

    def flaky(self) -> str:
        self.fails += 1
        if self.fails % 2:
            raise ConnectionRefusedError("connection refused")
        return "at last"

    def down(self) -> None:
        raise ConnectionResetError("connection reset")

    def narrow(self) -> str:
        return "narrow"

    async def recovers(self) -> str:
        return self.flaky()

    def blocks(self) -> str:
        return "blocked"

    async def awaits(self) -> str:
        await asyncio.sleep(0)
        return "awaited"

    def works(self) -> str:
        return "worked"

    def once(self) -> None:
        self.call()
        self.read()

    def call(self) -> None:
        rt = self.rt
        self.guarded()
        rt.call_sync("flaky")
        rt.call_sync("down", {}, thread="chat")
        rt.call_sync("narrow")
        rt.call_sync("blocks")
        self.plain.call_sync("awaits")

    def call_narrow(self) -> None:
        self.rt.call_sync("narrow")

    def read(self) -> None:
        self.rt.events()
        self.rt.metrics("flaky")
        self.rt.health("down")
        assert self.rt.threads["chat"].offers is not None

    def retry(self) -> None:
        """An async call on the short way, whose first attempt fails."""
        self.fails = 0
        asyncio.run(self.plain.call("recovers"))

    def flush(self) -> None:
        self.rt.call_sync("narrow")
        self.store.flush(1.0)

    def close(self) -> None:
        asyncio.run(self.rt.close())
        asyncio.run(self.plain.close())
        self.store.close()


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    yield
    sys.settrace(None)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    made.close()


def where_held(lock: Any) -> list[str]:
    """The attributes that hold a lock."""
    owners = [
        one for one in gc.get_objects() if str(type(one).__module__).startswith("failsoft") and hasattr(one, "__dict__")
    ]
    return [f"{type(one).__qualname__}.{name}" for one in owners for name, had in vars(one).items() if had is lock]


@contextmanager
def other_thread(locks: list[Any]) -> Iterator[Check]:
    """Whether another thread can have every lock that is free now: idle threads of ours wait for locked ones."""
    time.sleep(0.1)
    free = [lock for lock in locks if lock.acquire(timeout=0.1)]
    for lock in free:
        lock.release()
    assert len(free) >= 8
    wanted, answers = threading.Semaphore(0), threading.Semaphore(0)
    held: list[Any] = []
    over = False

    def look() -> None:
        while wanted.acquire() and not over:
            for lock in free:
                if lock.acquire(timeout=5):
                    lock.release()
                else:
                    held.append(lock)
            answers.release()

    thread = threading.Thread(target=look)
    thread.start()

    def check(where: str) -> None:
        wanted.release()
        assert answers.acquire(timeout=60)
        assert held == [], ([where_held(lock) for lock in held], where)

    try:
        yield check
    finally:
        over = True
        wanted.release()
        thread.join()


def test_t38_an_interrupt_at_any_moment_leaves_no_lock_held(program: Program) -> None:
    source = random.Random(38)
    began = time.perf_counter()
    for _ in range(20):
        program.once()
    longest = (time.perf_counter() - began) / 20
    came = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if is_in_finaliser(frame) or is_lost_by_with(frame) or (frame and frame.f_code is interrupt.__code__):
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
            return
        came += 1
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with other_thread(locks_of(program.rt, program.plain, program.store)) as check:
            while came < INTERRUPTS:
                try:
                    signal.setitimer(signal.ITIMER_REAL, max(1e-6, source.uniform(0, longest)))
                    program.once()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    check("")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    works(program)


def works(program: Program) -> None:
    """All of it still works, for another thread as well, and nothing is left of the calls that were interrupted."""
    assert SCOPE.get() is None
    done: list[str] = []

    def other() -> None:
        done.append(program.rt.call_sync("narrow").value)
        done.append(program.rt.call_sync("blocks").value)

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    thread.join(10)
    assert done == ["narrow", "blocked"]
    assert program.plain.call_sync("awaits").value == "awaited"
    assert program.rt.call_sync("narrow").value == "narrow"


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("retry", 1),
        ("call_narrow", 1),
        ("flush", times(1, 5)),
        ("read", times(1, 5)),
        ("call", times(2, 67)),
    ],
)
def test_t38_an_interrupt_at_every_possible_moment_leaves_no_lock_held(program: Program, part: str, step: int) -> None:
    """Each moment in turn at which a signal can be handled, however short it is; of the longer parts a sample."""
    run = getattr(program, part)
    with other_thread(locks_of(program.rt, program.plain, program.store)) as check:
        number, over = 1 + random.Random(38).randrange(step), False
        sys.settrace(At(0).rest())
        run()
        while not over:
            at = At(number)
            try:
                sys.settrace(at)
                run()
                over = at.left > 0
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(at.rest())
            check(at.where)
            number += step
    works(program)


def test_t38_an_interrupt_inside_asyncio_harms_no_later_call(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    """Asyncio may lose a step that it has taken from its queue, and leave orders to stop in it."""
    waits: list[float] = []
    number, over = 1, False
    sys.settrace(At(0, "/asyncio/", "blocking_loop.py").rest())
    program.plain.call_sync("awaits")
    while not over:
        at = At(number, "/asyncio/", "blocking_loop.py")
        began = time.monotonic()
        try:
            sys.settrace(at)
            program.plain.call_sync("awaits")
            over = at.left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(at.rest())
        waits.append(time.monotonic() - began)
        for _ in range(2):
            assert program.plain.call_sync("awaits").value == "awaited", at.where
        number += 1
    gc.collect()
    assert number > 100
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
    assert (
        sorted(waits)[number * 9 // 10 - 1] < PATIENCE
    )  # interrupted calls are not waited for until patience runs out


@pytest.mark.parametrize("parts", [("/asyncio/",), ("execution/deadline.py", "call/running.py")])
def test_t38_an_interrupt_costs_no_later_deadline(parts: tuple[str, ...]) -> None:
    """Asyncio may lose a timer that it has taken from its queue, and leave its heap of timers out of order."""
    rt = Runtime(memory="off")

    async def hangs() -> None:
        await asyncio.sleep(HANGS)

    options: dict[str, Any] = {"retry": {"max_attempts": 1}, "breaker": {"failure_threshold": 1_000_000}}
    rt.add(hangs, id="hangs", read_only=True, timeout="5ms", **options)
    number, over = 1, False
    sys.settrace(At(0, *parts).rest())
    rt.call_sync("hangs")
    while not over:
        at = At(number, *parts)
        began = time.monotonic()
        try:
            sys.settrace(at)
            rt.call_sync("hangs")
            over = at.left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(at.rest())
        assert rt.call_sync("hangs").status == "failed", at.where
        assert time.monotonic() - began < HANGS / 2, at.where
        assert rt.running() == [], at.where
        number += times(1, 2)
    assert number > 50


ADMITTING = (
    "admission.py",
    "emit.py",
    "event_fields.py",
    "driver.py",
)  # before the pipeline has its ticket the lease helps


def test_t38_an_interrupted_probe_blocks_no_later_call() -> None:
    """A tool without a timeout: the lease of its probe would block it for minutes."""
    blocked, number, over = [], 0, False
    while not over:
        with virtual_time() as clock:
            rt = Runtime()
            rt.add(Scripted(DOWN, "flights"), id="search", timeout=None, retry=ONCE, breaker={"failure_threshold": 1})
            rt.call_sync("search")
            clock.sleep(30)
            interrupt = At(number, "/runtime/call/")  # the first time none: tracing may begin late
            sys.settrace(interrupt)
            try:
                rt.call_sync("search")
                over = number > 0
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(interrupt.rest())
            number += 3
            if rt.call_sync("search").status != "succeeded":
                blocked.append(interrupt.where.split("/")[-1])
    sys.settrace(None)
    assert number > 150
    assert len(blocked) < number // 3 // 5, (
        blocked
    )  # between the breaker's answer and the pipeline the lease frees the slot
