"""One attempt: the framework's own way of running a tool, and what its errors stand for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain.agents.middleware import ToolCallRequest
from langchain_core.tools import BaseTool
from langgraph import errors
from pydantic import ValidationError

from failsoft.adapters.langchain.messages import answers
from failsoft.core import own_faults
from failsoft.core.fault import Fault
from failsoft.runtime.arguments import BrokenToolError, MisfitError
from failsoft.runtime.foreign import Passing, Runner

Execute = Callable[[ToolCallRequest], Awaitable[Any]]

CONTROL: tuple[type[BaseException], ...] = (
    errors.GraphBubbleUp,  # GraphInterrupt, NodeInterrupt, ParentCommand, GraphDrained
    errors.GraphRecursionError,
    *filter(None, [getattr(errors, "UnknownInterruptError", None)]),  # of newer versions
)

_INVALID_RESUME = "_langgraph_invalid_resume"  # how LangGraph marks a resume value that its interrupt refuses
_MISFIT = "Error invoking tool "  # how ToolNode begins when pydantic refused something


class ReturnedError(Exception):
    """An error that came as a message: of the framework, or of the tool itself."""


class Runners(NamedTuple):
    """What runs in one call, by tool id."""

    request: ToolCallRequest
    execute: Execute
    tool: BaseTool
    others: Sequence[BaseTool]

    def get(self, name: str, /) -> Runner | None:
        tool = self.tool
        if name != self.request.tool_call["name"]:
            found = next((each for each in self.others if each.name == name), None)
            if found is None:
                return None
            tool = found
        return partial(attempt, self.request, self.execute, tool)


async def attempt(request: ToolCallRequest, execute: Execute, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    call = request.tool_call
    if tool is not request.tool or arguments != call["args"]:
        name = call["name"] if tool is request.tool else tool.name
        request = request.override(tool=tool, tool_call={**call, "name": name, "args": arguments})
    try:
        result = await execute(request)
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        raise
    if answers(result.__class__) and result.status == "error":
        raise _judge(tool, arguments, str(result.text))
    return result


def _judge(tool: BaseTool, arguments: dict[str, Any], text: str) -> Exception:
    """What an error message stands for. ToolNode blames the arguments whenever pydantic refuses something."""
    if not text.startswith(_MISFIT):
        return ReturnedError(text)
    schema = tool.tool_call_schema
    if isinstance(schema, type) and hasattr(schema, "model_validate"):
        try:
            schema.model_validate(arguments)
        except ValidationError as error:
            return MisfitError(_misfit(error))
    return BrokenToolError(text)


def _misfit(error: ValidationError) -> Fault:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    missing = [str(one["loc"][0]) for one in found if one["type"] == "missing" and one["loc"]]
    invalid = [str(one["loc"][0]) for one in found if one["type"] != "missing" and one["loc"]]
    detail = " ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}." for one in found if one["type"] != "missing")
    return own_faults.bad_arguments(missing=missing, invalid=dict.fromkeys(invalid), detail=detail)


def _is_control(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_control, error.exceptions))
    return isinstance(error, CONTROL) or getattr(error, _INVALID_RESUME, False)


def is_guarded(tool: BaseTool) -> bool:
    """Is its function one that a runtime has guarded already (``@rt.tool``)?"""
    coroutine, function = getattr(tool, "coroutine", None), getattr(tool, "func", None)
    return hasattr(coroutine, "__failsoft__") or hasattr(function, "__failsoft__")
