"""The real soak: real time, threads, processes and a file, a thousand calls a second with random faults, cancels, kills.

Rules
-----
- Calls are started at a fixed rate, whatever becomes of those before. Who falls behind catches up, within reason.
- Everything that grows by design (the ring of events, notes on conversations, families of errors) is filled in the
  warm-up; from then on memory may not grow by more than ``MOST_GROWTH``.
- At the end nothing is left: no task, no thread, no process, no descriptor.
- Every call that was started has one outcome, and what must not be done twice is done once at most.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.soak import load_tools
from tests.soak.leaks import MB, children, count, descendants, rss, settle

from failsoft import CallFailed, Runtime
from failsoft.stores.sqlite import retention
from failsoft.stores.sqlite.store import SqliteStore

MOST_GROWTH = 5.0  # MB
CONVERSATIONS = 300
MOST_OPEN = 200  # calls at a time: a machine that cannot keep up is not what is tested, and gets fewer
PATIENCE = 20.0  # seconds for what is idle to go: longer than idle threads wait for work
SHARES = {
    "flaky": 300, "shaky": 100, "pay": 60, "slow": 40, "stubborn": 2, "nested": 60, "blocking": 40, "sleeper": 4,
    "narrow": 20, "echo": 20, "fails_there": 2, "hangs_there": 1, "dies": 1, "no_such_tool": 5,
}  # fmt: skip


@dataclass
class Soaked:
    """The results of a run."""

    seconds: float
    calls: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    effects: bytearray = field(default_factory=bytearray)  # how often each write was done, by its number
    memory: list[float] = field(default_factory=list)  # MB, once a second since the warm-up
    killed: int = 0  # processes, from outside
    figures: dict[str, Any] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    @property
    def twice(self) -> int:
        """Writes that were done more than once."""
        return sum(times > 1 for times in self.effects)

    @property
    def growth(self) -> float:
        """MB from the first part of the time after the warm-up to the last."""
        part = max(1, len(self.memory) // 10)
        if len(self.memory) < 2:
            return 0.0
        return statistics.median(self.memory[-part:]) - statistics.median(self.memory[:part])


def soak(seconds: float, rate: float, seed: int, say: Callable[[str], None]) -> Soaked:
    """Run for a given time, then measure the remaining resources."""
    before = count()
    soaked = Soaked(seconds, effects=bytearray(int(seconds * rate * 1.5) + 10_000))  # all at once: it must not grow
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(retention, "PRUNE_EVERY", 5.0),
    ):  # not only at the very end
        asyncio.run(_Load(soaked, rate, seed, say, Path(folder)).run())
    gc.collect()
    settle(lambda: all(now <= then for now, then in zip(count(), before, strict=True)), PATIENCE)
    for name, then, now in zip(before._fields, before, count(), strict=True):
        soaked.figures[f"{name} before / after"] = f"{then} / {now}"
        if now > then:
            names = sorted(thread.name for thread in threading.enumerate()) if name == "threads" else ""
            soaked.violations.append(f"{now - then} {name} are left {names}")
    lost = soaked.calls - soaked.ends.total()
    if lost:
        soaked.violations.append(f"{lost} calls have no outcome")
    if soaked.twice:
        soaked.violations.append(f"{soaked.twice} writes took effect more than once")
    soaked.figures["memory growth (MB)"] = f"{soaked.growth:.2f}"
    return soaked


class _Load:
    def __init__(self, soaked: Soaked, rate: float, seed: int, say: Callable[[str], None], folder: Path) -> None:
        self.soaked = soaked
        self.rate = rate
        self.random = random.Random(seed)
        self.say = say
        self.store = SqliteStore(folder / "soak.db", max_size=2 * MB)
        self.rt = Runtime(store=self.store, random=random.Random(seed))
        self.open: set[asyncio.Task[None]] = set()
        self.number = 0
        self._flaky = load_tools.register(self.rt, load_tools.Tools(self.random.random, soaked.effects))
        self._kinds: list[Callable[[], Awaitable[None]]] = [*map(self._named, SHARES)]
        self._kinds += [self.call_function, self.leave, self.take_turn, self.talk]
        self._weights = [*SHARES.values(), 100, 60, 40, 40]

    # -- what callers do -----------------------------------------------------------------------------------------------

    def _named(self, tool: str) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            await self._told(self.rt.call(tool, {"number": self._next()}))

        return call

    def _next(self) -> int:
        self.number += 1
        self.soaked.calls += 1
        return self.number

    async def _told(self, called: Awaitable[Any]) -> None:
        try:
            outcome = await called
        except asyncio.CancelledError:
            self.soaked.ends["cancelled"] += 1
            raise
        except CallFailed as error:
            self.soaked.ends[error.outcome.status] += 1
        else:
            self.soaked.ends[getattr(outcome, "status", "succeeded")] += 1

    async def call_function(self) -> None:
        await self._told(self._flaky(number=self._next()))

    async def leave(self) -> None:
        """Lose interest in a call."""
        tool = self.random.choice(("flaky", "slow", "blocking", "echo", "narrow"))
        running = asyncio.ensure_future(self._named(tool)())
        await asyncio.sleep(self.random.random() / 50)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def talk(self) -> None:
        """A call of a conversation, and now and then the user's wish to have it tried again."""
        thread = f"chat-{self.random.randrange(CONVERSATIONS)}"
        await self._told(self.rt.call("flaky", {"number": self._next()}, thread=thread))
        if self.random.random() < 0.02:
            self.rt.threads[thread].close_dangling()

    async def take_turn(self) -> None:
        thread = f"chat-{self.random.randrange(CONVERSATIONS)}"
        turn = self.rt.turn(timeout=self.random.choice(("10ms", "1s")), thread=thread)
        try:
            async with turn:
                first = turn.call("flaky", {"number": self._next()})
                turn.call("slow", {"number": self._next()})
                turn.call("pay", {"number": self._next()}, depends_on=[first])
                if self.random.random() < 0.1:
                    raise LookupError
        except LookupError:
            pass
        finally:
            self.soaked.ends.update(outcome.status for outcome in turn.report.outcomes.values())

    # -- the run -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._complain)
        async with self.rt:
            beside = [asyncio.ensure_future(self._kill()), asyncio.ensure_future(self._watch())]
            await self._drive(loop)
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
            if self.open:
                await asyncio.wait(self.open, timeout=PATIENCE)
            counts, tasks = self.rt.workers, len(self.open)
        self.store.close()
        await asyncio.sleep(0.3)  # orphans have seen the end of it
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left:
            self.soaked.violations.append(f"{len(left)} tasks are left, {tasks} of them calls: {left[:3]}")
        self.soaked.figures |= {
            "workers started": counts.started,
            "workers killed under a call": counts.kills,
            "workers that died under a call": counts.crashes,
            "processes killed from outside": self.soaked.killed,
            "tasks after": len(left),
        }

    async def _drive(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start calls at the rate that is wanted; a turn counts for three."""
        began = loop.time()
        while (passed := loop.time() - began) < self.soaked.seconds:
            if self.soaked.calls < passed * self.rate and len(self.open) < MOST_OPEN:
                [kind] = self.random.choices(self._kinds, self._weights)
                task = loop.create_task(self._one(kind))
                self.open.add(task)
                task.add_done_callback(self.open.discard)
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(0.005)

    async def _one(self, kind: Callable[[], Awaitable[None]]) -> None:
        try:
            await kind()
        except Exception as error:
            self.soaked.violations.append(f"a caller got {error!r}")

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.soaked.violations.append(
            f"the event loop complains: {context.get('message')} {context.get('exception')!r}"
        )

    async def _kill(self) -> None:
        """Kill worker processes from outside, and now and then the one that looks after them."""
        while True:
            await asyncio.sleep(self.random.uniform(0.2, 1.0))
            workers = sorted(descendants() - (supervisors := children()))
            victims = sorted(supervisors) if self.random.random() < 0.02 else workers
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(self.random.choice(victims), signal.SIGKILL)
                    self.soaked.killed += 1

    async def _watch(self) -> None:
        """A line now and then, and the memory once a second."""
        began = time.monotonic()
        every = max(1.0, self.soaked.seconds / 60)
        warm = began + self.soaked.seconds / 5
        told, calls = began, 0
        while True:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            if now > warm:
                gc.collect()
                self.soaked.memory.append(rss())
            if now - told >= every:
                held, soaked = count(), self.soaked
                pace = (soaked.calls - calls) / (now - told)
                self.say(
                    f"{now - began:6.0f} s {soaked.calls:8} calls {pace:6.0f}/s  {rss():6.1f} MB  "
                    f"{len(self.open):4} open  {held.threads:3} threads {held.descriptors:3} descriptors "
                    f"{held.processes:2} processes  {soaked.ends['failed']} failed, {soaked.ends['cancelled']} cancelled"
                )
                told, calls = now, soaked.calls
