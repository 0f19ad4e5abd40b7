"""Find the span that a framework or an MCP server has made for a tool call.

Rules
-----
- Only the current span counts, and only while it records.
- It must be marked as a tool's span, and name this tool or this call. A tool that a framework has traced may call other
  tools inside, and those get spans of their own.
- A span is used for one call. A function that calls the same tool again gets another span for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from failsoft.otel import names

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from failsoft.observe.instrument import CallInfo

_KINDS = (
    (names.OPERATION, names.EXECUTE_TOOL),
    (names.MCP_METHOD, names.MCP_CALL),
    (names.OPENINFERENCE_KIND, "TOOL"),
    (names.TRACELOOP_KIND, "tool"),
    (names.LANGSMITH_KIND, "tool"),
)
_NAMES = (names.TOOL_NAME, names.OPENINFERENCE_TOOL, names.TRACELOOP_TOOL, names.LANGSMITH_TOOL)
_SEPARATORS = "_-./:"


def find_framework_span(call: CallInfo) -> Span | None:
    """Return the span that was made for this call by others; None if there is none."""
    span = trace.get_current_span()
    attributes = _read(span)
    if attributes is None or names.CALL_ID in attributes or not _is_tool_span(span, attributes):
        return None
    id = attributes.get(names.TOOL_CALL_ID)
    if id is not None and id in (call.id, call.asked_id):
        return span
    named = [attributes[name] for name in _NAMES if name in attributes] or [_name_of(span).rpartition(" ")[2]]
    if call.tool in named:
        return span
    # A server that mounts another one puts a prefix before the names of its tools
    mounted = names.MCP_METHOD in attributes and any(_ends_with(name, call.tool) for name in named)
    return span if mounted else None


def _read(span: Span) -> Mapping[str, Any] | None:
    """The attributes of a span that records. Only the spans of an SDK can be read."""
    if not span.is_recording():
        return None
    found = getattr(span, "attributes", None)
    return found if isinstance(found, Mapping) else None


def _is_tool_span(span: Span, attributes: Mapping[str, Any]) -> bool:
    if any(attributes.get(key) == value for key, value in _KINDS):
        return True
    return names.TOOL_NAME in attributes and _name_of(span) == "running tool"  # pydantic-ai, before its version 3


def _name_of(span: Span) -> str:
    return str(getattr(span, "name", ""))


def _ends_with(name: object, tool: str) -> bool:
    return isinstance(name, str) and name.endswith(tool) and name[-len(tool) - 1 : -len(tool)] in _SEPARATORS
