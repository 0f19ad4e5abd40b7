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
    from random import Random

    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.error_handler import Handler
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.call.model import Phraser
    from failsoft.runtime.execution.clock import Clock
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
        record_arguments: bool = False,
        phraser: Phraser | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.time = TimeSource(clock, random)
        self.log = CallLog(clock, on_escalation)
        self.toolbox = Toolbox(self.time.now)
        self.texts = Explainer(self.toolbox.tools, phraser, catalogue or Catalogue())
        self.judgement = UserJudgement(self.log, handler, policies)
        self.books = Books(
            self.time, self.log, self.texts, store, store_required=store_required, record_arguments=record_arguments
        )
        self.in_flight = InFlight()
        self.places = Places(self.time, self.log, self.in_flight)
        self.runner = CallRunner(self, self)
