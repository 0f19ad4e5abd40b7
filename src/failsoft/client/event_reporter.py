"""A sink that sends the events of a runtime to a daemon: ``Runtime(report_to="https://…")``.

Rules
-----
- It runs on the sink's delivery thread: calls never wait for it.
- Events that could not be sent are kept, up to ``KEPT``, and sent with the next batch; older ones are dropped, and the
  daemon is told how many.
- After a failure it waits before it tries again, longer each time, up to ``LONGEST_PAUSE`` seconds.
- A batch that the daemon refuses for good (a 4xx) is dropped and counted: it would be refused again.
- A forked child has its own connection and name, and does not send the events that wait in its parent.
- The daemon may get a batch twice if its answer was lost. It recognises the events by their numbers in the runtime's
  stream.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from failsoft.client.connection import (
    DaemonError,
    DaemonUnavailable,
    Request,
    find_token,
    http_options,
    read_address,
    send,
)
from failsoft.client.deadlines import limit_requests
from failsoft.core.model.json_values import plain
from failsoft.observe.events import Event

if TYPE_CHECKING:
    import httpx

BATCH = 500  # events per request
KEPT = 20_000  # events kept while the daemon cannot be reached
TIMEOUT = 2.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds

log = logging.getLogger("failsoft")


class EventReporter:
    """Sends events to a daemon in batches. ``source`` names the runtime there; by default host and process."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        source: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = read_address(url, "report_to")
        self._given = source
        self._name()
        self._options = http_options(self.address, find_token(token), TIMEOUT) | {"transport": transport}
        self._client: httpx.Client | None = None
        self._waiting: deque[dict[str, Any]] = deque()
        self._pause = 0.0
        self._next = 0.0  # when the daemon may be contacted again
        self.sent = 0
        self.dropped = 0  # events that the daemon never got
        self._reported = 0  # dropped events that the daemon knows of

    def _name(self) -> None:
        """Make a name for this process. A forked child numbers its events like its parent, so it needs another name."""
        self._owner = os.getpid()
        own = f"{self._owner}-{uuid4().hex[:8]}"
        self.source = self._given or f"{socket.gethostname()}-{own}"

    def _renew(self) -> None:
        """Start over in a forked child."""
        if self._given is not None:
            self._given = f"{self._given}-{os.getpid()}"
        self._name()
        self._client = None
        self._waiting.clear()
        self._pause = self._next = 0.0
        self.sent = self.dropped = self._reported = 0

    def write(self, batch: Sequence[Event], /) -> None:
        """Send the events, after those that still wait."""
        if self._owner != os.getpid():
            self._renew()
        for event in batch:
            if len(self._waiting) >= KEPT:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(plain(event.to_dict()))
        if time.monotonic() >= self._next:
            self._send_all()

    def close(self) -> None:
        """Try once more to send the waiting events, and close the connection."""
        if self._waiting:
            self._send_all()
        if self._waiting:
            self.dropped += len(self._waiting)
            log.warning("%d events did not reach the daemon at %s", len(self._waiting), self.address.host)
            self._waiting.clear()
        if self._client is not None:
            self._client.close()

    def _send_all(self) -> None:
        while self._waiting:
            part = [self._waiting[index] for index in range(min(BATCH, len(self._waiting)))]
            try:
                self._send(part)
            except DaemonUnavailable as error:
                self._postpone(error)
                return
            except DaemonError as error:
                self.dropped += len(part)
                log.warning("the daemon at %s refused %d events: %s", self.address.host, len(part), error)
            else:
                self.sent += len(part)
            for _ in part:
                self._waiting.popleft()
            self._pause = self._next = 0.0

    def _send(self, part: list[dict[str, Any]]) -> None:
        if self._client is None:
            import httpx

            self._client = limit_requests(httpx.Client(**self._options))
            weakref.finalize(self, self._client.close)
        dropped = self.dropped
        body = {"source": self.source, "events": part, "dropped": dropped - self._reported}
        send(self._client, Request("POST", "/v1/events", body), TIMEOUT)
        self._reported = dropped

    def _postpone(self, error: DaemonUnavailable) -> None:
        if not self._pause:
            log.warning("the daemon at %s cannot be reached, events wait for it: %s", self.address.host, error)
        self._pause = min(max(FIRST_PAUSE, self._pause * 2), LONGEST_PAUSE)
        self._next = time.monotonic() + self._pause
