"""S-layers' four templates: the printed blocks, the printed arguments, and what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from failsoft import ErrorStatusCode as Code

EXAMPLES = Path(__file__).parents[2] / "examples" / "three_layers"
INVALID = ["Test", "--modelName=invalid-model"]

FALLBACKS = [
    {"nodeId": "fallback_completion", "handleErrors": [Code.Unavailable, Code.Internal, Code.DeadlineExceeded]}
]
PRINTED: dict[str, dict[str, Any]] = {
    "basic_retry": {
        "retries": [{"maxAttempts": 3, "handleErrors": [Code.Unavailable, Code.DeadlineExceeded, Code.Internal]}]
    },
    "fallback_routing": {"fallbacks": FALLBACKS},
    "circuit_breaker_cooldown": {
        "cooldown": {"minConsecutiveFailures": 2, "cooldownDuration": "10s"},
        "fallbacks": FALLBACKS,
    },
    "advanced_combined": {
        "retries": [
            {"maxAttempts": 2, "handleErrors": [Code.Unavailable]},
            {"maxAttempts": 3, "handleErrors": [Code.DeadlineExceeded]},
        ],
        "fallbacks": [
            {
                "nodeId": "primary_fallback",
                "handleErrors": [Code.Unavailable, Code.Internal],
                "cooldown": {"minConsecutiveFailures": 3, "cooldownDuration": "20s"},
            },
            {"nodeId": "secondary_fallback", "handleErrors": []},
        ],
        "cooldown": {"minConsecutiveFailures": 2, "cooldownDuration": 30000},
    },
}


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run an example with these arguments; what it prints."""

    def run(name: str, *arguments: str) -> str:
        monkeypatch.syspath_prepend(EXAMPLES)
        monkeypatch.setattr("sys.argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def made(output: str) -> list[str]:
    """The attempts of each call, and who answered."""
    return [line.rpartition(" by ")[2] for line in output.splitlines() if " by " in line]


@pytest.mark.parametrize("name", PRINTED)
def test_the_block_is_the_printed_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    assert runpy.run_path(str(EXAMPLES / f"{name}.py"))["HANDLING"] == PRINTED[name]
    source = (EXAMPLES / f"{name}.py").read_text()
    for other in ("retry=", "breaker=", "cooldown=", "fallbacks=", "read_only=", "idempotent="):
        assert other not in source, "the printed block is all that an example says"


def test_basic_retry(play: Any) -> None:
    output = play("basic_retry")
    assert "'Complete this: The sky is blue.' by completion, attempts: 3" in output
    assert "INVALID_ARGUMENT, attempts: 1" in output
    assert "'Grass is blue.'" in play("basic_retry", "Grass is")
    assert play("basic_retry", *INVALID).count("UNAVAILABLE, attempts: 3") == 2  # in every execution


def test_fallback_routing(play: Any) -> None:
    output = play("fallback_routing", "Tell me a joke")
    assert "'Tell me a joke about tools.' by completion, attempts: 1" in output
    assert "INVALID_ARGUMENT, attempts: 1" in output
    output = play("fallback_routing", "Test", "--", "--modelName=invalid-model")
    assert "'Test from the fallback.' by fallback_completion, attempts: 6" in output
    assert "the call is 'joke' of 'completion'" in output


def test_circuit_breaker_cooldown(play: Any) -> None:
    output = play("circuit_breaker_cooldown", "Tell me about AI")
    shown = [line.strip() for line in output.splitlines()]
    assert [line for line in shown if line.startswith("Circuit")] == [
        "Circuit breaker opened for completion",
        "Circuit breaker half-opened for completion",
        "Circuit breaker closed for completion",
    ]
    assert made(output) == [
        "completion, attempts: 1",
        "fallback_completion, attempts: 6",
        "fallback_completion, attempts: 6",
        "fallback_completion, attempts: 1",  # skipped in its cooldown
        "completion, attempts: 1",
    ]


def test_advanced_combined(play: Any) -> None:
    output = play("advanced_combined")
    assert made(output) == [
        "completion, attempts: 1",
        "primary_fallback, attempts: 3",
        "secondary_fallback, attempts: 4",
        "secondary_fallback, attempts: 2",
        "secondary_fallback, attempts: 2",
    ]
    assert "retries: 2, fallbacks: 4" in output
    output = play("advanced_combined", *INVALID)
    assert {line.partition(",")[0] for line in made(output)} == {"secondary_fallback"}
    assert "primary_fallback as a fallback: open" in output
