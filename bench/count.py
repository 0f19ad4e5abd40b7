"""Run under valgrind: ``python -m bench.count MODULE NAME...``; see ``harness.instructions``."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
from itertools import repeat
from typing import Any

from bench.harness import COUNTS, Peer, prepare

WARM = 3  # calls before counting: late imports may have to be compiled first


async def _awaited(call: Any, count: int) -> None:
    for _ in repeat(None, count):
        await call(7)


def _called(call: Any, count: int) -> None:
    for _ in repeat(None, count):
        call(7)


def main() -> None:
    module, *names = sys.argv[1:]
    scenario = importlib.import_module(module)
    peers: list[Peer] = scenario.PEERS
    awaits = getattr(scenario, "AWAITS", True)
    counts = getattr(scenario, "COUNTS", COUNTS)
    for peer in peers:
        if peer.name not in names:
            continue
        for count in (WARM, *counts):
            pid = os.fork()
            if not pid:
                gc.disable()
                loop = asyncio.new_event_loop()
                ready, _ = prepare([peer], loop)
                if ready and awaits and not peer.blocking:
                    loop.run_until_complete(_awaited(peer.call, count))
                elif ready:
                    _called(peer.call, count)
                os._exit(0 if ready else 1)
            if os.waitpid(pid, 0)[1] == 0 and count != WARM:
                print("@" + json.dumps([peer.name, count, pid]), flush=True)


if __name__ == "__main__":
    main()
