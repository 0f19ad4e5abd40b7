"""What the four examples share: their arguments, a model service that fails as it is told, a way to show what happened."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from failsoft import Outcome, Runtime
from failsoft.testing import virtual_time

DEFAULT_MODEL = "small-model"


class StatusError(Exception):
    """An error answer of a service, with its status code."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the model service answered {code}")
        self.code = code


def service(*answers: str) -> Callable[..., Coroutine[Any, Any, str]]:
    """A tool that gives these answers, one an attempt; the last one for ever. A status code is raised.

    A model that the service does not have is never available, and an empty prompt is refused.
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
    """A service with a model of its own: it answers whatever model was asked for."""
    complete = service(answer)

    async def answer_anyway(prompt: str, model: str = DEFAULT_MODEL) -> str:
        del model
        return await complete(prompt)

    return answer_anyway


def show(outcome: Outcome[Any]) -> None:
    """One line: what came of a call, and how."""
    if outcome.status == "succeeded":
        print(f"  {outcome.value!r} by {outcome.via}, attempts: {outcome.attempts}")
    else:
        assert outcome.fault is not None
        assert outcome.decision is not None
        print(f"  {outcome.fault.code}, attempts: {outcome.attempts}, {outcome.decision.reason}")


def show_decisions(rt: Runtime) -> None:
    """The decisions so far, from the event stream."""
    for event in rt.events():
        record = event.to_dict()
        if record["event_type"] == "ToolError":
            print(f"    {record['tool_id']}: {record['code']} → {record['decision']}")


def run(main: Callable[[dict[str, str]], Coroutine[Any, Any, None]], prompt: str) -> None:
    """Run an example with its arguments, in virtual time: its waits are as long as they say, and take no time."""
    parser = ArgumentParser()
    parser.add_argument("prompt", nargs="?", default=prompt, help="what the model completes")
    parser.add_argument("--modelName", default=DEFAULT_MODEL, help="any other name is a model that is not available")
    said = parser.parse_args([argument for argument in sys.argv[1:] if argument != "--"])
    with virtual_time() as time:
        time.run(main({"prompt": said.prompt, "model": said.modelName}))
