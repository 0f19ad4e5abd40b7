"""Fallbacks by error code: another tool answers, under the name of the one that was asked.

python examples/three_layers/fallback_routing.py
"""

from __future__ import annotations

from scripted import run, service, show

from failsoft import Code, Runtime

HANDLING = {
    "fallbacks": [
        {
            "nodeId": "fallback_completion",
            "handleErrors": [Code.UNAVAILABLE, Code.INTERNAL, Code.DEADLINE_EXCEEDED],
        },
    ],
}


async def main() -> None:
    rt = Runtime()
    rt.add(service("UNAVAILABLE"), id="completion", errorHandling=HANDLING, retry={"max_attempts": 2}, read_only=True)
    rt.add(service("INVALID_ARGUMENT"), id="strict", errorHandling=HANDLING, read_only=True)
    rt.add(service("Why did the tool cross the road?"), id="fallback_completion", read_only=True)

    print("The primary fails, its fallback takes UNAVAILABLE:")
    outcome = await rt.call("completion", {"prompt": "A joke:"}, id="joke")
    show(outcome)
    print(f"  the call is still {outcome.id!r} of {outcome.tool!r}")

    print("An error that the fallback does not take:")
    show(await rt.call("strict", {"prompt": "A joke:"}))


if __name__ == "__main__":
    run(main)
