"""A programmer's mistakes are reported where they are made, with a correction."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import pytest
from tests.fakes import Scripted, virtual

from failsoft import ManifestError, Runtime, TurnError


def search() -> str:
    return "fine"


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "manifest": (lambda: Runtime(3), "manifest: expected the path of a file or a mapping, got 3"),  # type: ignore[arg-type]
    "manifest's path": (lambda: Runtime("nowhere.yaml"), "nowhere.yaml: cannot be read: No such file or directory"),
    "memory": (lambda: Runtime(memory="x"), "memory: 'x' is not one of advise, act, off"),  # type: ignore[arg-type]
    "store": (
        lambda: Runtime(store="x"),
        """store: 'x' is not known: write "memory:" or "sqlite:///path/to/file.db\"""",
    ),
    "policies": (lambda: Runtime(policies={"a": 1}), "policies: {'a': 1} is not a list: put it in brackets"),  # type: ignore[arg-type]
    "handler": (
        lambda: Runtime(error_handler=print),  # type: ignore[arg-type]
        "error_handler: <built-in function print> has no method handle: give a Handler",
    ),
    "escalation": (lambda: Runtime(on_escalation=3), "on_escalation: 3 cannot be called: give a function"),  # type: ignore[arg-type]
    "explain": (lambda: Runtime(explain=3), "explain: 3 cannot be called: give a function"),  # type: ignore[arg-type]
    "subscriber": (lambda: Runtime().subscribe(3), "subscribe: 3 cannot be called: give a function"),  # type: ignore[arg-type]
    "subscriber that is async": (
        lambda: Runtime().subscribe(asyncio.sleep),  # type: ignore[arg-type]
        f"subscribe: {brief(asyncio.sleep)} is async and would not be awaited: give a plain function",
    ),
    "turn": (lambda: Runtime().turn(timeout=3), 'turn: timeout: 3 has no unit: write "3s"'),  # type: ignore[arg-type]
    "turn's id": (lambda: Runtime().turn(id=7), "turn: id: 7 is not a text: put str() around it"),  # type: ignore[arg-type]
    "turn's thread": (lambda: Runtime().turn(thread=7), "turn: thread: 7 is not a text: put str() around it"),  # type: ignore[arg-type]
    "turn's tenant": (lambda: Runtime().turn(tenant=7), "turn: tenant: 7 is not a text: put str() around it"),  # type: ignore[arg-type]
    "thread": (lambda: Runtime().threads[7], "threads: thread: 7 is not a text: put str() around it"),  # type: ignore[index]
    "thread's tenant": (
        lambda: Runtime().threads("a", tenant=7),  # type: ignore[arg-type]
        "threads: tenant: 7 is not a text: put str() around it",
    ),
    "declaration": (
        lambda: Runtime().declare("search", output=3),
        "search: output: 3 is neither a type that can be checked nor a JSON Schema: write list[str], or a mapping",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_reported_where_they_are_made(case: str) -> None:
    make, said = MISTAKES[case]
    with pytest.raises(ManifestError) as raised:
        make()
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeut": "3s"}, ": search: timeut: is not known here; did you mean timeout or timeout_ms?"),
        ({"timeout": 30}, ': search: timeout: 30 has no unit: write "30s"'),
        ({"fallbacks": "x"}, ": search: fallbacks: 'x' is not a list: put it in brackets"),
        ({"retry": {"max_attempt": 3}}, ": search: retry.max_attempt: is not known here; did you mean max_attempts?"),
        ({"id": ""}, ": : id: '' is not a text with something in it"),
        (
            {"idempotency_key": "order"},
            ": search: idempotency_key: the function has no parameter 'order' to receive it: add one, or name another",
        ),
    ],
    ids=["name", "unit", "list", "within", "no id", "parameter"],
)
def test_a_decorators_mistakes_are_reported_with_the_functions_place(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ManifestError) as raised:
        Runtime().add(search, **options)
    (problem,) = raised.value.problems
    assert problem == f"{__file__}:{search.__code__.co_firstlineno}{said}"


@virtual
async def test_mistakes_in_calls_and_at_the_end() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    with pytest.raises(TypeError, match=r"a tool's arguments are one mapping: \{'city': …\}"):
        await rt.call("search", city="PAR")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"a call has no option 'timout'; there are id, .*; did you mean timeout\?"):
        await rt.call("search", {}, timout="3s")  # type: ignore[call-overload]
    with pytest.raises(ManifestError, match='search: timeout: 3 has no unit: write "3s"'):
        await rt.call("search", {}, timeout=3)  # type: ignore[typeddict-item]
    for name in ("id", "thread", "tenant"):
        with pytest.raises(ManifestError, match=rf"search: {name}: 7 is not a text: put str\(\) around it"):
            await rt.call("search", {}, **{name: 7})  # type: ignore[call-overload]
    with pytest.raises(ManifestError, match="search: id: 7 is not a text"):
        await rt.call("search", [], id=7)  # type: ignore[call-overload]
    with pytest.raises(ManifestError, match="nowhere: id: 7 is not a text"):
        await rt.call("nowhere", {}, id=7)  # type: ignore[typeddict-item]
    async with rt.turn() as turn:
        with pytest.raises(ManifestError, match="search: id: 7 is not a text"):
            turn.call("search", {}, id=7)  # type: ignore[typeddict-item]
        with pytest.raises(ManifestError, match="^search: retry: 3 is not a mapping"):
            turn.call("search", {}, retry=3)  # type: ignore[typeddict-item]
        with pytest.raises(TurnError, match="required: 'yes' is neither true nor false"):
            turn.call("search", {}, required="yes")  # type: ignore[typeddict-item]
        with pytest.raises(TurnError, match="defaults: write one mapping from names to values, not list"):
            turn.call("search", {}, defaults=[1])  # type: ignore[typeddict-item]
    assert turn.report.outcomes == {}
    with pytest.raises(
        ManifestError, match="plan: 3 is not a plan: give a mapping, YAML or JSON text, or the path of a file"
    ):
        await rt.run_plan(3)
    with pytest.raises(ManifestError, match="flush: patience: 'soon' is not a duration"):
        await rt.flush("soon")
    with pytest.raises(ManifestError, match="close: grace: 'soon' is not a duration"):
        await rt.close("soon")


@virtual
async def test_an_idempotency_key_for_a_tool_without_a_parameter_for_it_is_rejected() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    said = "search takes no idempotency key: name its parameter with idempotency_key first"
    with pytest.raises(ManifestError, match=f"^{said}"):
        await rt.call("search", {}, idempotency_key="order-17")
    async with rt.turn() as turn:
        with pytest.raises(ManifestError, match=f"^{said}"):
            turn.call("search", {}, idempotency_key="order-17")
    assert turn.report.outcomes == {}
    plan = "calls:\n  - {tool: search, idempotency_key: order-17}\n"
    with pytest.raises(ManifestError, match=rf"^plan:2:5: calls\[0\]\.idempotency_key: {said}"):
        await rt.run_plan(plan)


@pytest.mark.parametrize(
    "plan",
    [
        {"calls": [{"id": "a", "tool": "search"}]},
        '{"calls": [{"id": "a", "tool": "search"}]}',
        "calls: [{id: a, tool: search}]",
        "calls:\n  - {id: a, tool: search}\n",
        "plan.yaml",
        Path("plan.yaml"),
    ],
    ids=["mapping", "json", "yaml in a line", "yaml", "file", "path"],
)
def test_plans_come_as_mappings_texts_and_files(plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text("calls: [{id: a, tool: search}]")
    rt = Runtime()
    rt.add(search, timeout=None)
    assert asyncio.run(rt.run_plan(plan)).results == {"a": "fine"}


# --- guarded functions that go elsewhere -----------------------------------------------------------------------------

WRITES: list[dict[str, Any]] = [
    {"idempotent": False},
    {"idempotent": True},
    {"read_only": True},
    {"idempotency_key": "order"},
]


def pay(order: str = "") -> str:
    return f"paid {order}"


guarded = pay


@pytest.mark.parametrize("declared", WRITES, ids=str)
def test_a_guarded_function_keeps_its_declared_effects_in_another_runtime(
    declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Runtime().add(pay, timeout="1s", **declared)
    monkeypatch.setitem(globals(), "guarded", there)
    elsewhere = Runtime({"defaults": {"idempotent": declared != {"idempotent": True}}})
    elsewhere.add(there)
    by_file = Runtime({"tools": {"pay": {"entrypoint": {"function": f"{__name__}:guarded"}}}})
    for rt in (elsewhere, by_file):
        options = rt._engine.toolbox.tools["pay"].options
        assert {name: getattr(options, name) for name in declared} == declared
        assert options.timeout == 30  # everything else is said anew


def test_the_adopting_runtime_can_override_declared_effects() -> None:
    rt = Runtime({"tools": {"pay": {"idempotent": False}}})
    rt.add(Runtime().add(pay, read_only=True))
    assert rt._engine.toolbox.tools["pay"].options.safe_to_repeat is False
    rt.add(Runtime().add(pay, read_only=True), id="other", idempotent=None)
    assert rt._engine.toolbox.tools["other"].options.safe_to_repeat is None


def test_a_wrapper_around_a_guarded_function_still_runs() -> None:
    rt, seen = Runtime(), []
    inner = rt.add(pay)

    @functools.wraps(inner)
    def logged(order: str = "") -> str:
        seen.append(order)
        return inner(order)

    rt.add(logged)
    assert (rt.call_sync("pay", {"order": "7"}).value, seen) == ("paid 7", ["7"])
