"""Error texts: T16, T17."""

from __future__ import annotations

import io
import logging
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, end_of, guard

MEGABYTES = 5_000_000
STALL = 0.05
ANY = "everything|everything_sync"


class _Formatted(logging.Handler):
    """A handler that formats every field, including extra ones, like structured loggers."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{self.format(record)} {record.__dict__}")


@case("T16", "a huge error text stalls the loop", ANY, logs=True)
async def huge_texts(library: Library) -> Seen:
    logging.getLogger().addHandler(logging.NullHandler())  # otherwise the last-resort handler prints
    busy: list[float] = []
    for text in (
        "error 503 connection reset ",
        "x",
        "api_key=sk-abc123def456ghi789jkl012mno345 ",
        "\x1b[31mred\x1b[0m",
    ):
        huge = text * (MEGABYTES // len(text))
        service = Service(Step(0, ConnectionError(huge)))
        guarded = guard(library, "everything", service)
        for _ in range(2):  # imports made by the first failure must not count as a stall
            before, reached = time.process_time(), service.reached
            with redirect_stderr(io.StringIO()):
                await end_of(guarded())
            taken = (time.process_time() - before) / max(1, service.reached - reached)
        busy.append(taken)
    worst = max(busy)
    return Seen(worst > STALL, f"5 MB: {worst * 1e3:.0f} ms of CPU an attempt at most")


class Silent(ConnectionError):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise ZeroDivisionError("no text for you")

    __repr__ = __str__


@case("T16 unreadable", "an error whose text cannot be read breaks the handling", ANY)
async def unreadable(library: Library) -> Seen:
    service = Service(Step(0, Silent()))
    guarded = guard(library, "everything", service)
    for _ in range(6):  # some of the calls are refused
        ended = await end_of(guarded())
        try:
            str(ended)
        except ZeroDivisionError as raised:
            if not isinstance(ended, Silent):
                return Seen(True, f"the text of {type(ended).__name__} cannot be read either: {raised}")
        if isinstance(ended, ZeroDivisionError):
            return Seen(True, "the caller got the error of reading the text")
    return Seen(False, "an error like others")


SECRET = "sk-proj-4fT9xQ2mL7vB1nK8wR3cD6hJ5pS0aZyE"  # planted


@case("T17", "a secret in an error text gets into the log, into rejections, to the model", ANY, logs=True)
async def secrets(library: Library) -> Seen:
    log = _Formatted()
    root = logging.getLogger()
    root.addHandler(log)
    root.setLevel(logging.INFO)
    error = ConnectionError(f"503 from https://api.example.com/?api_key={SECRET}")
    service = Service(Step(0, error))
    guarded = guard(library, "everything", service)
    told: list[str] = []
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        for _ in range(8):
            ended: Any = await end_of(guarded())
            if ended is not error:  # the tool's own error keeps its text
                told.append(str(ended))
    where = []
    if SECRET in out.getvalue() or any(SECRET in text for text in log.texts):
        where.append("the log")
    if any(SECRET in text for text in told):
        where.append("what the library says of its own")
    return Seen(bool(where), f"found in {' and '.join(where)}" if where else "found nowhere")
