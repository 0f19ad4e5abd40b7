"""T36: an agent that crashed in the middle of a payment, and was resumed by its framework, paid twice. Here it pays once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.torture.killing import kill_and_replay
from tests.torture.scale import times

FRAMEWORKS = ("langgraph", "pydantic_ai", "openai_agents")
DELAYS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0)[: times(10, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_t36_a_run_that_is_resumed_pays_once(framework: str, tmp_path: Path) -> None:
    came = kill_and_replay(framework, tmp_path / "middle", None, replays=3)
    assert came.is_right, came
    assert (came.before, came.after) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_t36_a_guarded_function_that_an_agent_is_given_pays_once(framework: str, tmp_path: Path) -> None:
    came = kill_and_replay(f"{framework}_guarded", tmp_path / "middle", None)
    assert came.is_right, came
    assert (came.before, came.after) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS[: times(3, 2)])
def test_t36_a_payment_that_was_made_while_another_call_still_ran_is_not_made_again(
    framework: str, tmp_path: Path
) -> None:
    came = kill_and_replay(f"{framework}_beside", tmp_path / "beside", None)
    assert (came.before, came.after) == (1, 1), came


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS[: times(3, 1)])
def test_t36_a_run_killed_at_any_delay_pays_once(framework: str, tmp_path: Path) -> None:
    for delay in DELAYS:
        came = kill_and_replay(framework, tmp_path / str(delay), delay)
        assert came.is_right, (delay, came)
