"""All three layers: retries per error, an ordered chain of fallbacks, cooldowns for the tool and for a fallback.

python examples/three_layers/advanced_combined.py "What is resilient system design?"
python examples/three_layers/advanced_combined.py "Test" --modelName="invalid-model"
"""

from __future__ import annotations

from scripted import fixed, run, service, show

from failsoft import ErrorStatusCode, Runtime

HANDLING = {
    # Multiple retry strategies
    "retries": [
        {
            "maxAttempts": 2,
            "handleErrors": [ErrorStatusCode.Unavailable],
        },
        {
            "maxAttempts": 3,
            "handleErrors": [ErrorStatusCode.DeadlineExceeded],
        },
    ],
    # Ordered fallback chain
    "fallbacks": [
        {
            "nodeId": "primary_fallback",
            "handleErrors": [ErrorStatusCode.Unavailable, ErrorStatusCode.Internal],
            # Per-fallback cooldown override
            "cooldown": {
                "minConsecutiveFailures": 3,
                "cooldownDuration": "20s",  # String format with unit
            },
        },
        {
            "nodeId": "secondary_fallback",
            "handleErrors": [],  # Catch-all
        },
    ],
    # Common circuit breaker
    "cooldown": {
        "minConsecutiveFailures": 2,
        "cooldownDuration": 30000,  # Number format in milliseconds (30s)
    },
}


async def main(arguments: dict[str, str]) -> None:
    rt = Runtime()
    rt.add(service("Redundancy.", "UNAVAILABLE"), id="completion", errorHandling=HANDLING)
    rt.add(service("Patience.", "INVALID_ARGUMENT"), id="primary_fallback")
    rt.add(fixed("An answer from the cache."), id="secondary_fallback")

    for number in range(1, 6):
        print(f"call {number} (completion is {rt.health('completion').state}):")
        show(await rt.call("completion", arguments))

    figures = rt.metrics("completion")
    print(f"retries: {figures['retry_count']}, fallbacks: {figures['fallback_count']}")
    for fallback in ("primary_fallback", "secondary_fallback"):
        print(f"{fallback} as a fallback: {rt.health(fallback, fallback_of='completion').state}")


if __name__ == "__main__":
    run(main, "What is resilient system design?")
