"""Where a call is made from: nowhere in particular, the body of a turn, or inside another call (R24)."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failsoft.runtime.call import Call
    from failsoft.runtime.handle import Handle
    from failsoft.runtime.turn import Turn

SCOPE: ContextVar[Turn | Handle[Any] | Call | None] = ContextVar("failsoft_scope", default=None)


def leave(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Back to what was before; also for an orphan (``runtime.deadline``), which goes on in another context."""
    try:
        variable.reset(token)
    except ValueError:
        variable.set(None if token.old_value is Token.MISSING else token.old_value)


def step_out(tool: object, started: float) -> None:
    """An attempt of ``tool`` that began then is left behind: get out of the calls and turns that it has under way.

    What has begun in the same moment is the attempt's own call if it is one of the same tool.
    """
    from failsoft.runtime.call import Call
    from failsoft.runtime.turn import Turn

    scope = SCOPE.get()
    while isinstance(scope, Turn) or (
        isinstance(scope, Call) and (scope.started > started or (scope.started == started and scope.tool is not tool))
    ):
        scope = scope.parent
    SCOPE.set(scope)
