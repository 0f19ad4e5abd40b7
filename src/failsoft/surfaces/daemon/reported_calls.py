"""The calls of remote executors, as their reports show them: the tools tried, and the fallbacks that remain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Effect
from failsoft.core.model.options import Fallback, RetryOptions, ToolOptions
from failsoft.core.resilience.circuit_breaker import Result
from failsoft.core.resilience.recovery_memory import Family
from failsoft.core.resilience.retry import Attempts


class TriedTool:
    """The reports of one call about one tool."""

    __slots__ = ("answer", "attempts", "began", "cause", "effect", "family", "retried", "verdict", "via")

    def __init__(self, began: float, cause: Family | None = None, via: Fallback | None = None) -> None:
        self.attempts = Attempts()
        self.began = began
        self.cause = cause  # the family of the error that led to this tool
        self.via = via  # the fallback that this tool is; None: the tool that was called
        self.family: Family | None = None  # the family of the latest error
        self.retried: tuple[Family, ...] = ()
        self.effect: Effect = "none"  # the worst of its attempts
        self.verdict: Result | None = None  # for a breaker that counts calls: reported when the tool's attempts end
        self.answer: dict[str, Any] | None = None  # the answer to the latest report, in case it is sent again

    def add_effect(self, effect: Effect) -> None:
        self.effect = worst_effect((self.effect, effect))

    def retry_options(self, options: ToolOptions) -> RetryOptions:
        """The retries of this tool. A fallback may have its own."""
        return self.via.retry if self.via is not None and self.via.retry else options.retry


class ReportedCall:
    """The reports about one call."""

    __slots__ = ("acted", "admitted", "hinted", "later", "primary", "tried", "usable")

    def __init__(self, primary: str) -> None:
        self.primary = primary
        self.tried: dict[str, TriedTool] = {}  # by tool id
        self.usable: Sequence[Fallback] = ()  # the fallbacks that were possible at the latest report
        self.later: Sequence[Fallback] = ()  # the fallbacks of earlier tools that have not been tried
        self.acted = False  # a tool that is not a read may have acted
        self.admitted = False  # an attempt was made while the circuit of its tool was closed
        self.hinted = 0.0  # seconds waited because a server asked for it

    def begin(self, tool: str, began: float) -> TriedTool:
        """Add a tool that is tried for the first time."""
        cause = next((other.family for other in reversed(self.tried.values()) if other.family is not None), None)
        via = next((fallback for fallback in self.usable if fallback.tool == tool), None)
        self.later = [fallback for fallback in self.usable if fallback is not via]
        made = self.tried[tool] = TriedTool(began, cause, via)
        return made

    def resume(self, primary: str, fallbacks: Iterable[Fallback]) -> None:
        """Continue a call whose earlier tools are known by name only."""
        self.primary = primary
        self.usable = [fallback for fallback in fallbacks if not fallback.handle_errors]
