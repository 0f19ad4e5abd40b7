"""The messages of the daemon's event stream (server-sent events)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from failsoft.client.connection import (
    LARGEST_ANSWER,
    Body,
    DaemonError,
    DaemonUnavailable,
    Request,
    read_answer,
    translate,
)

LARGEST_MESSAGE = LARGEST_ANSWER  # bytes


def stream_arguments(request: Request, after: int | None, timeout: float) -> dict[str, Any]:
    """The arguments of a request for the stream, from a position or from now."""
    position = {} if after is None else {"last-event-id": str(after)}
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query or {}),
        "headers": {"accept": "text/event-stream", **position},
        "timeout": timeout,
    }


class EventMessages:
    """Parses a stream into events. A message is limited in size."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._name = ""
        self._data: list[bytes] = []
        self._begun: list[bytes] = []  # the parts of a line whose end has not come
        self._size = 0  # of the message so far

    def feed(self, part: bytes) -> Iterator[dict[str, Any]]:
        """Take the next part; yield the events of the messages that it ends."""
        first, *rest = part.split(b"\n")
        self._begun.append(first)
        self._size += len(part)
        if rest:
            yield from self._take(b"".join(self._begun))
            for line in rest[:-1]:
                yield from self._take(line)
            self._begun = [rest[-1]]
        if self._size > LARGEST_MESSAGE:
            raise DaemonError(f"{self._host} sent a message that is too large")

    def _take(self, line: bytes) -> Iterator[dict[str, Any]]:
        line = line.removesuffix(b"\r")
        if line:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"event":
                self._name = value.decode("utf-8", "replace")
            elif name == b"data":
                self._data.append(value)
            return
        name_of_message, data = self._name, b"\n".join(self._data)
        self._name, self._data, self._size = "", [], 0
        if name_of_message == "batch":
            yield from self._read(data)
        elif name_of_message == "dropped":
            raise DaemonUnavailable(
                f"{self._host} dropped this client, which was too slow: resume after the last event"
            )

    def _read(self, data: bytes) -> list[dict[str, Any]]:
        try:
            events = json.loads(data)
        except (ValueError, RecursionError):
            events = None
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise DaemonError(f"{self._host} sent a message that is not a list of events")
        return events

    def refusal(self, timeout: float) -> Body:
        """Return a body for an answer that is not a stream."""
        return Body(time.monotonic() + timeout)

    def refuse(self, status: int, content: bytes) -> NoReturn:
        """Raise for an answer that is not a stream."""
        read_answer(status, content)
        raise DaemonError(f"{self._host} answered {status} instead of a stream", status)

    def end(self) -> NoReturn:
        """Raise ``DaemonUnavailable``: the daemon has ended the stream."""
        raise DaemonUnavailable(f"{self._host} ended the stream")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the connection into ``DaemonUnavailable``."""
        try:
            with translate():
                yield
        except TimeoutError:
            raise DaemonUnavailable(f"{self._host} did not answer in time") from None
