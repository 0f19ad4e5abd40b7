"""One attempt: the framework's own way of running a tool, and what its errors stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

Execute = Callable[[ToolCallRequest], Any]
Attempt = Callable[[ToolCallRequest, Execute, BaseTool, dict[str, Any]], Any]  # the one that awaits, or that blocks

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

    attempt: Attempt
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
        return partial(self.attempt, self.request, self.execute, tool)


async def attempt(request: ToolCallRequest, execute: Execute, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    try:
        return _judge(tool, arguments, await execute(_ask(request, tool, arguments)))
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        raise


def attempt_blocking(request: ToolCallRequest, execute: Execute, tool: BaseTool, arguments: dict[str, Any]) -> Any:
    try:
        return _judge(tool, arguments, execute(_ask(request, tool, arguments)))
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        raise


def _ask(request: ToolCallRequest, tool: BaseTool, arguments: dict[str, Any]) -> ToolCallRequest:
    """The request, for this tool with these arguments."""
    call = request.tool_call
    if tool is request.tool and arguments == call["args"]:
        return request
    name = call["name"] if tool is request.tool else tool.name
    return request.override(tool=tool, tool_call={**call, "name": name, "args": arguments})


def _judge(tool: BaseTool, arguments: dict[str, Any], result: Any) -> Any:
    """The result, unless it is a message that tells of an error."""
    if answers(result.__class__) and result.status == "error":
        raise _read(tool, arguments, str(result.text))
    return result


def _read(tool: BaseTool, arguments: dict[str, Any], text: str) -> Exception:
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
