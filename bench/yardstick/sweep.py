"""Sweeps: all tasks of a benchmark with one executor, over seeds; several sweeps run side by side."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

from bench.yardstick.benchmarks import BENCHMARKS
from bench.yardstick.executors import EXECUTORS
from bench.yardstick.injector import Injector
from bench.yardstick.labels import Labels, find_labels
from bench.yardstick.replay import replay
from bench.yardstick.scoring import Row, make_row


@dataclass(frozen=True)
class Sweep:
    """One row to measure."""

    benchmark: str
    executor: str
    level: float
    mix_name: str
    mix: tuple[tuple[str, float], ...]
    seeds: tuple[int, ...]
    only: tuple[str, ...] = ()  # ids of tasks; empty: all


@functools.lru_cache
def labels_of(benchmark: str, only: tuple[str, ...] = ()) -> Labels:
    return find_labels(BENCHMARKS[benchmark](), only)


@contextmanager
def without_logs() -> Iterator[None]:
    """Silence logging: failures are the point here."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def run_sweep(sweep: Sweep) -> Row:
    with without_logs():
        return _run_sweep(sweep)


def _run_sweep(sweep: Sweep) -> Row:
    labels = labels_of(sweep.benchmark, sweep.only)
    executor = EXECUTORS[sweep.executor]
    runs = [
        replay(executor, task, Injector(seed, sweep.level, dict(sweep.mix)), labels.writes)
        for seed in sweep.seeds
        for task in labels.tasks
    ]
    return make_row(
        runs,
        benchmark=sweep.benchmark,
        executor=sweep.executor,
        title=executor.name,
        mix=sweep.mix_name,
        level=sweep.level,
    )


def run_sweeps(sweeps: Sequence[Sweep], jobs: int, on_row: Callable[[Row], object]) -> list[Row]:
    """Run sweeps in ``jobs`` processes and return their rows in the order of the sweeps."""
    if jobs == 1:
        rows = {}
        for sweep in sweeps:
            rows[sweep] = run_sweep(sweep)
            on_row(rows[sweep])
    else:
        rows = dict(_side_by_side(sweeps, jobs, on_row))
    return [rows[sweep] for sweep in sweeps]


def _side_by_side(sweeps: Sequence[Sweep], jobs: int, on_row: Callable[[Row], object]) -> Iterator[tuple[Sweep, Row]]:
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_sweep, sweep): sweep for sweep in sweeps}
        for done in as_completed(running):
            row = done.result()
            on_row(row)
            yield running[done], row


def sweeps_for(
    benchmarks: Sequence[str],
    executors: Sequence[str],
    *,
    level: float,
    mix_name: str,
    mix: Mapping[str, float],
    seeds: Sequence[int],
    only: Sequence[str] = (),
) -> list[Sweep]:
    return [
        Sweep(benchmark, executor, level, mix_name, tuple(mix.items()), tuple(seeds), tuple(only))
        for benchmark in benchmarks
        for executor in executors
    ]
