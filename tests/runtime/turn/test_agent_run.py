"""An agent framework's run is one turn: it has a start, rows with tool names, and one end."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.analysis.why import explain_turn


class Key:
    """A framework's object for a run."""


async def fine(_: Any) -> str:
    return "value"


async def broken(_: Any) -> str:
    raise ValueError("no such city")


def run(rt: Runtime, key: Key, tool: str = "search", does: Any = fine, **options: Any) -> Any:
    async def go() -> Any:
        turn = rt.agent_run(key, thread="chat-1")
        return await rt.run(tool, {}, {tool: does}, turn=turn, **options)

    return asyncio.run(go())


def of_turns(rt: Runtime) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for event in rt.events():
        found.setdefault(event.turn_id, []).append(event.event_type)
    return found


def test_a_run_is_a_turn_with_the_tools_names_on_its_rows() -> None:
    rt, key = Runtime(), Key()
    run(rt, key, id="a")
    run(rt, key, "pay", broken, id="b")
    rt.end_agent_run(key)
    [(turn_id, types)] = of_turns(rt).items()
    assert turn_id is not None
    assert types[0] == "TurnStarted"
    assert types[-1] == "TurnEnded"
    why = explain_turn(turn_id, [event.to_dict() for event in rt.events()])
    assert (why.thread, why.ended) == ("chat-1", True)
    assert [(row.id, row.tool, row.status) for row in why.waterfall.rows] == [
        ("a", "search", "succeeded"), ("b", "pay", "failed"),
    ]  # fmt: skip
    assert {name: rt.events()[-1].fields[name] for name in ("calls", "succeeded")} == {"calls": 2, "succeeded": 1}


def test_a_run_has_no_deadline_even_if_the_manifest_sets_one_for_turns() -> None:
    rt, key = Runtime({"turn": {"timeout": "1ms"}}), Key()

    async def slow(_: Any) -> str:
        await asyncio.sleep(0.05)
        return "late"

    assert run(rt, key, does=slow).value == "late"


def test_runs_side_by_side_are_turns_of_their_own() -> None:
    rt, keys = Runtime(), [Key() for _ in range(20)]
    barrier = threading.Barrier(20)

    def go(key: Key) -> None:
        barrier.wait()
        for _ in range(3):
            rt.run_sync("search", {}, {"search": lambda _: "value"}, turn=rt.agent_run(key))

    threads = [threading.Thread(target=go, args=(key,)) for key in keys]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for key in keys:
        rt.end_agent_run(key)
    assert [types.count("CallSucceeded") for types in of_turns(rt).values()] == [3] * 20
    assert all(types[0] == "TurnStarted" for types in of_turns(rt).values())


def test_calls_of_one_run_that_start_in_many_threads_at_once_share_its_turn() -> None:
    rt, key, barrier = Runtime(), Key(), threading.Barrier(20)

    def go() -> None:
        barrier.wait()
        rt.run_sync("search", {}, {"search": lambda _: "value"}, turn=rt.agent_run(key))

    threads = [threading.Thread(target=go) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    [types] = of_turns(rt).values()
    assert (types.count("TurnStarted"), types.count("CallSucceeded")) == (1, 20)


def test_a_run_that_is_never_closed_ends_once_when_its_object_is_freed() -> None:
    rt, key = Runtime(), Key()
    run(rt, key)
    del key
    gc.collect()
    assert [*of_turns(rt).values()] == [["TurnStarted", "CallSucceeded", "TurnEnded"]]


def test_ending_it_twice_is_harmless() -> None:
    rt, key = Runtime(), Key()
    rt.end_agent_run(key)
    run(rt, key)
    rt.end_agent_run(key)
    rt.end_agent_run(key)
    del key
    gc.collect()
    assert [*of_turns(rt).values()] == [["TurnStarted", "CallSucceeded", "TurnEnded"]]


def test_closing_the_runtime_ends_the_run() -> None:
    rt, key = Runtime(), Key()
    run(rt, key)
    asyncio.run(rt.close())
    assert [*of_turns(rt).values()] == [["TurnStarted", "CallSucceeded", "TurnEnded"]]


@pytest.mark.parametrize("kept", ["trace", "store"])
def test_the_end_of_the_program_ends_the_run_and_is_recorded(tmp_path: Path, kept: str) -> None:
    program = f"""
import asyncio
from failsoft import Runtime
rt = Runtime({kept}={str(tmp_path / "kept") if kept == "trace" else f"sqlite:///{tmp_path / 'kept'}"!r})
class Key: ...
key = Key()
async def fine(_): return 1
async def main():
    await rt.run("search", {{}}, {{"search": fine}}, turn=rt.agent_run(key))
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    option = ["--trace", str(tmp_path / "kept")] if kept == "trace" else ["--store", f"sqlite:///{tmp_path / 'kept'}"]
    said = subprocess.run(
        [sys.executable, "-m", "failsoft", "why", "last", "--json", *option],
        check=True, timeout=60, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert '"ended": true' in said
    assert '"search"' in said


def test_calls_made_inside_a_turn_belong_to_it() -> None:
    rt, key = Runtime(), Key()

    async def go() -> None:
        async with rt.turn(id="mine"):
            assert rt.agent_run(key) is None
            await rt.run("search", {}, {"search": fine}, turn=rt.agent_run(key))

    asyncio.run(go())
    assert [*of_turns(rt)] == ["mine"]


def test_an_agent_inside_a_tool_is_part_of_the_call() -> None:
    rt, key = Runtime(), Key()

    async def outer(_: Any) -> str:
        inside = Key()
        await rt.run("inner", {}, {"inner": fine}, turn=rt.agent_run(inside), id="i")
        return "done"

    run(rt, key, "outer", outer, id="o")
    rt.end_agent_run(key)
    [(turn_id, _)] = of_turns(rt).items()
    why = explain_turn(str(turn_id), [event.to_dict() for event in rt.events()])
    assert [(row.id, row.tool, row.parent) for row in why.waterfall.rows] == [("o", "outer", None), ("i", "inner", "o")]


def test_calls_of_one_id_have_a_row_each() -> None:
    rt, key = Runtime(), Key()
    for _ in range(3):
        run(rt, key, id="call_1")
    rt.end_agent_run(key)
    calls = [event.call_id for event in rt.events() if event.event_type == "CallSucceeded"]
    assert calls == ["call_1", "call_1#2", "call_1#3"]
