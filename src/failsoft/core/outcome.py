"""What became of a call: one value for every way it can end, and the five strategies that lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from failsoft import errors

if TYPE_CHECKING:
    from failsoft.core.fault import Fault

T = TypeVar("T")

Status = Literal["succeeded", "failed", "skipped", "timed_out", "cancelled"]
Strategy = Literal["retry", "alternative_tool", "partial_success", "escalate", "fail_gracefully"]


class Decision(NamedTuple):
    """What the Error Handler wants done about one failure, and why."""

    strategy: Strategy
    reason: str
    delay: float | None = None  # seconds before the retry
    tool: str | None = None  # the alternative

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class Outcome(Generic[T]):
    """What became of one call.

    Not a frozen dataclass: one is made for every call that goes by name, and this costs a quarter.
    """

    __slots__ = (
        "attempts", "decision", "duration", "escalated", "fault", "id", "label", "missing", "root", "status",
        "tool", "value", "via",
    )

    def __init__(
        self,
        id: str,
        tool: str,
        status: Status,
        *,
        value: T | None = None,
        missing: Any = None,
        fault: Fault | None = None,
        attempts: int = 0,
        via: str | None = None,
        decision: Decision | None = None,
        duration: float = 0.0,
        label: str = "",
        root: str | None = None,
        escalated: bool = False,
    ) -> None:
        self.id = id
        self.tool = tool
        self.status: Status = status
        self.value = value
        self.missing = missing  # what a partial value lacks
        self.fault = fault
        self.attempts = attempts  # all of them, fallbacks included; 0 when refused or not run
        self.via = via  # the tool that gave the value
        self.decision = decision
        self.duration = duration
        self.label = label or tool.replace("_", " ")
        self.root = root  # for a skipped call: the id of the call whose failure is the cause
        self.escalated = escalated
