"""The blocking client of the daemon: ``with Client("https://…") as client: client.tools()``.

One method per route; ``async_client`` has the same ones to await. A request that the daemon refuses raises ``DaemonError``
with its problem document; one that it did not answer raises ``DaemonUnavailable``. Nothing is retried here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from failsoft.client import answers, requests
from failsoft.client.connection import find_token, http_options, read_address, read_timeout, send
from failsoft.client.deadlines import limit_requests
from failsoft.client.event_stream import EventMessages, stream_headers
from failsoft.client.requests import Advice, Asked, Circuit, EscalationState, Status, Verdict

if TYPE_CHECKING:
    import httpx

    from failsoft.core.model.durations import Duration
    from failsoft.core.model.outcome import Decision
    from failsoft.core.resilience.error_handler import ErrorReport


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

    def _send(self, asked: Asked) -> Any:
        return send(self._http, asked.method, asked.path, asked.body, asked.query, self._timeout)

    def follow_events(self, *, after: int | None = None, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield events as they come, for ever. The ``id`` of each is the position to resume ``after``.

        Raises ``DaemonUnavailable`` when the daemon ends the stream or drops a client that is too slow.
        """
        asked = requests.get("events", **filters)
        messages = EventMessages(self.address.host)
        with (
            messages.errors(),
            self._http.stream(
                "GET", asked.path, params=dict(asked.query or {}), headers=stream_headers(after), timeout=self._timeout
            ) as answer,
        ):
            if answer.status_code != 200:
                messages.refuse(answer.status_code, answer.read())
            for line in answer.iter_lines():
                yield from messages.feed(line)
        messages.end()

    def decide(self, report: ErrorReport) -> Decision:
        """Ask what to do about a failure, with a complete report."""
        return requests.read_decision(self._send(requests.report_of(report)))

    def report_error(self, tool: str, error: str | BaseException | Mapping[str, Any], **details: Any) -> Advice:
        """Report a failed attempt and get the decision.

        ``details`` are the fields of POST /v1/errors: ``call_id``, ``attempt``, ``alternatives``, ``read_only`` …
        """
        return requests.read_advice(
            self._send(requests.post("errors", tool=tool, error=requests.error_details(error), **details))
        )

    def report_outcome(self, tool: str, status: Status, **details: Any) -> Circuit:
        """Report how a call ended; return the tool's circuit."""
        return answers.read_circuit(self._send(requests.post("outcomes", tool=tool, status=status, **details)))

    def send_events(self, source: str, events: Sequence[Mapping[str, Any]], *, dropped: int = 0) -> int:
        """Store events of a runtime elsewhere; return how many were new."""
        return answers.read_accepted(self._send(requests.events_of(source, events, dropped)))

    def call(self, tool: str, args: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Call a tool of the daemon's manifest. ``state`` is "running" if it takes longer than ``wait`` seconds."""
        answer: dict[str, Any] = self._send(requests.post("calls", tool=tool, args=dict(args or {}), **options))
        return answer

    def get_call(self, id: str, *, wait: float | None = None) -> dict[str, Any]:
        """Return a call and, once it has ended, its outcome."""
        answer: dict[str, Any] = self._send(requests.get("calls", id, wait=wait))
        return answer

    def cancel_call(self, id: str) -> dict[str, Any]:
        """Cancel a call."""
        answer: dict[str, Any] = self._send(requests.delete("calls", id))
        return answer

    def run_turn(self, plan: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Run a plan as a turn. ``state`` is "running" if it takes longer than ``wait`` seconds."""
        answer: dict[str, Any] = self._send(requests.post("turns", plan=dict(plan), **options))
        return answer

    def turns(self, *, limit: int | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """List turns, latest first."""
        return answers.list_in("turns")(self._send(requests.get("turns", limit=limit, tenant=tenant)))

    def get_turn(self, id: str, *, wait: float | None = None) -> dict[str, Any]:
        """Return a turn with its report, trace and waterfall."""
        answer: dict[str, Any] = self._send(requests.get("turns", id, wait=wait))
        return answer

    def cancel_turn(self, id: str) -> dict[str, Any]:
        """Cancel a turn."""
        answer: dict[str, Any] = self._send(requests.delete("turns", id))
        return answer

    def running(self, *, tenant: str | None = None) -> list[dict[str, Any]]:
        """List calls in flight."""
        return answers.list_in("running")(self._send(requests.get("running", tenant=tenant)))

    def tools(self, *, tenant: str | None = None) -> list[dict[str, Any]]:
        """List the tools with schema, health and metrics."""
        return answers.list_in("tools")(self._send(requests.get("tools", tenant=tenant)))

    def get_tool(self, id: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Return one tool."""
        answer: dict[str, Any] = self._send(requests.get("tools", id, tenant=tenant))
        return answer

    def disable(self, tool: str, reason: str = "", *, tenant: str | None = None) -> dict[str, Any]:
        """Refuse calls of a tool."""
        answer: dict[str, Any] = self._send(
            requests.for_tenant(requests.post("tools", tool, "disable", reason=reason), tenant)
        )
        return answer

    def enable(self, tool: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Accept calls of a tool again."""
        answer: dict[str, Any] = self._send(requests.for_tenant(requests.post("tools", tool, "enable"), tenant))
        return answer

    def reset(self, tool: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Close the circuit of a tool."""
        answer: dict[str, Any] = self._send(requests.for_tenant(requests.post("tools", tool, "reset"), tenant))
        return answer

    def ledger(self, *, tool: str | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """List writes whose effect is unknown."""
        return answers.list_in("unknown")(self._send(requests.get("ledger", tool=tool, tenant=tenant)))

    def resolve(self, id: str, verdict: Verdict, value: Any = None) -> dict[str, Any]:
        """Close a case of the ledger: it happened, or nothing was done."""
        answer: dict[str, Any] = self._send(requests.post("ledger", id, "resolve", verdict=verdict, value=value))
        return answer

    def escalations(
        self,
        *,
        state: EscalationState = "open",
        tool: str | None = None,
        tenant: str | None = None,
    ) -> list[dict[str, Any]]:
        """List what an operator must know about."""
        asked = requests.get("escalations", state=state, tool=tool, tenant=tenant)
        return answers.list_in("escalations")(self._send(asked))

    def acknowledge(self, id: str, note: str = "") -> dict[str, Any]:
        """Acknowledge an escalation; it is open again when the same happens once more."""
        answer: dict[str, Any] = self._send(requests.post("escalations", id, "acknowledge", note=note))
        return answer

    def thread(self, key: str, *, tenant: str | None = None) -> dict[str, Any]:
        """Return the state of a conversation."""
        answer: dict[str, Any] = self._send(requests.get("threads", key, tenant=tenant))
        return answer

    def memory(self, *, tool: str | None = None, tenant: str | None = None) -> dict[str, Any]:
        """Return what has helped against which errors."""
        answer: dict[str, Any] = self._send(requests.get("memory", tool=tool, tenant=tenant))
        return answer

    def runtimes(self) -> list[dict[str, Any]]:
        """List the runtimes that report here."""
        return answers.list_in("runtimes")(self._send(requests.get("runtimes")))

    def status(self) -> dict[str, Any]:
        """Return versions, subscribers, store and streams of the daemon."""
        answer: dict[str, Any] = self._send(requests.get("status"))
        return answer

    def events(self, *, after: int | None = None, limit: int | None = None, **filters: Any) -> dict[str, Any]:
        """Return a page of events; ``next`` is the position for ``after``."""
        answer: dict[str, Any] = self._send(requests.get("events", after=after, limit=limit, **filters))
        return answer
