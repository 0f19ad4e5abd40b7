"""MCP servers that may be down: then the run goes on without their tools.

Each has a breaker of its own, as the tool ``mcp:<name>``. Those of one name are counted, ``docs`` and ``docs-2``: the SDK
calls every server that ``npx`` starts the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.exceptions import UserError

from failsoft.core import own_faults
from failsoft.core.outcome import Outcome
from failsoft.runtime.runtime import Runtime

if TYPE_CHECKING:
    from agents.mcp import MCPServer


class ServerError(Exception):
    """An MCP server's error, in its own words."""


class GuardedServer:
    """An MCP server that may be down; for everything else it is the server itself."""

    def __init__(self, server: MCPServer, runtime: Runtime, number: int = 1) -> None:
        self._server = server
        self._runtime = runtime
        self._id = f"mcp:{own_faults.quote(server.name)}" + (f"-{number}" if number > 1 else "")
        self.lost: Outcome[Any] | None = None  # why its tools are missing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def list_tools(self, *args: Any, **kwargs: Any) -> list[Any]:
        async def list_(_: dict[str, Any]) -> Any:
            return await _plainly(self._server.list_tools(*args, **kwargs))

        if self._id not in self._runtime.tools:
            self._runtime.declare(self._id, read_only=True)
        outcome = await self._runtime.run(self._id, {}, {self._id: list_})
        self.lost = None if outcome.status == "succeeded" else outcome
        tools: list[Any] = outcome.value or []
        return tools

    async def call_tool(self, *args: Any, **kwargs: Any) -> Any:
        result = await _plainly(self._server.call_tool(*args, **kwargs))
        name = "is_error" if hasattr(result, "is_error") else "isError"  # mcp 2, mcp 1
        if getattr(result, name, False):
            raise ServerError("\n".join(getattr(part, "text", "") for part in result.content))
        return result


async def _plainly(asked: Any) -> Any:
    """The SDK makes its ``UserError`` of a lost connection: here it is nobody's control flow."""
    try:
        return await asked
    except UserError as error:
        raise ServerError(str(error)) from error.__cause__
