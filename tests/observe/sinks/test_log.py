"""The stdlib logger ``failsoft``: levels, one record per failed call, no secrets, nothing on the event loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.observe.sinks import log as failsoft_log
from failsoft.testing import virtual_time

SECRET = "sk-proj-" + "a1B2" * 10


class Records(logging.Handler):
    """Keep each log record and the OS thread that logged it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.kept: list[logging.LogRecord] = []
        self.threads: set[int] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "event_type"):
            self.kept.append(record)
            self.threads.add(threading.get_ident())

    def of(self, tool: str) -> list[logging.LogRecord]:
        assert failsoft_log.flush(5.0)
        return [record for record in self.kept if getattr(record, "tool_id", None) == tool]

    def levels(self, tool: str) -> list[str]:
        return [record.levelname for record in self.of(tool)]


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("failsoft")
    before = logger.level
    failsoft_log.flush(5.0)
    failsoft_log._counter, failsoft_log._losses = failsoft_log._Counter(), failsoft_log._Losses()
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def runtime(**tools: Any) -> Runtime:
    rt = Runtime()
    for name, fn in tools.items():
        rt.add(fn, id=name, read_only=True)
    return rt


async def down() -> None:
    raise ConnectionError("503 Service Unavailable")


async def bug() -> None:
    {}["city"]


async def denied() -> None:
    raise PermissionError(f"401 Unauthorized: key {SECRET}")


@pytest.mark.parametrize("call", ["call", "call_sync", "guarded"])
def test_a_bug_is_logged_once_at_error_with_its_traceback(records: Records, call: str) -> None:
    rt = runtime(bug=bug)
    if call == "call_sync":
        rt.call_sync("bug")
    elif call == "call":
        asyncio.run(rt.call("bug"))
    else:
        with pytest.raises(Exception, match="city"):
            asyncio.run(rt._engine.toolbox.tools["bug"].guarded())
    assert records.levels("bug") == ["ERROR"]
    (record,) = records.of("bug")
    assert "in bug" in (record.exc_text or "")
    assert "KeyError" in (record.exc_text or "")
    assert "failsoft/runtime" not in (record.exc_text or "")  # it begins at the tool
    assert record.call_id == "bug-1"  # type: ignore[attr-defined]
    assert "\n" not in record.getMessage()


def test_an_escalated_call_is_one_record_at_error_and_keeps_no_secret(records: Records) -> None:
    rt = runtime(denied=denied)
    asyncio.run(rt.call("denied"))
    assert records.levels("denied") == ["ERROR"]
    (record,) = records.of("denied")
    assert "in denied" in (record.exc_text or "")
    assert SECRET not in repr(vars(record)) + (record.exc_text or "")
    assert record.code in ("UNAUTHENTICATED", "PERMISSION_DENIED")  # type: ignore[attr-defined]


def test_a_failed_call_that_is_not_required_is_a_warning(records: Records) -> None:
    rt = Runtime()
    rt.add(down, id="down", read_only=True, required=False, retry={"max_attempts": 1})
    asyncio.run(rt.call("down"))
    assert records.levels("down") == ["WARNING"]


def test_an_opened_circuit_is_a_warning_and_refusals_are_not_logged(records: Records) -> None:
    rt = Runtime()
    rt.add(down, id="down", read_only=True, retry={"max_attempts": 1}, breaker={"failure_threshold": 1})

    async def main() -> None:
        for _ in range(5):
            await rt.call("down")

    asyncio.run(main())
    assert [record.event_type for record in records.of("down")].count("CircuitOpened") == 1  # type: ignore[attr-defined]
    assert "CallRefused" not in [record.event_type for record in records.of("down")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("known", [False, True])
def test_retries_are_logged_at_info_on_every_path(records: Records, *, known: bool) -> None:
    logging.getLogger("failsoft").setLevel(logging.WARNING if known else logging.INFO)
    failures = [True, False]

    async def shaky() -> str:
        if failures.pop(0):
            raise ConnectionError("503 Service Unavailable")
        return "ok"

    with virtual_time() as clock:
        rt = Runtime()
        rt.add(shaky, id="shaky", read_only=True)
        if known:  # the fast retry loop knows the error from here on
            clock.run(rt.call("shaky"))
            failures.extend([True, False])
            logging.getLogger("failsoft").setLevel(logging.INFO)
        clock.run(rt.call("shaky"))
    assert [record.event_type for record in records.of("shaky")] == ["ToolError", "RetrySucceeded"]  # type: ignore[attr-defined]
    assert records.levels("shaky") == ["INFO", "INFO"]


def test_debug_has_every_call(records: Records) -> None:
    logging.getLogger("failsoft").setLevel(logging.DEBUG)

    async def fine() -> str:
        return "ok"

    rt = runtime(fine=fine)
    assert asyncio.run(rt.call("fine")).value == "ok"
    assert [record.event_type for record in records.of("fine")] == ["CallSucceeded"]  # type: ignore[attr-defined]


def test_an_unknown_tool_is_logged(records: Records) -> None:
    asyncio.run(Runtime().call("nope"))
    assert failsoft_log.flush(5.0)
    assert [record.levelname for record in records.kept] == ["ERROR"]
    assert "nope" in records.kept[0].getMessage()


def test_names_from_outside_cannot_break_a_line_or_a_stream(records: Records) -> None:
    rt = runtime(denied=denied)
    asyncio.run(rt.call("denied", id="evil\ud800\n\x1b[31mid", thread="a\udfffb"))
    (record,) = records.of("denied")
    told = record.getMessage() + repr([value for value in vars(record).values() if isinstance(value, str)])
    told.encode("utf-8")
    assert "\n" not in record.getMessage()
    assert "\x1b" not in record.getMessage()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028"])
def test_the_text_of_an_error_cannot_forge_a_record(records: Records, end: str) -> None:
    async def forge() -> None:
        raise PermissionError(f"401{end}CRITICAL root: all is lost{end}Traceback (most recent call last):")

    runtime(search=forge).call_sync("search")
    (record,) = records.of("search")
    lines = logging.Formatter("%(levelname)s %(name)s: %(message)s").format(record).splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        lines[0],
        "Traceback (most recent call last):",
        "PermissionError: 401",
    ]


def test_identical_failures_are_counted_and_the_count_is_logged(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = Runtime()
    rt.add(denied, id="denied", read_only=True)

    async def main() -> None:
        for _ in range(50):
            await rt.call("denied")

    asyncio.run(main())
    assert len(records.of("denied")) == 1
    now = failsoft_log.monotonic()
    monkeypatch.setattr(failsoft_log, "monotonic", lambda: now + failsoft_log.WINDOW)
    assert failsoft_log._tick() is None
    assert "49 more times" in records.of("denied")[-1].getMessage()
    assert records.of("denied")[-1].repeated == 49  # type: ignore[attr-defined]
    assert len(records.of("denied")) == 2


def test_another_error_of_the_same_tool_is_not_counted_with_it(records: Records) -> None:
    errors = [ValueError("no such city: Oz"), PermissionError("401 Unauthorized")]

    async def odd() -> None:
        raise errors.pop()

    rt = runtime(odd=odd)
    asyncio.run(rt.call("odd"))
    asyncio.run(rt.call("odd"))
    assert len(records.of("odd")) == 2


def test_the_number_of_remembered_failures_is_bounded() -> None:
    counter = failsoft_log._Counter()
    for number in range(3 * failsoft_log.MOST_COUNTED):
        entry = failsoft_log.Entry(logging.ERROR, "Escalated", 0.0, f"tool{number}", None, None, {"error": "x"})
        counter.due(0.0)
        assert counter.admits(entry, 0.0)
    assert len(counter._seen) == failsoft_log.MOST_COUNTED


def test_a_count_is_logged_before_its_failure_is_forgotten() -> None:
    counter = failsoft_log._Counter()
    entry = failsoft_log.Entry(logging.ERROR, "Escalated", 0.0, "first", None, None, {"error": "x"})
    assert counter.admits(entry, 0.0)
    assert not counter.admits(entry, 1.0)
    found = []
    for number in range(failsoft_log.MOST_COUNTED):
        found += counter.due(2.0)
        assert counter.admits(entry._replace(tool_id=f"tool{number}"), 2.0)
    assert [(count, one.tool_id) for count, _, one in found] == [(1, "first")]


def test_a_handler_that_hangs_costs_little_memory_and_the_loss_is_logged(records: Records) -> None:
    """Waiting entries hold no variables of the tool's frames, and entries that do not fit are counted."""
    gone, begun = threading.Event(), threading.Event()

    class Hangs(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            begun.set()
            gone.wait(30)

    class Large:
        pass

    alive: list[weakref.ref[Large]] = []

    async def fails() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        raise KeyError("bug")

    hangs, said = Hangs(), []
    logger = logging.getLogger("failsoft")
    logger.addFilter(lambda record: bool(said.append(record.getMessage())) or True)
    logger.addHandler(hangs)
    dropped = failsoft_log._delivery.dropped
    rt = runtime(fails=fails)
    try:
        asyncio.run(rt.call("fails"))
        assert begun.wait(10)
        asyncio.run(rt.call("fails"))
        gc.collect()
        assert [one() for one in alive[1:]] == [None]
        for _ in range(failsoft_log.CAPACITY + 10):
            failsoft_log.put(failsoft_log.Entry(logging.INFO, "Odd", 0.0, "odd", None, None, {}))
        assert len(failsoft_log._delivery._queue) <= failsoft_log.CAPACITY
        lost = failsoft_log._delivery.dropped - dropped
        assert lost >= 10
    finally:
        gone.set()
        logger.removeHandler(hangs)
        failsoft_log.flush(10.0)
        del logger.filters[-1]
    assert f"{lost} records of failsoft were not logged: the handlers of this logger are too slow" in said


def test_logging_happens_on_another_thread(records: Records) -> None:
    asyncio.run(runtime(denied=denied).call("denied"))
    assert records.of("denied")
    assert threading.get_ident() not in records.threads


def test_a_handler_that_raises_or_hangs_does_not_reach_calls(records: Records) -> None:
    class Bad(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("handler")

    bad = Bad()
    logging.getLogger("failsoft").addHandler(bad)
    try:
        rt = runtime(denied=denied, bug=bug)
        assert asyncio.run(rt.call("denied")).status == "failed"
        assert asyncio.run(rt.call("bug")).status == "failed"
        failsoft_log.flush(5.0)
    finally:
        logging.getLogger("failsoft").removeHandler(bad)
    rt = runtime(later=denied)
    asyncio.run(rt.call("later"))
    assert records.of("later")


def test_the_log_is_complete_when_a_program_ends_right_after_its_call() -> None:
    program = (
        "import failsoft\n"
        "rt = failsoft.Runtime()\n"
        "@rt.tool(read_only=True)\n"
        "def search(): raise PermissionError('401 Unauthorized')\n"
        "for _ in range(3): rt.call_sync('search')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("search failed")]
    assert len(lines) == 2, done.stderr  # one failure and the count of the others
    assert "2 more times" in lines[1]


def test_a_turn_that_ends_at_its_deadline_says_which_call_was_left(records: Records) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    async def main(rt: Runtime) -> None:
        async with rt.turn(timeout="1s", id="t1") as turn:
            turn.call("slow")

    with virtual_time() as clock:
        rt = Runtime()
        rt.add(slow, id="slow", read_only=True)
        clock.run(main(rt))
    assert records.levels("slow") == ["WARNING"]
    assert records.of("slow")[0].turn_id == "t1"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("options", "levels"), [({"idempotent": False}, ["WARNING"]), ({"read_only": True}, [])])
def test_a_write_that_is_cancelled_while_it_runs_is_a_warning(
    records: Records, options: dict[str, Any], levels: list[str]
) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    async def main(rt: Runtime) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await rt.call("pay")

    with virtual_time() as clock:
        rt = Runtime()
        rt.add(slow, id="pay", **options)
        clock.run(main(rt))
    assert records.levels("pay") == levels
    for record in records.of("pay"):
        assert record.getMessage() == "pay was cancelled and may have acted (call pay-1)"


# --- traces -------------------------------------------------------------------------------------------------------------


def test_records_have_the_ids_of_the_current_trace_and_span(records: Records) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    rt = runtime(search=denied)
    with TracerProvider(shutdown_on_exit=False).get_tracer("tests").start_as_current_span("request") as span:
        rt.call_sync("search")
    (record,) = records.of("search")
    context = span.get_span_context()
    assert (record.trace_id, record.span_id) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")  # type: ignore[attr-defined]


def test_records_outside_of_a_trace_have_no_ids_of_one(records: Records) -> None:
    runtime(search=denied).call_sync("search")
    (record,) = records.of("search")
    assert not hasattr(record, "trace_id")


@pytest.mark.parametrize("name", ["trace_id", "tool_id", "code", "attempts", "tenant"])
def test_a_name_that_a_record_factory_has_set_loses_no_record(records: Records, name: str) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    before = logging.getLogRecordFactory()

    def factory(*args: Any, **options: Any) -> logging.LogRecord:
        record = before(*args, **options)
        setattr(record, name, "of the factory")
        return record

    logging.setLogRecordFactory(factory)
    try:
        with TracerProvider(shutdown_on_exit=False).get_tracer("tests").start_as_current_span("request"):
            runtime(search=denied).call_sync("search", tenant="acme")
        (record,) = records.of("search")
    finally:
        logging.setLogRecordFactory(before)
    assert name == "tenant" or getattr(record, name) != "of the factory"


def test_logging_does_not_load_opentelemetry() -> None:
    code = (
        "import sys, logging\n"
        "from failsoft import Runtime\n"
        "rt = Runtime()\n"
        "@rt.tool(read_only=True)\n"
        "def search(): raise ValueError('no')\n"
        "rt.call_sync('search')\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_an_api_that_fails_loses_no_record(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", logging)  # has no get_current_span
    runtime(search=denied).call_sync("search")
    (record,) = records.of("search")
    assert not hasattr(record, "trace_id")
