"""Where a call is made from: nowhere in particular, the body of a turn, or inside another call (R24)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failsoft.runtime.call import Call
    from failsoft.runtime.handle import Handle
    from failsoft.runtime.turn import Turn

SCOPE: ContextVar[Turn | Handle[Any] | Call | None] = ContextVar("failsoft_scope", default=None)
