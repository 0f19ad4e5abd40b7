"""Cooldown: a tool that keeps failing is left alone for a while, then tried once.

python examples/three_layers/circuit_breaker_cooldown.py
"""

from __future__ import annotations

import asyncio

from scripted import run, service, show

from failsoft import Code, Runtime

HANDLING = {
    "retries": [{"maxAttempts": 1, "handleErrors": [Code.UNAVAILABLE]}],
    "cooldown": {"minConsecutiveFailures": 2, "cooldownDuration": "10s"},
    "fallbacks": [
        {
            "nodeId": "fallback_completion",
            "handleErrors": [Code.UNAVAILABLE, Code.INTERNAL, Code.DEADLINE_EXCEEDED],
        },
    ],
}


async def main() -> None:
    rt = Runtime()
    rt.add(service("UNAVAILABLE", "UNAVAILABLE", "a long story."), id="completion", errorHandling=HANDLING)
    rt.add(service("in short: useful."), id="fallback_completion")
    rt.subscribe(lambda event: print(f"    {event.message}") if "Circuit" in event.event_type else None)

    for moment in ("first failure", "second failure", "in cooldown"):
        print(f"{moment} ({rt.health('completion').state}):")
        show(await rt.call("completion", {"prompt": "AI is"}))

    await asyncio.sleep(10)
    print(f"ten seconds later ({rt.health('completion').state}):")
    show(await rt.call("completion", {"prompt": "AI is"}))
    print(f"and now it is {rt.health('completion').state}.")
    await rt.close()


if __name__ == "__main__":
    run(main)
