"""The yardstick, on its built-in fake benchmark: faults, executors, columns and marks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from pathlib import Path

import pytest
from bench.yardstick import __main__ as command
from bench.yardstick import grid, page
from bench.yardstick.benchmarks.fake import Fake, FakeTask
from bench.yardstick.executors import EXECUTORS
from bench.yardstick.faults import FAULTS, MARKED, OTHERS, damage, read_mix
from bench.yardstick.injector import Injector
from bench.yardstick.labels import find_labels
from bench.yardstick.readback.rule import read_answer
from bench.yardstick.replay import Executor, Run, Session, replay
from bench.yardstick.scoring import Row, figure, judge, make_row, read_row

from failsoft.testing import virtual_time

LABELS = find_labels(Fake())
TASKS = {task.id: task for task in LABELS.tasks}
QUICK = ["none", "naive", "undeclared", "undeclared-tool-calls", "declared", "verify-oracle", "verify-read-back"]
ALL_FAULTY = 1.0


def run(executor: str | Executor, task: str, fault: str, level: float = ALL_FAULTY) -> Run:
    made = EXECUTORS[executor] if isinstance(executor, str) else executor
    return replay(made, TASKS[task], Injector(1, level, {fault: 1.0}), LABELS.writes)


# --- labels ------------------------------------------------------------------------------------------------------------


def test_a_tool_that_changes_the_state_is_a_write() -> None:
    assert LABELS.writes == {"pay_bill", "add_note", "frobnicate"}
    assert LABELS.left_out == {}


def test_a_task_whose_reads_cannot_be_repeated_is_left_out() -> None:
    class Restless(Fake):
        def tasks(self) -> list[FakeTask]:
            class RestlessTask(FakeTask):
                def start(self, writes: frozenset[str]):
                    world = super().start(writes)
                    answers = iter(range(100))
                    world.perform = lambda *_: next(answers)
                    return world

            return [RestlessTask(task.id, task.calls, task.turns) for task in super().tasks()]

    labels = find_labels(Restless())
    assert labels.tasks == []
    assert set(labels.left_out.values()) == {"a read gives another answer when it is repeated"}


# --- the injector ------------------------------------------------------------------------------------------------------


def test_faults_depend_on_seed_and_call_id_alone() -> None:
    ids = [f"call-{number}" for number in range(200)]
    drawn = [[Injector(seed, 0.3, MARKED).fault(id) for id in ids] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_faults_come_at_their_level_and_in_equal_shares() -> None:
    drawn = [Injector(7, 0.3, MARKED).fault(f"call-{number}") for number in range(20_000)]
    counts = Counter(fault.name for fault in drawn if fault is not None)
    assert sum(counts.values()) / 20_000 == pytest.approx(0.3, abs=0.01)
    assert set(counts) == set(MARKED)
    assert all(count == pytest.approx(1000, rel=0.1) for count in counts.values())


def test_a_higher_level_only_adds_faulty_calls() -> None:
    low, high = Injector(1, 0.1, MARKED), Injector(1, 0.3, MARKED)
    for number in range(500):
        if (fault := low.fault(f"call-{number}")) is not None:
            assert high.fault(f"call-{number}") is fault


def test_weights_of_a_mix_are_its_shares() -> None:
    injector = Injector(1, 1.0, read_mix("503=3,lost,refused=0"))
    counts = Counter(injector.fault(f"call-{number}").name for number in range(4000))
    assert set(counts) == {"503", "lost"}
    assert counts["503"] == pytest.approx(3000, rel=0.1)


@pytest.mark.parametrize("text", ["", "505", "503=many", "503=-1", "503=nan", "503=inf", "503=0"])
def test_a_mix_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fault|weight"):
        read_mix(text)


@pytest.mark.parametrize(
    ("fault", "allowed"),
    [("503", True), ("429", True), ("lost", True), ("timeout", False), ("hang", False), ("crash-before", False)],
)
def test_the_ceiling_counts_writes_that_only_a_repeat_or_a_verify_can_mend(fault: str, allowed: bool) -> None:
    injector = Injector(1, 1.0, {fault: 1.0})
    assert injector.allows(TASKS["pay"].calls, LABELS.writes) is allowed
    assert injector.allows(TASKS["look"].calls, LABELS.writes), "it has no writes"


@pytest.mark.parametrize("value", ["text", "", 3, 0, True, None, {"a": [1]}, {}, [], ["x"], object()])
def test_a_damaged_value_is_another_value(value: object) -> None:
    assert damage(value) != value


# --- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", QUICK)
@pytest.mark.parametrize("task", TASKS)
def test_without_faults_every_executor_reaches_every_goal_at_once(executor: str, task: str) -> None:
    done = run(executor, task, "503", level=0.0)
    assert done.goal
    assert done.ceiling
    assert (done.twice, done.silent, done.false_alarm) == ((), False, False)
    assert done.attempts == done.calls == len(TASKS[task].calls)


def test_none_stops_at_the_first_failure() -> None:
    done = run("none", "pay", "503")
    assert (done.goal, done.silent, done.calls, done.attempts) == (False, False, 1, 1)


def test_a_naive_retry_pays_twice_and_does_not_say_so() -> None:
    done = run("naive", "pay", "lost")
    assert done.twice == ("pay/1 pay_bill",)
    assert (done.goal, done.silent) == (False, True)


@pytest.mark.parametrize("executor", ["undeclared", "undeclared-tool-calls", "declared"])
def test_failsoft_pays_once_when_the_answer_is_lost_and_reports_it(executor: str) -> None:
    done = run(executor, "pay", "lost")
    assert done.twice == ()
    assert (done.goal, done.silent, done.false_alarm) == (True, False, True)


@pytest.mark.parametrize("fault", ["503", "503x2", "429", "refused"])
@pytest.mark.parametrize("executor", ["undeclared", "undeclared-tool-calls", "declared"])
def test_failsoft_repeats_a_write_that_was_refused(executor: str, fault: str) -> None:
    done = run(executor, "pay", fault)
    assert done.goal
    assert (done.twice, done.false_alarm) == ((), False)


def test_an_unrecognised_write_shows_in_the_column_of_undeclared_tools() -> None:
    assert run("undeclared", "odd", "lost").twice == ("odd/0 frobnicate",)
    assert run("undeclared-tool-calls", "odd", "lost").twice == ()


def test_a_write_that_timed_out_before_its_effect_is_below_the_ceiling() -> None:
    done = run("declared", "pay", "timeout")
    assert (done.goal, done.ceiling, done.silent) == (False, False, False)


@pytest.mark.parametrize("fault", ["timeout", "lost"])
@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_reaches_every_goal_and_leaves_nothing_unknown(task: str, fault: str) -> None:
    done = run("verify-oracle", task, fault)
    assert (done.goal, done.twice, done.false_alarm) == (True, (), False)


@pytest.mark.parametrize("fault", ["timeout", "lost"])
def test_read_back_finds_a_note(fault: str) -> None:
    done = run("verify-read-back", "note", fault)
    assert (done.goal, done.twice, done.false_alarm) == (True, (), False)


@pytest.mark.parametrize("fault", ["timeout", "lost"])
def test_read_back_leaves_unknown_what_no_read_shows(fault: str) -> None:
    done = run("verify-read-back", "pay", fault)
    assert (done.goal, done.twice, done.silent) == (fault == "lost", (), False)


def test_reads_of_a_verify_meet_faults_too() -> None:
    assert run("verify-read-back", "note", "lost").attempts > run("verify-oracle", "note", "lost").attempts + 2


@pytest.mark.parametrize(
    ("text", "data"), [('{"a": 1}', {"a": 1}), ("[{'a': True}]", [{"a": True}]), ("- a: 1", [{"a": 1}]), ("x", "x")]
)
def test_answers_are_read_as_data(text: str, data: object) -> None:
    assert read_answer(text) == data


def test_an_error_is_no_answer() -> None:
    with pytest.raises(LookupError, match="created_by"):
        read_answer("Error during execution: 'created_by'")


def test_a_damaged_read_is_a_silent_miss() -> None:
    done = run("declared", "look", "corrupted")
    assert (done.goal, done.silent) == (False, True)


@pytest.mark.parametrize("mix", [*OTHERS.values()], ids=[*OTHERS])
@pytest.mark.parametrize("executor", QUICK)
def test_other_faults_end_in_virtual_time(executor: str, mix: dict[str, float]) -> None:
    for task in LABELS.tasks:
        replay(EXECUTORS[executor], task, Injector(1, ALL_FAULTY, mix), LABELS.writes)


def test_faults_take_virtual_time() -> None:
    assert run("naive", "look", "timeout").seconds == pytest.approx(2 * (FAULTS["timeout"].seconds + 0.1))


def test_an_executor_that_claims_success_without_making_the_call_is_silent() -> None:
    class Liar:
        name = "liar"

        async def run(self, session: Session) -> None:
            for call in session.calls:
                await asyncio.sleep(0)
                session.begin(call)
                session.end("succeeded")

    done = run(Liar(), "pay", "503")
    assert (done.goal, done.silent, done.attempts) == (False, True, 0)


# --- scores ------------------------------------------------------------------------------------------------------------


def some_run(seed: int = 1, **changes: object) -> Run:
    found = {
        "task": "t", "seed": seed, "goal": True, "ceiling": True, "twice": (), "silent": False, "false_alarm": False,
        "calls": 2, "attempts": 3, "seconds": 1.0,
    }  # fmt: skip
    return Run(**{**found, **changes})


def some_row(executor: str, *runs: Run) -> Row:
    return make_row(runs, benchmark="fake", executor=executor, title=executor, mix="main", level=0.3)


def test_figures_are_means_over_seeds_with_an_interval() -> None:
    assert figure([90.0]).spread is None
    found = figure([90.0, 92.0, 94.0])
    assert found.value == 92
    assert found.spread == pytest.approx(4.30 * 2 / 3**0.5)


def test_a_row_counts_runs_and_lists_every_write_that_ran_twice() -> None:
    row = some_row("declared", some_run(), some_run(twice=("a/1 pay",)), some_run(2, goal=False), some_run(2))
    assert (row.runs, row.seeds) == (4, (1, 2))
    assert (row.goal.value, row.twice.value, row.attempts.value) == (75, 25, 1.5)
    assert row.twice_cases == ("seed 1: a/1 pay",)


def test_rows_survive_json() -> None:
    row = some_row("declared", some_run(twice=("a/1 pay",)), some_run(2))
    assert read_row(json.loads(json.dumps(row.as_dict()))) == row


@pytest.mark.parametrize(
    ("executor", "change"),
    [
        ("declared", {"goal": False}),
        ("declared", {"twice": ("a/1 pay",)}),
        ("declared", {"silent": True}),
        ("undeclared", {"twice": ("a/1 pay",)}),
        ("undeclared", {"silent": True}),
        ("undeclared-tool-calls", {"twice": ("a/1 pay",)}),
        ("verify-oracle", {"goal": False, "ceiling": False}),
        ("verify-oracle", {"false_alarm": True}),
        ("verify-read-back", {"twice": ("a/1 pay",)}),
    ],
)
def test_a_missed_mark_is_found(executor: str, change: dict[str, object]) -> None:
    good = [some_run() for _ in range(24)]
    assert all(one.holds for one in judge([some_row(executor, *good)]))
    assert not all(one.holds for one in judge([some_row(executor, *good, some_run(**change))]))


def test_the_goal_is_compared_with_the_ceiling_not_with_a_hundred() -> None:
    below = [some_run(goal=False, ceiling=False), some_run()]
    assert all(one.holds for one in judge([some_row("declared", *below)]))


# --- the grid ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", grid.SHAPES)
@pytest.mark.parametrize("executor", grid.EXECUTORS)
def test_shapes_without_faults_have_the_expected_values(executor: str, shape: str) -> None:
    with virtual_time() as clock:
        ended = clock.run(grid.EXECUTORS[executor](grid.SHAPES[shape], grid.Service("none", "explicit", "transient")))
    assert ended.values == grid.expected(grid.SHAPES[shape])


@pytest.mark.parametrize("shape", grid.SHAPES)
def test_a_fallback_replaces_a_tool_that_fails_for_good(shape: str) -> None:
    assert grid.run_cell("failsoft", shape, "explicit", "permanent").goal == 0
    assert grid.run_cell("failsoft, failed_if, fallbacks", shape, "explicit", "permanent").goal == 100


def test_a_task_group_loses_the_branches_that_do_not_depend_on_the_failure() -> None:
    alone = grid.run_cell("asyncio.TaskGroup", "two branches", "explicit", "permanent")
    guarded = grid.run_cell("failsoft", "two branches", "explicit", "permanent")
    assert alone.right < guarded.right


def test_a_failure_that_comes_back_as_a_value_is_silent_where_nothing_recognises_it() -> None:
    assert grid.run_cell("asyncio, naive retry", "chain", "implicit", "transient").silent == 100
    recognised = grid.run_cell("failsoft, failed_if", "chain", "implicit", "transient")
    assert (recognised.goal, recognised.silent) == (100, 0)


# --- the command -------------------------------------------------------------------------------------------------------

OPTIONS = ["--benchmark", "fake", "--jobs", "1", "--seeds", "1,2", *(f"--executor={name}" for name in QUICK)]


def test_the_command_writes_figures_and_page(tmp_path: Path) -> None:
    data, text = tmp_path / "run.json", tmp_path / "page.md"
    assert command.main([*OPTIONS, "--json", str(data), "--page", str(text)]) == 0
    found = json.loads(data.read_text())
    assert {row["executor"] for row in found["main"]} == set(QUICK)
    assert {row["level"] for row in found["levels"]} == {0.05, 0.1}
    assert {row["mix"] for row in found["others"]} == set(OTHERS)
    assert {cell["executor"] for cell in found["grid"]} == set(grid.EXECUTORS)
    assert text.read_text() == page.page(found)
    assert "**no**" not in text.read_text()
    assert not logging.root.manager.disable, "logging goes on as before"


def test_the_command_fails_if_a_mark_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "run.json"
    command.main([*OPTIONS, "--main-only", "--json", str(data)])
    found = json.loads(data.read_text())
    (row,) = [row for row in found["main"] if row["executor"] == "declared"]
    row["silent"]["value"] = 0.1
    data.write_text(json.dumps(found))
    assert command.main(["--from", str(data)]) == 1
    assert "MISSED: fake, failsoft, declared: never wrong without a report" in capsys.readouterr().out


def test_marks_are_not_judged_for_faults_that_they_are_not_meant_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*OPTIONS, "--main-only", "--mix", "permanent"]) == 0
    assert "not judged" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong", [["--mix", "505"], ["--level", "30"], ["--level", "0"], ["--seeds", "1,1"], ["--executor", "x"]]
)
def test_wrong_options_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(wrong)
    assert wrong[0] in capsys.readouterr().err
