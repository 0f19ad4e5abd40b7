"""The pydantic-ai adapter as typed code: mypy and pyright read this file, nobody runs it.

What a user's editor knows of pydantic-ai's own agent, it has to know of ours: each pair below says the same twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import pydantic_ai
from pydantic_ai import RunContext
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.models.test import TestModel

from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Agent, AgentConfig, Failsoft


@dataclass
class Deps:
    user: str


@dataclass
class Answer:
    text: str


model = TestModel()

theirs = pydantic_ai.Agent(model, deps_type=Deps, output_type=Answer)
ours = Agent(model, deps_type=Deps, output_type=Answer)
assert_type(theirs, pydantic_ai.Agent[Deps, Answer])
assert_type(ours, Agent[Deps, Answer])

plain_theirs = pydantic_ai.Agent(model)
plain_ours = Agent(model)
assert_type(plain_theirs, pydantic_ai.Agent[object, str])
assert_type(plain_ours, Agent[object, str])

listed = Agent(model, output_type=[int, str], config=AgentConfig(graceful_tool_errors=False))
takes_any: pydantic_ai.Agent[object, Any] = listed


async def runs() -> None:
    assert_type(await theirs.run("x", deps=Deps("u")), AgentRunResult[Answer])
    assert_type(await ours.run("x", deps=Deps("u")), AgentRunResult[Answer])
    assert_type((await plain_ours.run("x")).output, str)


# --- an agent of ours is one of theirs -----------------------------------------------------------------------------------


def takes_theirs(agent: pydantic_ai.Agent[Deps, Answer]) -> None: ...


takes_theirs(ours)


# --- decorators, with and without parentheses ----------------------------------------------------------------------------


@ours.tool
def bare(ctx: RunContext[Deps], path: str) -> int:
    return len(ctx.deps.user + path)


@ours.tool(retries=2, graceful_errors=False, failsoft={"read_only": True, "timeout": "5s"}, metadata={"a": 1})
async def called(ctx: RunContext[Deps], path: str) -> int:
    return len(ctx.deps.user + path)


@ours.tool_plain
def bare_plain(path: str) -> int:
    return len(path)


@ours.tool_plain(name="other", graceful_errors=True, timeout=3.0, sequential=True, strict=True, requires_approval=True)
def called_plain(path: str) -> int:
    return len(path)


def check(ctx: RunContext[Deps], path: str) -> None: ...


@ours.tool(args_validator=check)
def checked(ctx: RunContext[Deps], path: str) -> int:
    return len(ctx.deps.user + path)


# --- the constructor keeps its keywords, the capability fits both ----------------------------------------------------------

capability = Failsoft[Deps](Runtime(), tool_failed="permanent", trusted={"github"}, timeout="2m")

built = Agent(
    model,
    deps_type=Deps,
    output_type=Answer,
    instructions="Be brief.",
    tools=[bare, pydantic_ai.Tool(called)],
    retries=3,
    tool_timeout=5.0,
    capabilities=[capability],
    config=AgentConfig(),
)
assert_type(built, Agent[Deps, Answer])
also = pydantic_ai.Agent(model, deps_type=Deps, output_type=Answer, capabilities=[capability])
anything: pydantic_ai.Agent[Deps, Any] = ours

# --- agents from a specification: whose, and of what, is known as well -----------------------------------------------------

assert_type(pydantic_ai.Agent.from_spec({"model": "test"}), pydantic_ai.Agent[object, str])
assert_type(Agent.from_spec({"model": "test"}), Agent[object, str])
assert_type(
    pydantic_ai.Agent.from_file("agent.yaml", deps_type=Deps, output_type=Answer), pydantic_ai.Agent[Deps, Answer]
)
assert_type(Agent.from_file("agent.yaml", deps_type=Deps, output_type=Answer), Agent[Deps, Answer])
assert_type(Agent.from_spec({}, output_type=Answer, tools=[bare_plain], end_strategy=None), Agent[object, Answer])
assert_type(Agent.from_file("agent.json", fmt="json", model=model, deps_type=Deps), Agent[Deps, str])
Agent.from_file("agent.yaml", config=AgentConfig(graceful_tool_errors=False), custom_capability_types=[Failsoft])
Agent.from_spec({}, tool=[bare_plain])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
