"""Conformance check for drivers of the pipeline: records every call, and replays its answers through a fresh pipeline.

    with check_driver() as checked:
        await rt.call("search", {"city": "Bern"})     # driven by whatever driver the runtime uses
    assert checked.calls

Rules
-----
- The same answers must give the same steps and the same outcome. A pipeline that reads a clock, a random source, a log,
  a lock, a store or the state of others fails: none of these exists during the replay.
- A driver must answer each step with a value of the type that ``failsoft.runtime.call.steps`` names.
- A call is replayed when it ends. At the end of the block, all failures are raised as one AssertionError.
"""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar
from unittest.mock import patch

from failsoft.core.model.fault import Fault
from failsoft.core.model.ledger_entry import LedgerAnswer
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience.circuit_breaker import Ticket
from failsoft.runtime.call import steps as step_types
from failsoft.runtime.call.candidate import Candidate
from failsoft.runtime.call.model import NO_PROGRESS, AttemptResult, Call, Invoke, Progress
from failsoft.runtime.call.pipeline import Pipeline
from failsoft.runtime.call.steps import Interrupted, PipelineOptions, Step, Switched
from failsoft.runtime.tools.tool import Tool

SHOWN = 5  # failures in the message

_INTERRUPTED = object()
_PURE = (
    "failsoft.core",
    "failsoft.errors",
    "failsoft.observe.events",
    "failsoft.observe.success_runs",
    "failsoft.runtime.call.candidate",
    "failsoft.runtime.call.event_fields",
    "failsoft.runtime.call.loop_refusal",
    "failsoft.runtime.call.model",
    "failsoft.runtime.call.pipeline",
    "failsoft.runtime.call.recovery",
    "failsoft.runtime.call.steps",
    "failsoft.runtime.call.verification",
    "failsoft.runtime.call.write_steps",
    "failsoft.testing.check_driver",
)
_OUTSIDE = {"_random", "_thread", "asyncio", "logging", "os", "posix", "queue", "random", "secrets", "socket", "sqlite3",
            "threading", "time"}  # fmt: skip
_ANSWERS: dict[type, tuple[type, ...]] = {
    Invoke: (AttemptResult,),
    step_types.Admit: (Ticket, Fault),
    step_types.AskMemory: (str, type(None)),
    step_types.Assess: (step_types.Standing,),
    step_types.CheckBegun: (step_types.BegunBefore,),
    step_types.CheckInside: (bool,),
    step_types.Classify: (Fault, type(None)),
    step_types.Consult: (step_types.Consulted,),
    step_types.FindFallbacks: (step_types.FallbacksFound,),
    step_types.FindLoop: (step_types.LoopFound,),
    step_types.ReadValue: (AttemptResult,),
    step_types.Recall: (str, LedgerAnswer, type(None)),
    step_types.RecordWrite: (str, LedgerAnswer),
    step_types.Spend: (bool,),
    step_types.SwitchTo: (Switched,),
    step_types.TakeOffer: (bool, type(None)),
    step_types.Verify: (step_types.VerifyReply,),
    step_types.Wait: (float, int),
}


class Checked:
    """The calls that were recorded and replayed."""

    def __init__(self) -> None:
        self.calls = 0
        self.steps = 0
        self.failures: list[str] = []


class NotGivenError(Exception):
    """The pipeline used something that no answer of the replay contained."""


@contextmanager
def check_driver() -> Iterator[Checked]:
    """Check every call that takes the pipeline in the body of ``with``; raise AssertionError with all failures."""
    checked = Checked()
    tapes: dict[int, _Tape] = {}
    make, run = Pipeline.__init__, Pipeline.run

    def init(
        self: Pipeline,
        options: PipelineOptions,
        call: Call,
        ticket: Ticket | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        tapes[id(self)] = _Tape(options, call, ticket, progress)
        make(self, options, call, ticket, progress)

    def record(self: Pipeline, result: AttemptResult | None = None) -> Generator[Step, Any, Outcome[Any]]:
        tape = tapes.pop(id(self))
        tape.first = result
        try:
            return (yield from tape.record(run(self, result)))
        finally:
            checked.calls += 1
            checked.steps += len(tape.steps)
            failure = tape.failure or tape.replay(make, run)
            if failure:
                checked.failures.append(f"{tape.call.shown_id}: {failure}")

    with patch.object(Pipeline, "__init__", init), patch.object(Pipeline, "run", record):
        yield checked
    if checked.failures:
        more = len(checked.failures) - SHOWN
        shown = [*checked.failures[:SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        raise AssertionError("\n".join([f"{len(checked.failures)} of {checked.calls} calls:", *shown]))


class _Tape:
    """The inputs, steps and answers of one call."""

    def __init__(self, options: PipelineOptions, call: Call, ticket: Ticket | None, progress: Progress) -> None:
        self.options = options
        self.call = copy.copy(call)
        self.ticket = ticket
        self.progress = progress
        self.first: AttemptResult | None = None
        self.steps: list[Any] = []  # descriptions, because the pipeline later changes the objects
        self.answers: list[Any] = []
        self.outcome: Any = None
        self.failure = ""
        self._tools: dict[int, _ToolFacts] = {}

    def record(self, steps: Generator[Step, Any, Outcome[Any]]) -> Generator[Step, Any, Outcome[Any]]:
        """Pass steps and answers on, and keep them."""
        answer: Any
        try:
            step = next(steps)
            while True:
                self.steps.append(describe(step))
                try:
                    answer = yield step
                except Interrupted as error:
                    self.answers.append(_INTERRUPTED)
                    step = steps.throw(error)
                else:
                    self._check(step, answer)
                    self.answers.append(self._translate(answer))
                    step = steps.send(answer)
        except StopIteration as done:
            outcome: Outcome[Any] = done.value
            self.outcome = describe(outcome)
            return outcome

    def _check(self, step: Step, answer: Any) -> None:
        expected = _ANSWERS.get(type(step), (type(None),))
        if not isinstance(answer, expected) and not self.failure:
            names = " or ".join("None" if one is type(None) else one.__name__ for one in expected)
            self.failure = (
                f"step {len(self.steps)}, {type(step).__name__}: the driver must answer with {names}, "
                f"not {type(answer).__name__}"
            )

    def replay(self, make: Any, run: Any) -> str:
        """Replay the answers through a fresh pipeline; return the first difference, or an empty text."""
        call = _ReplayedCall.of(self.call, self._facts(self.call.tool))
        options = self.options._replace(explain=_refuse_explain)
        pipeline = object.__new__(Pipeline)
        before, collects = sys.getprofile(), gc.isenabled()
        seen = 0
        gc.disable()  # other objects' finalisers would run in this frame
        sys.setprofile(_refuse_outside)
        try:
            make(pipeline, options, call, self.ticket, self.progress)
            steps = run(pipeline, self.first)
            step = next(steps)
            while True:
                if seen == len(self.steps) or describe(step) != self.steps[seen]:
                    return self._difference(seen, describe(step))
                seen += 1
                if seen > len(self.answers):
                    return ""  # the driver stopped here
                answer = self.answers[seen - 1]
                step = steps.throw(Interrupted()) if answer is _INTERRUPTED else steps.send(answer)
        except StopIteration as done:
            if seen < len(self.steps):
                return f"step {seen + 1} was {_name(self.steps[seen])}; the same answers now end the call"
            outcome = describe(done.value)
            return "" if outcome == self.outcome else f"the outcome was {self.outcome}; the replay gives {outcome}"
        except Interrupted:
            return ""
        except NotGivenError as error:
            last = _name(self.steps[seen - 1]) if seen else "the start"
            return f"after {last} (step {seen}) the pipeline used {error}, which no answer gave it"
        finally:
            sys.setprofile(before)
            if collects:
                gc.enable()

    def _difference(self, seen: int, now: Any) -> str:
        if seen == len(self.steps):
            return f"the driver's call ended after {seen} steps; the same answers now ask for {_name(now)}"
        return f"step {seen + 1} was {self.steps[seen]}; the same answers now give {now}"

    def _translate(self, answer: Any) -> Any:
        if isinstance(answer, Switched):
            tool: Any = self._facts(answer.tool)
            health: Any = _HealthFacts(answer.health.options)
            return answer._replace(tool=tool, health=health)
        return answer

    def _facts(self, tool: Tool) -> _ToolFacts:
        return self._tools.setdefault(id(tool), _ToolFacts(tool))


# --- substitutes with only the data that the pipeline may read --------------------------------------------------------


class _HealthFacts:
    def __init__(self, options: Any) -> None:
        self.options = options

    def __getattr__(self, name: str) -> Any:
        raise NotGivenError(f"health.{name}")


class _ToolFacts:
    """The declaration of a tool, without its state."""

    def __init__(self, tool: Tool) -> None:
        self.id, self.label, self.options, self.kind = tool.id, tool.label, tool.options, tool.kind
        self.configured_timeout, self.safe_to_repeat = tool.configured_timeout, tool.safe_to_repeat
        self.command = tool.command
        self.known_effect, self.is_write = tool.known_effect, tool.is_write
        self.health = _HealthFacts(tool.health.options)

    def __getattr__(self, name: str) -> Any:
        raise NotGivenError(f"tool.{name}")


class _TurnFacts:
    def __init__(self, turn: Any) -> None:
        self.id, self.thread, self.parent = turn.id, turn.thread, turn.parent
        self.allowance = None if turn.allowance is None else "limited"

    def __getattr__(self, name: str) -> Any:
        raise NotGivenError(f"turn.{name}")


def _hidden(name: str) -> Any:
    def get(_: Any) -> Any:
        raise NotGivenError(f"call.{name}")

    return property(get, lambda *_: None)


class _ReplayedCall(Call):
    """A call as it was made. Fields that others change cannot be read."""

    __slots__ = ()
    abandoned: Any = _hidden("abandoned")
    acted: Any = _hidden("acted")
    arguments: Any = _hidden("arguments")
    inside: Any = _hidden("inside")
    may_have_acted_inside: Any = _hidden("may_have_acted_inside")
    may_have_written_inside: Any = _hidden("may_have_written_inside")
    report_effect: Any = _hidden("report_effect")
    write_record: Any = _hidden("write_record")
    wrote: Any = _hidden("wrote")
    changed: Any = _hidden("changed")
    HIDDEN: ClassVar = ("abandoned", "acted", "changed", "inside", "write_record", "wrote")

    @classmethod
    def of(cls, call: Call, tool: Any) -> _ReplayedCall:
        made = cls.__new__(cls)
        for name in Call.__slots__:
            if name not in cls.HIDDEN:
                setattr(made, name, getattr(call, name))
        made.tool = tool
        turn: Any = None if call.turn is None else _TurnFacts(call.turn)
        made.turn = turn
        return made


def _refuse_explain(*_: Any, **__: Any) -> Any:
    raise NotGivenError("the texts")


def _refuse_outside(frame: FrameType, event: str, arg: Any) -> None:
    """Raise if the pipeline calls something outside: a clock, a random source, a log, a lock, a store."""
    if event == "call":
        module = str(frame.f_globals.get("__name__", ""))
        foreign = module.startswith("failsoft.") and not module.startswith(_PURE)
        if foreign or module.partition(".")[0] in _OUTSIDE:
            raise NotGivenError(f"{module}.{frame.f_code.co_name}")
    elif event == "c_call":
        owner = type(arg.__self__).__module__ if getattr(arg, "__module__", None) is None else arg.__module__
        if owner in _OUTSIDE:
            raise NotGivenError(f"{owner}.{getattr(arg, '__name__', arg)}")


# --- comparing ------------------------------------------------------------------------------------------------------------


def describe(value: Any) -> Any:
    """Return a value as data that can be compared; foreign objects by their identity."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Tool | _ToolFacts):
        return f"tool {value.id}"
    if isinstance(value, Fallback):
        return f"fallback {value.tool}"
    if isinstance(value, Candidate):
        return ("Candidate", *[describe(getattr(value, name)) for name in _CANDIDATE])
    if isinstance(value, Outcome):
        return ("Outcome", *[describe(getattr(value, name)) for name in _OUTCOME])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value).__name__, *map(describe, value))
    if isinstance(value, tuple | list):
        return [describe(one) for one in value]
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, Mapping):
        return {key: describe(one) for key, one in value.items()}
    return f"{type(value).__name__} at {id(value):x}"


# Fields that only the driver uses
_CANDIDATE = [name for name in Candidate.__slots__ if name not in ("health", "invoke", "token_at")]
_OUTCOME = ["id", "tool", "status", "value", "attempts", "via", "duration", "fault", "decision", "missing", "partial",
            "escalated", "recorded", "told", "value_known"]  # fmt: skip


def _name(step: Any) -> str:
    return str(step[0]) if isinstance(step, tuple) else str(step)
