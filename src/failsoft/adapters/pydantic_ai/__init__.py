"""failsoft for pydantic-ai (2.16 and newer).

    from failsoft.adapters.pydantic_ai import Agent            # S-agent: a tool's exception becomes words for the model
    agent = Agent("openai:gpt-5", tools=[read_file])

    from failsoft.adapters.pydantic_ai import Failsoft         # and for any agent: retries, breakers, fallbacks, a trace
    agent = pydantic_ai.Agent("openai:gpt-5", tools=[read_file], capabilities=[Failsoft(runtime)])

Both can be used together. The adapter translates; what is done about a failure, the runtime decides.
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
