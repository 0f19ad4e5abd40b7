"""The services that all calls of a runtime share, one object per concern.

``Runtime`` is what users hold; ``Services`` is what a ``Runtime`` holds. Modules below take a protocol of the few objects
that they need, not ``Services`` as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.runtime.call.emit import CallLog
from failsoft.runtime.call.in_flight import InFlight
from failsoft.runtime.call.judgement import UserJudgement
from failsoft.runtime.call.places import Places
from failsoft.runtime.call.texts import Explainer
from failsoft.runtime.call.user_text import Catalogue
from failsoft.runtime.calls import CallRunner
from failsoft.runtime.conversation.books import Books
from failsoft.runtime.execution.time_source import TimeSource
from failsoft.runtime.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from random import Random

    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.error_handler import Handler
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.call.model import Phraser
    from failsoft.runtime.execution.clock import Clock
    from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
    from failsoft.stores.ports import Store


class Services:
    """Time, event log, tools, texts, judgement of failures, books, places to run, calls in flight, and their runner."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        handler: Handler | None,
        on_escalation: Callable[[Outcome[Any]], Any] | None,
        policies: tuple[Policy, ...] = (),
        store: Store | None = None,
        store_required: bool = False,
        phraser: Phraser | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.time = TimeSource(clock, random)
        self.log = CallLog(clock, on_escalation)
        self.toolbox = Toolbox(self.time.now)
        self.texts = Explainer(self.toolbox.tools, phraser, catalogue or Catalogue())
        self.judgement = UserJudgement(self.log, handler, policies)
        self.books = Books(self.time, self.log, self.texts, store, store_required=store_required)
        self.in_flight = InFlight()
        self.places = Places(self.time, self.log, self.in_flight)
        self.runner = CallRunner(self, self)
        # The pipeline and its driver take these one by one.
        self.now, self.wall, self.sleep = self.time.now, self.time.wall, self.time.sleep
        self.random, self.new_key, self.clock = self.time.random, self.time.new_key, clock
        self.trace, self.record_event, self.drain_if_due = self.log.trace, self.log.record_event, self.log.drain_if_due
        self.emit, self.escalate, self.debug_fields = self.log.emit, self.log.escalate, self.log.debug_fields
        self.notify_escalation = self.log.notify_escalation
        self.tools, self.health_of, self.warn_once = self.toolbox.tools, self.toolbox.health_of, self.toolbox.warn_once
        self.handler, self.policies, self.consult = handler, policies, self.judgement.consult
        self.explain, self.calls, self.deadlines_of = self.texts.explain, self.in_flight.calls, self.places.deadlines_of
        self.conversations, self.ledger, self.store_required = (
            self.books.conversations,
            self.books.ledger,
            store_required,
        )
        self.on_caller_cancelled = self.runner.on_caller_cancelled

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """The lock of the tools' health."""
        return self.toolbox.lock

    @property
    def memory(self) -> RecoveryMemory | None:
        """The recovery memory; None: it is off."""
        return self.judgement.memory

    @property
    def phraser(self) -> Phraser | None:
        """The callable that phrases texts for users; None: there is none."""
        return self.texts.phraser
