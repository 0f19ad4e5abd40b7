"""The user's influence on decisions about failures: a handler, policies, and a memory of what has helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.model.decision import Decision
from failsoft.observe import events
from failsoft.runtime.call.error_handler import consult
from failsoft.runtime.call.event_fields import handler_failed_fields

if TYPE_CHECKING:
    from failsoft.core.resilience.error_handler import ErrorReport, Handler
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.call.ports import CallEvents
    from failsoft.runtime.persistence.recovery_memory import RecoveryMemory


class UserJudgement:
    """The handler, policies and recovery memory of a runtime."""

    def __init__(self, log: CallEvents, handler: Handler | None, policies: tuple[Policy, ...]) -> None:
        self.handler = handler
        self.policies = policies
        self.memory: RecoveryMemory | None = None  # None: it is off
        self._log = log

    async def consult(self, call: Call, report: ErrorReport) -> Decision | None:
        """Ask the handler. None if it fails or is slow: that is recorded, and the built-in handler decides."""
        answer = await consult(self, report)
        if isinstance(answer, Decision):
            return answer
        self._log.emit(events.HANDLER_FAILED, call.tool, call, handler_failed_fields(answer))
        return None
