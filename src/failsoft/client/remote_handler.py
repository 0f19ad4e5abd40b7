"""An Error Handler on another machine. If it does not answer, the built-in one decides.

Rules
-----
- The whole answer must arrive within ``timeout`` (100 ms) of the failure. If the daemon is slow, cannot be reached, or
  gives an invalid answer, ``handle`` raises. Then the runtime's built-in handler decides, and the event
  ``HandlerFailed`` says why.
- After ``FAILURES`` failures in a row, the daemon gets no requests during ``PAUSE``. Then one call tries it again.
- A decision that the report shows to be impossible or unsafe counts as a failure, and is not followed.
- The reason of a decision names the daemon, so a trace shows who decided.
- Requests run on OS threads, so one handler serves any number of event loops.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from failsoft.client.connection import (
    DaemonError,
    DaemonUnavailable,
    Request,
    find_token,
    http_options,
    read_address,
    read_timeout,
    send_until,
)
from failsoft.client.deadlines import limit_requests
from failsoft.core.model.decision import Decision
from failsoft.core.model.json_values import plain
from failsoft.core.model.options import BreakerOptions
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience import circuit_breaker
from failsoft.core.resilience.circuit_breaker import Refusal, Ticket
from failsoft.core.resilience.error_handler import ErrorReport, accept_decision

if TYPE_CHECKING:
    import httpx

    from failsoft.core.model.durations import Duration
    from failsoft.core.resilience.circuit_breaker import Result

FAILURES = 3
PAUSE = "10s"
LARGEST_DECISION = 65_536  # bytes
_THREADS = 8
_LEASE = 5.0  # seconds after which a probe that never reported is given up
_BREAKER = BreakerOptions(failure_threshold=FAILURES, timeout=PAUSE)


class RemoteHandler:
    """Asks a daemon what to do about a failure: ``Runtime(error_handler="https://…")``.

    ``token`` is the daemon's; it defaults to the one in the environment (FAILSOFT_TOKEN).
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: Duration = "100ms") -> None:
        self.address = read_address(url, "error_handler")
        self.timeout = read_timeout(timeout)
        self._token = find_token(token)
        self._options = http_options(self.address, self._token, self.timeout)  # raises now if httpx is missing
        self._lock = threading.Lock()
        self._state = circuit_breaker.INITIAL
        self._begin()

    def _begin(self) -> None:
        """Set up the connections of this process before the first failure: this takes milliseconds."""
        import httpx

        self._owner = os.getpid()
        self._client = limit_requests(httpx.Client(**self._options))
        self._threads = ThreadPoolExecutor(_THREADS, "failsoft-remote-handler")
        weakref.finalize(self, self._client.close)

    async def handle(self, report: ErrorReport) -> Decision:
        """Return the daemon's decision; raise ``DaemonError`` if it cannot be followed."""
        if self._owner != os.getpid():  # a forked child must not use its parent's connections, nor a lock that it held
            self._lock = threading.Lock()
            self._begin()
        ticket = self._admit()
        verdict: Result = "failure"
        try:
            decision = await self._ask(report)
            verdict = "success"
            return decision
        except asyncio.CancelledError:
            verdict = "neutral"
            raise
        finally:
            with self._lock:
                self._state = circuit_breaker.record(self._state, _BREAKER, ticket, verdict, now=time.monotonic())

    def close(self) -> None:
        """Close the connections. Failures from now on are decided by the built-in handler."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _admit(self) -> Ticket:
        with self._lock:
            self._state, answer = circuit_breaker.admit(
                self._state, _BREAKER, now=time.monotonic(), lease=self.timeout + _LEASE
            )
        if isinstance(answer, Refusal):
            raise DaemonUnavailable(
                f"{self.address.host} is not asked for another {answer.retry_after:.0f} s, after {FAILURES} failures"
            )
        return answer

    async def _ask(self, report: ErrorReport) -> Decision:
        asked = self._submit(report, time.monotonic() + self.timeout)
        try:
            answer = await asyncio.wait_for(asyncio.wrap_future(asked), self.timeout)
        except TimeoutError:
            raise DaemonUnavailable(f"{self.address.host}: no answer within {self.timeout:g} s") from None
        except DaemonError as error:
            raise type(error)(f"{self.address.host}: {error}", error.status, error.problem) from None
        decision = _read_decision(answer, self.address.host)
        if accept_decision(decision, report) is None:
            raise DaemonError(f"{self.address.host} answered {decision.strategy}, which is impossible or unsafe here")
        return decision

    def _submit(self, report: ErrorReport, deadline: float) -> Future[Any]:
        return self._threads.submit(_post, self._client, report, deadline)


def _post(client: httpx.Client, report: ErrorReport, deadline: float) -> Any:
    asked = Request("POST", "/v1/errors", {"report": plain(report.to_dict())})
    return send_until(client, asked, deadline, LARGEST_DECISION)


def _read_decision(answer: object, host: str) -> Decision:
    try:
        decision = Decision.from_dict(answer)  # type: ignore[arg-type]  # from_dict checks it
        if not (decision.delay is None or (type(decision.delay) in (int, float) and math.isfinite(decision.delay))):
            raise ValueError(f"delay: {decision.delay!r:.40}")
    except Exception as error:
        raise DaemonError(sanitise(f"{host} did not answer with a decision: {type(error).__name__}: {error}")) from None
    return decision._replace(reason=f"{sanitise(str(decision.reason))} (decided by {host})")
