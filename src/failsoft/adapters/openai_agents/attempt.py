"""One attempt: the SDK's own way of running a tool, and what its errors stand for.

Why tools that the SDK has made are invoked directly: ``invoke_function_tool`` reads the annotations of the invoker anew
in each call, to learn which context it wants. Of those it is known.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool
from agents.exceptions import AgentsException, ModelBehaviorError, ToolTimeoutError
from agents.tool import invoke_function_tool, set_function_tool_failure_error_function
from agents.tool_context import ToolContext
from pydantic import ValidationError

from failsoft.core import own_faults
from failsoft.core.outcome import Outcome
from failsoft.runtime.arguments import MisfitError, find_misfit
from failsoft.runtime.foreign import Passing


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
    except ModelBehaviorError as error:
        fault = find_misfit(tool.params_json_schema, text) or own_faults.bad_arguments(detail=error)
        raise MisfitError(fault) from error
    except ValidationError as error:
        misfit = None if is_made_by_sdk(tool) else find_misfit(tool.params_json_schema, text)
        if misfit is None:
            raise
        raise MisfitError(misfit) from error
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        if type(error) is AgentsException and isinstance(error.__cause__, Exception):
            raise error.__cause__  # noqa: B904 - the SDK's wrapping says less
        raise


def is_made_by_sdk(tool: FunctionTool) -> bool:
    """Of a function: then its arguments have been validated. Others read them themselves."""
    return hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__")


def _is_control(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_control, error.exceptions))
    own = isinstance(error, AgentsException) and type(error) is not AgentsException
    return own and not isinstance(error, ModelBehaviorError | ToolTimeoutError)


def say(outcome: Outcome[Any]) -> Any:
    if outcome.status != "succeeded":
        return outcome.explanation.model
    return outcome.value if outcome.missing is None else f"{outcome.value}\n{outcome.explanation.model}"
