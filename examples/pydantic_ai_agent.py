"""A pydantic-ai agent whose tools fail in six ways, and whose run continues.

    python examples/pydantic_ai_agent.py        (needs: pip install ".[pydantic-ai]")

The model is scripted, so no key is needed. To use a real model, write its name instead of ``FunctionModel(scripted)``.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import ExternalToolset

from failsoft import Runtime, TurnReport
from failsoft.adapters.pydantic_ai import Agent, Failsoft

rt = Runtime()
reports: list[TurnReport] = []
tried: dict[str, int] = {}


class DownServer(ExternalToolset[object]):
    """An MCP server that is not running, like ``MCPToolset("http://…/mcp", id="docs")``."""

    async def __aenter__(self) -> Self:
        raise ConnectionRefusedError(111, "Connection refused")


# Failures as ToolFailed use up no retries, so the run survives a model that loops.
guard = Failsoft[object](rt, tool_failed="always", on_report=reports.append)


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Return the next calls of the script, then the final answer, like a model."""
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn >= len(SCRIPT):
        return ModelResponse([TextPart("The weather is fine. Please check whether the payment went through.")])
    return ModelResponse([ToolCallPart(name, arguments) for name, arguments in SCRIPT[turn]])


agent = Agent(FunctionModel(scripted), toolsets=[DownServer([], id="docs")], capabilities=[guard])


@agent.tool_plain(failsoft={"read_only": True})
def read_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


@agent.tool_plain(failsoft={"read_only": True, "retry": {"max_attempts": 3, "initial_delay": "10ms"}})
async def weather(city: str) -> str:
    tried["weather"] = tried.get("weather", 0) + 1
    if tried["weather"] < 3:
        raise ConnectionError("503 Service Unavailable")
    return f"Sunny in {city}"


@agent.tool_plain(failsoft={"timeout": "50ms"})  # not declared as safe to repeat
async def pay(amount: int) -> str:
    tried["pay"] = tried.get("pay", 0) + 1
    await asyncio.sleep(60)
    return f"Paid {amount}"


SCRIPT: list[list[tuple[str, dict[str, Any]]]] = [
    [("weather", {"city": "Paris"}), ("read_file", {"path": "notes.txt"})],  # in parallel
    [("pay", {"amount": "forty"})],  # bad arguments: pydantic-ai answers, the tool is not run
    [("pay", {"amount": 40})],  # the answer is lost
    *[[("read_file", {"path": "x"})]] * 3,  # the model loops
]


async def main() -> None:
    result = await agent.run("How is the weather in Paris? And pay my bill.")
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                print(f"model: {part.tool_name}({part.args})")
            elif isinstance(message, ModelRequest) and getattr(part, "tool_call_id", None):
                content: Any = part.content
                print("tool:", content if isinstance(content, str) else content[0]["msg"])  # bad arguments
    print(f"model: {result.output}")
    print(f"\nreport: {reports[0].message}")
    print(f"\n{tried}: flaky twice, then fine; the payment was never repeated")
    await rt.close()


if __name__ == "__main__":
    asyncio.run(main())
