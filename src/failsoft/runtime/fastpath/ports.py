"""The services that the fast path needs: to run an attempt, and to hand the rest over to the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from failsoft.runtime.call.model import NO_PROGRESS, Progress
from failsoft.runtime.call.ports import Calls, DriverServices

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.model import AttemptResult, Call


class HandOver(Protocol):
    """From the fast path to the pipeline."""

    async def drive(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None, past: Progress = NO_PROGRESS
    ) -> Outcome[Any]: ...
    def misfit_result(self, call: Call) -> AttemptResult | None: ...
    def error_result(self, call: Call, started: float, error: Exception, *, entered: bool) -> AttemptResult: ...
    def value_result(self, call: Call, started: float, ended: float, value: Any) -> AttemptResult: ...


class FastServices(DriverServices, Calls, HandOver, Protocol):
    """Services for a call on the fast path, up to the end of the pipeline."""
