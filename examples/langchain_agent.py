"""A LangChain agent whose tools fail, guarded by failsoft.

    python examples/langchain_agent.py          (needs: pip install ".[langchain]")

The model is scripted, so no key is needed. To use a real model, pass its name to ``create_agent``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from failsoft import Runtime
from failsoft.adapters.langchain import FailsoftMiddleware

rt = Runtime(
    {"tools": {"weather": {"read_only": True}, "pay": {"timeout": "50ms"}}}
)  # or a file: Runtime("failsoft.yaml")
tried: dict[str, int] = {}


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    tried["weather"] = tried.get("weather", 0) + 1
    if tried["weather"] < 3:
        raise ConnectionError("503 Service Unavailable")
    return f"Sunny in {city}"


@tool
async def read_file(path: str) -> str:
    """Read a file."""
    raise FileNotFoundError(2, "No such file or directory", path)


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    tried["pay"] = tried.get("pay", 0) + 1
    await asyncio.sleep(60)
    return f"Paid {amount}"


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, *_: Any, **__: Any) -> ScriptedModel:
        return self


def script() -> Iterator[AIMessage]:
    steps: list[list[tuple[str, dict[str, Any]]]] = [
        [("weather", {"city": "Paris"}), ("read_file", {"path": "notes.txt"})],  # in parallel
        [("pay", {"amount": "a lot"})],  # bad arguments
        [("pay", {"amount": 40})],  # the answer is lost
        *[[("read_file", {"path": "notes.txt"})]] * 3,  # the model loops
    ]
    for number, step in enumerate(steps):
        calls = [
            {"name": name, "args": args, "id": f"call_{number}_{place}"} for place, (name, args) in enumerate(step)
        ]
        yield AIMessage("", tool_calls=calls)
    yield AIMessage("The weather is fine. Please check whether the payment went through.")


async def main() -> None:
    agent = create_agent(
        ScriptedModel(messages=script()), [weather, read_file, pay], middleware=[FailsoftMiddleware(rt)]
    )
    question = {"messages": [{"role": "user", "content": "How is the weather in Paris? And pay my bill."}]}
    result = await agent.ainvoke(question, {"configurable": {"thread_id": "chat-42"}})
    for message in result["messages"]:
        for call in getattr(message, "tool_calls", []):
            print(f"model: {call['name']}({call['args']})")
        if message.content:
            print(f"{message.type}: {message.content}")
    print(f"\n{tried}: flaky twice, then fine; the payment was never repeated")
    await rt.close()


if __name__ == "__main__":
    asyncio.run(main())
