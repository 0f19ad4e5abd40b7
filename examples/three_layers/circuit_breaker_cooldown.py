"""Cooldown: a tool that keeps failing is not called for a while, then probed once.

python examples/three_layers/circuit_breaker_cooldown.py "Tell me about AI"
"""

from __future__ import annotations

import asyncio

from scripted import fixed, run, service, show

from failsoft import ErrorStatusCode, Runtime

HANDLING = {
    "cooldown": {
        "minConsecutiveFailures": 2,
        "cooldownDuration": "10s",  # String format: '10s', '1m', '500ms', '2h'
    },
    "fallbacks": [
        {
            "nodeId": "fallback_completion",
            "handleErrors": [
                ErrorStatusCode.Unavailable,
                ErrorStatusCode.Internal,
                ErrorStatusCode.DeadlineExceeded,
            ],
        },
    ],
}
OUTAGE = ["UNAVAILABLE"] * 10  # two calls, with their default retries


async def main(arguments: dict[str, str]) -> None:
    rt = Runtime()
    rt.add(service("at length.", *OUTAGE, "again."), id="completion", errorHandling=HANDLING)
    rt.add(fixed("in short."), id="fallback_completion")
    rt.subscribe(lambda event: print(f"    {event.message}") if "Circuit" in event.event_type else None, inline=True)

    for number in range(1, 5):
        print(f"call {number} (completion is {rt.health('completion').state}):")
        show(await rt.call("completion", arguments))

    await asyncio.sleep(10)
    print(f"ten seconds later (completion is {rt.health('completion').state}):")
    show(await rt.call("completion", arguments))
    print(f"and now completion is {rt.health('completion').state}.")
    await rt.close()


if __name__ == "__main__":
    run(main, "Tell me about AI")
