"""A pytest plugin: the fixtures ``virtual_time`` and ``fault_plan``.

    def test_recovers(virtual_time, fault_plan):
        plan = fault_plan("timeout, 503, ok")
        rt = Runtime()
        rt.add(plan.wrap(search), id="search")
        outcome = virtual_time.run(rt.call("search", {"city": "PAR"}))
        assert outcome.attempts == plan.calls == 3

``virtual_time`` is a clock that is active for the whole test. ``virtual_time.run(main())`` runs a coroutine on it, so
async tests need no other plugin. ``fault_plan`` makes plans and releases hanging calls when the test ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from failsoft import testing
from failsoft.testing.faults import Spec


@pytest.fixture
def virtual_time() -> Iterator[testing.VirtualClock]:
    """Virtual clock, active during the test; ``virtual_time.run(coroutine)`` runs on it."""
    with testing.virtual_time() as clock:
        yield clock


@pytest.fixture
def fault_plan() -> Iterator[Callable[..., testing.FaultPlan]]:
    """Make a ``FaultPlan``; calls that still hang at the end of the test are released."""
    plans: list[testing.FaultPlan] = []

    def make(script: str | Iterable[Spec], *, then: Spec | None = None) -> testing.FaultPlan:
        plans.append(testing.FaultPlan(script, then=then))
        return plans[-1]

    yield make
    for plan in plans:
        plan.release()
