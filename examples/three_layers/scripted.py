"""What the four examples share: services that fail as they are told, and a way to show what happened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from failsoft import Outcome, Runtime
from failsoft.testing import virtual_time


class StatusError(Exception):
    """An error answer of a service, with its status code."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the model service answered {code}")
        self.code = code


def service(*answers: str) -> Callable[..., Coroutine[Any, Any, str]]:
    """A tool that gives these answers, one an attempt; the last one for ever. A status code is raised."""

    def script() -> Iterator[str]:
        yield from answers
        while True:
            yield answers[-1]

    steps = script()

    async def complete(prompt: str) -> str:
        answer = next(steps)
        if answer.isupper():
            raise StatusError(answer)
        return f"{prompt} {answer}"

    return complete


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


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an example in virtual time: its waits are as long as they say, and nobody has to sit through them."""
    with virtual_time() as time:
        time.run(main())
