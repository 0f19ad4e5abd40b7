"""failsoft runs the tool calls of an LLM agent so that failure is handled well.

Every public name is imported from here. The other public modules are ``failsoft.testing``, ``failsoft.adapters.*``,
``failsoft.otel``, ``failsoft.prometheus``, ``failsoft.client``, ``failsoft.integration``, ``failsoft.analysis.source``,
``failsoft.stores.url`` and ``failsoft.stores.ports``. May import ``runtime`` and what is below it.
``tests/public_names.txt`` and ``tests/public_modules.txt`` pin the public names. The names of turns are imported on first
use: programs that only guard functions never load them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from failsoft._version import __version__ as __version__
from failsoft.core.classify import classify
from failsoft.core.model.decision import Decision
from failsoft.core.model.effect import NothingDone
from failsoft.core.model.fault import Code, ErrorStatusCode, Fault
from failsoft.core.model.ledger_entry import LedgerEntry
from failsoft.core.model.options import BreakerOptions, Fallback, Override, RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.partial import partial
from failsoft.core.model.verified import Verified
from failsoft.core.resilience.error_handler import ErrorReport, Handler, decide
from failsoft.errors import (
    CallFailed,
    CircuitOpen,
    FailsoftError,
    LedgerError,
    ManifestError,
    ToolTimeout,
    ToolUnavailable,
    TurnError,
)
from failsoft.observe.instrument import Instrument
from failsoft.runtime.default import default_runtime, tool
from failsoft.runtime.progress import progress
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.scope import in_thread

if TYPE_CHECKING:
    from failsoft.analysis.turn_report import TurnReport
    from failsoft.runtime.turn.handle import Handle
    from failsoft.runtime.turn.turn import Turn

__all__ = [
    "BreakerOptions",
    "CallFailed",
    "CircuitOpen",
    "Code",
    "Decision",
    "ErrorReport",
    "ErrorStatusCode",
    "FailsoftError",
    "Fallback",
    "Fault",
    "Handle",
    "Handler",
    "Instrument",
    "LedgerEntry",
    "LedgerError",
    "ManifestError",
    "NothingDone",
    "Outcome",
    "Override",
    "RetryOptions",
    "Runtime",
    "ToolTimeout",
    "ToolUnavailable",
    "Turn",
    "TurnError",
    "TurnReport",
    "Verified",
    "classify",
    "decide",
    "default_runtime",
    "in_thread",
    "partial",
    "progress",
    "tool",
]

_ON_FIRST_USE = {
    "Handle": "failsoft.runtime.turn.handle",
    "Turn": "failsoft.runtime.turn.turn",
    "TurnReport": "failsoft.analysis.turn_report",
}


def __getattr__(name: str) -> object:
    """Import a public name on its first use."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_ON_FIRST_USE[name]), name)
    return value


def __dir__() -> list[str]:
    """Return the names of the module, those that are imported on first use included."""
    return sorted({*globals(), *__all__})
