"""What a tool has returned, before LangChain makes a message of it, and whether it was stopped."""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache
from inspect import signature
from typing import Any, get_type_hints

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForToolRun
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool

from failsoft.adapters.langchain.messages import answers
from failsoft.core.partial import Partial


class Watch:
    """Over one attempt."""

    def __init__(self) -> None:
        self._returned: list[Any] = []
        self._part: Partial | None = None
        self._stopped: AsyncCallbackManager | None = None

    def over(self, tool: BaseTool, *, blocking: bool) -> BaseTool:
        """The tool, as one that is watched; it itself where it runs in a way of its own, and may keep something by it."""
        if not _runs_as_usual(type(tool)):
            return tool
        run, arun, watched = tool._run, tool._arun, copy(tool)

        def _run(*args: Any, **kwargs: Any) -> Any:
            return self._note(run(*args, **kwargs), tool)

        async def _arun(*args: Any, **kwargs: Any) -> Any:
            try:
                return self._note(await arun(*args, **kwargs), tool)
            except CancelledError:
                callbacks = ensure_config().get("callbacks")
                self._stopped = callbacks if isinstance(callbacks, AsyncCallbackManager) else None
                raise

        vars(watched)["_run"] = _dress(_run, run)  # not set: pydantic takes it for a private attribute
        if not blocking:
            vars(watched)["_arun"] = _dress(_arun, arun)
        return watched

    def _note(self, value: Any, tool: BaseTool) -> Any:
        if isinstance(value, Partial):
            self._part, value = value, value.value
        both = tool.response_format == "content_and_artifact" and isinstance(value, tuple)
        self._returned = [*value] if both else [value]
        return value

    def judge(self, result: Any) -> Any:
        """The result, with what it lacks."""
        return result if self._part is None else Partial(result, self._part.missing)

    def read(self, message: Any) -> Iterator[Any]:
        """All that a message may stand for: its text, what that says as JSON, what the tool has returned."""
        if answers(message.__class__):
            yield message.content
            if isinstance(message.content, str):
                with suppress(ValueError, RecursionError):
                    yield json.loads(message.content)
            yield from self._returned

    async def tell(self, id: str | None) -> None:
        """Whoever traces the tool learns that it was stopped: LangChain does not say so."""
        child = self._stopped
        if child is not None and child.parent_run_id is not None:
            run = AsyncCallbackManagerForToolRun(
                run_id=child.parent_run_id, handlers=child.handlers, inheritable_handlers=[], tags=child.tags
            )
            await run.on_tool_error(TimeoutError("stopped at its deadline"), tool_call_id=id)


def keep(watched: BaseTool | None, tool: BaseTool) -> None:
    """What LangChain works out once for a tool, it has for later calls."""
    for name in vars(watched).keys() - vars(tool).keys() - {"_run", "_arun"}:
        vars(tool)[name] = vars(watched)[name]


def _dress(fn: Any, method: Any) -> Any:
    """Make a function look like a method. LangChain reads what it takes in every call: here, that is done once."""
    fn.__wrapped__ = method
    for name, value in _read(method.__func__):
        setattr(fn, name, value)
    return fn


@lru_cache(maxsize=1024)
def _read(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    try:
        taken = signature(function)
        bound = taken.replace(parameters=[*taken.parameters.values()][1:])
        return [("__signature__", bound), ("__annotations__", get_type_hints(function))]
    except NameError:  # of a type checker's only: LangChain does without the types then
        return []


@cache
def _runs_as_usual(kind: type[BaseTool]) -> bool:
    ways = (kind.invoke, kind.ainvoke, kind.run, kind.arun)
    return all(way.__module__.startswith("langchain_core.") for way in ways)
