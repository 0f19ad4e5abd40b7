"""S-layers' four templates run and show what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "three_layers"


@pytest.fixture
def output(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the example of this name prints."""
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / f"{request.param}.py"), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("output", ["basic_retry"], indirect=True)
def test_basic_retry(output: str) -> None:
    assert "'The sky is blue.' by flaky, attempts: 3" in output
    assert "NOT_FOUND, attempts: 1" in output


@pytest.mark.parametrize("output", ["fallback_routing"], indirect=True)
def test_fallback_routing(output: str) -> None:
    assert "by fallback_completion, attempts: 3" in output
    assert "the call is still 'joke' of 'completion'" in output
    assert "INVALID_ARGUMENT, attempts: 1" in output


@pytest.mark.parametrize("output", ["circuit_breaker_cooldown"], indirect=True)
def test_circuit_breaker_cooldown(output: str) -> None:
    shown = [line.strip() for line in output.splitlines()]
    assert [line for line in shown if line.startswith("Circuit")] == [
        "Circuit breaker opened for completion",
        "Circuit breaker half-opened for completion",
        "Circuit breaker closed for completion",
    ]
    assert [line for line in shown if " by " in line][2:] == [
        "'AI is in short: useful.' by fallback_completion, attempts: 1",  # skipped in its cooldown
        "'AI is a long story.' by completion, attempts: 1",
    ]


@pytest.mark.parametrize("output", ["advanced_combined"], indirect=True)
def test_advanced_combined(output: str) -> None:
    attempts = [line.rpartition(" ")[2] for line in output.splitlines() if " by " in line]
    assert attempts == ["3", "4", "2", "2", "1", "1"]
    assert "retries: 2, fallbacks: 6" in output
    assert "attempts of primary_fallback: 4" in output
