"""Observe a tool under LangChain: its return value before it becomes a message, its error, its cancellation."""

from __future__ import annotations

import json
import logging
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
from failsoft.integration.api import value_inside, visible

log = logging.getLogger("failsoft")

WATCH: ContextVar[Watch | None] = ContextVar("failsoft_watch", default=None)
Copies = dict[str, tuple[BaseTool, dict[str, Any], BaseTool]]  # name -> (tool, its attributes at copy time, copy)


class Watch:
    """Observations of one attempt."""

    def __init__(self) -> None:
        self.returned: list[Any] = []  # the tool's value; empty if it did not return
        self.error: Exception | None = None  # raised by the tool
        self.raised: Exception | None = None  # raised by the attempt, as the framework raised it
        self.said: Any = None  # the message that the user's error handler made
        self._part: Partial | None = None
        self._stopped: AsyncCallbackManager | None = None

    def note(self, value: Any, tool: BaseTool) -> Any:
        """Record the tool's value; return what LangChain should make a message of."""
        value = value_inside(value)
        if isinstance(value, Partial):
            self._part, value = value, value.value
        both = tool.response_format == "content_and_artifact" and isinstance(value, tuple)
        self.returned = [*value] if both else [value]
        return value

    def stop(self) -> None:
        """Record that the tool was cancelled."""
        callbacks = ensure_config().get("callbacks")
        self._stopped = callbacks if isinstance(callbacks, AsyncCallbackManager) else None

    def forget_errors(self) -> Exception | None:
        """Return the attempt's error and drop it: its traceback holds the frames of the whole run."""
        error, self.error, self.raised = self.raised, None, None
        return error

    def judge(self, result: Any) -> Any:
        """Mark the result as partial if the tool's value was."""
        return result if self._part is None else Partial(result, self._part.missing)

    def own(self, message: Any) -> Any:
        """Return the tool's value that a message was made from; the message itself if it is not known."""
        return self.returned[0] if answers(message.__class__) and self.returned else message

    def read(self, message: Any) -> Iterator[Any]:
        """Yield everything that a message may represent: its text, the text parsed as JSON, the tool's values."""
        if answers(message.__class__):
            yield message.content
            if isinstance(message.content, str):
                with suppress(ValueError, RecursionError):
                    yield json.loads(message.content)
            yield from self.returned

    async def report_cancellation(self, id: str | None) -> None:
        """Report the cancellation to the tool's tracers. LangChain does not."""
        child = self._stopped
        if child is not None and child.parent_run_id is not None:
            run = AsyncCallbackManagerForToolRun(
                run_id=child.parent_run_id, handlers=child.handlers, inheritable_handlers=[], tags=child.tags
            )
            await run.on_tool_error(TimeoutError("stopped at its deadline"), tool_call_id=id)


def watch_over(tool: BaseTool, copies: Copies) -> BaseTool:
    """Return a watched copy of the tool, or the tool itself if its class overrides LangChain's run methods.

    The copy is cached. It is renewed when the tool's attributes change: LangChain computes some of them lazily.
    """
    made_of = vars(tool)
    known, before, watched = copies.get(tool.name, (None, made_of, tool))
    if known is tool and len(before) == len(made_of) and all(map(is_, before.values(), made_of.values())):
        return watched
    if not runs_as_usual(type(tool)):
        return tool
    run, arun, watched = tool._run, tool._arun, copy(tool)

    def follow() -> None:
        """Apply changes made while the tool ran: LangChain reads its error handler and its format afterwards."""
        vars(watched).update({**vars(tool), **overrides})

    def _run(*args: Any, **kwargs: Any) -> Any:
        watch = _enter(tool)
        try:
            value = run(*args, **kwargs)
        except Exception as error:
            if watch is not None:
                watch.error = error
            raise
        finally:
            follow()
        return value if watch is None else watch.note(value, tool)

    async def _arun(*args: Any, **kwargs: Any) -> Any:
        watch = _enter(tool)
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
        finally:
            follow()
        return value if watch is None else watch.note(value, tool)

    overrides = {"_run": _run, "_arun": _arun}
    _copy_signature(_run, run)
    _copy_signature(_arun, arun)
    vars(watched).update(overrides)  # setattr fails: pydantic treats them as private attributes
    copies[tool.name] = tool, {**made_of}, watched
    return watched


def _enter(tool: BaseTool) -> Watch | None:
    """Return the attempt's watch. If the tool has failed in this attempt, raise its error again.

    Middleware inside the guard then repeats the tool; such runs would be neither limited nor recorded.
    """
    watch = WATCH.get()
    if watch is not None and watch.error is not None:
        log.warning(
            "%s is not run again: a middleware after FailsoftMiddleware repeats it: put FailsoftMiddleware last, and leave "
            "retries to it",
            visible(tool.name),
        )
        raise watch.error
    return watch


def _copy_signature(fn: Any, method: Any) -> None:
    """Copy a method's signature and type hints to a function. LangChain reads them in every call; this caches them."""
    fn.__wrapped__ = method
    with suppress(NameError):  # a type imported for type checkers only; LangChain copes without hints
        fn.__signature__, fn.__annotations__ = signature(method), get_type_hints(method)


@cache
def runs_as_usual(tool_class: type[BaseTool]) -> bool:
    """True if LangChain's own methods invoke tools of this class."""
    methods = (tool_class.invoke, tool_class.ainvoke, tool_class.run, tool_class.arun)
    return all(method.__module__.startswith("langchain_core.") for method in methods)
