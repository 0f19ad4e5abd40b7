"""The objects a page's reader has before the first block: a model, a client, yesterday's store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes import Scripted

from failsoft import Runtime

Names = dict[str, Any]
PAY = ("pay", {"amount": 40})


def _yesterday(_: pytest.MonkeyPatch) -> Names:
    """A store that has a turn in it."""

    async def play() -> None:
        async with Runtime(store="sqlite:///failsoft.db") as rt:
            rt.add(Scripted("fine"), id="search")
            async with rt.turn() as turn:
                turn.call("search")

    asyncio.run(play())
    return {}


def _langchain(_: pytest.MonkeyPatch) -> Names:
    from examples.langchain_agent import ScriptedModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    @tool
    def search(query: str) -> str:
        """Search."""
        return query

    name, args = PAY
    answers = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1"}]), AIMessage("Done.")]
    return {"model": ScriptedModel(messages=iter(answers)), "search": search}


def _openai_agents(monkeypatch: pytest.MonkeyPatch) -> Names:
    from examples.openai_agents_agent import ScriptedModel

    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    return {"model": ScriptedModel([PAY])}


def _pydantic_ai(_: pytest.MonkeyPatch) -> Names:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("Done.")])
        reads = any(tool.name == "read_file" for tool in info.function_tools)
        return ModelResponse([ToolCallPart("read_file", {"path": "notes.txt"}) if reads else ToolCallPart(*PAY)])

    return {"model": FunctionModel(answer)}


def _plain_loop(_: pytest.MonkeyPatch) -> Names:
    call = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 40}'}}
    answers = iter([SimpleNamespace(tool_calls=[call]), SimpleNamespace(tool_calls=None)])

    async def create(**_: Any) -> Any:
        return SimpleNamespace(choices=[SimpleNamespace(message=next(answers))])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    return {"client": client, "model": "m", "tools": [], "messages": [{"role": "user", "content": "Please pay 40."}]}


STAGES: dict[str, Callable[[pytest.MonkeyPatch], Names]] = {
    "docs/how-to/langchain.md": _langchain,
    "docs/how-to/openai-agents.md": _openai_agents,
    "docs/how-to/plain-loop.md": _plain_loop,
    "docs/how-to/pydantic-ai.md": _pydantic_ai,
    "docs/tour-why-40s.md": _yesterday,
}
