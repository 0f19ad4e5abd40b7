"""Run one attempt the way the SDK does, and translate its errors.

Invokers made by the SDK are called directly. ``invoke_function_tool`` would read the invoker's annotations in every
call to find out which context it wants; for these invokers that is known.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from inspect import isawaitable
from traceback import walk_tb
from typing import Any, NamedTuple, cast

from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.exceptions import AgentsException, ModelBehaviorError, ToolTimeoutError, UserError
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from pydantic import ValidationError

from failsoft.adapters.openai_agents.private import forget_prepared, is_made_by_sdk, without_failure_function
from failsoft.core.model import builtin_faults
from failsoft.core.model.effect import NothingDone
from failsoft.core.model.outcome import Outcome
from failsoft.integration.arguments import BrokenToolError, MisfitError, find_misfit
from failsoft.integration.framework_tool import BrokenOffError, ControlFlow, is_any


class Attempts:
    """The attempts of one call."""

    def __init__(self, asked: str, context: ToolContext[Any], text: str, given: Mapping[str, Any]) -> None:
        self._asked = asked
        self._context = context
        self._text = text
        self._given = given
        self.error: Exception | None = None  # the error of the latest attempt, as the SDK raised it

    async def run(self, tool: FunctionTool, invoker: Any, arguments: Any) -> Any:
        """Make an attempt of the requested tool or of its fallback."""
        self.error = None
        context, text = self._context, self._text
        if tool.qualified_name != self._asked:
            context = copy.copy(context)
            context.tool_name = tool.name
            forget_prepared(context)
            await _require_enabled(tool, context)
        if arguments != self._given:
            text = json.dumps(arguments)
        try:
            return await invoke_bare(invoker, context, text)
        except Exception as error:
            self.error = error
            raise _read(tool, invoker, context.tool_name, text, error)  # noqa: B904 - _read sets the cause


async def _require_enabled(tool: FunctionTool, context: ToolContext[Any]) -> None:
    """Refuse a fallback that has been disabled since the agent offered its tools."""
    if not callable(is_enabled := tool.is_enabled):
        return  # a flag was read when the fallback was chosen
    refusal = f"{tool.name} is disabled, so it cannot be used as a fallback"
    try:
        enabled = is_enabled(context, cast("Any", context.agent))
        enabled = await enabled if isawaitable(enabled) else enabled
    except Exception as error:
        raise NothingDone(refusal, code="PERMISSION_DENIED") from error
    if not enabled:
        raise NothingDone(refusal, code="PERMISSION_DENIED")


class _Invoked(NamedTuple):
    """The fields that the SDK reads to invoke a tool."""

    on_invoke_tool: Any
    timeout_seconds: None = None


async def invoke_bare(invoker: Any, context: ToolContext[Any], text: str) -> Any:
    """Invoke a tool the way the SDK does, but without its failure function and its timeout."""
    invoker = without_failure_function(invoker)
    if is_made_by_sdk(invoker):
        return await invoker(context, text)
    return await invoke_function_tool(function_tool=cast("Any", _Invoked(invoker)), context=context, arguments=text)


async def invoke_custom(invoker: Any, context: ToolContext[Any], text: str) -> Any:
    """Invoke a custom tool the way the SDK does, for which every error is the tool's own."""
    try:
        value = invoker(context, text)
        return await value if isawaitable(value) else value
    except Exception as error:
        if _came_out_of_run(error):
            raise BrokenOffError(str(error)) from error
        raise


def _read(tool: FunctionTool, invoker: Any, name: str, text: str, error: Exception) -> BaseException:
    """Translate an error of the SDK; return the tool's own errors unchanged."""
    misfit = None
    if isinstance(error, ModelBehaviorError) or (isinstance(error, ValidationError) and not is_made_by_sdk(invoker)):
        misfit = find_misfit(tool.params_json_schema, text)
    if isinstance(error, ModelBehaviorError) and misfit is None:
        if _came_out_of_run(error):  # the inner model's mistake says nothing about this tool
            return _from(None, BrokenOffError("The model of an agent inside has misbehaved."))
        if is_made_by_sdk(invoker) and not _was_raised_by_sdk(error):
            return _from(error, BrokenToolError(str(error)))  # the function has run and raised it itself
        misfit = builtin_faults.bad_arguments(detail=error)
    if misfit is not None:
        return _from(error, MisfitError(misfit))
    if isinstance(error, UserError) and str(error).startswith(f"Function tool {name} returned an output that does not"):
        return _from(error, BrokenToolError(str(error)))  # the tool has run
    if is_any(error, _is_control):
        return _from(None, ControlFlow(error))
    from_inner_run = _came_out_of_run(error)
    if type(error) is AgentsException and isinstance(error.__cause__, Exception):
        error = error.__cause__  # the SDK's wrapper says less
    return _from(error, BrokenOffError(str(error))) if from_inner_run else error


def _from(cause: Exception | None, error: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def _is_control(error: BaseException) -> bool:
    own = isinstance(error, AgentsException) and type(error) is not AgentsException
    return own and not isinstance(error, ModelBehaviorError | ToolTimeoutError)


def _came_out_of_run(error: Exception) -> bool:
    """True if the error came out of an agent that ran inside the tool (``as_tool``, ``Runner.run``)."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return any(name == "agents.run" or name.startswith("agents.run_internal.") for name in modules)


def _was_raised_by_sdk(error: Exception) -> bool:
    """True if the SDK rejected the arguments before it called the tool's function."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == "agents.tool"


def format_success(outcome: Outcome[Any]) -> Any:
    """Format a success for the SDK; mention what is missing from a partial one, and that a call makes no progress."""
    value = outcome.value if outcome.value_known else outcome.explanation.model
    remark = outcome.remark
    if not remark:
        return value
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, ToolOutputText | ToolOutputImage | ToolOutputFileContent) for part in parts):
        return [*parts, ToolOutputText(text=remark)]
    return f"{value}\n{remark}" if outcome.missing is not None or isinstance(value, str) else value


def format_text(outcome: Outcome[Any]) -> Any:
    """Format a success of a custom tool, whose value the SDK turns into text."""
    value = outcome.value if outcome.value_known else outcome.explanation.model
    return f"{value}\n{outcome.remark}" if outcome.remark else value
