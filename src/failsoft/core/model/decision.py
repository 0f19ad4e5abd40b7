"""The decision about a failure, by the Error Handler or for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from failsoft.core.model.compared import Shown
from failsoft.core.startup.named_tuple import NamedTuple

Strategy = Literal["retry", "alternative_tool", "partial_success", "escalate", "fail_gracefully"]


class ShownStrategy(Shown):
    """The strategy of a decision, as users see it."""

    __slots__ = ()

    name = "decision.strategy"
    known = get_args(Strategy)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("fallback", "alternative"), "alternative_tool"),
        "partial": "partial_success",
        **dict.fromkeys(("escalated", "escalation"), "escalate"),
        **dict.fromkeys(("fail", "failed", "graceful", "gracefully"), "fail_gracefully"),
        **dict.fromkeys(("retries", "retried", "try_again"), "retry"),
    }
    closed = True


_STRATEGIES = ShownStrategy.every()


class Decision(NamedTuple):
    """The Error Handler's decision about one failure."""

    strategy: Strategy  # what to do
    reason: str  # why, in words
    delay: float | None = None  # seconds before the retry
    tool: str | None = None  # the alternative tool

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return {**self._asdict(), "strategy": str(self.strategy)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """Restore a decision from ``to_dict``. Unknown keys are ignored; an unknown strategy is refused."""
        if "strategy" not in data:
            raise ValueError("Decision.from_dict: missing strategy")
        strategy = data["strategy"]
        if strategy not in get_args(Strategy):
            raise ValueError(f"strategy: {strategy!r} is not one of {', '.join(get_args(Strategy))}")
        return cls(strategy, data.get("reason", ""), data.get("delay"), data.get("tool"))


def show_decision(decision: Decision) -> Decision:
    """Return a decision as users get it. Comparing its strategy with a word that is no strategy is logged."""
    return decision._replace(strategy=_STRATEGIES.get(decision.strategy, decision.strategy))
