"""T18: the load on a dead service, and the time until it is used again after it recovers.

Virtual time on a real runtime. The breaker is out of the way where the budget is what is shown.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.fakes import OFTEN, virtual

from failsoft import Runtime

CALLS = 1_000


class Service:
    """Down until it is set up; counts the attempts that reach it."""

    def __init__(self) -> None:
        self.hits = 0
        self.up = False

    async def __call__(self, **arguments: object) -> str:
        self.hits += 1
        if not self.up:
            raise ConnectionRefusedError("Connection refused")
        return "x"


@pytest.mark.parametrize("memory", ["off", "advise", "act"])
@pytest.mark.parametrize("nested", [0, 1, 2])
@virtual
async def test_t18_a_full_outage_is_not_amplified(nested: int, memory: str) -> None:
    service = Service()
    rt = Runtime(memory=memory, random=random.Random(1))  # type: ignore[arg-type]
    options = {"read_only": True, "breaker": OFTEN}
    call = rt.add(service, id="service", **options)
    for level in range(nested):  # guarded tools that call guarded tools: three wrappers would be 5 ** 3 attempts

        async def outer(inner: object = call) -> str:
            return await inner()  # type: ignore[operator]

        call = rt.add(outer, id=f"outer_{level}", **options)
    outermost = rt.tools[-1]
    outcomes = await asyncio.gather(*(rt.call(outermost) for _ in range(CALLS)))
    assert {outcome.status for outcome in outcomes} == {"failed"}
    print(f"  {nested} wrappers, memory {memory}: {service.hits / CALLS:.3f}x")
    assert service.hits / CALLS <= 1.10


@virtual
async def test_t18_without_the_budget_a_full_outage_is_amplified() -> None:
    service = Service()
    rt = Runtime(random=random.Random(1))
    rt.add(service, id="service", read_only=True, breaker=OFTEN, retry={"budget": False})
    await asyncio.gather(*(rt.call("service") for _ in range(CALLS)))
    assert service.hits == 5 * CALLS


@virtual
async def test_t18_with_the_breaker_a_dead_service_is_left_alone_and_found_again_in_time() -> None:
    service = Service()
    rt = Runtime(random=random.Random(1))
    rt.add(service, id="service", read_only=True)  # a breaker as it is by default: open for 30 s
    for _ in range(CALLS):  # ten a second
        await rt.call("service")
        await asyncio.sleep(0.1)
    print(f"  with the breaker: {service.hits / CALLS:.3f}x")
    assert service.hits < 0.1 * CALLS
    service.up = True
    ended = asyncio.get_running_loop().time()
    for _ in range(CALLS):
        if (await rt.call("service")).status == "succeeded":
            break
        await asyncio.sleep(0.1)
    recovered = asyncio.get_running_loop().time() - ended
    print(f"  recovered after {recovered:.1f} s; the circuit is open for 30 s")
    assert recovered <= 60
    assert all([(await rt.call("service")).status == "succeeded" for _ in range(100)])
