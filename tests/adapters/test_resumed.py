"""A run is cancelled in the middle of a write, and then taken up again: the framework makes the same call once more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import agents
import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.adapters.test_openai_agents import QUIET, Scripted

from failsoft import Runtime
from failsoft.adapters.langchain import FailsoftMiddleware
from failsoft.adapters.openai_agents import guard_agent
from failsoft.adapters.pydantic_ai import Failsoft

TEXT = "It may already have taken effect: check before calling again."


class Card:
    """Takes a while, the first time."""

    def __init__(self) -> None:
        self.charged = 0
        self.begun = asyncio.Event()

    async def pay(self, amount: int) -> str:
        """Pay."""
        self.charged += 1
        self.begun.set()
        if self.charged == 1:
            await asyncio.sleep(20)
        return f"paid {amount}"


async def stop_midway(card: Card, running: Any) -> None:
    task = asyncio.ensure_future(running)
    await card.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Chat(GenericFakeChatModel):
    def bind_tools(self, *_: Any, **__: Any) -> Chat:
        return self


@pytest.mark.parametrize("declared", [False, True], ids=["not idempotent", "idempotent"])
def test_langgraph_goes_on_from_its_checkpoint(declared: bool) -> None:
    async def main() -> tuple[int, str]:
        card = Card()
        pay = tool("pay")(card.pay)
        if declared:
            pay.metadata = {"failsoft": {"idempotent": True}}
        call = {"name": "pay", "args": {"amount": 4}, "id": "c1"}
        model = Chat(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("done")]))
        agent: Any = create_agent(
            model, [pay], middleware=[FailsoftMiddleware(Runtime())], checkpointer=InMemorySaver()
        )
        config = {"configurable": {"thread_id": "t"}}
        await stop_midway(card, agent.ainvoke({"messages": [HumanMessage("go")]}, config))
        result = await agent.ainvoke(None, config)
        return card.charged, result["messages"][-2].content

    charged, told = asyncio.run(main())
    assert (charged, TEXT in told) == ((2, False) if declared else (1, True))


@pytest.mark.parametrize("declared", [False, True], ids=["not idempotent", "idempotent"])
def test_pydantic_ai_goes_on_from_its_history(declared: bool) -> None:
    async def main() -> tuple[int, str]:
        card = Card()
        seen: list[list[ModelMessage]] = []
        asking = ModelResponse([ToolCallPart("pay", {"amount": 4}, "c1")])

        def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            seen.append([*messages])
            if len(messages) == 1:
                return asking
            return ModelResponse([TextPart("done")])

        agent = Agent(FunctionModel(answer), capabilities=[Failsoft(Runtime())])
        agent.tool_plain(card.pay, metadata={"failsoft": {"idempotent": True}} if declared else None)
        await stop_midway(card, agent.run("go", conversation_id="chat"))
        await agent.run(message_history=[*seen[-1], asking], conversation_id="chat")
        return card.charged, str(seen[-1][-1].parts[0])

    charged, told = asyncio.run(main())
    assert (charged, TEXT in told) == ((2, False) if declared else (1, True))


@pytest.mark.parametrize("replays", [1, 3])
def test_langgraph_pays_once_however_often_it_goes_on_from_the_same_checkpoint(replays: int) -> None:
    async def main() -> tuple[int, list[str]]:
        card = Card()
        call = {"name": "pay", "args": {"amount": 4}, "id": "c1"}
        model = Chat(messages=iter([AIMessage("", tool_calls=[call]), *[AIMessage("done")] * replays]))
        agent: Any = create_agent(
            model, [tool("pay")(card.pay)], middleware=[FailsoftMiddleware(Runtime())], checkpointer=InMemorySaver()
        )
        config = {"configurable": {"thread_id": "t"}}
        await stop_midway(card, agent.ainvoke({"messages": [HumanMessage("go")]}, config))
        before = (await agent.aget_state(config)).config
        results = [await agent.ainvoke(None, before) for _ in range(replays)]
        return card.charged, [result["messages"][-2].content for result in results]

    charged, told = asyncio.run(main())
    assert charged == 1
    assert len(told) == replays
    assert all(TEXT in text for text in told)


@pytest.mark.parametrize("replays", [1, 3])
def test_pydantic_ai_pays_once_however_often_it_goes_on_from_the_same_history(replays: int) -> None:
    async def main() -> tuple[int, list[str]]:
        card = Card()
        seen: list[list[ModelMessage]] = []
        asking = ModelResponse([ToolCallPart("pay", {"amount": 4}, "c1")])

        def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            seen.append([*messages])
            return asking if len(messages) == 1 else ModelResponse([TextPart("done")])

        agent = Agent(FunctionModel(answer), tools=[card.pay], capabilities=[Failsoft(Runtime())])
        await stop_midway(card, agent.run("go", conversation_id="chat"))
        history = [*seen[-1], asking]
        for _ in range(replays):
            await agent.run(message_history=[*history], conversation_id="chat")
        return card.charged, [str(messages[-1].parts[0]) for messages in seen[1:]]

    charged, told = asyncio.run(main())
    assert charged == 1
    assert len(told) == replays
    assert all(TEXT in text for text in told)


@pytest.mark.parametrize("replays", [1, 3])
@pytest.mark.parametrize("known", ["by its group", "by its id, in a store"])
def test_the_agents_sdk_pays_once_however_often_it_goes_on_from_the_same_state(
    known: str, replays: int, tmp_path: Path
) -> None:
    group = "chat" if known == "by its group" else None
    rt = Runtime() if group else Runtime(store=f"sqlite:///{tmp_path}/calls.db")

    async def main() -> tuple[int, list[str]]:
        card = Card()
        pay = agents.function_tool(card.pay, needs_approval=True)
        model = Scripted([("pay", {"amount": 4})])
        agent = guard_agent(agents.Agent(name="agent", model=model, tools=[pay]), rt)
        config = agents.RunConfig(tracing_disabled=True, group_id=group) if group else QUIET
        asked = await agents.Runner.run(agent, "go", run_config=config)
        state = asked.to_state()
        state.approve(asked.interruptions[0])
        stored = state.to_json()

        async def go_on() -> Any:
            return await agents.Runner.run(agent, await agents.RunState.from_json(agent, stored), run_config=config)

        await stop_midway(card, go_on())
        results = [await go_on() for _ in range(replays)]
        return card.charged, [str(item.output) for run in results for item in run.new_items if hasattr(item, "output")]

    charged, told = asyncio.run(main())
    assert charged == 1
    assert len(told) == replays
    assert all(TEXT in text for text in told)
