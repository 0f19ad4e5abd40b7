"""A call id given by a model may hold a secret: it is masked wherever it is kept or shown, and still recognised."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import string
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.core.redact.sanitise import mask_id, sanitise
from failsoft.integration.unanswered import explain_dangling
from failsoft.observe.sinks.log import flush
from failsoft.stores.sqlite.store import SqliteStore

SECRET = "sk-proj-" + "a1B2" * 10
IDS = [
    SECRET,
    f"call_{SECRET}",
    "search password=kX9mQ2vL7w",
    "postgres://me:kX9mQ2vL7w@db/main",
    "AKIAIOSFODNN7EXAMPLE",
]
BARE = [SECRET, "kX9mQ2vL7w", "AKIAIOSFODNN7EXAMPLE"]


def leaks(text: str) -> list[str]:
    return [secret for secret in BARE if secret in text]


@pytest.mark.parametrize("id", IDS)
def test_an_id_with_a_secret_is_masked_and_stays_itself(id: str) -> None:
    masked = mask_id(id)
    assert not leaks(masked)
    assert masked == mask_id(id)
    assert masked == mask_id(masked)
    assert masked != mask_id(id + "x")


def test_ids_made_by_providers_are_not_masked() -> None:
    source = random.Random(21)
    letters = string.ascii_letters + string.digits

    def chosen(count: int, of: str = letters) -> str:
        return "".join(source.choices(of, k=count))

    for _ in range(200):
        unique = uuid.UUID(int=source.getrandbits(128))
        for id in (
            f"call_{chosen(24)}", f"toolu_01{chosen(22)}", f"tooluse_{chosen(22)}", f"fc_{chosen(48, '0123456789abcdef')}",
            str(unique), unique.hex, f"pyd_ai_{unique.hex}", f"chatcmpl-tool-{unique.hex}", f"run--{unique}-0",
            chosen(9), f"function-call-{source.getrandbits(63)}", "flights", "search-12", "hotel/price",
        ):  # fmt: skip
            assert mask_id(id) == id == sanitise(id)


def test_most_ids_cost_nothing_worth_mentioning() -> None:
    def cost(id: str) -> float:
        began = time.perf_counter()
        for _ in range(1_000):
            mask_id(id)
        return (time.perf_counter() - began) / 1_000

    made = ["flights", "call_" + "aB3" * 8, "toolu_01" + "aB" * 11, uuid.uuid4().hex]
    assert max(min(cost(id) for _ in range(5)) for id in made) < 5e-6


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("way", ["call", "call_sync", "turn", "plan", "missing", "arguments"])
def test_no_secret_of_an_id_is_kept_or_told(  # noqa: C901 - one branch for each way to make a call
    tmp_path: Path, caplog: pytest.LogCaptureFixture, id: str, way: str
) -> None:
    caplog.set_level(logging.DEBUG, "failsoft")
    store = SqliteStore(tmp_path / "a.db")
    rt = Runtime(store=store)
    heard: list[Any] = []
    rt.subscribe(heard.append)
    told: list[Any] = []

    @rt.tool(idempotent=False)
    async def pay(amount: int = 1) -> int:
        if amount > 1:
            raise ConnectionResetError("connection reset")
        return amount

    @rt.tool(read_only=True)
    async def look(amount: int = 1) -> int:
        return await rt.call("pay", {"amount": amount}, id=f"inner {id}") and amount

    async def use() -> None:
        if way == "call":
            for amount in (1, 2):
                told.append(await rt.call("pay", {"amount": amount}, id=id, thread=f"chat {amount}"))
        elif way == "turn":
            async with rt.turn(thread="chat") as turn:
                turn.call("pay", {"amount": 2}, id=id)
                turn.call("look", {}, id=f"{id} after", depends_on=[id])
                turn.call("look", {"amount": 2}, id=f"{id} beside")
            told.append(turn.report)
            assert turn.report.outcomes[id].status == "failed"
            assert turn.report.outcomes[f"{id} after"].status == "skipped"
            assert id in turn.report.outcomes
        elif way == "plan":
            calls = [
                {"id": id, "tool": "pay"},
                {"id": f"{id} after", "tool": "look", "args": {"amount": {"$ref": id}}},
            ]
            told.append(report := await rt.run_plan({"calls": calls}))
            assert [outcome.status for outcome in report.outcomes.values()] == ["succeeded"] * 2
        elif way == "missing":
            told.append(await rt.call("nothing", {}, id=id))
        elif way == "arguments":
            told.append(await rt.call("pay", [], id=id))  # type: ignore[call-overload]

    if way == "call_sync":
        told += [rt.call_sync("pay", {"amount": amount}, id=id, thread="chat") for amount in (1, 2)]
    else:
        asyncio.run(use())
    flush(5.0)
    asyncio.run(rt.close())
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("latin-1")
    events = json.dumps([event.to_dict() for event in rt.events()], default=str)
    texts = json.dumps([one.to_dict() for one in told], default=str) + repr(told)
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    for text in (kept, events, texts, logged, repr(heard)):
        assert not leaks(text), text


def test_a_replay_of_a_masked_id_is_recognised(tmp_path: Path) -> None:
    """The process died in the middle of a write: its id is known again, and so is the call in the history."""
    begun: list[int] = []

    def runtime() -> Runtime:
        rt = Runtime(store=f"sqlite:///{tmp_path / 'a.db'}")

        @rt.tool(idempotent=False)
        async def pay(amount: int) -> int:
            begun.append(amount)
            await asyncio.sleep(60 if len(begun) == 1 else 0)
            return amount

        return rt

    async def leave(rt: Runtime) -> None:
        call = asyncio.create_task(rt.call("pay", {"amount": 1}, id=SECRET, thread="chat"))
        while not begun:  # noqa: ASYNC110 - the tool appends to it
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait([call])
        await rt.close()

    asyncio.run(leave(runtime()))
    again = runtime()
    replayed = asyncio.run(again.call("pay", {"amount": 1}, id=SECRET, thread="chat"))
    assert begun == [1]
    assert replayed.status == "failed"
    asyncio.run(again.call("pay", {"amount": 1}, id=SECRET + "9", thread="chat"))
    assert begun == [1, 1]  # another id is another call
    (closed,) = explain_dangling(again, [(SECRET, "pay")], thread="chat")
    assert closed.status == "cancelled"
    asyncio.run(again.close())
