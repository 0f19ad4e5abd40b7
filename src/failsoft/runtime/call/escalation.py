"""Deliver escalated outcomes to ``on_escalation``. Its failures never affect a call."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from failsoft.core.classify.nested import find_origin
from failsoft.observe.delivery import Delivery, each
from failsoft.runtime.execution.blocking_loop import run_here

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome

REMEMBERED = 64  # recent outcomes, to recognise the same failure in an outer call


class Escalations:
    """Calls the user's function on the delivery thread; a coroutine function runs on that thread's own loop."""

    def __init__(self, on_escalation: Callable[[Outcome[Any]], Any]) -> None:
        deliver = on_escalation
        if inspect.iscoroutinefunction(on_escalation):

            def deliver(outcome: Outcome[Any]) -> None:
                run_here(on_escalation(outcome))

        self._delivery = Delivery(each(deliver), name="on_escalation", wait=True)
        self._delivered: deque[Outcome[Any]] = deque(maxlen=REMEMBERED)
        self.close = self._delivery.close
        self.renew_after_fork = self._delivery.renew_after_fork

    def notify(self, outcome: Outcome[Any]) -> None:
        """Deliver an outcome, unless the failure has been delivered already for a call inside it."""
        inside = find_origin(outcome)[1:]
        if not any(one is delivered for one in inside for delivered in self._delivered):
            self._delivered.append(outcome)
            self._delivery.put([outcome])
