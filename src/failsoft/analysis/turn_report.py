"""The report of a turn.

Rules
-----
- Every call of the turn is in exactly one of ``results`` (it succeeded), ``failures`` (it ran and failed, timed out or
  was cancelled) and ``skipped`` (it never ran). All keep the order of submission.
- ``timed_out`` means that the turn reached its deadline; the calls that were running then have that status.
- The message to the user and the trace are computed on first use, and before pickling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.classify.nested import find_origin
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.model.named import Named
from failsoft.core.model.outcome import Outcome
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failsoft.analysis.waterfall import Waterfall
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.fault import Fault

Event = Any  # an event of the runtime, with ``to_dict()``


class Escalation(NamedTuple):
    """A failure without an automatic recovery: a person must know about it."""

    call_id: str  # as in ``report.outcomes``
    fault: Fault | None  # the failure
    explanation: Explanation  # the texts for user, model and operator

    def to_dict(self) -> dict[str, Any]:
        """Return the escalation as plain data."""
        return {
            "call_id": self.call_id,
            "fault": None if self.fault is None else self.fault.to_dict(),
            "explanation": self.explanation.to_dict(),
        }


class CallResults(Named[Any]):
    """The values of a turn's calls, by call id."""

    what = "result of call"


class CallOutcomes(Named[Outcome[Any]]):
    """Some of a turn's outcomes, by call id."""

    what = "such outcome of call"


class TurnReport:
    """The report of a turn. Every call is in ``results``, in ``failures`` or in ``skipped``."""

    __slots__ = ("_message", "_results", "_trace", "duration", "outcomes", "thread", "timed_out", "turn_id")

    def __init__(
        self,
        turn_id: str,
        outcomes: Mapping[str, Outcome[Any]],
        *,
        thread: str | None = None,
        duration: float = 0.0,
        timed_out: bool = False,
        results: Mapping[str, Any] | None = None,
        message: str | Callable[[TurnReport], str] | None = None,
        trace: tuple[Event, ...] | Callable[[], tuple[Event, ...]] = (),
    ) -> None:
        self.turn_id = turn_id  # as in the trace
        self.outcomes = outcomes  # by call id, in the order of submission
        self.thread = thread  # the conversation's id
        self.duration = duration  # seconds
        self.timed_out = timed_out  # whether the turn reached its deadline
        self._results = results  # None: take them from the outcomes
        self._message = message
        self._trace = trace

    def __bool__(self) -> bool:
        """True, whatever happened. Log a warning about an ``if`` that a turn with failures would pass."""
        if any(outcome.status != "succeeded" for outcome in self.outcomes.values()):
            Outcome._on_misuse(
                "turn.report", "every TurnReport is true, also this one with failures: write `if not report.failures`"
            )
        return True

    @property
    def results(self) -> dict[str, Any]:
        """The values of the calls that succeeded."""
        if self._results is not None:
            return CallResults(self._results)
        return CallResults((id, one.value) for id, one in self.outcomes.items() if one.status == "succeeded")

    @property
    def failures(self) -> dict[str, Outcome[Any]]:
        """The calls that ran and did not succeed."""
        return self._having("failed", "timed_out", "cancelled")

    @property
    def skipped(self) -> dict[str, Outcome[Any]]:
        """The calls that never ran. Each names its ``root``, unless the deadline was the cause."""
        return self._having("skipped")

    @property
    def escalations(self) -> tuple[Escalation, ...]:
        """The escalated failures."""
        return tuple(
            Escalation(id, outcome.fault, outcome.explanation)
            for id, outcome in self.outcomes.items()
            if outcome.escalated
        )

    @property
    def told(self) -> dict[str, str]:
        """The texts for the user that policies set, by call id."""
        words = {id: find_origin(one)[-1].told or one.told for id, one in self.failures.items()}
        return {id: text for id, text in words.items() if text is not None}

    @property
    def message(self) -> str:
        """The turn in a few sentences for the user."""
        made = self._message
        if made is None:
            from failsoft.core.explain.turn_message import compose  # start-up: few turns need their message

            made = self._message = compose(self.outcomes)
        elif not isinstance(made, str):
            made = self._message = made(self)
        return made

    @property
    def trace(self) -> tuple[Event, ...]:
        """The turn's events, in order."""
        if callable(self._trace):
            self._trace = self._trace()
        return self._trace

    def waterfall(self) -> Waterfall:
        """The turn as a picture: what ran when, what it waited for, and where the time went."""
        from failsoft.analysis.waterfall import build  # start-up: few turns are drawn

        return build(self.trace, turn_id=self.turn_id, outcomes=self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data for ``json.dumps``; ``failures`` and ``skipped`` list ids of ``outcomes``."""
        outcomes = {id: outcome.to_dict() for id, outcome in self.outcomes.items()}
        return {
            "turn_id": self.turn_id,
            "thread": self.thread,
            "message": self.message,
            "timed_out": self.timed_out,
            "duration": self.duration,
            "outcomes": outcomes,
            "results": {id: outcomes[id]["value"] for id in self.results},
            "failures": [*self.failures],
            "skipped": [*self.skipped],
            "escalations": [escalation.to_dict() for escalation in self.escalations],
            "trace": [event.to_dict() for event in self.trace],
        }

    def _having(self, *statuses: str) -> dict[str, Outcome[Any]]:
        return CallOutcomes((id, outcome) for id, outcome in self.outcomes.items() if outcome.status in statuses)

    def __reduce__(self) -> tuple[Any, ...]:
        rest = {
            "thread": self.thread,
            "duration": self.duration,
            "timed_out": self.timed_out,
            "message": self.message,
            "trace": self.trace,
        }
        return _load, (self.turn_id, dict(self.outcomes), rest)

    def __repr__(self) -> str:
        counts = f"{len(self.results)} succeeded, {len(self.failures)} failed, {len(self.skipped)} skipped"
        return f"<TurnReport {self.turn_id!r}, {counts}{', timed out' if self.timed_out else ''}>"


def _load(turn_id: str, outcomes: Any, rest: dict[str, Any]) -> Any:
    return TurnReport(turn_id, outcomes, **rest)


point_elsewhere(
    TurnReport,
    {
        "ok success succeeded": "not report.failures",
        "errors": "report.failures",
        "calls tools": "report.outcomes",
        "status": "report.outcomes[id].status",
        "text": "report.message",
        "values": "report.results",
    },
)
