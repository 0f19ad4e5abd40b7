"""The messages of the daemon's event stream (server-sent events)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from failsoft.client.connection import DaemonError, DaemonUnavailable, read_answer, translate


def stream_headers(after: int | None) -> dict[str, str]:
    """The headers of a request for the stream, from a position or from now."""
    position = {} if after is None else {"last-event-id": str(after)}
    return {"accept": "text/event-stream", **position}


class EventMessages:
    """Parses the lines of a stream into events."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._name = ""
        self._data: list[str] = []

    def feed(self, line: str) -> Iterator[dict[str, Any]]:
        """Take the next line; yield the events of a message that it ends."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._name = value
            elif name == "data":
                self._data.append(value)
            return
        name, data = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if name == "batch":
            yield from self._read(data)
        elif name == "dropped":
            raise DaemonUnavailable(
                f"{self._host} dropped this client, which was too slow: resume after the last event"
            )

    def _read(self, data: str) -> list[dict[str, Any]]:
        try:
            events = json.loads(data)
        except ValueError:
            events = None
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise DaemonError(f"{self._host} sent a message that is not a list of events")
        return events

    def refuse(self, status: int, content: bytes) -> NoReturn:
        """Raise for an answer that is not a stream."""
        read_answer(status, content)
        raise DaemonError(f"{self._host} answered {status} instead of a stream", status)

    def end(self) -> NoReturn:
        """Raise: the daemon has ended the stream."""
        raise DaemonUnavailable(f"{self._host} ended the stream")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the connection into ``DaemonUnavailable``."""
        with translate():
            yield
