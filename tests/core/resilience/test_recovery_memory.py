from __future__ import annotations

import json

import pytest

from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.options import Fallback
from failsoft.core.resilience import recovery_memory as m
from failsoft.core.resilience.recovery_memory import RETRY, TOOL, Evidence, Family, Memory, Tally, order, skips_retry

DOWN = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "shard 7 is down", "it is down", "test")
HOUR = 3600.0


class World:
    """A memory with its clock, and the tool's successes."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.now = 1_000_000.0
        self.successes = 0
        self.asked = 0

    def count(self) -> int:
        self.asked += 1
        return self.successes

    def note_error(self, fault: Fault = DOWN, tenant: str | None = None, tool: str = "search") -> Family:
        return self.memory.note_error(tenant, tool, fault, now=self.now, successes=self.count)

    def episodes(self, number: int, strategy: str = RETRY, *, worked: bool = False) -> Family:
        """As many outages, an hour each; the tool works in between."""
        for _ in range(number):
            family = self.note_error()
            family.learn(strategy, worked=worked, seconds=1.0)
            self.now += HOUR
            self.successes += 1
        return family


# --- episodes ---------------------------------------------------------------------------------------------------------


def test_a_thousand_failures_in_one_outage_count_once():
    world = World()
    for _ in range(1000):
        world.note_error().learn(RETRY, worked=False, seconds=1.0)
        world.now += 10
    family = world.note_error()
    assert (family.seen, family.tallies[RETRY].tried) == (1, 1)


def test_one_long_outage_does_not_make_a_family_hopeless():
    world = World()
    world.now += 1
    for minute in range(8 * 60):  # some calls of other kinds get through all the time
        family = world.note_error()
        family.learn(RETRY, worked=False, seconds=1.0)
        world.successes += 1
        world.now += 60
        assert not family.is_hopeless, minute
    assert family.tallies[RETRY].tried < m.ENOUGH


def test_a_success_of_the_tool_ends_the_episode_but_not_before_its_least_length():
    world = World()
    family = world.note_error()
    world.successes += 1
    world.now += m.EPISODE_LEAST - 1
    assert world.note_error().seen == 1
    world.now += 1
    assert world.note_error().seen == pytest.approx(2, abs=0.01)
    world.now += m.EPISODE_LEAST
    assert world.note_error().seen == family.seen == pytest.approx(2, abs=0.01)  # no success since


def test_an_outage_without_end_is_a_new_episode_every_now_and_then():
    world = World()
    world.note_error()
    world.now += m.EPISODE_MOST - 1
    assert world.note_error().seen == 1
    world.now += 1
    assert world.note_error().seen == pytest.approx(2, abs=0.05)


def test_the_tools_successes_are_asked_for_only_when_they_matter():
    world = World()
    for _ in range(100):
        world.note_error()
        world.now += 1
    assert world.asked == 1


def test_a_clock_that_is_set_back_begins_an_episode_and_no_trouble():
    world = World()
    world.note_error()
    world.now -= 10 * HOUR
    family = world.note_error()
    assert (family.since, round(family.seen)) == (world.now, 2)


# --- tallies ----------------------------------------------------------------------------------------------------------


def test_within_an_episode_the_share_that_worked_counts():
    world = World()
    family = world.note_error()
    for worked in (True, False, False, True):
        family.learn(TOOL + "b", worked=worked, seconds=1.0)
    assert family.tallies[TOOL + "b"][:3] == (1, 0.5, 1)


def test_evidence_decays_by_half_in_a_week():
    world = World()
    family = world.note_error()
    family.learn(RETRY, worked=True, seconds=2.0)
    world.now += m.HALF_LIFE
    world.successes += 1
    world.note_error()
    assert family.seen == pytest.approx(1.5)
    assert family.tallies[RETRY] == pytest.approx((0.5, 0.5, 0.5, 2.0))


def test_the_duration_of_a_strategy_is_averaged():
    world = World()
    family = world.note_error()
    family.learn(RETRY, worked=True, seconds=2.0)
    assert family.tallies[RETRY].seconds == 2.0
    family.learn(RETRY, worked=True, seconds=4.0)
    assert 2.0 < family.tallies[RETRY].seconds < 4.0


def test_tenants_and_tools_do_not_share():
    world = World()
    world.note_error(tenant="a").learn(RETRY, worked=False, seconds=1)
    assert not world.note_error(tenant="b").tallies
    assert not world.note_error(tool="other").tallies
    assert world.note_error(tenant="a").tallies


def test_numbers_do_not_make_another_family():
    world = World()
    assert world.note_error(DOWN._replace(message="shard 9 is down")) is world.note_error()
    assert world.note_error(DOWN._replace(message="shard 9 is slow")) is not world.note_error()
    assert world.note_error(DOWN._replace(code=Code.INTERNAL)) is not world.note_error()


# --- act --------------------------------------------------------------------------------------------------------------


def test_twenty_episodes_without_a_cure_are_hopeless():
    world = World()
    assert not world.episodes(m.ENOUGH - 1).is_hopeless
    assert world.episodes(2).is_hopeless


def test_one_success_makes_a_family_hopeful_again():
    world = World()
    world.episodes(25)
    assert not world.episodes(1, worked=True).is_hopeless


def test_an_old_success_is_forgotten():
    world = World()
    world.episodes(1, worked=True)
    assert not world.episodes(40).is_hopeless  # within the week
    world.now += m.HALF_LIFE
    assert world.episodes(20).is_hopeless


def test_hopeless_retries_are_left_out_but_for_a_small_share():
    world = World()
    hopeful = world.episodes(3)
    assert not any(skips_retry(hopeful) for _ in range(100))
    hopeless = world.episodes(30)
    left_out = [skips_retry(hopeless) for _ in range(200)]
    assert left_out.count(False) == 200 / m.EXPLORE
    assert all(left_out[: m.EXPLORE - 1])


# --- advise -----------------------------------------------------------------------------------------------------------


def taught(**shares: float) -> Family:
    family = Family(None, "search", "x")
    family.seen = 10
    family.before = {TOOL + tool: Tally(10, 10 * share, 5, 1.0) for tool, share in shares.items()}
    return family


def ordered(family: Family, *options: Fallback) -> list[str]:
    return [option.tool for option in order(family, options)]


A, B, C = (Fallback(tool=name) for name in "abc")
SPECIFIC = Fallback(tool="s", handle_errors=("UNAVAILABLE",))


def test_the_better_of_two_fallbacks_of_equal_rank_comes_first():
    assert ordered(taught(a=0.3, b=0.9), A, B) == ["b", "a"]
    assert ordered(taught(a=0.9, b=0.3), A, B) == ["a", "b"]
    assert ordered(taught(a=0.3, b=0.3), A, B) == ["a", "b"]
    assert ordered(taught(b=0.2), B, A) == ["a", "b"]  # nothing known is better than known as bad


def test_fallbacks_of_different_rank_keep_their_order():
    assert ordered(taught(s=0.1, a=0.9), SPECIFIC, A) == ["s", "a"]
    assert ordered(taught(s=0.1, a=0.2, b=0.9), SPECIFIC, A, B) == ["s", "b", "a"]


def test_too_little_evidence_orders_nothing():
    family = taught(a=0.0, b=1.0)
    family.seen = m.QUOTED - 1
    assert ordered(family, A, B) == ["a", "b"]
    assert ordered(Family(None, "search", "x"), A, B) == ["a", "b"]


def test_the_written_order_is_explored_now_and_then():
    family = taught(a=0.3, b=0.9)
    first = [ordered(family, A, B)[0] for _ in range(100)]
    assert first.count("a") == 100 / m.EXPLORE


def test_evidence_is_quoted_from_three_episodes_on():
    world = World()
    assert world.episodes(m.QUOTED - 1).evidence is None
    world.episodes(1)
    evidence = world.note_error().evidence
    assert str(evidence) == "seen in 4 episodes; retries worked 0 of 3 times"
    assert evidence.of(TOOL + "b").tried == 0


def test_evidence_is_plain_data():
    evidence = Evidence(6, ((RETRY, Tally(6, 0, 0, 0.5)), (TOOL + "b", Tally(6, 6, 6, 0.1))))
    assert Evidence.from_dict(json.loads(json.dumps(evidence.to_dict()))) == evidence
    assert str(evidence) == "seen in 6 episodes; retries worked 0 of 6 times; b worked 6 of 6 times"


# --- size, keeping ----------------------------------------------------------------------------------------------------


def test_the_number_of_families_is_bounded_and_the_least_recent_goes():
    world = World()
    first = world.note_error()
    for number in range(m.FAMILIES + 500):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        world.note_error(DOWN._replace(message=f"cause {word}"))
    assert len(world.memory) == m.FAMILIES
    assert world.note_error() is not first


def test_the_number_of_strategies_is_bounded():
    family = World().note_error()
    for number in range(100):
        family.learn(f"{TOOL}{number}", worked=True, seconds=0)
    assert len(family.tallies) == m.STRATEGIES


def test_forgetting_is_by_tenant_and_tool():
    world = World()
    for tenant, tool in ((None, "search"), (None, "book"), ("acme", "search")):
        world.note_error(tenant=tenant, tool=tool)
    assert world.memory.forget(tool="book") == 1
    assert world.memory.forget("acme") == 1
    assert [family.tool for family in world.memory] == ["search"]
    assert world.memory.forget() == 1
    assert world.note_error().seen == 1


def test_a_family_survives_as_plain_data():
    world = World()
    family = world.episodes(5)
    kept = Family.from_dict(json.loads(json.dumps(family.to_dict())))
    assert kept.to_dict() == family.to_dict()
    other = World()
    other.now = world.now
    other.memory.add(kept)
    assert other.note_error() is kept
    assert round(kept.seen) == 6
