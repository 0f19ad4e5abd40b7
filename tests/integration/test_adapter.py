"""The adapter in the docstring of ``failsoft.integration``: it is complete, short, and passes the suite for adapters."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.fakes import virtual

import failsoft.integration
from failsoft import Runtime
from failsoft.errors import FailsoftError
from failsoft.testing import Ask, Seen, adapter_checks, check_adapter
from failsoft.testing.check_adapter import Steps, Tools

ROOT = Path(__file__).parents[2]


def code() -> str:
    """The adapter's source, out of the docstring."""
    text = inspect.cleandoc(failsoft.integration.__doc__ or "")
    indented = text.partition("::\n\n")[2].partition("\n\nIts parts")[0]
    return textwrap.dedent(indented)


def load() -> ModuleType:
    module = ModuleType("strangers_adapter")
    exec(compile(code(), "the adapter in failsoft.integration", "exec"), vars(module))
    return module


ADAPTER = load()


class Driver:
    """A framework of a few lines: it calls functions, and a tool's exception ends the run."""

    control_flow = (ADAPTER.StopAgent("enough"),)

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> list[list[Seen]]:
        guarded = None if runtime is None else ADAPTER.GuardedTools(runtime, tools)

        async def answer(number: int, call: Ask) -> Seen:
            if guarded is None:
                return Seen(call.tool, str(await tools[call.tool](**call.args)))
            return Seen(call.tool, await guarded.answer(f"call-{number}", call.tool, json.dumps(call.args)))

        return [await asyncio.gather(*(answer(number, call) for number, call in enumerate(step))) for step in steps]


@pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
def test_the_documented_adapter_passes_the_adapter_suite(check: Any) -> None:
    check_adapter(Driver(), check)


def test_the_documented_adapter_has_thirty_lines_and_imports_only_failsoft_integration() -> None:
    lines = [line for line in code().splitlines() if line.strip()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("class GuardedTools"))
    assert len(lines) - begin <= 30
    assert {line.split()[1] for line in lines if line.startswith(("from failsoft", "import failsoft"))} == {
        "failsoft.integration"
    }


def test_the_page_about_adapters_shows_the_same_one() -> None:
    assert code().strip() in (ROOT / "docs" / "how-to" / "write-an-adapter.md").read_text()


@virtual
async def test_arguments_that_are_no_json_are_the_models_to_mend_and_the_tool_is_not_run() -> None:
    ran = []

    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    text = await ADAPTER.GuardedTools(Runtime(), {"pay": pay}).answer("c1", "pay", '{"amount": 3')
    assert "INVALID_ARGUMENT" in text
    assert "not valid JSON" in text
    assert ran == []


@virtual
async def test_a_name_that_the_model_has_invented_is_answered() -> None:
    text = await ADAPTER.GuardedTools(Runtime(), {}).answer("c1", "teleport", "{}")
    assert "teleport failed" in text


@virtual
async def test_the_calls_of_a_run_are_one_turn() -> None:
    rt = Runtime()

    async def search() -> str:
        return "found"

    guarded = ADAPTER.GuardedTools(rt, {"search": search})
    for id in ("a", "b"):
        await guarded.answer(id, "search", "")
    calls = [event for event in rt.events() if event.event_type == "CallSucceeded"]
    assert [event.call_id for event in calls] == ["a", "b"]
    assert len({event.turn_id for event in calls}) == 1


def test_an_argument_that_is_not_a_runtime_is_rejected_at_once() -> None:
    with pytest.raises(FailsoftError, match=r"write GuardedTools\(rt, tools\)"):
        ADAPTER.GuardedTools("rt", {})


# --- the door ---------------------------------------------------------------------------------------------------------


def test_every_name_of_failsoft_integration_is_explained_or_is_a_type() -> None:
    documented = failsoft.integration.__doc__ or ""
    types = {"AgentRun", "Control", "Outcome", "Runners", "Turn", "Unanswered", "read_metadata"}
    types |= {"BrokenOffError", "BrokenToolError"}
    assert {name for name in failsoft.integration.__all__ if name not in documented} <= types


def test_importing_failsoft_integration_loads_no_thread_pool() -> None:
    """Temporal's workflow sandbox refuses ``concurrent.futures.ThreadPoolExecutor``."""
    show = "import sys, failsoft.integration; print('failsoft.integration.executor' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
