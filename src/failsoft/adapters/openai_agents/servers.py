"""MCP servers that may be down: then the run goes on without their tools.

Each has a breaker of its own, as the tool ``mcp:<name>``. Those of one name are counted, ``docs`` and ``docs-2``: the SDK
calls every server that ``npx`` starts the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents.exceptions import UserError

from failsoft.adapters.openai_agents.twins import Twin, make_twin
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome

if TYPE_CHECKING:
    from agents.mcp import MCPServer

    from failsoft.adapters.openai_agents.guard import Guard


class ServerError(Exception):
    """An MCP server's error, in its own words."""


class GuardedServer(Twin):
    """What a guarded MCP server does otherwise."""

    own = ("_id", "lost")
    _guard: Guard
    _id: str
    lost: Outcome[Any] | None  # why its tools are missing

    async def list_tools(self, *args: Any, **kwargs: Any) -> list[Any]:
        listing = super().list_tools  # type: ignore[misc]  # the server's

        async def list_(_: dict[str, Any]) -> Any:
            return await _plainly(listing(*args, **kwargs))

        runtime = self._guard.runtime
        if self._id not in runtime.tools:
            runtime.declare(self._id, read_only=True)
        outcome = await runtime.run(self._id, {}, {self._id: list_})
        self.lost = None if outcome.status == "succeeded" else outcome
        tools: list[Any] = outcome.value or []
        return tools

    async def call_tool(self, *args: Any, **kwargs: Any) -> Any:
        result = await _plainly(super().call_tool(*args, **kwargs))  # type: ignore[misc]  # the server's
        name = "is_error" if hasattr(result, "is_error") else "isError"  # mcp 2, mcp 1
        if getattr(result, name, False):
            raise ServerError("\n".join(getattr(part, "text", "") for part in result.content))
        return result


def guard_server(server: MCPServer, guard: Guard, number: int = 1) -> GuardedServer:
    """The guarded twin of a server; ``number`` tells it from others of its name."""
    twin = cast("GuardedServer", make_twin(server, guard, GuardedServer))
    twin._id = f"mcp:{builtin_faults.quote(server.name)}" + (f"-{number}" if number > 1 else "")
    twin.lost = None
    return twin


async def _plainly(asked: Any) -> Any:
    """The SDK makes its ``UserError`` of a lost connection: here it is nobody's control flow."""
    try:
        return await asked
    except UserError as error:
        raise ServerError(str(error)) from error.__cause__
