"""T11: one crash of an isolated tool shut the executor for ever. Here the next call works, every time."""

from __future__ import annotations

import pytest
from tests.fakes import OFTEN, ONCE, real
from tests.runtime.execution.processes import fake_tools
from tests.torture.scale import times

from failsoft import Runtime

CRASHES = times(100, 20)
DEADLY = (fake_tools.segfaults, fake_tools.exits, fake_tools.kills_itself, fake_tools.aborts, fake_tools.dies_sending)


@pytest.mark.slow
@real
async def test_t11_the_next_call_works_each_time() -> None:
    async with Runtime() as rt:
        for tool in DEADLY:
            rt.add(tool, retry=ONCE, breaker=OFTEN, isolation="process")
        rt.add(fake_tools.echo, isolation="process", retry=ONCE, timeout="10s")
        for number in range(CRASHES):
            outcome = await rt.call(DEADLY[number % len(DEADLY)].__name__)
            assert outcome.fault is not None
            assert "its process" in outcome.fault.message
            assert (await rt.call("echo", {"value": number})).value == number
        assert rt.workers.crashes == CRASHES
