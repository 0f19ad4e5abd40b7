"""OpenAI Agents SDK: ``guarded = guard_agent(agent, runtime)``, then ``Runner.run(guarded, ...)``.

``private`` has everything that depends on private names of the SDK. May import ``integration``, ``core.model`` and
``errors``. Guarded by ``tests/adapters/test_openai_agents*.py``.

Rules
-----
- ``guard_agent`` returns a clone and leaves the agent unchanged. The clone's function tools, those of MCP servers
  included, and its custom tools go through the runtime under their names. They count as writes unless a manifest entry,
  ``rt.declare`` or a registered tool of that name says otherwise, or their name and description say that they read.
  Hosted tools, computers, shells and patch editors stay as they are.
- The SDK shows the model the text of every exception of a custom tool. So a failure of such a tool is raised with the
  explanation as its text.
- A guarded tool shares all attributes with the user's own. So the SDK still checks ``needs_approval``, ``is_enabled``
  and guardrails, even if these change during a run. Hooks, ``tool_use_behavior`` and ``custom_data_extractor`` get the
  user's own tool.
- The user's settings for failures come first: ``failure_error_function`` (or ``None``), ``timeout_behavior``,
  ``timeout_error_function``, ``RunConfig(tool_error_formatter=...)``. Otherwise the model reads failsoft's explanation as
  the call's result; with ``graceful=False`` the tool's own exception is raised.
- Control flow of the SDK passes: guardrail tripwires, ``MaxTurnsExceeded``, ``UserError``, ``ModelRefusalError``,
  ``ModelTimeoutError``, ``MCPToolCancellationError``. The tool's own failure function handles it, as without failsoft.
- A tool's ``timeout`` applies to each attempt, and functions that block may have one as well (30 s by default).
- A dead MCP server does not end the run: its tools are missing, and the model is told why.
- A tool that must be approved, that has guardrails or that is disabled is never used as a fallback.
- If an agent inside a tool breaks off, it is not run again: its own tools may have acted.
- The thread is the run's ``group_id``, unless ``thread`` finds another. Tools that are unavailable in the thread are
  not offered, unless there is a fallback or ``tool_choice`` leaves no other tool.
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
