"""LangChain and LangGraph: ``create_agent(..., middleware=[FailsoftMiddleware(runtime)])``.

Put the middleware last, next to the tools: middleware before it then sees answers, not exceptions. ``private`` has
everything that depends on private names of LangGraph. May import ``integration``, ``core.model`` and ``errors``. Guarded
by ``tests/adapters/test_langchain*.py``.

Rules
-----
- Every tool call of the agent goes through the runtime, under the tool's name. A tool counts as a write unless it
  is declared otherwise (by ``metadata={"failsoft": {"read_only": True}}``, a manifest entry, or a registered tool of its
  name) or its name and description say that it reads.
- Error handlers that the user has set keep their meaning: ``ToolNode(handle_tool_errors=...)``, the tool's
  ``handle_tool_error`` and ``handle_validation_error``, ``ToolErrorMiddleware``, ``ToolRetryMiddleware(on_failure=...)``.
  They get the tool's own exception, after retries and fallbacks. Where none is set, failsoft's texts are used; with
  ``graceful=False``, failures are raised for the user's own middleware.
- A middleware that retries gets the same exception again: failsoft does not run a failed call a second time.
- One run of a graph is one turn without a deadline.
- A failed call is answered with ``ToolMessage(status="error")``: its content is the explanation for the model, its
  ``artifact`` the whole outcome as plain data. Error messages that the framework or a tool *returns* are failures too.
- Control flow of LangGraph passes: ``GraphBubbleUp`` (interrupts, commands to a parent, draining),
  ``GraphRecursionError``, resume values that do not fit, and commands that a tool returns.
- If an agent or a graph inside a tool breaks off, it is not run again: its own tools may have acted.
- The thread is LangGraph's ``thread_id``. Tools that are unavailable in the thread are not offered to the model, unless
  there is a fallback or ``tool_choice`` leaves no other tool. Calls that a crash or a cancellation left without an
  answer are answered before the model is asked again.
"""

from __future__ import annotations

try:
    from failsoft.adapters.langchain.middleware import FailsoftMiddleware
except ImportError as missing:
    if (missing.name or "").partition(".")[0] == "failsoft":
        raise
    raise ImportError(f"{missing}: install failsoft[langchain]", name=missing.name) from missing

__all__ = ["FailsoftMiddleware"]
