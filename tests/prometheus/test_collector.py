"""Prometheus: the text is parsed by the official parsers, and its values are what happened."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from failsoft import Runtime, Verified, partial
from failsoft.observe.metric_definitions import BUCKETS, DEFINITIONS, MOST_TOOLS
from failsoft.prometheus import PrometheusCollector, exposition
from failsoft.testing import FaultPlan, virtual_time

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Key = tuple[str, frozenset[tuple[str, str]]]
Read = Callable[..., float | None]


async def search(city: str) -> str:
    return f"hotels in {city}"


def values(source: Runtime | PrometheusCollector, accept: str = "") -> dict[Key, float]:
    text, content_type = exposition(source, accept)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    found: dict[Key, float] = {}
    for family in parse(text.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def reader(source: Runtime | PrometheusCollector, accept: str = "") -> Read:
    found = values(source, accept)
    return lambda name, **labels: found.get((f"failsoft_{name}", frozenset(labels.items())))


def scripted(main: Callable[[Runtime], Any], **options: Any) -> Runtime:
    with virtual_time() as clock:
        rt = Runtime(**options)
        exposition(rt)
        clock.run(main(rt))
    return rt


@pytest.fixture(params=["", OPENMETRICS], ids=["text", "openmetrics"])
def accept(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_retries_and_errors_are_what_happened(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        rt.add(FaultPlan("503, 503, ok, auth, ok, ok").wrap(search), read_only=True)
        for _ in range(4):
            await rt.call("search", {"city": "PAR"})

    rt = scripted(main)
    read, metrics = reader(rt, accept), rt.metrics("search")
    tool = {"tool": "search"}
    for name in (
        "error_count", "transient_error_count", "permanent_error_count", "retry_count", "retry_success_rate",
        "circuit_breaker_opens", "timeout_count", "fallback_count", "recovery_seconds",
    ):  # fmt: skip
        assert read(name, **tool) == metrics[name], name
    assert read("error_count", **tool) == 3
    assert read("tool_calls_total", **tool, outcome="succeeded", category="none") == 3
    assert read("tool_calls_total", **tool, outcome="failed", category="tool_misconfigured") == 1
    kinds = ("successful_without_retry", "successful_with_retry", "failed_with_retry", "failed_without_retry")
    assert [read("tool_attempts_total", **tool, kind=kind) for kind in kinds] == [2, 1, 2, 1]
    assert read("tool_errors_total", **tool, code="UNAVAILABLE") == 2
    assert read("tool_errors_total", **tool, code="UNAUTHENTICATED") == 1
    assert read("tool_call_duration_seconds_count", **tool) == 4
    assert read("tool_recovery_duration_seconds_count", **tool) == 1
    assert read("tool_recovery_duration_seconds_sum", **tool) == pytest.approx(metrics["recovery_seconds"])
    assert read("tool_lost_time_seconds_total", **tool, part="waiting") == pytest.approx(
        metrics["recovery_seconds"], abs=1e-3
    )
    assert read("tool_escalations_total", **tool) == 1


def test_fallbacks_count_for_the_tool_that_was_asked_for(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        async def old(city: str) -> str:
            raise ConnectionError("down")

        rt.add(search, read_only=True)
        rt.add(old, read_only=True, fallbacks=["search"], retry={"max_attempts": 2})
        for _ in range(2):
            assert (await rt.call("old", {"city": "PAR"})).value
        await rt.call("search", {"city": "PAR"})

    read = reader(scripted(main), accept)
    assert read("fallback_total", tool="old", to="search") == 2
    assert read("fallback_count", tool="old") == 2
    assert read("tool_calls_total", tool="old", outcome="succeeded", category="none") == 2
    assert read("tool_calls_total", tool="search", outcome="succeeded", category="none") == 1
    assert read("tool_attempts_total", tool="old", kind="failed_with_retry") == 2
    assert read("tool_attempts_total", tool="search", kind="successful_without_retry") == 3
    assert read("tool_call_duration_seconds_count", tool="old") == 2
    assert read("tool_recovery_duration_seconds_count", tool="old") == 2


def test_a_circuit_that_opens_and_closes_is_seen_in_every_state(accept: str) -> None:
    states: list[list[float | None]] = []

    async def main(rt: Runtime) -> None:
        rt.add(FaultPlan("503, 503, 503, 503, 503, 503, ok").wrap(search), read_only=True, retry={"max_attempts": 1})

        def look() -> None:
            read = reader(rt, accept)
            states.append(
                [read("breaker_state", tool="search", state=state) for state in ("closed", "open", "half_open")]
            )

        look()
        for _ in range(7):
            await rt.call("search", {"city": "PAR"})
        look()
        await asyncio.sleep(31)
        look()
        await rt.call("search", {"city": "PAR"})  # the probe fails
        await asyncio.sleep(31)
        await rt.call("search", {"city": "PAR"})
        look()

    rt = scripted(main)
    assert states == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    read = reader(rt, accept)

    def transitions(before: str, after: str) -> float | None:
        return read("breaker_transitions_total", **{"tool": "search", "from": before, "to": after})

    assert transitions("closed", "open") == 1
    assert transitions("open", "half_open") == 2
    assert transitions("half_open", "open") == 1
    assert transitions("half_open", "closed") == 1
    assert read("circuit_breaker_opens", tool="search") == 2
    assert read("tool_refusals_total", tool="search") == 2
    assert read("tool_calls_total", tool="search", outcome="refused", category="tool_transient") == 2


def test_a_write_whose_effect_is_unknown_is_counted_and_a_read_is_not(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        async def slow(city: str) -> str:
            await asyncio.sleep(60)
            return city

        rt.add(slow, id="pay", idempotent=False, timeout="1s")
        rt.add(slow, id="look", read_only=True, timeout="1s", retry={"max_attempts": 1})
        for tool in ("pay", "look"):
            await rt.call(tool, {"city": "PAR"})

    read = reader(scripted(main), accept)
    assert read("effect_unknown_total", tool="pay") == 1
    assert read("effect_unknown_total", tool="look") == 0
    assert read("timeout_count", tool="pay") == 1


@pytest.mark.parametrize("how", ["by its caller", "by its turn"])
def test_a_write_that_is_cancelled_while_it_runs_has_an_unknown_effect(how: str, accept: str) -> None:
    async def slow(city: str) -> str:
        await asyncio.sleep(60)
        return city

    async def main(rt: Runtime) -> None:
        rt.add(slow, id="pay", idempotent=False, concurrency=1)
        rt.add(slow, id="look", read_only=True)
        async with asyncio.TaskGroup() as group:
            for tool in ("pay", "pay", "look"):  # the second payment waits for the first
                group.create_task(end(rt, tool))

    async def end(rt: Runtime, tool: str) -> None:
        if how == "by its caller":
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await rt.call(tool, {"city": "PAR"})
        else:
            with suppress(KeyError):
                async with rt.turn() as turn:
                    turn.call(tool, {"city": "PAR"})
                    await asyncio.sleep(1)
                    raise KeyError

    read = reader(scripted(main), accept)
    assert read("effect_unknown_total", tool="pay") == 1
    assert read("effect_unknown_total", tool="look") == 0
    assert read("tool_calls_total", tool="pay", outcome="cancelled", category="none") == 2
    assert read("tool_call_duration_seconds_count", tool="pay") == 1  # the other one did not run
    assert read("tool_call_duration_seconds_sum", tool="look") == pytest.approx(1)


def test_a_call_that_goes_on_after_its_turn_is_measured_once_and_until_the_deadline(accept: str) -> None:
    async def slow(city: str) -> str:
        await asyncio.sleep(5)
        return city

    async def main(rt: Runtime) -> None:
        rt.add(slow, id="look", read_only=True)
        async with rt.turn(timeout="2s") as turn:
            turn.call("look", {"city": "PAR"})
        await asyncio.sleep(10)
        async with rt.turn() as turn:
            turn.call("look", {"city": "PAR"})

    read = reader(scripted(main), accept)
    assert read("tool_late_results_total", tool="look") == 1
    assert read("tool_call_duration_seconds_count", tool="look") == 2
    assert read("tool_call_duration_seconds_sum", tool="look") == pytest.approx(7)


def test_an_attempt_counts_once_if_its_call_was_rescued(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        async def pay(amount: int) -> str:
            await asyncio.sleep(60)
            return "paid"

        async def look(*_: Any, **__: Any) -> Verified:
            return Verified.happened("paid")

        async def some(city: str) -> Any:
            return partial([city], missing="the rest")

        rt.add(pay, idempotent=False, timeout="1s", verify=look)
        rt.add(some, read_only=True, retry={"max_attempts": 2})
        assert (await rt.call("pay", {"amount": 1})).via == "verify"
        assert (await rt.call("some", {"city": "PAR"})).status == "succeeded"

    rt = scripted(main)
    attempts = {
        tool: sum(value for (name, labels), value in values(rt, accept).items() if name == "failsoft_tool_attempts_total" and ("tool", tool) in labels)
        for tool in ("pay", "some")
    }  # fmt: skip
    assert attempts == {"pay": 1, "some": 2}
    read = reader(rt, accept)
    assert read("effect_unknown_total", tool="pay") == 0
    assert read("tool_calls_total", tool="pay", outcome="succeeded", category="none") == 1


def test_names_that_a_model_invented_share_one_series(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        rt.add(search, read_only=True)
        for number in range(50):
            await rt.call(f"serach_{number}", {"city": "PAR"})
        async with rt.turn() as turn:
            turn.call("surch", {"city": "PAR"})

    rt = scripted(main)
    read = reader(rt, accept)
    assert read("tool_calls_total", tool="_unknown", outcome="refused", category="tool_unavailable") == 51
    text = exposition(rt)[0].decode()
    assert "serach" not in text
    assert "surch" not in text


def test_turns_are_measured_by_outcome_and_part(accept: str) -> None:
    async def main(rt: Runtime) -> None:
        async def slow(city: str) -> str:
            await asyncio.sleep(4)
            return city

        rt.add(FaultPlan("503, ok, ok, auth").wrap(slow), read_only=True)
        for timeout in ("60s", "2s", "60s"):
            async with rt.turn(timeout=timeout) as turn:
                turn.call("slow", {"city": "PAR"})

    read = reader(scripted(main), accept)
    for outcome in ("succeeded", "degraded", "timed_out"):
        assert read("turn_duration_seconds_count", outcome=outcome) == 1, outcome
    assert read("turn_time_seconds_total", part="useful") == pytest.approx(4, abs=0.01)
    assert (read("turn_time_seconds_total", part="waiting") or 0) > 0
    assert read("turn_time_seconds_total", part="failed") == pytest.approx(2, abs=0.01)  # unfinished at the deadline


def test_abandoned_attempts_are_orphans_until_they_end(accept: str) -> None:
    rt = Runtime()
    go_on = threading.Event()

    def stuck(city: str) -> str:
        go_on.wait(20)
        return city

    rt.add(stuck, read_only=True, timeout="50ms", retry={"max_attempts": 1})
    rt.call_sync("stuck", {"city": "PAR"})
    read = reader(rt, accept)
    assert read("orphans", tool="stuck") == 1
    assert read("tool_abandoned_total", tool="stuck") == 1
    go_on.set()
    deadline = time.monotonic() + 10
    while reader(rt)("orphans", tool="stuck") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reader(rt, accept)("orphans", tool="stuck") == 0
    assert reader(rt, accept)("tool_abandoned_total", tool="stuck") == 1
    asyncio.run(rt.close())


def test_an_async_tool_that_cannot_be_cancelled_is_an_orphan() -> None:
    asyncio.run(leave_an_orphan())


async def leave_an_orphan() -> None:
    rt, go_on = Runtime(), asyncio.Event()

    async def stubborn(city: str) -> str:
        while not go_on.is_set():
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                await go_on.wait()
        return city

    rt.add(stubborn, read_only=True, timeout="50ms", retry={"max_attempts": 1})
    await rt.call("stubborn", {"city": "PAR"})
    assert reader(rt)("orphans", tool="stubborn") == 1
    go_on.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert reader(rt)("orphans", tool="stubborn") == 0


def test_the_number_of_series_is_flat_over_threads_and_tenants() -> None:
    async def main(rt: Runtime) -> None:
        rt.add(FaultPlan("503, ok, auth, ok").wrap(search), read_only=True)

        async def some(first: int, last: int) -> None:
            for number in range(first, last):
                await rt.call("search", {"city": "PAR"}, thread=f"thread-{number}", tenant=f"tenant-{number}")

        await some(0, 100)
        sizes.append(len(values(rt)))
        await some(100, 5_100)
        sizes.append(len(values(rt)))

    sizes: list[int] = []
    rt = scripted(main)
    assert sizes[0] == sizes[1] > 50
    text = exposition(rt)[0]
    assert b"tenant" not in text
    assert b"thread-" not in text


@pytest.mark.slow
def test_the_number_of_series_is_flat_over_100_000_threads_and_tenants() -> None:
    async def main() -> None:
        rt, number = Runtime(), 0

        async def lookup(city: str) -> str:
            if number % 100 == 50:
                raise ValueError(f"no city for tenant-{number}")
            return city

        rt.add(lookup, read_only=True)
        exposition(rt)
        for number in range(100_000):
            await rt.call("lookup", {"city": "PAR"}, thread=f"thread-{number}", tenant=f"tenant-{number}")
            if number == 999:
                before = len(values(rt))
        assert len(values(rt)) == before > 50
        assert b"tenant-" not in exposition(rt)[0]
        read = reader(rt)
        assert read("tool_calls_total", tool="lookup", outcome="succeeded", category="none") == 99_000
        assert read("error_count", tool="lookup") == 1_000
        await rt.close()

    asyncio.run(main())


WORKER = """
import os, sys
from pathlib import Path
from prometheus_client import CollectorRegistry, write_to_textfile
from failsoft import Runtime, Verified, partial
from failsoft.prometheus import PrometheusCollector

rt, worker = Runtime(), f"worker_{sys.argv[1]}"
registry = CollectorRegistry()
registry.register(PrometheusCollector(**{worker: rt}))

@rt.tool(read_only=True)
def search(city: str) -> str:
    return city

for _ in range(int(sys.argv[1]) * 10):
    search("PAR")
write_to_textfile(str(Path(sys.argv[2]) / f"{worker}.prom"), registry)
"""


def test_the_files_of_several_processes_fit_together(tmp_path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(number), str(tmp_path)]) for number in (1, 2)]
    assert [worker.wait(30) for worker in workers] == [0, 0]
    found: dict[Key, float] = {}
    for path in sorted(tmp_path.glob("*.prom")):
        for family in parse_text(path.read_text()):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in found
                found[key] = sample.value
    calls = {
        dict(labels)["runtime"]: value
        for (name, labels), value in found.items()
        if name == "failsoft_tool_calls_total" and ("tool", "search") in labels
    }
    assert calls == {"worker_1": 10, "worker_2": 20}


def test_tools_beyond_the_limit_share_their_series() -> None:
    rt = Runtime()
    for number in range(MOST_TOOLS + 30):
        rt.add(search, id=f"tool_{number}", read_only=True)
    before = len(values(rt))
    for number in range(MOST_TOOLS + 30):
        rt.call_sync(f"tool_{number}", {"city": "PAR"})
    read = reader(rt)
    assert read("tool_calls_total", tool="_other", outcome="succeeded", category="none") == 30
    assert read("tool_calls_total", tool="tool_0", outcome="succeeded", category="none") == 1
    assert read("tool_call_duration_seconds_count", tool="_other") == 30
    assert read("breaker_state", tool="_other", state="closed") == 30
    for number in range(MOST_TOOLS + 30, MOST_TOOLS + 300):
        rt.add(search, id=f"tool_{number}", read_only=True)
    assert len(values(rt)) < before + (MOST_TOOLS + 1) * (len(BUCKETS) + 3) + 20
    asyncio.run(rt.close())


HOSTILE = ['a"b', "a\nfailsoft_x 1", "a\\", "\ud800", "\x00\x1b[31m", "naïve", "x" * 5000, "{}", "\u202eabc"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_and_error_texts_stay_out_of_the_format(name: str, accept: str) -> None:
    async def main(rt: Runtime) -> None:
        async def failing() -> str:
            raise ValueError(f"bad {name} password=hunter2")

        rt.add(failing, read_only=True)
        await rt.call("failing", {})
        await rt.call(name, {})
        try:
            rt.add(failing, id=name, read_only=True)
        except Exception:
            return  # not a name for a tool
        await rt.call(name, {})

    rt = scripted(main)
    read = reader(rt, accept)
    assert read("error_count", tool="failing") == 1
    assert b"hunter2" not in exposition(rt)[0]
    assert max(map(len, exposition(rt)[0].splitlines())) < 1000


def test_a_registry_takes_one_collector_for_several_runtimes() -> None:
    first, second = Runtime(), Runtime()
    first.add(search, read_only=True)
    second.add(search, read_only=True)
    registry = CollectorRegistry()
    collector = PrometheusCollector(trips=first, billing=second)
    registry.register(collector)
    first.call_sync("search", {"city": "PAR"})
    text = generate_latest(registry).decode()
    found = {
        (sample.name, sample.labels.get("runtime")): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }
    assert found["failsoft_tool_call_duration_seconds_count", "trips"] == 1
    assert ("failsoft_tool_call_duration_seconds_count", "billing") not in found
    assert found["failsoft_error_count", "billing"] == 0
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(PrometheusCollector(Runtime()))
    asyncio.run(first.close())
    asyncio.run(second.close())


@pytest.mark.parametrize("wrong", [(), ("rt",), (None,)])
def test_a_wrong_argument_is_explained(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="PrometheusCollector: "):
        PrometheusCollector(*wrong)


def test_every_definition_is_exposed_with_its_labels_and_nothing_else(accept: str) -> None:
    defined = {one.prometheus_name.removesuffix("_total"): one for one in DEFINITIONS}
    rt = Runtime()
    text, content_type = exposition(rt, accept)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    families = {family.name.removesuffix("_total"): family for family in parse(text.decode())}
    assert families.keys() - {"failsoft_scrape_errors"} == defined.keys()
    for name, family in families.items():
        for sample in family.samples if name in defined else ():
            assert {*sample.labels} - {"le"} == {*defined[name].label_names}


def test_a_scrape_never_raises(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    broken, whole = Runtime(), Runtime()
    whole.add(search, read_only=True)
    collector = PrometheusCollector(broken=broken, whole=whole)

    def fail() -> None:
        raise RuntimeError("no metrics today")

    monkeypatch.setattr(collector._sources["broken"]._reader, "read", fail)
    read = reader(collector)
    assert read("error_count", tool="search", runtime="whole") == 0
    assert read("scrape_errors_total", runtime="broken") == 1
    assert reader(collector)("scrape_errors_total", runtime="broken") == 2
    assert reader(collector)("scrape_errors_total", runtime="whole") == 0
    assert len(caplog.records) == 1


def test_a_closed_runtime_can_be_scraped() -> None:
    rt = Runtime()
    rt.add(search, read_only=True)
    exposition(rt)
    rt.call_sync("search", {"city": "PAR"})
    asyncio.run(rt.close())
    read = reader(rt)
    assert read("tool_calls_total", tool="search", outcome="succeeded", category="none") == 1
    assert read("tool_call_duration_seconds_count", tool="search") == 1


def test_a_runtime_that_was_scraped_can_be_garbage_collected() -> None:
    rt = Runtime()
    exposition(rt)
    gone = weakref.ref(rt)
    asyncio.run(rt.close())
    del rt
    gc.collect()
    assert gone() is None


def test_scrapes_during_load_count_every_call() -> None:
    asyncio.run(scrape_under_load(Runtime()))


async def scrape_under_load(rt: Runtime) -> None:
    guarded = rt.tool(read_only=True)(search)
    exposition(rt)
    done, scrapes, faults = threading.Event(), [0], []

    def scrape() -> None:
        while not done.is_set():
            try:
                before = reader(rt)("tool_calls_total", tool="search", outcome="succeeded", category="none") or 0
                assert before >= scrapes[-1]
                scrapes.append(before)  # type: ignore[arg-type]
            except Exception as error:
                faults.append(error)

    thread = threading.Thread(target=scrape)
    thread.start()
    for _ in range(20_000):
        await guarded("PAR")
    done.set()
    thread.join(10)
    assert not faults
    assert len(scrapes) > 1
    read = reader(rt)
    assert read("tool_calls_total", tool="search", outcome="succeeded", category="none") == 20_000
    assert read("tool_call_duration_seconds_count", tool="search") == 20_000
    assert read("events_dropped_total") == 0
    await rt.close()
