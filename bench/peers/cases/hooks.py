"""Hooks and listeners: T27."""

from __future__ import annotations

import time
from typing import Any

from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, down, end_of, guard

ANY = "hooked|hooked_sync"


class HookBroke(Exception):
    pass


async def _use(library: Library, hook: Any) -> tuple[list[Any], float]:
    """Run a failure and a success with the hook; return the results and the time taken."""
    service = Service()
    service.script = [Step(0, down())]
    guarded = guard(library, "hooked", service, hook=hook)
    began = time.monotonic()
    ended = [await end_of(guarded()) for _ in range(2)]
    return ended, time.monotonic() - began


@case("T27", "a hook that raises breaks the call", ANY)
async def raising_hooks(library: Library) -> Seen:
    called: list[int] = []

    def hook(*_: Any, **__: Any) -> None:
        called.append(1)
        raise HookBroke("the hook broke")

    ended, _ = await _use(library, hook)
    time.sleep(0.1)  # noqa: ASYNC251 - hooks may be called by another thread
    assert called, "the hook was not called"
    broken = [one for one in ended if isinstance(one, HookBroke)]
    return Seen(bool(broken), "the caller got the hook's error" if broken else "the caller got what the tool gave")


@case("T27 hangs", "a hook that hangs holds up the call", ANY)
async def hanging_hooks(library: Library) -> Seen:
    called: list[int] = []

    def hook(*_: Any, **__: Any) -> None:
        if not called:
            called.append(1)
            time.sleep(1.5)

    ended, took = await _use(library, hook)
    del ended
    time.sleep(0.1)  # noqa: ASYNC251 - as above
    assert called, "the hook was not called"
    return Seen(took > 1.0, f"the hook took 1.5 s, the calls {took:.1f} s")
