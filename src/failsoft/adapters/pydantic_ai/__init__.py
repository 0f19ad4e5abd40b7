"""pydantic-ai (2.16 and newer): a capability for any agent, and an ``Agent`` whose tools fail gracefully.

Both can be used together. ``private`` has everything that depends on private names of pydantic-ai. May import
``integration``, ``core.model`` and ``errors``. Guarded by ``tests/adapters/test_pydantic_ai*.py``.

    from failsoft.adapters.pydantic_ai import Agent            # a tool's exception becomes a text for the model
    agent = Agent("openai:gpt-5", tools=[read_file])

    from failsoft.adapters.pydantic_ai import Failsoft         # for any agent: retries, breakers, fallbacks, a trace
    agent = pydantic_ai.Agent("openai:gpt-5", tools=[read_file], capabilities=[Failsoft(runtime)])
"""

from __future__ import annotations

try:
    from failsoft.adapters.pydantic_ai.agent import Agent, AgentConfig
    from failsoft.adapters.pydantic_ai.capability import Failsoft
except ImportError as missing:
    if (missing.name or "").partition(".")[0] == "failsoft":
        raise
    raise ImportError(f"{missing}: install failsoft[pydantic-ai]", name=missing.name) from missing

__all__ = ["Agent", "AgentConfig", "Failsoft"]
