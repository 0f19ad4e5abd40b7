"""T47: a blocking tool that hung kept the program from ending. Here it ends within a second of its last line."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import IO, cast

import pytest
from tests.torture.scale import times

HANGS = """
import asyncio, sys, time
from failsoft import Runtime
rt = Runtime({"tools": {"hang": {"timeout": "200ms", "retry": {"max_attempts": 1}}}})

def hang() -> str:
    time.sleep(60)
    return "late"
"""

PYDANTIC_AI = """
import pydantic_ai
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from failsoft.adapters.pydantic_ai import Agent, Failsoft

def answer(messages, info):
    asked = any(isinstance(message, ModelResponse) for message in messages)
    return ModelResponse([TextPart("done") if asked else ToolCallPart("hang", {})])

def make(kind):
    return kind(FunctionModel(answer), tools=[hang], capabilities=[Failsoft(rt)])
"""

PROGRAMS = {
    "pydantic-ai": f"{PYDANTIC_AI}\nasyncio.run(make(pydantic_ai.Agent).run('go'))",
    "pydantic-ai, blocking": f"{PYDANTIC_AI}\nmake(pydantic_ai.Agent).run_sync('go')",
    "pydantic-ai, our agent": f"{PYDANTIC_AI}\nasyncio.run(make(Agent).run('go'))",
    "pydantic-ai, cancelled": f"""{PYDANTIC_AI}
async def main():
    task = asyncio.create_task(make(pydantic_ai.Agent).run('go'))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
asyncio.run(main())
""",
    "plain": """
from failsoft.adapters.plain import run_tool_calls
rt.add(hang)
asked = [{"type": "function_call", "call_id": "1", "name": "hang", "arguments": "{}"}]
asyncio.run(run_tool_calls(rt, asked))
""",
    "plain, blocking": """
from failsoft.adapters.plain import run_tool_calls_sync
rt.add(hang)
asked = [{"type": "function_call", "call_id": "1", "name": "hang", "arguments": "{}"}]
run_tool_calls_sync(rt, asked)
""",
}
LAST = "\nprint('last line', flush=True)\n"
PATIENCE = 1.0
TRIES = times(5, 3)  # the best counts: other programs use this machine too


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_t47_the_program_ends_within_a_second_of_its_last_line(program: str) -> None:
    best = 60.0
    for _ in range(TRIES):
        best = min(best, exit_time(HANGS + program + LAST))
        if best <= PATIENCE:
            return
    pytest.fail(f"{best:.1f} s")


def exit_time(program: str) -> float:
    """Seconds from a program's last line to its end."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert cast("IO[str]", running.stdout).readline() == "last line\n"
            began = time.monotonic()
            assert running.wait(timeout=20) == 0
            return time.monotonic() - began
        except subprocess.TimeoutExpired:
            return 20.0
        finally:
            running.kill()
