"""The benefit of the recovery memory: the same 10,000 turns with and without it, in virtual time on a real runtime.

``pytest tests/simulation -s`` prints the figures.
"""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import pytest
from tests.simulation.world import OUTAGE, SHARES, TEXTS, Lived, live, plan

from failsoft import Runtime, classify
from failsoft.testing import virtual_time

pytestmark = pytest.mark.slow

Lives = dict[str, list[Lived]]


@pytest.fixture(scope="module")
def lives() -> Lives:
    turns = plan(seed=7)
    return {"off": live(turns, "off"), "act": live(turns, "act")}


def wasted(lived: list[Lived]) -> int:
    return sum(each.wasted for each in lived)


def test_the_simulated_world_has_the_planned_mix_of_failures(lives: Lives) -> None:
    assert all(classify(RuntimeError(text)).retryable for text in TEXTS.values())
    kinds = [each.planned.kind for each in lives["off"]]
    assert set(kinds) == set(SHARES)
    lost = [each for each in lives["off"] if each.planned.is_recoverable and not each.succeeded]
    assert len(lost) < 0.02 * len(kinds)  # some calls meet an open circuit whose fallback does not serve them


def test_act_cuts_wasted_attempts_by_half(lives: Lives) -> None:
    off, act = wasted(lives["off"]), wasted(lives["act"])
    for kind in ("blip", "routed", "dead", "cured"):
        each = {mode: wasted([one for one in lived if one.planned.kind == kind]) for mode, lived in lives.items()}
        print(f"  wasted attempts, {kind}: off {each['off']}, act {each['act']}")
    print(f"  wasted attempts: off {off}, act {act}: {100 * (1 - act / off):.0f} % less")
    assert act <= off / 2


def test_act_loses_no_recoverable_call_during_and_after_the_outage(lives: Lives) -> None:
    pairs = [*zip(lives["off"], lives["act"], strict=True)][OUTAGE.start :]
    recoverable = [(off, act) for off, act in pairs if off.planned.is_recoverable]
    saved = sum(off.succeeded for off, _ in recoverable), sum(act.succeeded for _, act in recoverable)
    print(f"  recoverable calls from the outage on: {len(recoverable)}; saved: off {saved[0]}, act {saved[1]}")
    assert [act.planned for off, act in recoverable if off.succeeded and not act.succeeded] == []
    in_outage = [act for _, act in recoverable if act.planned.number in OUTAGE]
    assert in_outage
    assert all(act.succeeded for act in in_outage)


def test_the_memory_never_gives_up_on_errors_that_retries_cure(lives: Lives) -> None:
    blips = [each for each in lives["act"] if each.planned.kind == "blip" and each.planned.number not in OUTAGE]
    assert sum(each.succeeded for each in blips) / len(blips) > 0.999


def test_the_cured_family_is_retried_again_within_50_calls(lives: Lives) -> None:
    cured = [each for each in lives["act"] if each.planned.kind == "cured"]
    before = [each for each in cured if each.planned.fails == 99 and each.planned.number < OUTAGE.start]
    assert before[-1].attempts <= 2  # given up by then: one attempt, and one of the fallback
    after = [each for each in cured if each.planned.fails == 1]
    assert not after[0].succeeded  # the memory cannot know yet
    first = next(number for number, each in enumerate(after, 1) if each.succeeded)
    print(f"  the cured family is retried again at call {first}")
    assert first <= 50
    known = {each.planned.number for each in after[first:]}
    assert [off.planned for off, act in zip(lives["off"], lives["act"], strict=True)
            if off.planned.number in known and off.succeeded and not act.succeeded] == []  # fmt: skip


def test_act_picks_the_better_of_two_fallbacks() -> None:
    picked = _pick(seed=3)
    rate = picked[20:].count("good") / len(picked[20:])
    print(f"  the better fallback comes first in {100 * rate:.0f} % after 20 episodes")
    assert rate >= 0.9
    assert picked[0] == "poor"  # as written


def _pick(seed: int) -> list[str]:
    """The alternative that was asked first, in each of 200 episodes; one serves 30 %, the other 90 %."""
    source = random.Random(seed)
    served = {name: [source.random() < share for _ in range(200)] for name, share in (("poor", 0.3), ("good", 0.9))}

    async def main() -> list[str]:
        picked: list[str] = []
        now = 0

        def stand_in(name: str) -> None:
            async def tool(fails: bool) -> str:
                picked.append(name) if len(picked) == now else None
                if not served[name][now]:
                    raise RuntimeError("Service unavailable (503)")
                return name

            rt.add(tool, id=name, read_only=True, retry={"max_attempts": 1}, breaker={"failure_threshold": 1_000})

        async def search(fails: bool) -> str:
            if fails:
                raise RuntimeError(f"Shard {source.randrange(99)} is down")
            return "found"

        rt = Runtime(random=random.Random(0), memory="act")  # by default the author's order stays
        rt.add(search, read_only=True, retry={"max_attempts": 1}, fallbacks=["poor", "good"])
        stand_in("poor")
        stand_in("good")
        for number in range(200):
            now = number
            await rt.call("search", {"fails": True})
            await rt.call("search", {"fails": False})
            await asyncio.sleep(3600)
        return picked

    with virtual_time() as clock:
        return clock.run(main())


def test_every_mode_lives_in_the_same_world() -> None:
    once, again = plan(seed=7, turns=200), plan(seed=7, turns=200)
    assert once == again
    assert len({each.text for each in once}) > 100
    assert all(one.number + 1 == other.number for one, other in pairwise(once))
