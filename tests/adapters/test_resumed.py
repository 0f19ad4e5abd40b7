"""A run is cancelled in the middle of a write, and then taken up again: the framework makes the same call once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from failsoft import Runtime
from failsoft.adapters.langchain import FailsoftMiddleware
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
