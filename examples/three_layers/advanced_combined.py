"""All three layers: retries per error, an ordered chain of fallbacks, cooldowns for the tool and for a fallback.

python examples/three_layers/advanced_combined.py
"""

from __future__ import annotations

from scripted import run, service, show

from failsoft import Code, Runtime

HANDLING = {
    "retries": [
        {"maxAttempts": 2, "handleErrors": [Code.UNAVAILABLE]},
        {"maxAttempts": 3, "handleErrors": [Code.DEADLINE_EXCEEDED]},
    ],
    "fallbacks": [
        {
            "nodeId": "primary_fallback",
            "handleErrors": [Code.UNAVAILABLE, Code.INTERNAL],
            "cooldown": {"minConsecutiveFailures": 3, "cooldownDuration": "20s"},
        },
        {"nodeId": "secondary_fallback", "handleErrors": []},  # catches all
    ],
    "cooldown": {"minConsecutiveFailures": 2, "cooldownDuration": 30000},  # a number is milliseconds here
}
QUESTION = {"prompt": "Resilience is"}


async def main() -> None:
    rt = Runtime()
    rt.add(service("UNAVAILABLE"), id="completion", errorHandling=HANDLING, read_only=True)
    rt.add(service("grace.", "UNAVAILABLE"), id="primary_fallback", retry={"max_attempts": 1})
    rt.add(service("a cached answer."), id="secondary_fallback")

    for number in range(1, 7):
        print(f"call {number} (completion is {rt.health('completion').state}):")
        show(await rt.call("completion", QUESTION))

    figures = rt.metrics("completion")
    print(f"retries: {figures['retry_count']}, fallbacks: {figures['fallback_count']}")
    print(f"attempts of primary_fallback: {1 + rt.metrics('primary_fallback')['error_count']}")


if __name__ == "__main__":
    run(main)
