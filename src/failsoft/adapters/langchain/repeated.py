"""Stop middleware around failsoft's from repeating failed calls.

failsoft raises a failure only if the user has an error handler for it. A middleware between failsoft and this handler
may retry: it would repeat unsafe calls and multiply attempts. It gets the same error again instead of another run.
"""

from __future__ import annotations

import logging

from langchain.agents.middleware import ToolCallRequest

from failsoft.integration.api import visible

log = logging.getLogger("failsoft")

_KEY = "_failsoft_raised"  # in the call's ToolRuntime, which ToolNode makes anew for every execution of a call


def note_raised(request: ToolCallRequest, error: Exception) -> None:
    """Note the failure of a call before it is raised."""
    vars(request.runtime)[_KEY] = request.tool_call["name"], request.tool_call["args"], error


def refuse_repeated(request: ToolCallRequest) -> None:
    """Raise the same error again if this call has failed before. A call with other arguments is another call."""
    name, args, error = vars(request.runtime).get(_KEY, ("", None, None))
    if error is not None and (name, args) == (request.tool_call["name"], request.tool_call["args"]):
        log.warning(
            "%s is not run again: a middleware before FailsoftMiddleware repeats it. Leave retries to failsoft",
            visible(name),
        )
        raise error
