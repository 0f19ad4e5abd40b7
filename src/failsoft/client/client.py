"""The blocking client of the daemon: ``with Client("https://…") as client: client.tools()``.

The routes are written once, in ``AsyncClient``: here its methods run to their end without an event loop. A request that
the daemon refuses raises ``DaemonError`` with its problem document; one that it did not answer raises
``DaemonUnavailable``. Nothing is retried here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from failsoft.client import requests
from failsoft.client.async_client import AsyncClient
from failsoft.client.connection import Request, find_token, http_options, read_address, read_timeout, send
from failsoft.client.deadlines import limit_requests, within
from failsoft.client.event_stream import EventMessages, stream_arguments

if TYPE_CHECKING:
    import httpx

    from failsoft.core.model.durations import Duration

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    route: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    @wraps(route)
    def run(client: Client, /, *args: P.args, **options: P.kwargs) -> T:
        try:
            route(cast("AsyncClient", client), *args, **options).send(None)
        except StopIteration as returned:
            answer: T = returned.value
            return answer
        raise AssertionError("a request of the blocking client suspended")

    return run


class Client:
    """A connection to a daemon. ``token`` defaults to the one in the environment (FAILSOFT_TOKEN)."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: Duration = "30s",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        import httpx

        self.address = read_address(url, "Client")
        self._timeout = read_timeout(timeout)
        options = http_options(self.address, find_token(token), self._timeout)
        self._http = limit_requests(httpx.Client(**options, transport=transport))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _send(self, request: Request) -> Any:
        """Send a request without suspending: the routes of ``AsyncClient`` await this."""
        return send(self._http, request, self._timeout)

    def follow_events(self, *, after: int | None = None, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield events as they come, without end. The ``id`` of each is the position to resume ``after``.

        Raises ``DaemonUnavailable`` when the daemon ends the stream or drops a client that is too slow.
        """
        request = requests.get("events", **filters)
        messages = EventMessages(self.address.host)
        with ExitStack() as stack:
            stack.enter_context(messages.errors())
            stream = self._http.stream(**stream_arguments(request, after, self._timeout))
            with within(time.monotonic() + self._timeout):
                answer = stack.enter_context(stream)
            if answer.status_code != 200:
                refusal = messages.refusal(self._timeout)
                for part in answer.iter_raw():
                    refusal.add(part)
                messages.refuse(answer.status_code, refusal.read())
            for part in answer.iter_raw():
                yield from messages.feed(part)
        messages.end()

    decide = _blocking(AsyncClient.decide)
    report_error = _blocking(AsyncClient.report_error)
    report_outcome = _blocking(AsyncClient.report_outcome)
    send_events = _blocking(AsyncClient.send_events)
    call = _blocking(AsyncClient.call)
    get_call = _blocking(AsyncClient.get_call)
    cancel_call = _blocking(AsyncClient.cancel_call)
    run_turn = _blocking(AsyncClient.run_turn)
    turns = _blocking(AsyncClient.turns)
    get_turn = _blocking(AsyncClient.get_turn)
    cancel_turn = _blocking(AsyncClient.cancel_turn)
    running = _blocking(AsyncClient.running)
    tools = _blocking(AsyncClient.tools)
    get_tool = _blocking(AsyncClient.get_tool)
    disable = _blocking(AsyncClient.disable)
    enable = _blocking(AsyncClient.enable)
    reset = _blocking(AsyncClient.reset)
    ledger = _blocking(AsyncClient.ledger)
    resolve = _blocking(AsyncClient.resolve)
    escalations = _blocking(AsyncClient.escalations)
    acknowledge = _blocking(AsyncClient.acknowledge)
    thread = _blocking(AsyncClient.thread)
    memory = _blocking(AsyncClient.memory)
    runtimes = _blocking(AsyncClient.runtimes)
    status = _blocking(AsyncClient.status)
    events = _blocking(AsyncClient.events)
