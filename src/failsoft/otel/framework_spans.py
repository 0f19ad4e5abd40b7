"""Find the span that a framework or an MCP server has made for a tool call.

Rules
-----
- Only the current span counts, and only while it records. OpenInference does not make its spans current, so its own
  function for the current span is called.
- It must be marked as a tool's span, and name this tool or this call. A tool that a framework has traced may call other
  tools inside, and those get spans of their own.
- A span is used for one call. A function that calls the same tool again gets another span for it.
- Instrumentations of LangChain make their span when the tool is invoked, inside the attempt. They are recognised by their
  callback handlers. No module of theirs is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
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
_TRACING = ("openinference.instrumentation.langchain", "opentelemetry.instrumentation.langchain")


def find_framework_span(call: CallInfo) -> Span | None:
    """Return the span that a framework or a server has made for this call; None if there is none."""
    kept = _openinference_span()
    if (
        kept is not None
        and (told := _read(kept)) is not None
        and _name_of(kept) == call.tool
        and names.CALL_ID not in told
    ):
        return kept
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


def will_be_traced(call: CallInfo) -> bool:
    """True if an instrumentation of LangChain makes a span for each attempt of this call."""
    return call.by_framework and any(map(_is_tracing, _langchain_handlers()))


def _langchain_handlers() -> Iterable[Any]:
    config = getattr(sys.modules.get("langchain_core.runnables.config"), "var_child_runnable_config", None)
    callbacks = ((None if config is None else config.get(None)) or {}).get("callbacks")
    return getattr(callbacks, "handlers", callbacks) or ()


def _is_tracing(handler: object) -> bool:
    kind = type(handler)
    if kind.__name__ == "LangChainTracer":
        return os.environ.get("LANGSMITH_OTEL_ENABLED", "").lower() == "true"
    return kind.__module__.startswith(_TRACING)


def _openinference_span() -> Span | None:
    find = getattr(sys.modules.get("openinference.instrumentation.langchain"), "get_current_span", None)
    found: Span | None = None if find is None else find()
    return found


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
