"""Streaming tools for models. A model reads a stream only when it is complete, so the whole stream is one attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from failsoft.runtime.tools.control import MisfitError

if TYPE_CHECKING:
    from failsoft.runtime.runtime import Runtime
    from failsoft.runtime.tools.framework_tool import Runner


def whole_stream(runtime: Runtime, tool: str, arguments: Mapping[str, Any]) -> Runner | None:
    """Return a runner that reads a streaming tool to its end and returns a list; None if the tool does not stream."""
    found = runtime._engine.toolbox.tools.get(tool)
    if found is None or found.kind not in ("stream", "async stream"):
        return None
    misfit = found.misfit((), dict(arguments), typed=True)

    async def run(given: dict[str, Any]) -> list[Any]:
        if misfit is not None:
            raise MisfitError(misfit)
        check = found.argument_check
        given = given if check is None else dict(cast("Mapping[str, Any]", check(given)))
        if found.kind == "async stream":
            return [item async for item in found.fn(**given)]
        from failsoft.integration.executor import executor_of  # not importable in Temporal's workflow sandbox

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor_of(runtime), lambda: list(found.fn(**given)))

    return run
