"""An agent of the OpenAI Agents SDK whose tools fail, guarded by failsoft.

    python examples/openai_agents_agent.py      (needs: pip install ".[openai-agents]")

The model is scripted, so no key is needed. To use a real model, leave ``model=`` out.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from failsoft import Runtime
from failsoft.adapters.openai_agents import guard_agent

rt = Runtime(
    {"tools": {"weather": {"read_only": True}, "pay": {"timeout": "50ms"}}}
)  # or a file: Runtime("failsoft.yaml")
tried: dict[str, int] = {}


@function_tool
async def weather(city: str) -> str:
    """The weather in a city."""
    tried["weather"] = tried.get("weather", 0) + 1
    if tried["weather"] < 3:
        raise ConnectionError("503 Service Unavailable")
    return f"Sunny in {city}"


@function_tool
async def read_file(path: str) -> str:
    """Read a file."""
    raise FileNotFoundError(2, "No such file or directory", path)


@function_tool
def pay(amount: int) -> str:
    """Pay an amount. A function that blocks: the SDK has no timeout for those."""
    tried["pay"] = tried.get("pay", 0) + 1
    time.sleep(0.3)
    return f"Paid {amount}"


class ScriptedModel(Model):
    def __init__(self, *steps: list[tuple[str, dict[str, Any]]]) -> None:
        self.steps = list(steps)
        self.played = 0

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        number, self.played = self.played, self.played + 1
        output: list[Any]
        if number < len(self.steps):
            output = [
                ResponseFunctionToolCall(
                    type="function_call", call_id=f"call_{number}_{place}", name=name, arguments=json.dumps(args)
                )
                for place, (name, args) in enumerate(self.steps[number])
            ]
        else:
            text = "The weather is fine. Please check whether the payment went through."
            part = ResponseOutputText(type="output_text", text=text, annotations=[])
            output = [
                ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    model = ScriptedModel(
        [("weather", {"city": "Paris"}), ("read_file", {"path": "notes.txt"})],  # in parallel
        [("pay", {"amount": "a lot"})],  # bad arguments
        [("pay", {"amount": 40})],  # the answer is lost
        *[[("read_file", {"path": "notes.txt"})]] * 3,  # the model loops
    )
    agent = Agent(name="assistant", model=model, tools=[weather, read_file, pay])
    config = RunConfig(group_id="chat-42", tracing_disabled=True)
    result = await Runner.run(
        guard_agent(agent, rt), "How is the weather in Paris? And pay my bill.", run_config=config
    )
    for item in result.new_items:
        if item.type == "tool_call_item":
            print(f"model: {item.raw_item.name}({item.raw_item.arguments})")
        elif item.type == "tool_call_output_item":
            print(f"tool: {item.output}")
    print(f"assistant: {result.final_output}")
    print(f"\n{tried}: flaky twice, then fine; the payment was never repeated")
    await rt.close()


if __name__ == "__main__":
    asyncio.run(main())
