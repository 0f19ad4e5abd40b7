"""Scenes of the specification and of the torture tests: their test functions, played again and recorded.

A test is a scene if it causes events, needs no fixture but ``monkeypatch``, is not marked slow and is not in ``OMITTED``.
All scenes are in virtual time, also those of tests that are not. What a test asserts holds here as well.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any
from zlib import crc32

import pytest
from tests.golden.recording import Scenario

from failsoft.testing import virtual_time

MODULES: Mapping[str, tuple[str, ...]] = {
    "spec_1_classification": ("tests.conformance.test_s_tests_1_classification",),
    "spec_2_retry": ("tests.conformance.test_s_tests_2_retry",),
    "spec_3_breaker": ("tests.conformance.test_s_tests_3_breaker",),
    "spec_4_timeout": ("tests.conformance.test_s_tests_4_timeout",),
    "spec_5_cascade": ("tests.conformance.test_s_tests_5_cascade",),
    "spec_6_integration": ("tests.conformance.test_s_tests_6_integration",),
    "spec_7_edges": ("tests.conformance.test_s_tests_7_edges",),
    "spec_layers": ("tests.conformance.test_s_layers",),
    "spec_norm": ("tests.conformance.test_s_norm",),
    "torture_breakers_and_graphs": (
        "tests.torture.test_t04_stale_results",
        "tests.torture.test_t09_bad_calls",
        "tests.torture.test_t20_retry_after",
        "tests.torture.test_t21_siblings",
        "tests.torture.test_t22_graphs",
        "tests.torture.test_t28_ids_and_order",
    ),
    "torture_effects": (
        "tests.torture.test_t05_effects",
        "tests.torture.test_t31_local_errors",
        "tests.torture.test_t32_contradictions",
        "tests.torture.test_t33_inner_calls",
        "tests.torture.test_t45_undeclared_writes",
    ),
}
OMITTED: Mapping[str, str] = {  # how the names of tests or cases begin -> why their events are not recorded
    "test_4_1_a_result_after_the_deadline_is_not_a_success[True-by name]": "a thread moves the clock",
    "test_4_1_a_result_after_the_deadline_is_not_a_success[True-turn]": "a thread moves the clock",
    "test_t31_nothing_done_crosses_processes_and_is_the_word_of_the_tool_that_raises_it": "starts processes",
    "test_t31_the_source_of_the_evidence_crosses_the_process_boundary": "starts processes",
    "test_t33_a_request_under_way_in_a_worker_process_is_not_called_no_effect": "starts processes",
    "test_t33_a_request_that_goes_on_after_its_tool_was_refused_is_not_called_no_effect": "some callers block",
    "test_t33_an_undeclared_tool_is_not_repeated_once_a_task_of_its_first_attempt_has_written": "as in turns and threads",
    "test_t33_tasks_that_have_ended_and_tasks_of_others_leave_a_refusal_without_effect": "hundreds of tasks, one story",
    "test_t33_what_an_inner_call_did_is_known_to_the_call_around_it[leaves_an_os_thread": "two threads race",
    "test_t32_a_worker_process_tells_which_request_was_refused": "starts processes",
    "test_t32_the_refusal_of_a_request_that_reads": "about classification alone",
    "test_t32_the_worst_evidence_decides_in_every_contradiction": "takes 5 s, and is about classification alone",
}
CASES = 10  # of one test, evenly spread: more of them tell the same story
COUNTS: Mapping[str, int] = {"BAD": 3, "GRAPHS": 12, "RUNS": 60, "SEEDS": 4}  # in place of a module's own
ROUNDS = 4  # in place of a count from ``tests.torture.scale``


def scenarios(group: str) -> Iterator[Scenario]:
    """The scenes of one group."""
    for path in MODULES[group]:
        module = importlib.import_module(path)
        for name, test in vars(module).items():
            if name.startswith("test_") and callable(test):
                cases = _cases(module, name, test)
                yield from spread([case for case in cases if not case.name.startswith(tuple(OMITTED))])


def spread(cases: list[Scenario]) -> Iterator[Scenario]:
    """Choose at most ``CASES`` by a digest of their names: a case that is added does not change the choice of the others."""
    chosen = {case.name for case in sorted(cases, key=lambda case: crc32(case.name.encode()))[:CASES]}
    yield from (case for case in cases if case.name in chosen)


def _cases(module: ModuleType, name: str, test: Callable[..., object]) -> Iterator[Scenario]:
    """A test with each combination of its parameters."""
    marks = getattr(test, "pytestmark", ())
    if any(mark.name in ("slow", "skipif") for mark in marks):
        return
    axes = [list(_axis(mark)) for mark in marks if mark.name == "parametrize"]
    for chosen in product(*axes):
        arguments = {key: value for _, values in chosen for key, value in values.items()}
        missing = inspect.signature(test).parameters.keys() - arguments
        if missing <= {"monkeypatch"}:
            case = "-".join(label for label, _ in chosen)
            play = partial(_play, module, test, arguments, bool(missing))
            yield Scenario(f"{name}[{case}]" if case else name, play)


def _play(module: ModuleType, test: Callable[..., object], arguments: dict[str, Any], patches: bool) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, virtual_time():
        if hasattr(module, "times"):
            monkeypatch.setattr(module, "times", _few)
        for name in COUNTS.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, COUNTS[name])
        test(**arguments, **({"monkeypatch": monkeypatch} if patches else {}))


def _few(full: int, part: int) -> int:
    return min(full, part, ROUNDS)


def _axis(mark: pytest.Mark) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cases of one ``parametrize``, each with a label."""
    names, given = mark.args[:2]
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    ids = mark.kwargs.get("ids")
    for number, one in enumerate(given):
        values = one.values if hasattr(one, "marks") else (one,) if len(keys) == 1 else one
        label = getattr(one, "id", None) if hasattr(one, "marks") else None
        if label is None and ids is not None and not callable(ids):
            label = list(ids)[number]
        yield label or ",".join(_label(value, number) for value in values), dict(zip(keys, values, strict=True))


def _label(value: object, number: int) -> str:
    if isinstance(value, str | int | float) or value is None:
        return str(value)
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else str(number)
