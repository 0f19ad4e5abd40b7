"""Shared parts of the four examples: arguments, a model service with scripted failures, and output."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from failsoft import Outcome, Runtime
from failsoft.testing import virtual_time

DEFAULT_MODEL = "small-model"


class StatusError(Exception):
    """An error response of a service, with its status code."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the model service answered {code}")
        self.code = code


def service(*answers: str) -> Callable[..., Coroutine[Any, Any, str]]:
    """Make a tool that gives these answers, one per attempt, and repeats the last. A status code is raised.

    An unknown model is always unavailable, and an empty prompt is rejected.
    """

    def script() -> Iterator[str]:
        yield from answers
        while True:
            yield answers[-1]

    steps = script()

    async def complete(prompt: str, model: str = DEFAULT_MODEL) -> str:
        if not prompt:
            raise StatusError("INVALID_ARGUMENT")
        if model != DEFAULT_MODEL:
            raise StatusError("UNAVAILABLE")
        answer = next(steps)
        if answer.isupper():
            raise StatusError(answer)
        return f"{prompt} {answer}"

    return complete


def fixed(answer: str) -> Callable[..., Coroutine[Any, Any, str]]:
    """Make a service with its own model, which it uses for every request."""
    complete = service(answer)

    async def answer_anyway(prompt: str, model: str = DEFAULT_MODEL) -> str:
        del model
        return await complete(prompt)

    return answer_anyway


def show(outcome: Outcome[Any]) -> None:
    """Print the result of a call in one line."""
    if outcome.status == "succeeded":
        print(f"  {outcome.value!r} by {outcome.via}, attempts: {outcome.attempts}")
    else:
        assert outcome.fault is not None
        assert outcome.decision is not None
        print(f"  {outcome.fault.code}, attempts: {outcome.attempts}, {outcome.decision.reason}")


def show_decisions(rt: Runtime) -> None:
    """Print the decisions so far, from the event stream."""
    for event in rt.events():
        record = event.to_dict()
        if record["event_type"] == "ToolError":
            print(f"    {record['tool_id']}: {record['code']} → {record['decision']}")


def run(main: Callable[[dict[str, str]], Coroutine[Any, Any, None]], prompt: str) -> None:
    """Run an example with its arguments, in virtual time: delays have their full length and take no time."""
    parser = ArgumentParser()
    parser.add_argument("prompt", nargs="?", default=prompt, help="what the model completes")
    parser.add_argument("--modelName", default=DEFAULT_MODEL, help="any other name is a model that is not available")
    said = parser.parse_args([argument for argument in sys.argv[1:] if argument != "--"])
    with virtual_time() as time:
        time.run(main({"prompt": said.prompt, "model": said.modelName}))
