"""Functions for a framework's own tools: declare them, hide them, and open the turn of an agent's run.

The tools themselves are in ``runtime.tools.framework_tool``. Adapters import its names from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failsoft.core.model.options import TurnOptions
from failsoft.core.redact.printable import quote
from failsoft.errors import FailsoftError, ManifestError
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.scope import ASKED, NOWHERE, SCOPE, AskedFor, reset_variable
from failsoft.runtime.tools.control import BrokenOffError, ControlFlow, is_any
from failsoft.runtime.tools.framework_tool import (
    RUNNING,
    Control,
    FrameworkFunction,
    LazyRunners,
    Metadata,
    Runner,
    Runners,
    RunnerSet,
    refuse_other_metadata,
)

if TYPE_CHECKING:
    from failsoft.core.model.durations import Duration
    from failsoft.runtime.turn.agent_run import AgentRun
    from failsoft.runtime.turn.turn import Turn

__all__ = [
    "RUNNING",
    "AskedFor",
    "BrokenOffError",
    "Control",
    "ControlFlow",
    "LazyRunners",
    "Metadata",
    "Runner",
    "RunnerSet",
    "Runners",
    "asked_for",
    "changed_timeout",
    "declare_from_metadata",
    "is_any",
    "open_turn",
    "read_metadata",
    "require_runtime",
    "timeout_of",
    "tools_to_hide",
]


@contextmanager
def asked_for(
    guarded: Any, *, id: str | None, thread: str | None, turn: Callable[[], AgentRun | None] | None = None
) -> Iterator[AskedFor]:
    """Set the id and the thread of the model's call that a guarded function answers in the body.

    An undeclared tool then counts as a write. ``turn`` finds the agent's
    run. Afterwards ``valueless`` has the outcome if the call has succeeded and its value is lost.
    """
    asked = AskedFor(getattr(guarded, "__failsoft__", None), id, thread, turn)
    token = ASKED.set(asked)
    placed = SCOPE.set(NOWHERE) if SCOPE.get() is None else None
    try:
        yield asked
    finally:
        if placed is not None:
            reset_variable(SCOPE, placed)
        reset_variable(ASKED, token)
    if asked.run is not None:
        asked.run.note_success()


def declare_from_metadata(runtime: Runtime, tool: str, words: Mapping[str, Any], about: Metadata = Metadata()) -> None:  # noqa: B008
    """Declare a framework's tool with the options in its metadata, unless the user has declared it."""
    read_metadata(tool, words)
    tools = runtime._engine.toolbox.tools
    found = tools.get(tool)
    if found is None:
        runtime._declare_from_metadata(tool, words, about)
    elif isinstance(found.fn, FrameworkFunction) and found.fn.is_from_metadata:
        refuse_other_metadata(found, words)


def changed_timeout(runtime: Runtime, tool: str, words: Mapping[str, Any]) -> Any:
    """Return the current timeout of a framework's tool if it has changed since the tool was declared.

    None if the user has set one, in the manifest or by declaring the tool.
    """
    found = runtime._engine.toolbox.tools.get(tool)
    if found is None or not (isinstance(found.fn, FrameworkFunction) and found.fn.is_from_metadata):
        return None
    entry = runtime._settings.tools.get(tool)
    if entry is not None and "timeout" in entry.layer:
        return None
    now = words.get("timeout")
    return None if now == (found.fn.declared or {}).get("timeout") else now


def tools_to_hide(
    runtime: Runtime, thread: str | None, offered: Collection[str], choice: Collection[str | None] = ()
) -> Collection[str]:
    """Return a framework's tools that the model should not be offered: unavailable ones without an available fallback.

    ``choice`` has the tools that the model must choose from. If all of them are unavailable, none of them is hidden:
    providers refuse a request with an empty choice.
    """
    there: Runner = dict  # only looked up, never run
    token = RUNNING.set(RunnerSet(LazyRunners(lambda tool: there if tool in offered else None), ()))
    try:
        missing = runtime.threads[thread or ""].unavailable
    finally:
        RUNNING.reset(token)
    none_left = all(tool in missing for tool in choice)
    return frozenset(missing).difference(choice) if none_left else missing


def read_metadata(tool: str, words: Any) -> Mapping[str, Any]:
    """Read the options in a tool's metadata."""
    if not isinstance(words, Mapping):
        raise ManifestError(
            f'{quote(tool)}: its metadata say {words!r:.80}: write options, as in {{"read_only": True}}'
        )
    return words


def require_runtime(runtime: object, right: str) -> None:
    """Raise if ``runtime`` is not a Runtime: now, not with the first call."""
    if not isinstance(runtime, Runtime):
        raise FailsoftError(f"{runtime!r:.80} is not a Runtime: write {right}, where rt = Runtime()")


def timeout_of(runtime: Runtime, tool: str) -> float | None:
    """Return the timeout of a declared tool, for work that does not run as a call."""
    return runtime._engine.toolbox.tools[tool].options.timeout


def open_turn(
    runtime: Runtime,
    *,
    timeout: Duration | None,
    thread: str | None,
    tenant: str | None = None,
    id: str | None = None,
    max_calls: int | None = None,
    max_calls_per_tool: int | None = None,
) -> Turn:
    """Open the turn of an agent's run. It has no deadline unless one is given here or in the manifest."""
    turn = runtime.turn(
        timeout=timeout,
        thread=thread,
        tenant=tenant,
        id=id,
        max_calls=max_calls,
        max_calls_per_tool=max_calls_per_tool,
    )
    if timeout is None and turn.timeout == TurnOptions().timeout:
        turn.timeout = None
    return turn
