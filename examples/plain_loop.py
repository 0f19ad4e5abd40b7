"""An agent without a framework: a loop around a chat client. failsoft runs its tool calls.

    python examples/plain_loop.py

The model is scripted, so no key is needed. To use a real model, replace ``scripted_model`` with
``client.chat.completions.create(model=…, messages=messages, tools=…).choices[0].message``.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from failsoft import Runtime
from failsoft.adapters.plain import run_tool_calls

rt = Runtime()
tried: dict[str, int] = {}


@rt.tool(read_only=True)
def read_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


@rt.tool(read_only=True, retry={"max_attempts": 3, "initial_delay": "10ms"})
async def weather(city: str) -> str:
    tried["weather"] = tried.get("weather", 0) + 1
    if tried["weather"] < 3:
        raise ConnectionError("503 Service Unavailable")
    return f"Sunny in {city}"


@rt.tool(idempotent=False, timeout="50ms")
async def pay(amount: int) -> str:
    tried["pay"] = tried.get("pay", 0) + 1
    await asyncio.sleep(60)
    return f"Paid {amount}"


SCRIPT = [
    [("weather", '{"city": "Paris"}'), ("read_file", '{"path": "notes.txt"}')],  # in parallel
    [("pay", '{"amount": 40')],  # the model's JSON is cut off
    [("pay", '{"amount": 40}')],  # the answer is lost
    *[[("read_file", '{"path": "notes.txt"}')]] * 3,  # the model loops
]


def scripted_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the next calls of the script, then the final answer, like a client."""
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn >= len(SCRIPT):
        return {"role": "assistant", "content": "The weather is fine. Please check whether the payment went through."}
    calls = [
        {"id": f"call_{turn}_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(SCRIPT[turn])
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


async def main() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How is the weather in Paris? And pay my bill."}]
    while True:
        answer = scripted_model(messages)
        messages.append(answer)
        if not answer.get("tool_calls"):
            break
        messages += await run_tool_calls(rt, answer["tool_calls"], thread="chat-42")
    for message in messages:
        for call in message.get("tool_calls") or []:
            print(f"model: {call['function']['name']}({call['function']['arguments']})")
        if message["content"]:
            print(f"{message['role']}: {message['content']}")
    print(f"\n{json.dumps(tried)}: flaky twice, then fine; the payment was never repeated")
    await rt.close()


if __name__ == "__main__":
    asyncio.run(main())
