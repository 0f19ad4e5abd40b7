"""The exceptions that failsoft raises. Inside, failures are values (``Outcome``); only the public edge raises.

``CallFailed`` and its kinds carry the whole ``Outcome``; ``ManifestError``, ``TurnError`` and ``LedgerError`` are for the caller to fix.
The classes are defined in ``core.model``; this is the place to import them from.
"""

from __future__ import annotations

from failsoft.core.model.errors import FailsoftError, LedgerError, ManifestError, TurnError
from failsoft.core.model.outcome import CallFailed, CircuitOpen, ToolTimeout, ToolUnavailable

__all__ = [
    "CallFailed",
    "CircuitOpen",
    "FailsoftError",
    "LedgerError",
    "ManifestError",
    "ToolTimeout",
    "ToolUnavailable",
    "TurnError",
]
