"""The cases: ``CASES`` by name, in the order of the torture list."""

from __future__ import annotations

from bench.peers.cases import (  # noqa: F401 - each registers its cases
    batches,
    breakers,
    callables,
    hooks,
    processes,
    retries,
    texts,
    timeouts,
)
from bench.peers.cases.case import CASES as REGISTERED

CASES = dict(sorted(REGISTERED.items(), key=lambda one: (int(one[1].number[1:]), one[0] != one[1].number, one[1].at)))
