"""What failsoft raises. Inside, failures are values (``Outcome``); only the public edge raises.

``CallFailed`` and its kinds carry the whole ``Outcome``; ``ManifestError`` and ``TurnError`` are the caller's to mend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.outcome import Outcome


class FailsoftError(Exception):
    """Everything that failsoft raises of its own accord: ``except FailsoftError`` catches it all."""


class ManifestError(FailsoftError):
    """A manifest, a plan or an option is wrong. ``problems`` has them all, each ``place: field: what, what instead``."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class TurnError(FailsoftError):
    """A turn was used in a way that cannot work: after its end, from another event loop, with a cycle in it."""


class CallFailed(FailsoftError):
    """A guarded call has no value. ``outcome`` says everything; ``__cause__`` is the tool's own exception."""

    # No __init__ of its own: a refusal by an open circuit is to cost next to nothing.

    @property
    def outcome(self) -> Outcome[Any]:
        """What became of the call: everything that is known about it."""
        outcome: Outcome[Any] = self.args[0]
        return outcome

    def __str__(self) -> str:
        fault = self.outcome.fault
        return f"{self.outcome.tool}: {self.outcome.status if fault is None else fault.message}"

    @property
    def fault(self) -> Fault | None:
        """What went wrong."""
        return self.outcome.fault

    @property
    def tool(self) -> str:
        """The id of the tool that was called."""
        return self.outcome.tool

    @property
    def retry_after(self) -> float | None:
        """Seconds until calling again can help, where that is known."""
        return None if self.outcome.fault is None else self.outcome.fault.retry_after


class CircuitOpen(CallFailed):
    """The tool was not run: its circuit is open. ``retry_after`` says for how long."""


class ToolTimeout(CallFailed, TimeoutError):
    """The last attempt ran into the tool's own timeout."""


class ToolUnavailable(CallFailed):
    """There is no such tool here, or it has been found missing."""
