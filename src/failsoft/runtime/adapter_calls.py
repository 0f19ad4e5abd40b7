"""The part of a ``Runtime`` that adapters use: declare a framework's tools, run them, group them by run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from typing import Any, Unpack

from failsoft.core.model.outcome import Outcome
from failsoft.runtime import agent_calls
from failsoft.runtime.call_options import CallKeywords
from failsoft.runtime.registry import declare
from failsoft.runtime.tools.framework_tool import Control, Metadata, Runners, RunnerSet
from failsoft.runtime.turn.agent_run import AgentRun, AgentRuns
from failsoft.runtime.view import RuntimeView


class AdapterCalls(RuntimeView):
    """Runs the tools of agent frameworks."""

    _runs: AgentRuns  # the runs of agents that are under way

    def declare(self, tool: str, /, **options: Any) -> None:
        """Declare a tool that an agent framework runs. ``run`` calls it.

        It counts as a write unless its options or its name show that it only reads. A tool that is registered under that
        id keeps its options.
        """
        declare(self._engine, self._settings, tool, options)

    def _declare_from_metadata(self, tool: str, words: Mapping[str, Any], about: Metadata) -> None:
        """Declare a tool that a framework describes."""
        declare(self._engine, self._settings, tool, words, about)

    def run(
        self,
        tool: str,
        args: Mapping[str, Any] | None,
        runners: Runners,
        /,
        *,
        control: Control = (),
        turn: AgentRun | None = None,
        **options: Unpack[CallKeywords],
    ) -> Coroutine[Any, Any, Outcome[Any]]:
        """Call a tool that an agent framework runs: for adapters.

        ``runners`` has the functions to run by tool id: that of this tool, and those of the framework's tools that may
        replace it. Exceptions of the ``control`` types belong to the framework and are raised unchanged. ``turn`` is
        the agent's run, from ``agent_run``.
        """
        call = agent_calls.make_framework_call(self._engine, self._settings, tool, args, turn=turn, options=options)
        return agent_calls.run_framework_call(self._engine, call, RunnerSet(runners, control))

    def run_sync(
        self,
        tool: str,
        args: Mapping[str, Any] | None,
        runners: Runners,
        /,
        *,
        control: Control = (),
        turn: AgentRun | None = None,
        **options: Unpack[CallKeywords],
    ) -> Outcome[Any]:
        """``run`` for frameworks that block: here ``runners`` are functions that block, too."""
        running = RunnerSet(runners, control)
        return copy_context().run(
            agent_calls.run_framework_call_blocking, self._engine, self._settings, tool, args,
            turn=turn, options=options, running=running,
        )  # fmt: skip

    def agent_run(
        self,
        key: object,
        *,
        thread: str | None = None,
        at_end: Callable[[Callable[[], None]], object] | None = None,
    ) -> AgentRun | None:
        """The turn of an agent's run, for ``run(turn=...)``: for adapters.

        ``key`` is the framework's own object for the run, and must allow weak references. The turn starts when the key is
        first given, and has no deadline. It ends with ``end_agent_run``, or when the key is freed; ``at_end`` is called
        once, with a function that ends it. None inside a turn or inside another call: the agent's calls then belong to
        that turn or call.
        """
        return self._runs.find(key, thread, at_end)

    def end_agent_run(self, key: object) -> None:
        """End the turn of an agent's run. Without effect if it has not started, or has ended: for adapters."""
        self._runs.end(key)
