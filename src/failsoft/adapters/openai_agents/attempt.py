"""One attempt: the SDK's own way of running a tool, and what its errors stand for.

Why tools that the SDK has made are invoked directly: ``invoke_function_tool`` reads the annotations of the invoker anew
in each call, to learn which context it wants. Of those it is known.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from traceback import walk_tb
from typing import Any

from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.exceptions import AgentsException, ModelBehaviorError, ToolTimeoutError, UserError
from agents.tool import invoke_function_tool, set_function_tool_failure_error_function
from agents.tool_context import ToolContext
from pydantic import ValidationError

from failsoft.core import own_faults
from failsoft.core.outcome import Outcome
from failsoft.runtime.arguments import BrokenToolError, MisfitError, find_misfit
from failsoft.runtime.foreign import BrokenOffError, Passing


def disarm(tool: FunctionTool) -> FunctionTool:
    bare = set_function_tool_failure_error_function(copy.copy(tool), None)
    bare.timeout_seconds = None
    return bare


async def attempt(
    tool: FunctionTool, asked: str, context: ToolContext[Any], text: str, given: Mapping[str, Any], arguments: Any
) -> Any:
    if tool.qualified_name != asked:  # a stand-in: what was prepared for the other one is not for it
        context = copy.copy(context)
        context.tool_name, context._function_tool_arguments = tool.name, None
    if arguments != given:
        text = json.dumps(arguments)
    try:
        if is_made_by_sdk(tool):
            return await tool.on_invoke_tool(context, text)
        return await invoke_function_tool(function_tool=tool, context=context, arguments=text)
    except Exception as error:
        raise _read(tool, context.tool_name, text, error)  # noqa: B904 - it says itself what it comes from


def _read(tool: FunctionTool, name: str, text: str, error: Exception) -> BaseException:
    """What an error of the SDK's stands for; one of the tool's own is what it is."""
    misfit = None
    if isinstance(error, ModelBehaviorError) or (isinstance(error, ValidationError) and not is_made_by_sdk(tool)):
        misfit = find_misfit(tool.params_json_schema, text)
    if isinstance(error, ModelBehaviorError) and misfit is None:
        if _left_a_run(error):  # what the model in there asked for is not to be read as an error of this tool
            return _from(None, BrokenOffError("The model of an agent inside has misbehaved."))
        misfit = own_faults.bad_arguments(detail=error)
    if misfit is not None:
        return _from(error, MisfitError(misfit))
    if isinstance(error, UserError) and str(error).startswith(f"Function tool {name} returned an output that does not"):
        return _from(error, BrokenToolError(str(error)))  # it has run
    if _is_control(error):
        return _from(None, Passing(error))
    left = _left_a_run(error)
    if type(error) is AgentsException and isinstance(error.__cause__, Exception):
        error = error.__cause__  # the SDK's wrapping says less
    return _from(error, BrokenOffError(str(error))) if left else error


def _from(cause: Exception | None, error: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def is_made_by_sdk(tool: FunctionTool) -> bool:
    """Of a function: then its arguments have been validated. Others read them themselves."""
    return hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__")


def _is_control(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_control, error.exceptions))
    own = isinstance(error, AgentsException) and type(error) is not AgentsException
    return own and not isinstance(error, ModelBehaviorError | ToolTimeoutError)


def _left_a_run(error: Exception) -> bool:
    """Has it come out of an agent that ran inside the tool (``as_tool``, ``Runner.run``)?"""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return any(name == "agents.run" or name.startswith("agents.run_internal.") for name in modules)


def is_watched(tool: FunctionTool) -> bool:
    """Does somebody have to agree to its calls, or to its values? That was asked for another tool."""
    return bool(tool.needs_approval or tool.tool_input_guardrails or tool.tool_output_guardrails)


def say(outcome: Outcome[Any], context: ToolContext[Any]) -> Any:
    if outcome.status != "succeeded":
        context._function_tool_default_failure_handled = True  # type: ignore[attr-defined]  # no value: it need not fit
        return outcome.explanation.model
    value = outcome.value
    if outcome.missing is None:
        return value
    lacks = outcome.explanation.model
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, ToolOutputText | ToolOutputImage | ToolOutputFileContent) for part in parts):
        return [*parts, ToolOutputText(text=lacks)]
    return f"{value}\n{lacks}"
