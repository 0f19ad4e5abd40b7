"""Retries by error code: up to three attempts for the listed errors, none for others.

python examples/three_layers/basic_retry.py
"""

from __future__ import annotations

from scripted import run, service, show, show_decisions

from failsoft import Code, Runtime

HANDLING = {
    "retries": [
        {"maxAttempts": 3, "handleErrors": [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.INTERNAL]},
    ],
}


async def main() -> None:
    rt = Runtime()
    rt.add(service("UNAVAILABLE", "INTERNAL", "blue."), id="flaky", errorHandling=HANDLING, read_only=True)
    rt.add(service("NOT_FOUND"), id="wrong_model", errorHandling=HANDLING, read_only=True)

    print("Two failures, then an answer:")
    show(await rt.call("flaky", {"prompt": "The sky is"}))

    print("An error that is not on the list fails at once:")
    show(await rt.call("wrong_model", {"prompt": "The sky is"}))

    print("Decisions:")
    show_decisions(rt)


if __name__ == "__main__":
    run(main)
