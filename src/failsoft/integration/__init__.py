'''The interface for adapters: run the tools of an agent framework under failsoft.

The names in ``__all__`` are public, for adapters of your own; the modules of this package are not, and failsoft's own adapters
may use them: ``api`` has names from inside failsoft, ``framework_tool`` declares tools that a framework owns, ``arguments``
reads arguments that a model wrote, ``streams`` and ``executor`` run tools that stream or block, ``unanswered`` answers
interrupted calls. May import ``runtime`` and everything below it. Tested in ``tests/integration``; every adapter passes
``failsoft.testing.check_adapter``.

A complete adapter
------------------
For a framework whose tools are async functions by name::

    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from failsoft.integration import Fault, LazyRunners, Metadata, MisfitError, Runner, Runtime
    from failsoft.integration import declare_from_metadata, read_arguments, require_runtime


    class StopAgent(Exception):
        """An exception of the framework: a tool raises it to end the run."""


    class GuardedTools:
        """The tools of one agent's run. ``answer`` answers one tool call of the model."""

        def __init__(self, runtime: Runtime, tools: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
            require_runtime(runtime, "GuardedTools(rt, tools)")
            self.runtime, self.tools = runtime, tools
            for name, function in tools.items():
                declare_from_metadata(runtime, name, {}, Metadata(function.__doc__ or ""))

        async def answer(self, id: str, name: str, arguments: str) -> str:
            given = read_arguments(arguments)  # JSON text, as the model wrote it

            def find_runner(tool: str) -> Runner | None:
                function = self.tools.get(tool)

                async def run(values: dict[str, Any]) -> Any:
                    if isinstance(given, Fault):
                        raise MisfitError(given)  # the tool is not run
                    return await function(**values)

                return None if function is None else run

            outcome = await self.runtime.run(
                name,
                {} if isinstance(given, Fault) else given,
                LazyRunners(find_runner),
                id=id,
                turn=self.runtime.agent_run(self),
                control=(StopAgent,),
            )
            return str(outcome.value) if outcome.status == "succeeded" else outcome.explanation.model

Its parts, in the order of an adapter's work:

- **Declare** each tool: ``declare_from_metadata`` with the options in the framework's metadata, and what else is
  known of the tool (``Metadata``). The user's own declarations come first.
- **Offer** the model only tools that can be used: ``tools_to_hide``.
- **Read** arguments that the framework passes on as text: ``read_arguments``; ``find_misfit`` says which of them a JSON
  Schema refuses. A runner raises ``MisfitError`` for arguments that do not fit: the tool was not entered.
- **Run** a call with ``Runtime.run`` or ``run_sync``. Runners are looked up by tool id, so that a fallback can be run
  too. ``control`` lists the exceptions that the framework uses for control flow: they are raised unchanged.
- **Group** the calls of one run: ``Runtime.agent_run`` with the framework's own object for the run. ``open_turn`` is for a
  run that the adapter itself encloses.
- **Answer** the model with ``outcome.value``, or with ``outcome.explanation.model`` if the call has not succeeded or its
  value is not known (``outcome.value_known``). ``explain_dangling``, or
  ``explain_unanswered_async`` on an event loop, answers calls whose run was interrupted.
- **Block** without hanging at exit: ``use_daemon_threads`` and ``executor_of`` run a framework's blocking tools on
  daemon threads.
'''

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.fault import Fault
from failsoft.core.model.outcome import Outcome
from failsoft.integration.arguments import BrokenToolError, MisfitError, find_misfit, read_arguments
from failsoft.integration.framework_tool import (
    BrokenOffError,
    Control,
    LazyRunners,
    Metadata,
    Runner,
    Runners,
    declare_from_metadata,
    open_turn,
    read_metadata,
    require_runtime,
    tools_to_hide,
)
from failsoft.integration.unanswered import Unanswered, explain_dangling, explain_unanswered_async
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.turn.agent_run import AgentRun
from failsoft.runtime.turn.turn import Turn

if TYPE_CHECKING:
    from failsoft.integration.executor import executor_of, use_daemon_threads

__all__ = [
    "AgentRun",
    "BrokenOffError",
    "BrokenToolError",
    "Control",
    "Fault",
    "LazyRunners",
    "Metadata",
    "MisfitError",
    "Outcome",
    "Runner",
    "Runners",
    "Runtime",
    "Turn",
    "Unanswered",
    "declare_from_metadata",
    "executor_of",
    "explain_dangling",
    "explain_unanswered_async",
    "find_misfit",
    "open_turn",
    "read_arguments",
    "read_metadata",
    "require_runtime",
    "tools_to_hide",
    "use_daemon_threads",
]


def __getattr__(name: str) -> Any:
    """Load ``executor`` when it is needed: it cannot be imported in Temporal's workflow sandbox."""
    if name in ("executor_of", "use_daemon_threads"):
        from failsoft.integration import executor

        return getattr(executor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
