"""OpenAI Agents SDK: ``guarded = guard_agent(agent, runtime)``, then ``Runner.run(guarded, ...)``.

Rules
-----
- The agent itself is not touched: a clone comes back, whose function tools go through the runtime under their names,
  those of MCP servers too. They count as writes unless a manifest entry, ``rt.declare`` or a registered tool of their
  name says otherwise, or their name and description say that they read. Tools that run elsewhere (web search, computers, shells) stay as they are.
- A guarded tool shares all attributes with the user's own. The SDK's checks of ``needs_approval``, ``is_enabled`` and
  guardrails hold, also when they change while a run is under way. Hooks and ``tool_use_behavior`` get the user's own tool.
- What the user has said about failures comes first: ``failure_error_function`` (or ``None``), ``timeout_behavior``,
  ``timeout_error_function``, ``RunConfig(tool_error_formatter=...)``. Else the model reads failsoft's explanation as the
  call's result; with ``graceful=False`` the tool's own exception is raised.
- What the SDK steers itself with passes: guardrail tripwires, ``MaxTurnsExceeded``, ``UserError``, ``ModelRefusalError``,
  ``ModelTimeoutError``, ``MCPToolCancellationError``. It then meets the tool's own failure function, as ever.
- A tool's ``timeout`` holds for each attempt, and functions that block may have one as well (30 s by default).
- A dead MCP server does not end the run: its tools are missing, and the model is told why.
- A tool that must be approved, that has guardrails or that is disabled replaces no other.
- An agent that runs inside a tool and breaks off is not run again: its own tools may have acted.
- The thread is the run's ``group_id``, unless ``thread`` finds another. Tools that are missing in it are not offered,
  unless there is a fallback or ``tool_choice`` leaves nothing else.
- One run is one turn without a deadline. Agents that it hands off to, and agents inside tools, share the turn.
"""

from __future__ import annotations

try:
    from failsoft.adapters.openai_agents.agent import guard_agent
except ImportError as missing:
    if (missing.name or "").partition(".")[0] == "failsoft":
        raise
    raise ImportError(f"{missing}: install failsoft[openai-agents]", name=missing.name) from missing

__all__ = ["guard_agent"]
