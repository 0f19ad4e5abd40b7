"""OpenAI Agents SDK: ``guarded = guard_agent(agent, runtime)``, then ``Runner.run(guarded, ...)``.

Rules
-----
- The agent itself is not touched: a clone comes back, whose function tools go through the runtime under their names,
  those of MCP servers too. They count as not idempotent until a manifest entry, ``rt.declare`` or a registered tool of
  their name says otherwise. Tools that run elsewhere (web search, computers, shells) stay as they are.
- The model reads the explanation of a failed call as the call's result; the tool's own failure function is not asked.
- What the SDK steers itself with passes: guardrail tripwires, ``MaxTurnsExceeded``, ``UserError``, ``ModelRefusalError``,
  ``ModelTimeoutError``, ``MCPToolCancellationError``. It then meets the tool's own failure function, as ever.
- A tool's ``timeout`` becomes its timeout here, and functions that block may have one as well (30 s if nobody says).
- A dead MCP server does not end the run: its tools are missing, and the model is told why.
- A tool that must be approved, or that has guardrails, stands in for no other: those were asked about another tool.
- An agent that runs inside a tool and breaks off is not run again: its own tools may have acted.
- The thread is the run's ``group_id``, unless ``thread`` finds another. Tools that are missing in it are not offered,
  unless another one stands in or ``tool_choice`` leaves nothing else.
"""

from __future__ import annotations

try:
    from failsoft.adapters.openai_agents.agent import guard_agent
except ImportError as missing:
    if (missing.name or "").partition(".")[0] == "failsoft":
        raise
    raise ImportError(f"{missing}: install failsoft[openai-agents]", name=missing.name) from missing

__all__ = ["guard_agent"]
