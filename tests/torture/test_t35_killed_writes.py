"""T35: a write that was killed in its first tenth of a second was made again by the replay. Here it is made once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.torture.killing import kill_and_replay
from tests.torture.scale import times

KILLS = times(200, 4)
ROUTES = ("by_id", "in_a_thread", "in_a_turn", "plan", "blocking", "worker", "plain_loop")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_t35_a_killed_write_is_made_once_or_reported_as_unknown(part: int, tmp_path: Path) -> None:
    source = random.Random(35 + part)
    came = [
        (route, delay, kill_and_replay(route, tmp_path / str(number), delay))
        for number in range(part, KILLS, 2)
        for route, delay in [(ROUTES[number % len(ROUTES)], source.uniform(0, 0.5))]
    ]
    wrong = [each for each in came if not each[2].is_right]
    assert not wrong, f"{len(wrong)} of {len(came)}"


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES[: times(7, 3)])
def test_t35_a_write_that_was_killed_in_the_middle_is_not_made_again(route: str, tmp_path: Path) -> None:
    came = kill_and_replay(route, tmp_path / "middle", None, replays=2)
    assert came.is_right, came
    assert (came.before, came.after) == (1, 1)
