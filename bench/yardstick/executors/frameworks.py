"""Executors of agent frameworks with their defaults. The model is scripted: it asks for one gold call after the other."""

from __future__ import annotations

import json
import os
from typing import Any

from bench.yardstick.replay import Session, Tool

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
os.environ.setdefault("LANGSMITH_TRACING", "false")

ANY = {"type": "object", "additionalProperties": True}
MOST_STEPS = 1000  # of an agent's run: the frameworks' own limits are for models that go round in circles


class Script:
    """The scripted model: ends the current call with its answer, and begins the next."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0

    def step(self, failed: bool) -> Any:
        """Return the next gold call, or None at the end. ``failed`` is what the model reads about the last one."""
        session = self._session
        if self._next:
            session.end("failed" if failed else "succeeded", session.answers[-1].returned)
        if self._next == len(session.calls):
            return None
        call = session.calls[self._next]
        self._next += 1
        session.begin(call)
        return call


class LangChainToolRetry:
    """LangChain's ``create_agent`` with ``ToolRetryMiddleware()`` as it is."""

    name = "LangChain, ToolRetryMiddleware"

    async def run(self, session: Session) -> None:
        from langchain.agents import create_agent
        from langchain.agents.middleware import ToolRetryMiddleware
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langchain_core.tools import StructuredTool

        script = Script(session)

        class Scripted(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

            def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
                last = messages[-1]
                call = script.step(failed=isinstance(last, ToolMessage) and last.status == "error")
                calls = [] if call is None else [{"name": call.tool, "args": dict(call.arguments), "id": call.id}]
                return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])

            async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
                return self._generate(messages)  # the default would use a thread

        def as_tool(name: str, function: Tool) -> StructuredTool:
            schema = {**ANY, "title": name, "description": function.__doc__ or name, "properties": {}}
            names = {argument for call in session.calls if call.tool == name for argument in call.arguments}
            schema["properties"] = {argument: {} for argument in sorted(names)}
            return StructuredTool(
                name=name, description=function.__doc__ or name, args_schema=schema, coroutine=function
            )

        tools = [as_tool(name, function) for name, function in session.functions.items()]
        agent: Any = create_agent(Scripted(), tools, middleware=[ToolRetryMiddleware()])
        start = {"messages": [{"role": "user", "content": "go"}]}
        await agent.ainvoke(start, {"recursion_limit": MOST_STEPS})


class PydanticAi:
    """pydantic-ai's ``Agent`` with its defaults: a tool's exception ends the run."""

    name = "pydantic-ai, defaults"

    async def run(self, session: Session) -> None:
        from pydantic_ai import Agent, Tool, UsageLimits
        from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        script = Script(session)

        def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
            failed = any(isinstance(part, RetryPromptPart) for part in messages[-1].parts)
            call = script.step(failed=failed)
            if call is None:
                return ModelResponse([TextPart("done")])
            return ModelResponse([ToolCallPart(call.tool, dict(call.arguments), call.id)])

        tools = [
            Tool.from_schema(function, name, function.__doc__, ANY) for name, function in session.functions.items()
        ]
        agent: Any = Agent(FunctionModel(answer), tools=tools)
        try:
            await agent.run("go", usage_limits=UsageLimits(request_limit=MOST_STEPS))
        except Exception:
            session.end("failed")


class AgentsSdk:
    """The OpenAI Agents SDK with its defaults: the model reads a text about the failure, and the run goes on."""

    name = "OpenAI Agents SDK, defaults"

    async def run(self, session: Session) -> None:
        from agents import Agent, FunctionTool, Model, ModelResponse, Runner, Usage
        from agents.tool import default_tool_error_function
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        script = Script(session)
        failed: set[str] = set()
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        done = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])

        class Scripted(Model):
            async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
                call = script.step(failed=bool(session.answers) and session.answers[-1].call.id in failed)
                if call is None:
                    return ModelResponse(output=[done], usage=Usage(), response_id=None)
                arguments = json.dumps(dict(call.arguments))
                asked = ResponseFunctionToolCall(
                    name=call.tool, arguments=arguments, call_id=call.id, type="function_call"
                )
                return ModelResponse(output=[asked], usage=Usage(), response_id=None)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        def as_tool(name: str, function: Tool) -> FunctionTool:
            async def invoke(context: Any, arguments: str) -> Any:
                try:
                    return await function(**json.loads(arguments))
                except Exception as error:  # as `function_tool` does
                    failed.add(session.answers[-1].call.id)
                    return default_tool_error_function(context, error)

            return FunctionTool(name, function.__doc__ or name, ANY, invoke, strict_json_schema=False)

        tools: list[Any] = [as_tool(name, function) for name, function in session.functions.items()]
        agent: Any = Agent(name="agent", model=Scripted(), tools=tools)
        await Runner.run(agent, "go", max_turns=MOST_STEPS)
