"""An application that pays once, in one of several ways: T35 and T36 kill it in the middle and start it again.

    FOLDER=… SECONDS=… ROUTE=… python paying.py

The payment is a line in FOLDER/paid; then the tool takes SECONDS. What the caller, or the model, is told goes to standard
output as JSON. What an agent framework would keep in a database is in FOLDER, written before the tool can start.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

from failsoft import Runtime
from failsoft.runtime.persistence import effect_ledger

effect_ledger.PATIENCE = 20.0  # a busy machine may need longer
FOLDER, SECONDS = Path(os.environ["FOLDER"]), float(os.environ["SECONDS"])
BESIDE = (
    "beside" in os.environ["ROUTE"]
)  # the model asks for a read in the same answer: that takes SECONDS, and pay does not
GUARDED = "guarded" in os.environ["ROUTE"]  # the agent is given the function that failsoft guards
ARGS = {"amount": 4}


def act(amount: int) -> None:
    with (FOLDER / "paid").open("a") as file:
        file.write(f"{amount}\n")


def pay_blocking(amount: int) -> str:
    """Pay."""
    act(amount)
    time.sleep(SECONDS)
    return "paid"


async def pay(amount: int) -> str:
    """Pay."""
    act(amount)
    if not BESIDE:
        await asyncio.sleep(SECONDS)
    return "paid"


async def get_rate(amount: int) -> str:
    """Get the exchange rate."""
    await asyncio.sleep(SECONDS)
    return "1.1"


def make(fn: Any = pay, **options: Any) -> Runtime:
    rt = Runtime(store=f"sqlite:///{FOLDER}/failsoft.db")
    rt.add(fn, id="pay", idempotent=False, **options)
    return rt


def for_agent(rt: Runtime) -> Any:
    """The function that pays, as it is given to an agent framework."""
    return rt.add(pay) if GUARDED else pay


def go() -> None:
    """From now on it may be killed."""
    print("go", flush=True)


# --- without a framework -------------------------------------------------------------------------------------------------


async def by_id() -> str:
    rt = make()
    go()
    outcome = await rt.call("pay", ARGS, id="order-7")
    return str(outcome.value or outcome.explanation.model)


async def in_a_thread() -> str:
    rt = make()
    go()
    outcome = await rt.call("pay", ARGS, id="order-7", thread="chat", tenant="acme")
    return str(outcome.value or outcome.explanation.model)


async def in_a_turn() -> str:
    rt = make()
    go()
    async with rt.turn(thread="chat") as turn:
        turn.call("pay", ARGS, id="order-7")
    outcome = turn.report.outcomes["order-7"]
    return str(outcome.value or outcome.explanation.model)


async def plan() -> str:
    rt = make()
    go()
    report = await rt.run_plan({"calls": [{"id": "order-7", "tool": "pay", "args": ARGS}]})
    outcome = report.outcomes["order-7"]
    return str(outcome.value or outcome.explanation.model)


def blocking() -> str:
    rt = make(pay_blocking)
    go()
    outcome = rt.call_sync("pay", ARGS, id="order-7")
    return str(outcome.value or outcome.explanation.model)


def worker() -> str:
    import paying  # as its worker will

    rt = make(paying.pay_blocking, isolation="process")
    go()
    outcome = rt.call_sync("pay", ARGS, id="order-7")
    return str(outcome.value or outcome.explanation.model)


async def plain_loop() -> str:
    from failsoft.adapters.plain import run_tool_calls

    rt = make()
    go()
    asked = {"id": "call_7", "type": "function", "function": {"name": "pay", "arguments": json.dumps(ARGS)}}
    (message,) = await run_tool_calls(rt, [asked], thread="chat")
    return str(message["content"])


# --- agent frameworks ----------------------------------------------------------------------------------------------------


async def langgraph() -> str:
    """From its checkpoint."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    from failsoft.adapters.langchain import FailsoftMiddleware

    kept = FOLDER / "checkpoints"

    class Saver(InMemorySaver):
        """Keeps its checkpoints in a file."""

        def __init__(self) -> None:
            super().__init__()
            if kept.exists():
                storage, writes, blobs = pickle.loads(kept.read_bytes())
                for thread, spaces in storage.items():
                    for space, checkpoints in spaces.items():
                        self.storage[thread][space].update(checkpoints)
                for key, value in writes.items():
                    self.writes[key].update(value)
                self.blobs.update(blobs)

        def put(self, *args: Any, **kwargs: Any) -> Any:
            return self._save(super().put(*args, **kwargs))

        def put_writes(self, *args: Any, **kwargs: Any) -> Any:
            return self._save(super().put_writes(*args, **kwargs))

        def _save(self, answer: Any) -> Any:
            storage = {thread: {space: {**c} for space, c in s.items()} for thread, s in self.storage.items()}
            kept.with_suffix(".new").write_bytes(pickle.dumps((storage, {**self.writes}, {**self.blobs})))
            kept.with_suffix(".new").replace(kept)
            return answer

    class Chat(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Chat:
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            calls: list[Any] = [{"name": "pay", "args": ARGS, "id": "call_7"}]
            if BESIDE:
                calls.append({"name": "get_rate", "args": ARGS, "id": "call_8"})
            calls = [] if len(messages) > 1 else calls
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done", tool_calls=calls))])

    resumed = kept.exists()
    rt = Runtime(store=f"sqlite:///{FOLDER}/failsoft.db")
    agent: Any = create_agent(
        Chat(messages=iter(())),
        [tool("pay")(for_agent(rt)), tool("get_rate")(get_rate)],
        middleware=[FailsoftMiddleware(rt)],
        checkpointer=Saver(),
    )
    config: Any = {"configurable": {"thread_id": "chat"}}
    go()
    result = await agent.ainvoke(None if resumed else {"messages": [HumanMessage("go")]}, config, durability="sync")
    return next(str(message.content) for message in result["messages"] if message.type == "tool")


async def pydantic_ai() -> str:
    """From its message history."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from failsoft.adapters.pydantic_ai import Failsoft

    kept, seen = FOLDER / "history.json", []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            seen.append(str(messages[-1].parts[0].content))  # type: ignore[union-attr]  # a tool's answer
            return ModelResponse([TextPart("done")])
        calls = [ToolCallPart("pay", ARGS, "call_7")]
        if BESIDE:
            calls.append(ToolCallPart("get_rate", ARGS, "call_8"))
        asking = ModelResponse(calls)
        kept.write_bytes(ModelMessagesTypeAdapter.dump_json([*messages, asking]))
        return asking

    rt = Runtime(store=f"sqlite:///{FOLDER}/failsoft.db")
    agent = Agent(FunctionModel(answer), capabilities=[Failsoft(rt)])
    agent.tool_plain(for_agent(rt))
    agent.tool_plain(get_rate)
    history = ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() else None
    go()
    await agent.run(None if history else "go", message_history=history, conversation_id="chat")
    return seen[-1]


async def openai_agents() -> str:
    """From its RunState, which waits for the approval of the payment."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from failsoft.adapters.openai_agents import guard_agent

    kept, seen = FOLDER / "state.json", []

    class Scripted(Model):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
            answers = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
            output: Any
            if answers:
                seen.append(str(answers[0]["output"]))
                text = ResponseOutputText(annotations=[], text="done", type="output_text")
                output = [
                    ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
                ]
            else:
                asked = {"call_7": "pay", "call_8": "get_rate"} if BESIDE else {"call_7": "pay"}
                output = [
                    ResponseFunctionToolCall(arguments=json.dumps(ARGS), call_id=id, name=name, type="function_call")
                    for id, name in asked.items()
                ]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    rt = Runtime(store=f"sqlite:///{FOLDER}/failsoft.db")
    tools: Any = [function_tool(for_agent(rt), needs_approval=True), function_tool(get_rate, needs_approval=True)]
    agent = guard_agent(Agent("payer", model=Scripted(), tools=tools), rt)
    config = RunConfig(tracing_disabled=True)
    if not kept.exists():
        waiting = await Runner.run(agent, "go", run_config=config)
        kept.write_text(waiting.to_state().to_string())
    state: Any = await RunState.from_string(agent, kept.read_text())
    for item in state.get_interruptions():
        state.approve(item)
    go()
    await Runner.run(agent, state, run_config=config)
    return seen[-1]


if __name__ == "__main__":
    route = globals()[os.environ["ROUTE"].removesuffix("_beside").removesuffix("_guarded")]
    told = asyncio.run(route()) if inspect.iscoroutinefunction(route) else route()
    print(json.dumps(told), flush=True)
