"""``python -m bench.peers.child CASE LIBRARY [--option]``: run one case; the last line of output is the observation."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import sys
import traceback

from bench.peers import wall_clock
from bench.peers.cases import CASES
from bench.peers.libraries import LIBRARIES
from bench.peers.library import Fn, Library
from bench.peers.service import Service, Step, down, end_of


def main(case_name: str, library_name: str, with_option: bool) -> dict[str, object]:
    case = CASES[case_name]
    if case.clock:
        wall_clock.install()
    library = LIBRARIES[library_name]()
    words = ""
    if with_option:
        option = library.options()[case_name]
        library.take(option)
        words = option.words
    if not case.logs:
        logging.disable()
    try:
        warm_up(library)
        seen = case.run(library)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return {"verdict": "error", "words": words, "at": traceback.format_exc()}
    return {"verdict": "fault" if seen.fault else "none", "words": seen.words, "option": words}


def warm_up(library: Library) -> None:
    """Run a failure and a success first: imports made by the first call must not affect the observation."""
    service = Service()
    service.script = [Step(0, down())] * 3
    if library.has("everything"):
        asyncio.run(_use(library.everything(service.tool())))
    else:
        asyncio.run(_use(library.everything_sync(service.blocking())))


async def _use(guarded: Fn) -> None:
    async def call() -> None:
        value = guarded()
        if inspect.isawaitable(value):
            await value

    for _ in range(2):
        await end_of(call())


if __name__ == "__main__":
    answer = main(sys.argv[1], sys.argv[2], "--option" in sys.argv)
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)  # do not wait for hanging threads
