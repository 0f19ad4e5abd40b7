"""T43: a guard outside a durable engine's retries paid five times and reported one attempt. Here it refuses to start."""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pydantic_ai
import pytest
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, WrapperCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset, WrapperToolset
from tests.adapters.pydantic_ai_driver import Script, talk, texts

from failsoft import FailsoftError, Runtime
from failsoft.adapters.pydantic_ai import Agent, Failsoft
from failsoft.testing import Ask

TRIES = 5
REMEDY = "decorate a function with @rt.tool and call it in the tool's body"


class Retrying(WrapperToolset[Any]):
    """An engine's wrapper around a toolset: each call is a unit that it repeats."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        for _ in range(TRIES - 1):
            try:
                return await super().call_tool(name, tool_args, ctx, tool)
            except ConnectionError:
                pass
        return await super().call_tool(name, tool_args, ctx, tool)


class Engine(AbstractCapability[Any]):
    """An engine that retries, in the place that pydantic-ai gives to engines."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return Retrying(toolset)


class TemporalDurability(Engine):
    """Known by its name, as in pydantic-ai before engines had a specification."""


class PrefectDurability(Engine):
    """Known by its name."""


class MyTemporal(TemporalDurability):
    """A user's own kind of it."""


@dataclass(frozen=True)
class Spec:
    wrapped_toolset_kinds: frozenset[str]


class SomeEngine(Engine):
    """Known by what it says of itself."""

    engine_spec: ClassVar[Spec] = Spec(frozenset({"function", "mcp"}))


class DBOSDurability(AbstractCapability[Any]):
    """Runs functions in the workflow, and MCP servers in steps."""

    engine_spec: ClassVar[Spec] = Spec(frozenset({"mcp", "dynamic"}))

    def __init__(self, **step: Any) -> None:
        self._mcp_step_config = step


RETRYING: list[Callable[[], AbstractCapability[Any]]] = [
    TemporalDurability,
    PrefectDurability,
    MyTemporal,
    SomeEngine,
    lambda: WrapperCapability(TemporalDurability()),
    lambda: DBOSDurability(retries_allowed=True),
]


def paying() -> tuple[Callable[[], Any], list[int]]:
    """A tool that acts and then loses its answer."""
    paid: list[int] = []

    async def pay() -> str:
        paid.append(1)
        raise ConnectionResetError("lost the answer")

    return pay, paid


def test_t43_an_engine_alone_pays_five_times() -> None:
    pay, paid = paying()
    with pytest.raises(ConnectionResetError):
        talk(pydantic_ai.Agent("test", tools=[pay], capabilities=[TemporalDurability()]), "pay")
    assert len(paid) == TRIES


@pytest.mark.parametrize("engine", RETRYING)
@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent])
@pytest.mark.parametrize("first", [True, False])
def test_t43_a_guard_outside_refuses_to_start(engine: Callable[[], Any], make: Any, first: bool) -> None:
    pay, paid = paying()
    capabilities = [Failsoft(Runtime()), engine()] if first else [engine(), Failsoft(Runtime())]
    with pytest.raises(FailsoftError, match=REMEDY) as caught:
        make("test", tools=[pay], capabilities=capabilities)
    assert isinstance(caught.value, UserError)  # engines do not retry those
    assert paid == []


@pytest.mark.parametrize("engine", RETRYING)
def test_t43_a_guard_added_for_a_single_run_refuses_to_start(engine: Callable[[], Any]) -> None:
    for agents, runs in ([engine()], [Failsoft(Runtime())]), ([Failsoft(Runtime())], [engine()]), ([], None):
        pay, paid = paying()
        agent = pydantic_ai.Agent("test", tools=[pay], capabilities=agents)
        with pytest.raises(FailsoftError, match=REMEDY):
            talk(agent, "pay", capabilities=runs or [engine(), Failsoft(Runtime())])
        assert paid == []


class DurableFunctionToolset(Retrying):
    """Known by its name."""


class TemporalToolset(Retrying):
    """Known by its module."""

    __module__ = "pydantic_ai.durable_exec.temporal._toolset"


@pytest.mark.parametrize("kind", [DurableFunctionToolset, TemporalToolset])
def test_t43_older_agents_around_an_agent_are_known_by_their_toolsets(kind: Any) -> None:
    agent = pydantic_ai.Agent("test", capabilities=[Failsoft(Runtime())])
    for around in (
        lambda toolset: toolset,
        lambda toolset: toolset.prefixed("my"),
        lambda toolset: CombinedToolset([toolset]),
    ):
        pay, paid = paying()
        with pytest.raises(FailsoftError, match=REMEDY):
            talk(agent, "pay", toolsets=[around(kind(FunctionToolset([pay])))])
        assert paid == []


@pytest.mark.parametrize("per_run_step", [True, False])
def test_t43_a_toolset_made_during_the_run_is_refused(per_run_step: bool) -> None:
    pay, paid = paying()
    agent = pydantic_ai.Agent("test", capabilities=[Failsoft(Runtime())])

    @agent.toolset(per_run_step=per_run_step)
    def durable(_: Any) -> Any:
        return DurableFunctionToolset(FunctionToolset([pay]))

    with pytest.raises(FailsoftError, match=REMEDY):
        talk(agent, "pay")
    assert paid == []


def test_t43_the_remedy_pays_once() -> None:
    pay, paid = paying()
    rt = Runtime()
    guarded = rt.tool(idempotent=False, id="pay")(pay)

    async def pay_bill() -> str:
        outcome = await rt.call(guarded)
        return outcome.explanation.model

    agent = pydantic_ai.Agent("test", tools=[pay_bill], capabilities=[TemporalDurability()])
    assert "It may already have taken effect" in texts(talk(agent, "pay_bill"))[0]
    assert len(paid) == 1


def test_t43_an_engine_that_runs_functions_in_the_workflow_composes() -> None:
    pay, paid = paying()
    agent = pydantic_ai.Agent("test", tools=[pay], capabilities=[Failsoft(Runtime()), DBOSDurability()])
    assert "It may already have taken effect" in texts(talk(agent, "pay"))[0]
    assert len(paid) == 1


# --- the engines themselves, where they are installed ---------------------------------------------------------------------


def test_t43_temporal_itself_is_refused() -> None:
    pytest.importorskip("temporalio")
    engine = importlib.import_module("pydantic_ai.durable_exec.temporal")
    pay, _ = paying()
    for agents, runs in ([Failsoft(Runtime())], []), ([], [Failsoft(Runtime())]):
        with pytest.raises(FailsoftError, match=REMEDY):
            script = Script([[Ask("pay", {})]])
            agent = pydantic_ai.Agent(
                script.model, name="payer", tools=[pay], capabilities=[engine.TemporalDurability(), *agents]
            )
            asyncio.run(agent.run("go", capabilities=runs))


@pytest.mark.filterwarnings("ignore")
def test_t43_the_older_agent_of_temporal_is_refused() -> None:
    pytest.importorskip("temporalio")
    engine = importlib.import_module("pydantic_ai.durable_exec.temporal")
    pay, paid = paying()
    durable = engine.TemporalAgent(pydantic_ai.Agent(Script([]).model, name="payer", tools=[pay]))
    agent = pydantic_ai.Agent("test", capabilities=[Failsoft(Runtime())])
    with pytest.raises(FailsoftError, match=REMEDY):
        talk(agent, "pay", toolsets=[*durable.toolsets])  # as it does in a workflow
    assert paid == []


def test_t43_prefect_itself_is_refused() -> None:
    pytest.importorskip("prefect")
    engine = importlib.import_module("pydantic_ai.durable_exec.prefect")
    pay, _ = paying()
    with pytest.raises(FailsoftError, match=REMEDY):
        pydantic_ai.Agent(
            "test", name="payer", tools=[pay], capabilities=[engine.PrefectDurability(), Failsoft(Runtime())]
        )


@pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason="on Python 3.12 and newer, DBOS itself needs SQLite 3.42",
)
def test_t43_dbos_itself_composes(tmp_path: Path) -> None:
    dbos = pytest.importorskip("dbos")
    engine = importlib.import_module("pydantic_ai.durable_exec.dbos")
    pay, paid = paying()
    script = Script([[Ask("pay", {})]])
    address = f"sqlite:///{tmp_path / 'dbos.db'}"
    dbos.run_dbos_database_migrations(address)
    dbos.DBOS(config={"name": "payer", "system_database_url": address, "run_admin_server": False})
    agent = pydantic_ai.Agent(
        FunctionModel(script._answer),
        name="payer",
        tools=[pay],
        capabilities=[engine.DBOSDurability(), Failsoft(Runtime())],
    )

    @dbos.DBOS.workflow()
    async def workflow() -> None:
        await agent.run("go")

    dbos.DBOS.launch()
    try:
        asyncio.run(workflow())
    finally:
        dbos.DBOS.destroy()
    assert "It may already have taken effect" in texts(script)[0]
    assert len(paid) == 1
