"""The async client of the daemon: ``async with AsyncClient("https://…") as client: await client.tools()``.

One method per route; ``Client`` has the same ones, without ``await``. A request that the daemon refuses raises ``DaemonError``
with its problem document; one that it did not answer raises ``DaemonUnavailable``. Nothing is retried here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from failsoft.client import answers, requests
from failsoft.client.connection import Request, find_token, http_options, read_address, read_timeout, send_async
from failsoft.client.deadlines import limit_async_requests, within
from failsoft.client.event_stream import EventMessages, stream_arguments
from failsoft.client.requests import Advice, Circuit, EscalationState, Status, Verdict

if TYPE_CHECKING:
    import httpx

    from failsoft.core.model.decision import Decision
    from failsoft.core.model.durations import Duration
    from failsoft.core.resilience.error_handler import ErrorReport


class AsyncClient:
    """A connection to a daemon. ``token`` defaults to the one in the environment (FAILSOFT_TOKEN)."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: Duration = "30s",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        import httpx

        self.address = read_address(url, "AsyncClient")
        self._timeout = read_timeout(timeout)
        options = http_options(self.address, find_token(token), self._timeout)
        self._http = limit_async_requests(httpx.AsyncClient(**options, transport=transport))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = await send_async(self._http, request, self._timeout)
        return answer

    async def follow_events(self, *, after: int | None = None, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield events as they come, without end. The ``id`` of each is the position to resume ``after``.

        Raises ``DaemonUnavailable`` when the daemon ends the stream or drops a client that is too slow.
        """
        request = requests.get("events", **filters)
        messages = EventMessages(self.address.host)
        async with AsyncExitStack() as stack:
            stack.enter_context(messages.errors())
            stream = self._http.stream(**stream_arguments(request, after, self._timeout))
            with within(time.monotonic() + self._timeout):
                async with asyncio.timeout(self._timeout):
                    answer = await stack.enter_async_context(stream)
            if answer.status_code != 200:
                refusal = messages.refusal(self._timeout)
                async with asyncio.timeout(self._timeout):
                    async for part in answer.aiter_raw():
                        refusal.add(part)
                messages.refuse(answer.status_code, refusal.read())
            async for part in answer.aiter_raw():
                for event in messages.feed(part):
                    yield event
        messages.end()

    async def decide(self, report: ErrorReport) -> Decision:
        """Ask what to do about a failure, with a complete report."""
        return requests.read_decision(await self._send(requests.report_of(report)))

    async def report_error(
        self, /, tool: str, error: str | BaseException | Mapping[str, Any], **details: Any
    ) -> Advice:
        """Report a failed attempt and get the decision.

        ``details`` are the fields of POST /v1/errors: ``call_id``, ``attempt``, ``alternatives``, ``read_only`` …
        """
        return requests.read_advice(
            await self._send(requests.post("errors", tool=tool, error=requests.error_details(error), **details))
        )

    async def report_outcome(self, /, tool: str, status: Status, **details: Any) -> Circuit:
        """Report how a call ended; return the tool's circuit."""
        return answers.read_circuit(await self._send(requests.post("outcomes", tool=tool, status=status, **details)))

    async def send_events(self, source: str, events: Sequence[Mapping[str, Any]], *, dropped: int = 0) -> int:
        """Store events of another runtime; return how many were new."""
        return answers.read_accepted(await self._send(requests.events_of(source, events, dropped)))

    async def call(self, /, tool: str, args: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Call a tool of the daemon's manifest. ``state`` is "running" if it takes longer than ``wait`` seconds."""
        return await self._send(requests.post("calls", tool=tool, args=dict(args or {}), **options))

    async def get_call(self, id: str, *, wait: float | None = None) -> dict[str, Any]:
        """Return a call and, once it has ended, its outcome."""
        return await self._send(requests.get("calls", id, wait=wait))

    async def cancel_call(self, id: str) -> dict[str, Any]:
        """Cancel a call."""
        return await self._send(requests.delete("calls", id))

    async def run_turn(self, /, plan: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Run a plan as a turn. ``state`` is "running" if it takes longer than ``wait`` seconds."""
        return await self._send(requests.post("turns", plan=dict(plan), **options))

    async def turns(self, *, limit: int | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """List turns, latest first."""
        return answers.read_list(await self._send(requests.get("turns", limit=limit, tenant=tenant)), "turns")

    async def get_turn(self, id: str, *, wait: float | None = None) -> dict[str, Any]:
        """Return a turn with its report, trace and waterfall."""
        return await self._send(requests.get("turns", id, wait=wait))

    async def cancel_turn(self, id: str) -> dict[str, Any]:
        """Cancel a turn."""
        return await self._send(requests.delete("turns", id))

    async def running(self, *, tenant: str | None = None) -> list[dict[str, Any]]:
        """List calls in flight."""
        return answers.read_list(await self._send(requests.get("running", tenant=tenant)), "running")

    async def tools(self, *, tenant: str | None = None) -> list[dict[str, Any]]:
        """List the tools with schema, health and metrics."""
        return answers.read_list(await self._send(requests.get("tools", tenant=tenant)), "tools")

    async def get_tool(self, id: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Return one tool."""
        return await self._send(requests.get("tools", id, tenant=tenant))

    async def disable(self, tool: str, reason: str = "", *, tenant: str | None = None) -> dict[str, Any]:
        """Refuse calls of a tool."""
        return await self._send(requests.for_tenant(requests.post("tools", tool, "disable", reason=reason), tenant))

    async def enable(self, tool: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Accept calls of a tool again."""
        return await self._send(requests.for_tenant(requests.post("tools", tool, "enable"), tenant))

    async def reset(self, tool: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Close the circuit of a tool."""
        return await self._send(requests.for_tenant(requests.post("tools", tool, "reset"), tenant))

    async def ledger(self, *, tool: str | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """List writes whose effect is unknown."""
        return answers.read_list(await self._send(requests.get("ledger", tool=tool, tenant=tenant)), "unknown")

    async def resolve(self, id: str, verdict: Verdict, value: Any = None) -> dict[str, Any]:
        """Close a case of the ledger: it happened, or nothing was done."""
        return await self._send(requests.post("ledger", id, "resolve", verdict=verdict, value=value))

    async def escalations(
        self,
        *,
        state: EscalationState = "open",
        tool: str | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> list[dict[str, Any]]:
        """List the escalations that an operator must know about, latest first: 100, or ``limit``.

        ``after`` continues after an entry: the id of the last one of the page before.
        """
        request = requests.get("escalations", state=state, tool=tool, tenant=tenant, limit=limit, after=after)
        return answers.read_list(await self._send(request), "escalations")

    async def acknowledge(self, id: str, note: str = "") -> dict[str, Any]:
        """Acknowledge an escalation; it is reopened when the same failure happens again."""
        return await self._send(requests.post("escalations", id, "acknowledge", note=note))

    async def thread(self, key: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Return the state of a conversation."""
        return await self._send(requests.get("threads", key, tenant=tenant))

    async def memory(self, *, tool: str | None = None, tenant: str | None = None) -> dict[str, Any]:
        """Return what has helped against which errors."""
        return await self._send(requests.get("memory", tool=tool, tenant=tenant))

    async def runtimes(self) -> list[dict[str, Any]]:
        """List the runtimes that report here."""
        return answers.read_list(await self._send(requests.get("runtimes")), "runtimes")

    async def status(self) -> dict[str, Any]:
        """Return versions, subscribers, store and streams of the daemon."""
        return await self._send(requests.get("status"))

    async def events(self, /, *, after: int | None = None, limit: int | None = None, **filters: Any) -> dict[str, Any]:
        """Return a page of events; ``next`` is the position for ``after``."""
        return await self._send(requests.get("events", after=after, limit=limit, **filters))
