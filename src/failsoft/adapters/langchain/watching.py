"""What a tool has returned, before LangChain makes a message of it, and whether it was stopped."""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from functools import cache
from inspect import signature
from operator import is_
from typing import Any, get_type_hints

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForToolRun
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool

from failsoft.adapters.langchain.messages import answers
from failsoft.core.model.partial import Partial

WATCH: ContextVar[Watch | None] = ContextVar("failsoft_watch", default=None)
Copies = dict[str, tuple[BaseTool, dict[str, Any], BaseTool]]  # by name: a tool, what it was made of then, its copy


class Watch:
    """Over one attempt."""

    def __init__(self) -> None:
        self.returned: list[Any] = []  # the tool's value; empty if it did not return
        self.error: Exception | None = None  # that the tool raised
        self.raised: Exception | None = None  # by the attempt, as the framework raised it
        self.said: Any = None  # the message that an error handler of the user's made
        self._part: Partial | None = None
        self._stopped: AsyncCallbackManager | None = None

    def note(self, value: Any, tool: BaseTool) -> Any:
        """What LangChain is to make a message of."""
        if isinstance(value, Partial):
            self._part, value = value, value.value
        both = tool.response_format == "content_and_artifact" and isinstance(value, tuple)
        self.returned = [*value] if both else [value]
        return value

    def stop(self) -> None:
        """The tool was cancelled."""
        callbacks = ensure_config().get("callbacks")
        self._stopped = callbacks if isinstance(callbacks, AsyncCallbackManager) else None

    def forget_errors(self) -> Exception | None:
        """The attempt's error. It is not kept: its traceback holds the frames of the whole run."""
        error, self.error, self.raised = self.raised, None, None
        return error

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
            yield from self.returned

    async def tell(self, id: str | None) -> None:
        """Whoever traces the tool learns that it was stopped: LangChain does not say so."""
        child = self._stopped
        if child is not None and child.parent_run_id is not None:
            run = AsyncCallbackManagerForToolRun(
                run_id=child.parent_run_id, handlers=child.handlers, inheritable_handlers=[], tags=child.tags
            )
            await run.on_tool_error(TimeoutError("stopped at its deadline"), tool_call_id=id)


def watch_over(tool: BaseTool, copies: Copies) -> BaseTool:
    """A copy that is watched; the tool itself where it runs in a way of its own, and may keep something by it.

    The copy is made once, and anew when the tool was changed: LangChain works out more about it as it goes.
    """
    made_of = vars(tool)
    known, before, watched = copies.get(tool.name, (None, made_of, tool))
    if known is tool and len(before) == len(made_of) and all(map(is_, before.values(), made_of.values())):
        return watched
    if not runs_as_usual(type(tool)):
        return tool
    run, arun, watched = tool._run, tool._arun, copy(tool)

    def _run(*args: Any, **kwargs: Any) -> Any:
        watch = WATCH.get()
        try:
            value = run(*args, **kwargs)
        except Exception as error:
            if watch is not None:
                watch.error = error
            raise
        return value if watch is None else watch.note(value, tool)

    async def _arun(*args: Any, **kwargs: Any) -> Any:
        watch = WATCH.get()
        try:
            value = await arun(*args, **kwargs)
        except CancelledError:
            if watch is not None:
                watch.stop()
            raise
        except Exception as error:
            if watch is not None:
                watch.error = error
            raise
        return value if watch is None else watch.note(value, tool)

    _dress(_run, run)
    _dress(_arun, arun)
    vars(watched).update(_run=_run, _arun=_arun)  # not set: pydantic takes them for private attributes
    copies[tool.name] = tool, {**made_of}, watched
    return watched


def _dress(fn: Any, method: Any) -> None:
    """Make a function look like a method. LangChain reads what it takes in every call: here, that is done once."""
    fn.__wrapped__ = method
    with suppress(NameError):  # of a type checker's only: LangChain does without the types then
        fn.__signature__, fn.__annotations__ = signature(method), get_type_hints(method)


@cache
def runs_as_usual(kind: type[BaseTool]) -> bool:
    """True if tools of this class are invoked by LangChain's own methods."""
    ways = (kind.invoke, kind.ainvoke, kind.run, kind.arun)
    return all(way.__module__.startswith("langchain_core.") for way in ways)
