"""Check what is submitted to a turn: the id of a call, its tool and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from failsoft.config.settings import merge_retry, refuse_lost_key, require_text_names
from failsoft.core.model.durations import Duration, seconds
from failsoft.core.model.options import RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.printable import quote
from failsoft.errors import ManifestError, TurnError
from failsoft.runtime.call_options import refuse_options
from failsoft.runtime.tools.unknown_tool import UnknownTool
from failsoft.runtime.turn.dependencies import refuse_handles
from failsoft.runtime.turn.handle import Handle, TurnCallKeywords

if TYPE_CHECKING:
    from failsoft.runtime.tools.tool import Tool
    from failsoft.runtime.turn.ports import TurnTools


def apply_options(
    handle: Handle[Any],
    *,
    required: bool | None = None,
    defaults: Mapping[str, Any] | None = None,
    timeout: Duration | None = None,
    retry: RetryOptions | Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    **unknown: object,
) -> None:
    """Override the tool's options by those of one call."""
    refuse_options(unknown, TurnCallKeywords)
    if not (defaults is None or isinstance(defaults, Mapping)):
        raise TurnError(f"defaults: write one mapping from names to values, not {type(defaults).__name__}")
    refuse_handles(defaults)
    if defaults and (wrong := handle.tool.unknown_arguments(defaults)):
        raise TurnError(f"defaults: {handle.tool.id} has no parameter {wrong}")
    filled = {name for names in handle.fills.values() for name in names}
    for name in (defaults or {}).keys() - filled:
        Outcome._on_misuse(
            handle.tool.id, f"defaults: no other call fills {name!r:.80} here, so the default is never used"
        )
    if not (required is None or isinstance(required, bool)):
        raise TurnError(f"required: {required!r:.80} is neither true nor false")
    refuse_lost_key(handle.tool.options, idempotency_key)
    handle.set_options(required, defaults, _limit(timeout), retry_of(handle.tool, retry), idempotency_key)


def unknown_tool(toolbox: TurnTools, tool: str | Callable[..., Any]) -> Tool:
    """Make the tool of a name that is not registered; raise for a function that is not a tool."""
    return UnknownTool(quote(toolbox.find(tool).id))


def retry_of(tool: Tool, own: RetryOptions | Mapping[str, Any] | None) -> RetryOptions | None:
    """Merge a call's own retry options into those of its tool; None if it has none."""
    return merge_retry(tool.options, own) if own is not None and tool.is_known else None


def refuse_id(tool: str, id: object) -> NoReturn:
    """Raise for an id that is empty or not a text."""
    require_text_names(tool, id=id)
    raise TurnError(f"{tool}: id: '' is empty: write one, or leave it out")


def _limit(timeout: Duration | None) -> float | None:
    try:
        return None if timeout is None else seconds(timeout)
    except ValueError as error:
        raise ManifestError(f"timeout: {error}") from None
