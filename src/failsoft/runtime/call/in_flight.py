"""The calls under way, by where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.tools.tool import Tool


class InFlight:
    """The calls in the pipeline and in the fast retry loop. Calls on the fast path are found by their deadlines."""

    __slots__ = ("calls", "retrying")

    def __init__(self) -> None:
        self.calls: dict[Call, None] = {}  # in the pipeline, in order
        self.retrying: dict[tuple[str, str | int], tuple[Tool, float, int]] = {}  # by tool and call id

    def clear(self) -> None:
        """Forget all of them: a forked child runs none of its parent's calls."""
        self.calls.clear()
        self.retrying.clear()
