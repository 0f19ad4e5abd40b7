"""Names in spans and metrics: those of the GenAI and MCP conventions, and failsoft's own.

The conventions are in development and have a repository of their own (open-telemetry/semantic-conventions-genai). No
package of constants follows them closely, so the names are written here and nowhere else.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "failsoft"  # the instrumentation scope

# --- GenAI conventions ------------------------------------------------------------------------------------------------

EXECUTE_TOOL: Final = "execute_tool"  # the operation, and the start of the span's name
OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"  # only on request: may be sensitive
TOOL_RESULT: Final = "gen_ai.tool.call.result"  # only on request: may be sensitive
CONVERSATION: Final = "gen_ai.conversation.id"
FUNCTION: Final = "function"  # the type of a tool that runs on the caller's side
EXCEPTION_EVENT: Final = "gen_ai.execute_tool.exception"
ERROR_TYPE: Final = "error.type"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"

# --- marks of spans that others make for a tool call ------------------------------------------------------------------

MCP_METHOD: Final = "mcp.method.name"
MCP_CALL: Final = "tools/call"
OPENINFERENCE_KIND: Final = "openinference.span.kind"
OPENINFERENCE_TOOL: Final = "tool.name"
TRACELOOP_KIND: Final = "traceloop.span.kind"
TRACELOOP_TOOL: Final = "traceloop.entity.name"
LANGSMITH_KIND: Final = "langsmith.span.kind"
LANGSMITH_TOOL: Final = "langsmith.trace.name"

# --- failsoft's own ---------------------------------------------------------------------------------------------------

TURN: Final = "failsoft.turn"  # name of the span of a turn
CALL: Final = (
    "failsoft.call"  # start of the name of the span of a call whose attempts a framework traces as execute_tool
)
ATTEMPT: Final = "attempt"  # start of the name of the span of an attempt
VERIFY: Final = "verify"  # start of the name of the span of a question to verify

TURN_ID: Final = "failsoft.turn.id"
TURN_CALLS: Final = "failsoft.turn.calls"
TURN_FAILED: Final = "failsoft.turn.failed"
TURN_TIMED_OUT: Final = "failsoft.turn.timed_out"
TENANT: Final = "failsoft.tenant"
CALL_ID: Final = "failsoft.call.id"
OUTCOME: Final = "failsoft.outcome"
CANCELLED: Final = "cancelled"  # the outcome if the caller was cancelled
CONTROL_FLOW: Final = "control_flow"  # the outcome if a framework's exception went through: an approval, an interrupt
ATTEMPTS: Final = "failsoft.attempts"
VIA: Final = "failsoft.via"
PARTIAL: Final = "failsoft.partial"
EFFECT: Final = "failsoft.effect"
ESCALATED: Final = "failsoft.escalated"
DECISION: Final = "failsoft.decision"
REASON: Final = "failsoft.reason"
RETRY_DELAY: Final = "failsoft.retry.delay"  # seconds
ERROR_CODE: Final = "failsoft.error.code"
ERROR_CLASS: Final = "failsoft.error.class"
ERROR_CATEGORY: Final = "failsoft.error.category"
BREAKER_STATE: Final = "failsoft.breaker.state"
ATTEMPT_NUMBER: Final = "failsoft.attempt.number"
ABANDONED: Final = "failsoft.attempt.abandoned"
FALLBACK_FROM: Final = "failsoft.fallback.from"
LINK: Final = "failsoft.link"  # why a span links to another: fallback, turn, verify
TOOL: Final = "failsoft.tool"
UNKNOWN_TOOL: Final = "_unknown"  # in names that must not take many values: no tool has the name that was asked for
DURATION: Final = "gen_ai.execute_tool.duration"  # histogram, seconds
EVENT_PREFIX: Final = "failsoft."  # before the name of an event: failsoft.circuit_opened
