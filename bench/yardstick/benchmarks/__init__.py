"""The benchmarks by name. A benchmark is imported when it is made, not before."""

from __future__ import annotations

from collections.abc import Callable

from bench.yardstick.benchmarks.base import Benchmark


def make_fake() -> Benchmark:
    from bench.yardstick.benchmarks.fake import Fake

    return Fake()


def make_bfcl() -> Benchmark:
    from bench.yardstick.benchmarks.bfcl import Bfcl

    return Bfcl()


def make_bfcl_all() -> Benchmark:
    from bench.yardstick.benchmarks.bfcl import CATEGORIES, Bfcl

    return Bfcl(CATEGORIES)


def make_agentdojo() -> Benchmark:
    from bench.yardstick.benchmarks.agentdojo import AgentDojo

    return AgentDojo()


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {
    "bfcl": make_bfcl,
    "agentdojo": make_agentdojo,
    "bfcl-all": make_bfcl_all,  # all four categories; takes four times as long
    "fake": make_fake,
}
PUBLISHED = ("bfcl", "agentdojo")
