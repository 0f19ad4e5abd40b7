"""The recovery memory in a running program: what each mode learns, quotes and decides."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, OFTEN, ONCE, RESET, Scripted, records, virtual

from failsoft import ManifestError, Runtime
from failsoft.core.resilience import recovery_memory as core
from failsoft.core.resilience.recovery_memory import ENOUGH, Family, Tally
from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
from failsoft.stores.memory import MemoryStore

HOUR = 3600


class Shaky:
    """Fails with its error if asked to, and works otherwise."""

    def __init__(self, error: Exception = RESET) -> None:
        self.error = error
        self.attempts = 0

    async def __call__(self, fails: bool) -> str:
        self.attempts += 1
        if fails:
            raise type(self.error)(*self.error.args)
        return "x"


async def episodes(rt: Runtime, number: int, tool: str = "search", **options: Any) -> list[Any]:
    """As many outages, an hour apart, with a success of the tool in between."""
    outcomes = []
    for _ in range(number):
        outcomes.append(await rt.call(tool, {"fails": True}, **options))
        await rt.call(tool, {"fails": False})
        await asyncio.sleep(HOUR)
    return outcomes


def runtime(mode: Any = None, **options: Any) -> tuple[Runtime, Shaky]:
    rt, search = Runtime(memory=mode), Shaky()
    rt.add(search, id="search", **{"retry": {"max_attempts": 2}, "breaker": OFTEN, "read_only": True, **options})
    return rt, search


@virtual
async def test_the_memory_counts_results_of_retries_and_alternatives() -> None:
    rt, _ = runtime(fallbacks=["backup"])
    rt.add(Scripted("backup"), id="backup")
    await episodes(rt, 4)
    (family,) = rt.memory.families()
    assert family["tool"] == "search"
    assert family["family"] == "UNAVAILABLE: Connection reset by peer"
    assert round(family["seen"]) == 4
    assert [round(part) for part in family["tallies"]["retry"][:3]] == [4, 0, 0]
    assert [round(part) for part in family["tallies"]["tool:backup"][:3]] == [4, 4, 4]
    json.dumps(rt.memory.families())


@virtual
async def test_a_retry_that_works_is_a_cure() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "x"), id="search")
    await rt.call("search")
    tried, worked, cured, seconds = rt.memory.families()[0]["tallies"]["retry"]
    assert (tried, worked, cured) == (1, 1, 1)
    assert seconds == pytest.approx(0.1, rel=0.2)


@virtual
async def test_strategies_that_were_not_tried_are_not_learnt() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search")
    await rt.call("search")
    (family,) = rt.memory.families()
    assert (family["seen"], family["tallies"]) == (1, {})


@virtual
async def test_reasons_of_decisions_quote_the_memory() -> None:
    rt, _ = runtime(fallbacks=["backup"])
    rt.add(Scripted("backup"), id="backup")
    await episodes(rt, 7)
    reasons = [record["reason"] for record in records(rt, "FallbackUsed")]
    assert reasons[0] == "Transient error (max attempts reached (2)); alternative available"
    assert reasons[-1] == f"{reasons[0]}; the fallback worked 6 of 6 times"
    last = records(rt, "ToolError")[-1]
    assert last["evidence"]["seen"] == 7


@virtual
async def test_an_empty_memory_changes_nothing() -> None:
    decided = []
    for mode in ("off", "advise", "act"):
        rt, _ = runtime(mode)
        await rt.call("search", {"fails": True})
        decided.append([(record["decision"], record["reason"]) for record in records(rt, "ToolError")])
    assert decided[0] == decided[1] == decided[2]


@virtual
async def test_act_puts_the_better_of_equals_first_and_advise_keeps_the_order() -> None:
    for mode, reordered in (("advise", False), ("act", True)):
        rt, _ = runtime(mode, fallbacks=["poor", "good"], retry=ONCE)
        rt.add(Scripted(INVALID), id="poor")
        rt.add(Scripted("good"), id="good")
        outcomes = await episodes(rt, 20)
        assert [outcome.attempts for outcome in outcomes[:2]] == [3, 3]
        assert ([outcome.attempts for outcome in outcomes[4:]].count(2) >= 15) == reordered


@virtual
async def test_advise_keeps_the_written_order_of_ranks() -> None:
    fallbacks = [{"tool": "poor", "handle_errors": ["UNAVAILABLE"]}, {"tool": "good"}]
    rt, _ = runtime("advise", fallbacks=fallbacks, retry=ONCE)
    rt.add(Scripted(INVALID), id="poor")
    rt.add(Scripted("good"), id="good")
    outcomes = await episodes(rt, 10)
    assert {outcome.attempts for outcome in outcomes} == {3}


@virtual
async def test_only_act_ends_hopeless_retries_and_says_why() -> None:
    for mode, attempts in (("act", 1), ("advise", 2)):
        rt, _ = runtime(mode)
        outcomes = await episodes(rt, ENOUGH + 5)
        assert {outcome.attempts for outcome in outcomes[:ENOUGH]} == {2}
        assert outcomes[-1].attempts == attempts
        if mode == "act":
            assert outcomes[-1].decision.reason.startswith(f"Transient error (retries worked 0 of {ENOUGH} times)")


@virtual
async def test_a_policy_that_wants_a_retry_is_not_overruled() -> None:
    rt = Runtime(memory="act", policies=[{"name": "try again", "then": "retry"}])
    rt.add(Shaky(), id="search", retry={"max_attempts": 2}, breaker=OFTEN, read_only=True)
    outcomes = await episodes(rt, ENOUGH + 5)
    assert {outcome.attempts for outcome in outcomes} == {2}


@virtual
async def test_one_long_outage_ends_no_retries() -> None:
    rt, _ = runtime("act")
    for _ in range(8 * 60):
        outcome = await rt.call("search", {"fails": True}, retry={"budget": False})
        await asyncio.sleep(60)
    assert outcome.attempts == 2


@virtual
async def test_an_open_circuit_still_teaches_about_the_fallback() -> None:
    rt, search = runtime(fallbacks=["backup"], retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10h"})
    rt.add(Scripted("backup"), id="backup")
    await rt.call("search", {"fails": True})
    await asyncio.sleep(9 * HOUR)  # another episode
    await rt.call("search", {"fails": True})
    assert search.attempts == 1
    (family,) = rt.memory.families()
    assert [round(part) for part in family["tallies"]["tool:backup"][:2]] == [2, 2]


@virtual
async def test_tenants_have_memories_of_their_own() -> None:
    rt, _ = runtime("act")
    await episodes(rt, ENOUGH + 2, tenant="acme")
    assert rt.memory.families() == []
    assert len(rt.memory.families(tenant="acme")) == 1
    assert (await rt.call("search", {"fails": True}, tenant="other")).attempts == 2
    assert (await rt.call("search", {"fails": True}, tenant="acme")).attempts == 1


@virtual
async def test_mode_off_remembers_nothing() -> None:
    for rt in (Runtime(memory="off"), Runtime({"memory": "off"})):
        rt.add(Scripted(DOWN), id="search")
        await rt.call("search")
        assert (rt.memory.mode, rt.memory.families()) == ("off", [])


def test_the_memorys_mode_is_set_in_code_or_in_the_manifest() -> None:
    assert Runtime().memory.mode == "advise"
    assert Runtime({"memory": "act"}).memory.mode == "act"
    assert Runtime({"memory": "act"}, memory="advise").memory.mode == "advise"
    with pytest.raises(ManifestError, match="memory: 'on' is not one of advise, act, off"):
        Runtime(memory="on")  # type: ignore[arg-type]


@virtual
async def test_the_memory_can_be_cleared_by_tool_or_entirely() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE)
    rt.add(Scripted(DOWN), id="book", retry=ONCE)
    await rt.call("search")
    await rt.call("book")
    assert rt.memory.forget(tool="book") == 1
    assert [family["tool"] for family in rt.memory.families()] == ["search"]
    assert rt.memory.forget() == 1


@virtual
async def test_the_memory_survives_a_restart_in_a_store() -> None:
    store = MemoryStore()
    rt = Runtime(memory="act", store=store)
    rt.add(Shaky(), id="search", retry={"max_attempts": 2}, breaker=OFTEN, read_only=True)
    await episodes(rt, ENOUGH + 1)
    await rt.close()
    again = Runtime(memory="act", store=store)
    again.add(Shaky(), id="search", retry={"max_attempts": 2}, breaker=OFTEN, read_only=True)
    assert (await again.call("search", {"fails": True})).attempts == 1
    again.memory.forget()
    assert store.find("memory") == []


@virtual
async def test_a_store_that_cannot_be_read_is_an_empty_memory() -> None:
    class Broken(MemoryStore):
        def find(self, kind: Any, scope: str = "") -> Any:
            if kind == "memory":
                raise OSError("disk on fire")
            return []

    rt = Runtime(store=Broken())
    rt.add(Scripted("x"), id="search")
    assert (await rt.call("search")).value == "x"
    assert rt.memory.families() == []


@virtual
async def test_successful_calls_leave_the_memory_empty() -> None:
    rt, _ = runtime()
    for _ in range(100):
        await rt.call("search", {"fails": False})
    assert rt.memory.families() == []


def test_a_family_is_quoted_while_another_thread_learns_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = RecoveryMemory("advise", lambda: 0.0, lambda tool: 0)
    family = Family(None, "search", "lost")
    for _ in range(3):
        family.begin_episode(0.0, 0)
    memory.learn(family, None, worked=True, seconds=1.0)
    other = threading.Thread(target=memory.learn, args=(family, "backup"), kwargs={"worked": True, "seconds": 1.0})

    def interrupted(*figures: float) -> Tally:
        if other.ident is None:
            other.start()
            other.join(0.05)
        return Tally(*figures)

    monkeypatch.setattr(core, "Tally", interrupted)
    quoted = memory.evidence(family)
    other.join()
    assert quoted is not None
    assert [name for name, _ in quoted.tallies] == ["retry"]
    assert family.tallies.keys() == {"retry", "tool:backup"}
