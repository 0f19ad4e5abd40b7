"""Names from inside failsoft that adapters use. An adapter imports them from here, never from where they are defined.

Loading this module loads only what ``import failsoft`` loads anyway. Modules of ``integration`` with a concern of their
own (``framework_tool``, ``arguments``, ``executor``, ``streams``, ``unanswered``) are imported directly.
"""

from __future__ import annotations

from failsoft.analysis.turn_report import TurnReport
from failsoft.config.settings import (
    Settings,
    read_time,
    refuse_odd_flag,
    require_callables,
    require_text_names,
    tool_options,
)
from failsoft.core.classify.returned import ReturnedFailure, value_inside
from failsoft.core.redact.printable import quote, visible
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.redact.secret_formats import REDACTED
from failsoft.runtime.agent_calls import call_for_model
from failsoft.runtime.call.tracebacks import without_frames
from failsoft.runtime.call_options import CallKeywords
from failsoft.runtime.execution.blocking_loop import is_on_loop, run_on_loop_thread
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.scope import SCOPE, reset_variable
from failsoft.runtime.tool_keywords import ToolKeywords
from failsoft.runtime.turn.agent_run import AgentRun
from failsoft.runtime.turn.turn import Turn

__all__ = [
    "REDACTED",
    "SCOPE",
    "AgentRun",
    "CallKeywords",
    "ReturnedFailure",
    "Runtime",
    "Settings",
    "ToolKeywords",
    "Turn",
    "TurnReport",
    "call_for_model",
    "is_on_loop",
    "quote",
    "read_time",
    "refuse_odd_flag",
    "require_callables",
    "require_text_names",
    "reset_variable",
    "run_on_loop_thread",
    "sanitise",
    "tool_options",
    "value_inside",
    "visible",
    "without_frames",
]
