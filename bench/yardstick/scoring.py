"""Scores: runs become the figures of a row, and rows are compared with the marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, stdev
from typing import Any

from bench.yardstick.faults import MARKED
from bench.yardstick.replay import Run

# the 97.5 % quantile of Student's t, by degrees of freedom: 95 % intervals over few seeds
STUDENT = (0.0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
NORMAL = 1.96


@dataclass(frozen=True)
class Figure:
    """The mean over the seeds, with half of its 95 % interval; None with one seed."""

    value: float
    spread: float | None

    def __str__(self) -> str:
        return f"{self.value:.1f}" + ("" if self.spread is None else f" ± {self.spread:.1f}")


def figure(per_seed: Sequence[float]) -> Figure:
    if len(per_seed) < 2:
        return Figure(mean(per_seed), None)
    freedom = len(per_seed) - 1
    quantile = STUDENT[freedom] if freedom < len(STUDENT) else NORMAL
    return Figure(mean(per_seed), quantile * stdev(per_seed) / len(per_seed) ** 0.5)


@dataclass(frozen=True)
class Row:
    """The figures of one executor on one benchmark, with one mix of faults at one level."""

    benchmark: str
    executor: str
    title: str
    mix: str
    level: float
    seeds: tuple[int, ...]
    runs: int
    goal: Figure  # all in % of runs
    ceiling: Figure
    twice: Figure
    silent: Figure
    false_alarm: Figure
    attempts: Figure  # per call
    seconds: Figure  # per run
    twice_cases: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_row(data: dict[str, Any]) -> Row:
    """Restore a row from ``as_dict``."""
    figures: dict[str, Any] = {
        name: Figure(**value) if isinstance(value, dict) else tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
    }
    return Row(**figures)


def make_row(runs: Sequence[Run], *, benchmark: str, executor: str, title: str, mix: str, level: float) -> Row:
    seeds = tuple(sorted({run.seed for run in runs}))

    def per_seed(measure: Callable[[list[Run]], float]) -> Figure:
        return figure([measure([run for run in runs if run.seed == seed]) for seed in seeds])

    def share(holds: Callable[[Run], bool]) -> Figure:
        return per_seed(lambda some: 100 * mean(holds(run) for run in some))

    return Row(
        benchmark=benchmark,
        executor=executor,
        title=title,
        mix=mix,
        level=level,
        seeds=seeds,
        runs=len(runs),
        goal=share(lambda run: run.goal),
        ceiling=share(lambda run: run.ceiling),
        twice=share(lambda run: bool(run.twice)),
        silent=share(lambda run: run.silent),
        false_alarm=share(lambda run: run.false_alarm),
        attempts=per_seed(lambda some: sum(run.attempts for run in some) / max(1, sum(run.calls for run in some))),
        seconds=per_seed(lambda some: mean(run.seconds for run in some)),
        twice_cases=tuple(f"seed {run.seed}: {case}" for run in runs for case in run.twice),
    )


# --- marks -----------------------------------------------------------------------------------------------------------

ROUNDING = 1e-9


@dataclass(frozen=True)
class Mark:
    """A figure that a row must reach."""

    words: str
    holds: Callable[[Row], bool]
    found: Callable[[Row], str]


def _most(name: str, words: str, limit: float) -> Mark:
    return Mark(words, lambda row: getattr(row, name).value <= limit + ROUNDING, lambda row: str(getattr(row, name)))


NEAR_CEILING = Mark(
    "goal at least ceiling - 1 point",
    lambda row: row.goal.value >= row.ceiling.value - 1 - ROUNDING,
    lambda row: f"{row.goal} of {row.ceiling}",
)
NEVER_TWICE = _most("twice", "no write twice", 0)
NEVER_SILENT = _most("silent", "never wrong without a report", 0)
CLEAN = Mark("without faults every goal is reached", lambda row: row.goal.value >= 100, lambda row: str(row.goal))

MARKS: dict[str, tuple[Mark, ...]] = {
    "undeclared": (NEAR_CEILING, _most("twice", "a write twice in at most 2 %", 2), NEVER_SILENT),
    "undeclared-tool-calls": (NEAR_CEILING, NEVER_TWICE, NEVER_SILENT),
    "declared": (NEAR_CEILING, NEVER_TWICE, NEVER_SILENT),
    "verify-oracle": (
        Mark("goal at least 99 %", lambda row: row.goal.value >= 99, lambda row: str(row.goal)),
        NEVER_TWICE,
        NEVER_SILENT,
        _most("false_alarm", "a false unknown in at most 3 %", 3),
    ),
    "verify-read-back": (NEVER_TWICE, NEVER_SILENT),
}


@dataclass(frozen=True)
class Judgement:
    """One mark, compared with one row."""

    row: Row
    words: str
    found: str
    holds: bool


def judge(rows: Sequence[Row]) -> list[Judgement]:
    """Compare the rows with the marks. Rows without faults must reach every goal, whatever the executor."""
    judged = []
    for row in rows:
        marks = (CLEAN,) if row.level == 0 else MARKS.get(row.executor, ())
        judged += [Judgement(row, mark.words, mark.found(row), mark.holds(row)) for mark in marks]
    return judged


def can_be_judged(mix: dict[str, float]) -> bool:
    """True if the marks are meant for this mix: the six faults, in any shares."""
    return mix.keys() <= MARKED.keys()
