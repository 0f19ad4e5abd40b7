"""S11: a whole run of an agent, × the same run on the bare framework.

The model is scripted and answers at once, the tools do nothing: what is left is what the framework costs, and what its
adapter adds. In a run the model asks for two calls side by side, then for one more, then it is done. The conversation
has an id, as it has in a real application. Every call has other arguments: failsoft tells a model that repeats one call
that it makes no progress.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

from bench.harness import Peer, Plan, Table, add_instructions, compare

STEPS = (2, 1)  # calls per step of the model
THREAD = "chat-42"
ADAPTERS = ("pydantic_ai", "langchain", "openai_agents")

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
os.environ.setdefault("LANGSMITH_TRACING", "false")
for adapter in ADAPTERS:  # imported here, so that all peers share it under valgrind
    with suppress(ImportError):
        import_module(f"failsoft.adapters.{adapter}")


_CITIES = count()


def city() -> str:
    """Name a city that no call has asked for."""
    return f"City {next(_CITIES)}"


async def look(city: str) -> str:
    """Look something up in a city."""
    return city


def look_here(city: str) -> str:
    """Look something up in a city."""
    return city


# --- pydantic-ai -------------------------------------------------------------------------------------------------------


def pydantic_ai(kind: str) -> Callable[..., Any]:
    import pydantic_ai as framework
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from failsoft import Runtime
    from failsoft.adapters.pydantic_ai import Agent, Failsoft

    class Empty(AbstractCapability[Any]):
        pass

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        step = sum(isinstance(message, ModelResponse) for message in messages)
        if step == len(STEPS):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("look", {"city": city()}) for _ in range(STEPS[step])])

    capabilities = {"empty": [Empty()], "Failsoft": [Failsoft(Runtime())], "both": [Failsoft(Runtime())]}.get(kind, [])
    make: Any = Agent if kind in ("Agent", "both") else framework.Agent
    agent = make(FunctionModel(answer), tools=[look], capabilities=capabilities)
    return lambda _: agent.run("go", conversation_id=THREAD)


# --- LangChain ---------------------------------------------------------------------------------------------------------


def langchain(kind: str, *, blocking: bool) -> Callable[..., Any]:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    from failsoft import Runtime
    from failsoft.adapters.langchain import FailsoftMiddleware

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            step = sum(isinstance(message, AIMessage) for message in messages)
            calls = [
                {"name": "look", "args": {"city": city()}, "id": f"c{step}-{place}"}
                for place in range(STEPS[step] if step < len(STEPS) else 0)
            ]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done", tool_calls=calls))])

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            return self._generate(messages)  # the default would use a thread

    class Empty(AgentMiddleware[Any, Any, Any]):
        """The same hooks as failsoft's, doing nothing."""

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return handler(request)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

    class Timed(Empty):
        """The same, with a timeout for blocking tools."""

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return pool.submit(copy_context().run, handler, request).result(timeout=30)

    pool = ThreadPoolExecutor()
    given = tool("look")(look_here if blocking else look)
    middleware: dict[str, list[Any]] = {
        "empty": [Empty()], "timed": [Timed()], "Failsoft": [FailsoftMiddleware(Runtime())]
    }  # fmt: skip
    agent = create_agent(Scripted(), [given], middleware=middleware.get(kind, []))
    start = agent.invoke if blocking else agent.ainvoke
    config = {"configurable": {"thread_id": THREAD}}
    return lambda _: start({"messages": [{"role": "user", "content": "go"}]}, config)


# --- OpenAI Agents SDK -------------------------------------------------------------------------------------------------


def openai_agents(*, guarded: bool) -> Callable[..., Any]:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from failsoft import Runtime
    from failsoft.adapters.openai_agents import guard_agent

    text = ResponseOutputText(text="done", type="output_text", annotations=[])
    done = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])

    class Scripted(Model):
        async def get_response(self, *_: Any, **said: Any) -> ModelResponse:
            answered = [
                item for item in said["input"] if isinstance(item, dict) and item.get("type") == "function_call_output"
            ]
            step = [sum(STEPS[:number]) for number in range(len(STEPS) + 1)].index(len(answered))
            if step == len(STEPS):
                return ModelResponse(output=[done], usage=Usage(), response_id=None)
            calls: list[Any] = [
                ResponseFunctionToolCall(
                    name="look",
                    arguments=json.dumps({"city": city()}),
                    call_id=f"c{step}-{place}",
                    type="function_call",
                )
                for place in range(STEPS[step])
            ]
            return ModelResponse(output=calls, usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent: Any = Agent(name="agent", model=Scripted(), tools=[function_tool(look)])
    if guarded:
        agent = guard_agent(agent, Runtime())
    config = RunConfig(group_id=THREAD)
    return lambda _: Runner.run(agent, "go", run_config=config)


# --- together ------------------------------------------------------------------------------------------------------------

COUNTS = (10, 30)
FRAMEWORKS = (  # each with its comparisons
    [
        Peer("pydantic-ai", partial(pydantic_ai, "bare")),
        Peer("pydantic-ai, an empty capability", partial(pydantic_ai, "empty")),
        Peer("pydantic-ai, failsoft Agent", partial(pydantic_ai, "Agent")),
        Peer("pydantic-ai, failsoft capability", partial(pydantic_ai, "Failsoft")),
        Peer("pydantic-ai, failsoft Agent with the capability", partial(pydantic_ai, "both")),
    ],
    [
        Peer("LangChain", partial(langchain, "bare", blocking=False)),
        Peer("LangChain, an empty middleware", partial(langchain, "empty", blocking=False)),
        Peer("LangChain, failsoft middleware", partial(langchain, "Failsoft", blocking=False)),
    ],
    [
        Peer("LangChain invoke", partial(langchain, "bare", blocking=True), blocking=True),
        Peer("LangChain invoke, an empty middleware", partial(langchain, "empty", blocking=True), blocking=True),
        Peer("LangChain invoke, a bare timeout", partial(langchain, "timed", blocking=True), blocking=True),
        Peer("LangChain invoke, failsoft middleware", partial(langchain, "Failsoft", blocking=True), blocking=True),
    ],
    [
        Peer("OpenAI Agents SDK", partial(openai_agents, guarded=False)),
        Peer("OpenAI Agents SDK, failsoft guard_agent", partial(openai_agents, guarded=True)),
    ],
)
PEERS = [peer for peers in FRAMEWORKS for peer in peers]
for one in PEERS:
    one.counted = True


def run(plan: Plan) -> list[Table]:
    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for peers in FRAMEWORKS:
        found, missing = compare(peers, plan, awaits=not peers[0].blocking)
        if plan.instr:
            add_instructions(found, __name__, peers)
        rows += [{**row, "us": row["ns"] / 1000} for row in found]
        skipped |= missing
    title = "A run of an agent with three calls, × the run on the bare framework"
    return [Table("S11", title, ["peer", "us", "ratio", "best", "instr", "instr_ratio"], rows, skipped)]
