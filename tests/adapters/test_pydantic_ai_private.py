"""pydantic-ai's private names: the supported versions have them, and the adapter works without them."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import FunctionToolset, _utils, mcp
from pydantic_ai.capabilities._pending_messages import PendingMessageDrainCapability
from tests.adapters.pydantic_ai_driver import failing, talk, texts

from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Failsoft, private, toolset

CHECKED = ("2.16", "2.66")  # the versions in the lock files: look again at each name before adding one


def test_the_names_were_checked_with_this_version() -> None:
    assert version("pydantic-ai-slim").startswith(CHECKED)


def test_the_capability_that_ours_replaces_exists() -> None:
    assert private.Always is PendingMessageDrainCapability
    source = inspect.getsource(importlib.import_module("pydantic_ai.agent"))
    assert "PendingMessageDrainCapability" in source


def test_the_variable_of_the_users_executor_is_there() -> None:
    assert not private.has_executor()
    with ThreadPoolExecutor() as executor, pydantic_ai.Agent.using_thread_executor(executor):
        assert private.has_executor()
    assert private._thread_executor is _utils._thread_executor


def test_answers_that_pydantic_ai_makes_up_are_marked() -> None:
    modules = [importlib.import_module(f"pydantic_ai.{name}") for name in ("messages", "_agent_graph")]
    assert any(repr(private.SYNTHESIZED) in inspect.getsource(module) for module in modules)


def test_errors_are_known_by_the_modules_that_they_came_through() -> None:
    assert mcp.__name__ == private._SERVER_MODULE
    for name in private._AGENT_MODULES:
        importlib.import_module(name)


def test_the_function_behind_a_tool_is_found() -> None:
    async def search() -> str:
        return "3 flights"

    seen: list[Any] = []

    class Watching(pydantic_ai.toolsets.WrapperToolset[Any]):
        async def get_tools(self, ctx: Any) -> Any:
            tools = await super().get_tools(ctx)
            seen.extend(private.function_of(tool) for tool in tools.values())
            return tools

    talk(pydantic_ai.Agent("test", toolsets=[Watching(FunctionToolset([search]).prefixed("my"))]))
    assert seen == [search]


@pytest.mark.parametrize("name", ["_pending_messages", "_utils"])
def test_the_adapter_works_without_what_it_imports(name: str) -> None:
    blocked = {"_pending_messages": "pydantic_ai.capabilities._pending_messages", "_utils": "pydantic_ai._utils"}[name]
    program = f"""
import sys, pydantic_ai, types
real = sys.modules.get({blocked!r})
sys.modules[{blocked!r}] = types.ModuleType({blocked!r})  # nothing is in it
import failsoft.adapters.pydantic_ai.private
sys.modules[{blocked!r}] = real
import asyncio
from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Failsoft
from pydantic_ai.models.test import TestModel
def search() -> str:
    raise ValueError("no such airport")
agent = pydantic_ai.Agent(TestModel(), tools=[search], capabilities=[Failsoft(Runtime())])
result = agent.run_sync("go")
print([part.content for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "search failed" in ran.stdout


def test_the_adapter_works_without_the_other_private_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SYNTHESIZED", "_SERVER_MODULE"):
        monkeypatch.setattr(private, name, "not there")
    monkeypatch.setattr(private, "_AGENT_MODULES", ("not there",))
    monkeypatch.setattr(toolset, "function_of", lambda tool: None)
    search, attempts = failing(ConnectionResetError("gone"))
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": {"max_attempts": 2, "initial_delay": "1ms"}}}})
    script = talk(pydantic_ai.Agent("test", tools=[search], capabilities=[Failsoft(runtime)]), "search")
    assert "search failed" in texts(script)[0]
    assert len(attempts) == 2
