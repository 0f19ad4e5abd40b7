"""AgentDojo: user tasks in four suites with their own utility checks (`agentdojo`, MIT).

The check is AgentDojo's own, run by its own ``run_task_with_pipeline``. It sees the state after the run and the agent's
final text: the gold text if every read's answer arrived whole, else an empty one.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

from bench.yardstick.benchmarks.base import Answer, GoldCall, World

VERSION = "v1.2.2"
NOT_STATE = {"slack": {"web": {"web_requests"}}}  # by suite: the log of visited pages is no effect of a read


class Replayed(BasePipelineElement):  # type: ignore[misc]  # no types without the package
    """A pipeline that has run already: it returns the state and the messages of that run."""

    def __init__(self, environment: Any, messages: Sequence[Any]) -> None:
        self._environment = environment
        self._messages = messages

    def query(self, query: str, runtime: Any, *_: Any, **__: Any) -> tuple[Any, ...]:
        return query, runtime, self._environment, self._messages, {}


class DojoWorld:
    """The environment of one run."""

    def __init__(self, task: DojoTask, writes: frozenset[str]) -> None:
        self._task = task
        self._writes = writes
        self.environment = task.user_task.init_environment(pickle.loads(task.environment))
        self._runtime = FunctionsRuntime(task.suite.tools)
        self._made: list[GoldCall] = []
        self._read_all = True

    def perform(self, tool: str, arguments: Mapping[str, Any]) -> str:
        value, _ = self._runtime.run_function(self.environment, tool, arguments, raise_on_error=True)
        return str(tool_result_to_str(value))

    def fingerprint(self) -> str:
        exclude = NOT_STATE.get(self._task.suite.name)
        return str(self.environment.model_dump_json(exclude=exclude))

    def end_turn(self, turn: int, answers: Sequence[Answer]) -> None:  # noqa: ARG002 - there is one turn
        self._made = [answer.call for answer in answers]
        reads = [answer for answer in answers if answer.call.tool not in self._writes]
        self._read_all = len(answers) == len(self._task.calls) and all(
            answer.arrived and answer.value in answer.performed for answer in reads
        )

    def reached(self) -> bool:
        """Ask AgentDojo's check, once per end of a task: many runs end in the same state."""
        text = self._task.user_task.GROUND_TRUTH_OUTPUT if self._read_all else ""
        key = (text, len(self._made), str(self.environment.model_dump_json()))
        verdicts = self._task.verdicts
        if key not in verdicts:
            verdicts[key] = self._check(text)
        return verdicts[key]

    def _check(self, text: str) -> bool:
        task = self._task
        made = [FunctionCall(function=call.tool, args=dict(call.arguments)) for call in self._made]
        messages = [_message("", [call]) for call in made] + [_message(text, None)]
        utility, _ = task.suite.run_task_with_pipeline(
            Replayed(self.environment, messages), task.user_task, None, {}, environment=pickle.loads(task.environment)
        )
        return bool(utility)


def _message(text: str, calls: list[Any] | None) -> Any:
    return ChatAssistantMessage(role="assistant", content=[text_content_block_from_string(text)], tool_calls=calls)


@dataclass(frozen=True)
class DojoTask:
    """One user task of a suite."""

    id: str
    suite: Any
    user_task: Any
    environment: bytes  # pickled: unpickling is the fastest copy
    calls: Sequence[GoldCall]
    descriptions: Mapping[str, str]
    turns: int = 1
    verdicts: dict[tuple[str, int, str], bool] = field(default_factory=dict, compare=False)

    def start(self, writes: frozenset[str]) -> World:
        return DojoWorld(self, writes)


class AgentDojo:
    """AgentDojo as installed."""

    name = "AgentDojo"
    home = "https://agentdojo.spylab.ai"
    simulated_writes: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.version = version("agentdojo")

    def tasks(self) -> list[DojoTask]:
        return [task for suite in get_suites(VERSION).values() for task in _tasks(suite)]


def _tasks(suite: Any) -> list[DojoTask]:
    environment = pickle.dumps(suite.load_and_inject_default_environment({}))
    descriptions = {function.name: function.description for function in suite.tools}
    found = []
    for name, user_task in suite.user_tasks.items():
        start = user_task.init_environment(pickle.loads(environment))
        id = f"{suite.name}/{name}"
        calls = [
            GoldCall(f"{id}/{number}", call.function, dict(call.args), 0)
            for number, call in enumerate(user_task.ground_truth(start))
        ]
        found.append(DojoTask(id, suite, user_task, environment, calls, descriptions))
    return found
