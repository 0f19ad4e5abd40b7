"""Processes: T11, T24, T25."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

from bench.peers import tools
from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, end_of

CRASHES = 5


@case("T11", "one crash of an isolated tool ends the service for all", "isolated", limit=60)
async def crashes(library: Library) -> Seen:
    crash = library.isolated(tools.crash, seconds=10)
    healthy = library.isolated(tools.echo, seconds=10)
    worked, last = 0, None
    for _ in range(CRASHES):
        await end_of(crash())
        last = await end_of(healthy())
        worked += last == "flights"
    end = f"; at the end: {last}" if worked < CRASHES else ""
    return Seen(worked < CRASHES, f"after {CRASHES} crashes the next call worked {worked} times{end}")


@case("T24", "a child that is forked while a call is under way hangs", "everything_sync")
def forks(library: Library) -> Seen:
    warnings.simplefilter("ignore")
    service = Service(Step(0.05))
    guarded = library.everything_sync(service.blocking())
    guarded()
    service.works(seconds=3)
    threading.Thread(target=guarded, daemon=True).start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        service.works()
        os._exit(guarded() != "flights")
    began = time.monotonic()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() - began > 2:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return Seen(True, "the child gave no answer within 2 s")
        time.sleep(0.01)
    return Seen(False, "the child answers")


KILLS = 3

RECORDER = """
import asyncio, sys
from bench.peers.libraries import LIBRARIES
record = LIBRARIES[{library!r}]().acknowledge({folder!r})

async def main():
    number = 0
    while True:
        number += 1
        await record(number)
        print(number, flush=True)

asyncio.run(main())
"""


@case("T25", "kill -9 loses events that were acknowledged", "acknowledge", limit=60)
def kills(library: Library) -> Seen:
    lost = acknowledged = 0
    source = random.Random(25)
    for _ in range(KILLS):
        with tempfile.TemporaryDirectory() as folder:
            code = RECORDER.format(library=library.name, folder=folder)
            with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
                assert running.stdout is not None
                first = running.stdout.readline()
                assert first, "it has not even begun"
                time.sleep(source.uniform(0.05, 0.2))
                running.kill()
                last = max(map(int, [first, *running.stdout.read().split()[:-1]]))
            kept = library.kept(Path(folder))
            lost += len({*range(1, last + 1)} - kept)
            acknowledged += last
    return Seen(lost > 0, f"{KILLS} kills, {acknowledged:,} acknowledged events, {lost} lost")
