"""T42: re-entrant reads, arguments without end, hostile trace files, clocks set by a year. Each gets an answer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import ONCE
from tests.torture.scale import times

from failsoft import ManifestError, Runtime, TurnError
from failsoft.core.conversation.thread_state import OFFER_LASTS, remaining_time
from failsoft.core.model.json_values import plain
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.surfaces.cli import Cli
from failsoft.surfaces.cli import cli as command_line
from failsoft.surfaces.cli.sources import EXAMPLE

SIGNALS = times(5_000, 300)
FILES = times(2_000, 60)


# --- re-entrance ------------------------------------------------------------------------------------------------------


def busy() -> Runtime:
    rt = Runtime()
    rt.add(lambda: 1, id="works", timeout=None, read_only=True)

    @rt.tool(retry=ONCE, timeout=None, breaker={"failure_threshold": 1_000_000})
    def fails() -> None:
        raise ConnectionRefusedError("refused")

    return rt


def read_all(rt: Runtime) -> None:
    """Everything that can be read, which must be whole."""
    seen = [event.seq for event in rt.events()]
    assert seen == [*range(seen[0], seen[-1] + 1)] if seen else True
    rt.metrics("works")
    rt.metrics("fails")
    rt.health("fails")
    assert rt.tools == ("works", "fails")


def test_t42_reads_from_a_signal_handler() -> None:
    rt = busy()
    problems: list[BaseException] = []
    came = 0

    def handle(number: int, frame: Any) -> None:
        nonlocal came
        came += 1
        try:
            read_all(rt)
            if came % 3 == 0:
                rt.call_sync("works")
        except BaseException as error:
            problems.append(error)

    before = signal.signal(signal.SIGALRM, handle)
    source = random.Random(42)
    calls = 0
    try:
        while came < SIGNALS and not problems:
            signal.setitimer(
                signal.ITIMER_REAL, source.uniform(1e-6, 0.001)
            )  # one: handlers do not interrupt each other
            rt.call_sync("works")
            rt.call_sync("fails")
            rt.events()
            calls += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert problems == []
    read_all(rt)
    assert rt.metrics("fails")["error_count"] == calls
    assert rt.metrics("works")["success_count"] >= calls


def test_t42_reads_from_a_finaliser() -> None:
    rt = busy()
    problems: list[BaseException] = []

    class Forgotten:
        def __init__(self) -> None:
            self.itself = self  # only the garbage collector ends it

        def __del__(self) -> None:
            try:
                read_all(rt)
                rt.call_sync("works")
            except BaseException as error:
                problems.append(error)

    before = gc.get_threshold()
    gc.set_threshold(20)
    try:
        for _ in range(times(2_000, 300)):
            Forgotten()
            rt.call_sync("works")
            rt.call_sync("fails")
            rt.events()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert problems == []
    read_all(rt)


# --- arguments without end --------------------------------------------------------------------------------------------


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def mapped(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def cyclic(width: int) -> list[Any]:
    value: list[Any] = []
    value += [value] * width
    return value


def around() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value |= {"self": value, "twice": [value, (value,)]}
    return value


def folded() -> list[Any]:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    return value


ENDLESS: dict[str, Callable[[], Any]] = {
    "600 deep": lambda: nested(600),
    "100,000 deep": lambda: nested(100_000),
    "600 mappings": lambda: mapped(600),
    "cycle": lambda: cyclic(1),
    "cycle of three": lambda: cyclic(3),
    "cycle of mappings": around,
    "2 ** 60": folded,
}


@pytest.mark.parametrize("make", ENDLESS.values(), ids=ENDLESS.keys())
def test_t42_endless_arguments_are_handled_in_bounded_time(make: Callable[[], Any], tmp_path: Path) -> None:
    value = make()
    rt = Runtime(store=f"sqlite:///{tmp_path / 'a.db'}")
    got: list[Any] = []

    @rt.tool(idempotent=False, retry=ONCE)
    async def takes(given: Any) -> str:
        got.append(given)
        return "taken"

    @rt.tool(read_only=True, retry=ONCE)
    async def fails(given: Any) -> None:
        raise ConnectionRefusedError("refused")

    async def main() -> None:
        began = time.process_time()
        async with rt.turn(thread="chat") as turn:
            sibling = turn.call("takes", {"given": 1})
            odd = turn.call("takes", {"given": value}, id="odd")
            turn.call("fails", {"given": value}, id="fails")
            with contextlib.suppress(TurnError):  # if it contains itself
                turn.call("takes", {"given": [sibling, value]}, id="mixed")
        assert (sibling.outcome.value, odd.outcome.value) == ("taken", "taken")
        assert turn.report.outcomes["fails"].status == "failed"
        turn.report.to_dict()
        assert any(one is value for one in got)
        for thread in (None, "chat"):
            assert (await rt.call("takes", {"given": value}, thread=thread, id="1")).value == "taken"
        with pytest.raises(ManifestError, match="use fewer levels or parts"):
            await rt.run_plan({"calls": [{"id": "a", "tool": "takes", "args": {"given": value}}]})
        json.dumps(plain(value))
        assert time.process_time() - began < 120  # every path through it would take for ever
        await rt.close()

    asyncio.run(main())


def test_t42_a_handle_that_lies_too_deep_is_refused() -> None:
    rt = Runtime()
    rt.add(lambda given=0: given, id="tool", read_only=True)

    async def main() -> None:
        async with rt.turn() as turn:
            first = turn.call("tool", {"given": 5})
            value: Any = first
            for _ in range(50):
                value = [value]
            fine = turn.call("tool", {"given": value})
            for _ in range(100):
                value = {"a": value}
            with pytest.raises(TurnError, match="levels deep"):
                turn.call("tool", {"given": value})
        found = fine.outcome.value
        for _ in range(50):
            (found,) = found
        assert found == 5

    asyncio.run(main())


# --- hostile trace files ----------------------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    None, True, 0, -1, 1e308, -1e308, float("nan"), float("inf"), 10**400, 2**63, "", "x", "\ud800", "\x1b[31m\x00",
    "a" * 5000, [], {}, [[]], {"a": {}}, [1, 2], {"x": ["x"]}, "2025-11-06T10:33:04Z", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z", "2025-11-06T10:33:04+14:00", "retry", "closed", "turn-40s", "search", [None],
]  # fmt: skip
ODD_FIELDS = ("parent", "root", "needs", "evidence", "status", "alternative", "retries", "extra", "grounds")
COMMANDS = [
    ["trace", "list"], ["trace", "list", "--json"], ["trace", "show", "last"], ["trace", "show", "last", "--json"],
    ["trace", "tail"], ["trace", "tail", "--json"], ["trace", "export", "last"], ["trace", "replay", "last"],
    ["trace", "replay", "last", "--json"], ["why", "last"], ["why", "last", "--json"],
]  # fmt: skip


def spoil(source: random.Random) -> list[dict[str, Any]]:
    """Recorded events, some of them changed."""
    events = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    for _ in range(source.choice([1, 1, 2, 5, 20])):
        event = source.choice(events)
        field, chance = source.choice([*event, *ODD_FIELDS]), source.random()
        if chance < 0.6:
            event[field] = source.choice(HOSTILE)
        elif chance < 0.8:
            event.pop(field, None)
        elif chance < 0.9:
            events.insert(source.randrange(len(events)), dict(event))
        else:
            source.shuffle(events)
    return events


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command. Raises what would be a traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line.main(list(arguments))
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    out.flush()
    err.flush()
    return code, (out.buffer.getvalue() + err.buffer.getvalue()).decode()  # type: ignore[attr-defined]


def check(*arguments: str) -> None:
    code, said = run(*arguments)
    assert code in (0, 1, 2)
    assert "Traceback" not in said
    assert code == 0 or said.strip()


def test_t42_hostile_trace_files(tmp_path: Path) -> None:
    assert isinstance(command_line, Cli)
    path = tmp_path / "trace.jsonl"
    for seed in range(FILES):
        lines = [json.dumps(event) for event in spoil(random.Random(seed))]
        path.write_text("\n".join(lines) + "\n")
        for command in COMMANDS:
            check(*command, "--trace", str(path))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n\n", b"\x00" * 1000, bytes(range(256)) * 10, b"[" * 100_000 + b"\n{}\n", b"{}\n", b"[]\n{}\n", b"null\n1\n",
        b'{"event_type": "' + b"a" * 10_000_000 + b'"}\n', b'{"seq": ' + b"9" * 5000 + b"}\n{}\n", b"SQLite format 3\0",
        b'{"event_type": "X", "timestamp": "2025-01-01", "turn_id": "t", "seq": NaN}\n' * 3,
        b'{"event_type": "ToolError", "timestamp": "2025-01-01", "turn_id": "t", "call_id": "a", "parent": "a"}\n' * 3,
    ],
)  # fmt: skip
def test_t42_files_that_are_no_traces(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    for command in COMMANDS:
        check(*command, "--trace", str(path))


def test_t42_hostile_stores(tmp_path: Path) -> None:
    for seed in range(FILES // 6):
        path = tmp_path / f"{seed}.db"
        store = SqliteStore(path)
        store.append([json.loads(line) for line in EXAMPLE.read_text().splitlines()])
        assert store.flush(10)
        store.close()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            source = random.Random(seed)
            for event in spoil(source)[:5]:
                body: Any = source.choice(
                    [json.dumps(event), json.dumps(event).encode(), b"\x00\xff", "{", None, 3, "[]"]
                )
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("UPDATE event SET body = ? WHERE position = ?", (body, source.randint(1, 20)))
            connection.commit()
        for command in COMMANDS:
            check(*command, "--store", f"sqlite:///{path}")


def test_t42_one_unreadable_turn_does_not_hide_the_others(tmp_path: Path) -> None:
    good = EXAMPLE.read_text()
    bad = json.dumps({"event_type": "ToolError", "timestamp": "2025-11-06T10:33:00Z", "turn_id": "bad", "needs": None})
    path = tmp_path / "trace.jsonl"
    path.write_text(good + bad + "\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        command_line.main(["trace", "list", "--trace", str(path)])
    assert "turn-40s" in out.getvalue()


# --- clocks -----------------------------------------------------------------------------------------------------------

YEAR = 365 * 86_400.0


@pytest.mark.parametrize("jump", [-YEAR, -86_400.0, -600.0, 0.0, 600.0, 86_400.0, YEAR])
def test_t42_an_offer_is_bounded_whatever_the_clock_says(jump: float) -> None:
    left = remaining_time(1e9, 1e9 + jump)
    assert 0 <= left <= OFFER_LASTS
    assert (left > 0) == (abs(jump) < OFFER_LASTS)


@pytest.mark.parametrize("jump", [-YEAR, YEAR])
def test_t42_an_offer_in_a_store_does_not_outlast_a_clock_that_was_set(jump: float, tmp_path: Path) -> None:
    now = [1_767_225_600.0]

    def offers() -> int:
        rt = Runtime(store=SqliteStore(tmp_path / "a.db", wall=lambda: now[0]))
        rt._engine.books.conversations.pending._wall = lambda: now[0]  # type: ignore[union-attr]
        rt.add(fails, retry=ONCE, read_only=True)
        if not made:
            made.append(rt.call_sync("fails", {}, thread="chat"))
        found = len(rt.threads["chat"].offers)
        asyncio.run(rt.close())
        return found

    def fails() -> None:
        raise ConnectionRefusedError("refused")

    made: list[Any] = []
    offers()
    now[0] += jump
    assert offers() == 0


def test_t42_retention_does_not_follow_a_clock_that_jumps(tmp_path: Path) -> None:
    now = [1_767_225_600.0]
    store = SqliteStore(tmp_path / "a.db", wall=lambda: now[0], max_age=86_400)
    store.append([{"seq": 1, "timestamp": "2025-12-31T23:59:59.000Z"}])
    assert store.flush(5)
    for jump in (YEAR, -2 * YEAR, YEAR):
        now[0] += jump
        store.append([{"seq": 2, "timestamp": "2026-01-01T00:00:00.000Z"}])
        assert store.flush(5)
        time.sleep(0.05)
    assert [event["seq"] for _, event in store.read()] == [1, 2, 2, 2]
    store.close()
