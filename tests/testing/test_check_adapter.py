"""The suite for adapters passes a loop that does everything right, and notices one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.testing import Ask, Seen, adapter_checks, check_adapter
from failsoft.testing.check_adapter import Steps, Tools


class AskAgain(Exception):
    """How this loop's tools ask the model to call again."""


class Stop(Exception):
    """How this loop's tools end the run."""


class Loop:
    """An agent framework in twenty lines, with an adapter."""

    control_flow: Sequence[BaseException] = (AskAgain("which one?"), Stop("enough"))
    declares = True
    control: tuple[type[BaseException], ...] = (AskAgain, Stop)

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> list[list[Seen]]:
        return [await self.step(runtime, tools, step) for step in steps]

    async def step(self, runtime: Runtime | None, tools: Tools, asks: Sequence[Ask]) -> list[Seen]:
        return list(await asyncio.gather(*(self.call(runtime, tools, ask) for ask in asks)))

    async def call(self, runtime: Runtime | None, tools: Tools, ask: Ask) -> Seen:
        try:
            if runtime is None:
                return Seen(ask.tool, await tools[ask.tool](**ask.args))
            return Seen(ask.tool, await self.guarded(runtime, tools, ask))
        except AskAgain as error:
            return Seen(ask.tool, str(error))

    async def guarded(self, runtime: Runtime, tools: Tools, ask: Ask) -> str:
        def runner(name: str) -> Any:
            async def run(arguments: dict[str, Any]) -> Any:
                return await tools[name](**arguments)

            return run

        for name in tools:
            runtime.declare(name)
        outcome = await runtime.run(ask.tool, ask.args, {name: runner(name) for name in tools}, control=self.control)
        return outcome.value if outcome.status == "succeeded" else outcome.explanation.model


@pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
def test_a_correct_loop_passes_the_suite(check: Any) -> None:
    check_adapter(Loop(), check)


class Bare(Loop):
    """The adapter that does nothing."""

    async def guarded(self, runtime: Runtime, tools: Tools, ask: Ask) -> str:
        try:
            return str(await tools[ask.tool](**ask.args))
        except (AskAgain, Stop):
            raise
        except Exception as error:
            return str(error)


class Deaf(Loop):
    control = ()


class Nameless(Loop):
    control_flow = ()


class Detached(Loop):
    """Runs tools in tasks that are never awaited, in a context that is not the caller's."""

    async def guarded(self, runtime: Runtime, tools: Tools, ask: Ask) -> str:
        from contextvars import Context

        running = super().guarded(runtime, tools, ask)
        return await asyncio.shield(asyncio.get_running_loop().create_task(running, context=Context()))


class Impatient(Loop):
    """One failure ends the others; errors are repeated to the model word for word; every tool is thought safe."""

    async def step(self, runtime: Runtime | None, tools: Tools, asks: Sequence[Ask]) -> list[Seen]:
        seen = await super().step(runtime, tools, asks)
        failed = [one for one in seen if "failed" in one.text]
        return failed or seen

    async def guarded(self, runtime: Runtime, tools: Tools, ask: Ask) -> str:
        for name in tools:
            if name not in runtime.tools:
                runtime.add(tools[name], id=name)
        outcome = await runtime.call(ask.tool, {"city": "London"})
        if outcome.fault is not None:
            return f"{ask.tool} failed: {outcome.fault.cause}"
        return str(outcome.value)


@pytest.mark.parametrize(
    ("loop", "check"),
    [
        (Impatient, "a_value_arrives"),
        (Bare, "the_model_reads_the_classification"),
        (Impatient, "a_broken_tool_may_have_acted"),
        (Bare, "a_safe_retry_happens"),
        (Impatient, "an_unsafe_retry_does_not_happen"),
        (Bare, "a_harmless_retry_happens"),
        (Bare, "another_tool_stands_in"),
        (Bare, "a_failing_tool_is_cut_off"),
        (Impatient, "siblings_survive"),
        (Impatient, "secrets_are_masked"),
        (Deaf, "control_flow_passes"),
        (Nameless, "control_flow_passes"),
        (Detached, "a_cancelled_run_is_no_verdict"),
        (Detached, "context_variables_reach_the_tool"),
    ],
)
def test_an_incorrect_loop_fails_the_suite(loop: type[Loop], check: str) -> None:
    (found,) = [one for one in adapter_checks() if one.__name__ == check]
    with pytest.raises((AssertionError, LookupError), match=f"{check}|who"):
        check_adapter(loop(), found)


def test_all_checks_run_unless_some_are_named() -> None:
    with pytest.raises(AssertionError, match="^the_model_reads_the_classification: "):
        check_adapter(Bare())
