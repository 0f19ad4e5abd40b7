"""Retries by error code: up to three attempts for the listed errors, none for others.

python examples/three_layers/basic_retry.py "Complete this: The sky is"
python examples/three_layers/basic_retry.py "Test" --modelName="invalid-model"
"""

from __future__ import annotations

from scripted import run, service, show, show_decisions

from failsoft import ErrorStatusCode, Runtime

HANDLING = {
    "retries": [
        {
            "maxAttempts": 3,
            "handleErrors": [
                ErrorStatusCode.Unavailable,
                ErrorStatusCode.DeadlineExceeded,
                ErrorStatusCode.Internal,
            ],
        },
    ],
}


async def main(arguments: dict[str, str]) -> None:
    rt = Runtime()
    rt.add(service("UNAVAILABLE", "INTERNAL", "blue."), id="completion", errorHandling=HANDLING)

    print("Two failures, then an answer; a model that is not available fails three times:")
    show(await rt.call("completion", arguments))
    show(await rt.call("completion", arguments))

    print("An error that is not on the list fails at once:")
    show(await rt.call("completion", {**arguments, "prompt": ""}))

    print("Decisions:")
    show_decisions(rt)


if __name__ == "__main__":
    run(main, "Complete this: The sky is")
