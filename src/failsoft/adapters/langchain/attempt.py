"""Run one attempt the way LangChain does, and translate its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain.agents.middleware import ToolCallRequest
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from failsoft.adapters.langchain.messages import answers
from failsoft.adapters.langchain.private import IN_A_GRAPH, INVOCATION, MISFIT, is_control
from failsoft.adapters.langchain.watching import WATCH, Copies, Watch, runs_as_usual, watch_over
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.integration.api import ReturnedFailure, reset_variable
from failsoft.integration.arguments import BrokenToolError, MisfitError
from failsoft.integration.framework_tool import BrokenOffError, ControlFlow, Runner

Execute = Callable[[ToolCallRequest], Any]
Attempt = Callable[["Runners", BaseTool, dict[str, Any]], Any]  # async or blocking


class ReturnedError(ReturnedFailure):
    """An error returned as a message, by the framework or by the tool."""


class Runners(NamedTuple):
    """The runners of one call, by tool id."""

    attempt: Attempt
    request: ToolCallRequest
    execute: Execute
    tool: BaseTool
    others: Sequence[BaseTool]
    copies: Copies  # copies of the agent's tools
    watches: list[Watch]  # one per attempt
    readings: list[Watch]  # one per attempt of a tool that reads back what became of a write

    def get(self, name: str, /) -> Runner | None:
        tool = self.tool
        if name != self.request.tool_call["name"]:
            found = next((each for each in self.others if each.name == name), None)
            if found is None:
                return None
            tool = found
        return partial(self.attempt, self, tool)

    def for_reading(self) -> Runners:
        """Return runners for tools that read back: their errors and messages are not those of the call."""
        return self._replace(watches=self.readings)

    def own(self, value: Any, /) -> Any:
        """Return the tool's value, given the message made from it."""
        return self.watches[-1].own(value)

    def read(self, value: Any, /) -> Iterator[Any]:
        """Yield everything that the tool may have returned, given the message made from it."""
        return self.watches[-1].read(value)

    def ask(self, tool: BaseTool, arguments: dict[str, Any]) -> ToolCallRequest:
        """Build the request for this tool with these arguments."""
        request, call = self.request, self.request.tool_call
        name = call["name"] if tool is request.tool else tool.name
        watched = watch_over(tool, self.copies)
        return request.override(tool=watched, tool_call={**call, "name": name, "args": arguments})


async def attempt(runners: Runners, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    watch = Watch()
    runners.watches.append(watch)
    token = WATCH.set(watch)
    try:
        return watch.judge(_judge(watch, tool, arguments, await runners.execute(runners.ask(tool, arguments))))
    except Exception as error:
        raise _translate_error(watch, tool, arguments, error)  # noqa: B904 - _translate_error sets the cause
    finally:
        reset_variable(WATCH, token)


def attempt_blocking(runners: Runners, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    watch = Watch()
    runners.watches.append(watch)
    WATCH.set(watch)  # each blocking call has its own context
    try:
        return watch.judge(_judge(watch, tool, arguments, runners.execute(runners.ask(tool, arguments))))
    except Exception as error:
        raise _translate_error(watch, tool, arguments, error)  # noqa: B904 - _translate_error sets the cause


def _translate_error(watch: Watch, tool: BaseTool, arguments: dict[str, Any], error: Exception) -> BaseException:
    """Translate an error: control flow, an inner agent that broke off, or the error itself."""
    if isinstance(error, _READ):
        return error
    watch.raised = error
    if isinstance(error, INVOCATION):
        meant: BaseException = _read(tool, arguments, str(error))
        meant.__cause__ = error
    elif is_control(error):
        meant = ControlFlow(error)
        meant.__cause__ = None
    elif any(note.startswith(IN_A_GRAPH) for note in getattr(error, "__notes__", ())):
        meant = BrokenOffError(str(error))
        meant.__cause__ = error
    else:
        return error
    return meant


_READ = (ReturnedError, MisfitError, BrokenToolError)  # made from messages by _read


def _judge(watch: Watch, tool: BaseTool, arguments: dict[str, Any], result: Any) -> Any:
    """Return the result, or raise the error that an error message describes."""
    if answers(result.__class__) and result.status == "error":
        text = str(result.text)
        if _is_from_handler(watch, tool, text):
            watch.said = result
            if watch.error is not None:  # the error that the handler received
                raise watch.error
        raise _read(tool, arguments, text)
    return result


def _is_from_handler(watch: Watch, tool: BaseTool, text: str) -> bool:
    """True if the user's error handler wrote the message, not the tool and not ToolNode. That is so if the tool did not
    return and the message is not ToolNode's about bad arguments.
    """
    if watch.returned or text.startswith(MISFIT):
        return False
    return runs_as_usual(type(tool)) or bool(tool.handle_tool_error or tool.handle_validation_error)


def _read(tool: BaseTool, arguments: dict[str, Any], text: str) -> Exception:
    """Turn an error message into an exception.

    ToolNode blames the arguments for every pydantic error, so check them.
    """
    blamed = text.startswith(MISFIT)
    schema = tool.tool_call_schema
    if (blamed or tool.handle_validation_error) and isinstance(schema, type) and hasattr(schema, "model_validate"):
        try:
            schema.model_validate(arguments)
        except ValidationError as error:
            return MisfitError(_misfit(error, "" if blamed else text))
    return BrokenToolError(text) if blamed else ReturnedError(text)


def _misfit(error: ValidationError, text: str) -> Fault:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    missing = [str(one["loc"][0]) for one in found if one["type"] == "missing" and one["loc"]]
    invalid = [str(one["loc"][0]) for one in found if one["type"] != "missing" and one["loc"]]
    details = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}." for one in found if one["type"] != "missing"]
    detail = " ".join([*details, *filter(None, [text])])
    return builtin_faults.bad_arguments(missing=missing, invalid=dict.fromkeys(invalid), detail=detail)


def guarded_function(tool: BaseTool) -> Any:
    """Return the tool's function if a runtime guards it (``@rt.tool``), else None."""
    functions = getattr(tool, "coroutine", None), getattr(tool, "func", None)
    return next((function for function in functions if hasattr(function, "__failsoft__")), None)
