"""Guard MCP servers: the run continues without the tools of a server that is down.

Each server has its own breaker, as the tool ``mcp:<name>``. Servers of the same name are numbered (``docs``,
``docs-2``), because the SDK gives every server started by ``npx`` the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents.exceptions import UserError

from failsoft.adapters.openai_agents.proxies import GuardedProxy, ProxyGuard, make_proxy
from failsoft.core.model.outcome import Outcome
from failsoft.integration.api import ReturnedFailure, quote

if TYPE_CHECKING:
    from agents.mcp import MCPServer

    from failsoft.integration.api import Runtime


class ServerGuard(ProxyGuard, Protocol):
    """The part of an agent's guard that a server uses."""

    runtime: Runtime


class ServerError(ReturnedFailure):
    """An MCP server's error, with the server's message."""


class _Method:
    """A method that overrides one in the server's own ``__dict__``, such as a patched method.

    It gets the server's method as its first argument.
    """

    def __init__(self, guarded: Callable[..., Any]) -> None:
        self._guarded = guarded

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, server: Any, owner: type | None = None) -> Any:
        if server is None:
            return self._guarded
        own = vars(server).get(self._name) or getattr(super(GuardedServer, server), self._name)
        return partial(self._guarded, server, own)

    def __set__(self, server: Any, method: Any) -> None:
        vars(server)[self._name] = method


class GuardedServer(GuardedProxy):
    """The overridden members of a guarded MCP server."""

    own = ("_id", "lost")
    _guard: ServerGuard
    _id: str
    lost: Outcome[Any] | None  # the failure that made its tools unavailable

    @_Method
    async def list_tools(self, listing: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        async def list_(_: dict[str, Any]) -> Any:
            return await _as_server_error(listing(*args, **kwargs))

        runtime = self._guard.runtime
        if self._id not in runtime.tools:
            runtime.declare(self._id, read_only=True)
        outcome = await runtime.run(self._id, {}, {self._id: list_})
        self.lost = None if outcome.status == "succeeded" else outcome
        tools: list[Any] = outcome.value or []
        return tools

    @_Method
    async def call_tool(self, calling: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = await _as_server_error(calling(*args, **kwargs))
        name = "is_error" if hasattr(result, "is_error") else "isError"  # mcp 2, mcp 1
        if getattr(result, name, False):
            text = "\n".join(getattr(part, "text", "") for part in result.content)
            raise ServerError(text, result)
        return result


def guard_server(server: MCPServer, guard: ServerGuard, number: int = 1) -> GuardedServer:
    """Return the guarded proxy of a server; ``number`` distinguishes servers of the same name."""
    proxy = cast("GuardedServer", make_proxy(server, guard, GuardedServer))
    proxy._id = f"mcp:{quote(server.name)}" + (f"-{number}" if number > 1 else "")
    proxy.lost = None
    return proxy


async def _as_server_error(asked: Any) -> Any:
    """Raise the SDK's ``UserError`` for a lost connection as ``ServerError``: it is not control flow here."""
    try:
        return await asked
    except UserError as error:
        raise ServerError(str(error)) from error.__cause__
