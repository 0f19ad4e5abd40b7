"""Fallbacks by error code: another tool answers under the name of the requested one.

python examples/three_layers/fallback_routing.py "Tell me a joke"
python examples/three_layers/fallback_routing.py "Test" --modelName="invalid-model"
"""

from __future__ import annotations

from scripted import fixed, run, service, show

from failsoft import ErrorStatusCode, Runtime

HANDLING = {
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


async def main(arguments: dict[str, str]) -> None:
    rt = Runtime()
    rt.add(service("about tools."), id="completion", errorHandling=HANDLING)
    rt.add(fixed("from the fallback."), id="fallback_completion")

    print("The primary answers; if its model is not available, the fallback takes UNAVAILABLE:")
    outcome = await rt.call("completion", arguments, id="joke")
    show(outcome)
    print(f"  the call is {outcome.id!r} of {outcome.tool!r} all the same")

    print("An error that the fallback does not take:")
    show(await rt.call("completion", {**arguments, "prompt": ""}))


if __name__ == "__main__":
    run(main, "Tell me a joke")
