"""Build a call from its caller's arguments and options, and run it.

Rules
-----
- Arguments may come from a model: if they are not a mapping, the call fails with an outcome. Mistakes that only a
  programmer can make (in options, or a function that is not a tool) raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from failsoft.config.settings import merge_retry, refuse_lost_key, require_text_names
from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import Duration, seconds
from failsoft.core.model.options import RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.errors import ManifestError
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.call.tracebacks import without_frames
from failsoft.runtime.call_options import CallKeywords, refuse_options

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import BuildServices
    from failsoft.runtime.tools.tool import Tool

T = TypeVar("T")

_TEXT = (str, NoneType)


def make_call(
    services: BuildServices,
    tool: Tool,
    args: Mapping[str, Any] | None,
    /,
    *,
    id: str | None = None,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,
    retry: RetryOptions | Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    **unknown: object,
) -> Call:
    """Build a call with the options that its caller gave."""
    if unknown:
        refuse_options(unknown, CallKeywords)
    if not (isinstance(id, _TEXT) and isinstance(thread, _TEXT) and isinstance(tenant, _TEXT)):
        require_text_names(tool.id, id=id, thread=thread, tenant=tenant)
    id = mask_id(id) if id else None
    call = services.runner.open_call(tool, (), {} if args is None else dict(args), id=id)
    call.caller_id, call.typed = id, True
    if thread:
        call.thread = thread
    if tenant:
        call.tenant = tenant
    if timeout is not None:
        try:
            call.timeout = seconds(timeout)
        except ValueError as error:
            raise ManifestError(f"{tool.id}: timeout: {error}") from None
    if retry is not None:
        call.retry = merge_retry(tool.options, retry)
    if idempotency_key is not None:
        refuse_lost_key(tool.options, idempotency_key)
        call.key = idempotency_key
    return call


async def run(services: BuildServices, call: Call) -> Outcome[Any]:
    """Run a call and return its outcome without the library's frames in its error."""
    return without_frames(await services.runner.run(call))


def run_blocking(services: BuildServices, call: Call) -> Outcome[Any]:
    """``run`` for callers that block."""
    services.places.warn_of_clock()
    return without_frames(services.runner.run_blocking(call))


# --- calls that cannot run ------------------------------------------------------------------------------------------------


def call_with_bad_arguments(services: BuildServices, tool: Tool, args: object, id: str | None) -> Outcome[Any]:
    """Return the outcome of a call whose arguments are not a mapping."""
    require_text_names(tool.id, id=id)
    what = f"They must be one mapping from names to values, not {type(args).__name__}."
    first = AttemptResult(
        services.time.now(), services.time.now(), fault=builtin_faults.bad_arguments(detail=what), entered=False
    )
    call = services.runner.open_call(tool, (), {})
    if id is not None:
        call.set_id(mask_id(id))
    return services.runner.drive_blocking(call, first)


async def as_coroutine(outcome: Outcome[Any]) -> Outcome[Any]:
    """Return an outcome that exists already."""
    return outcome


for _function in (run, as_coroutine):
    _function.__qualname__ = "Runtime.call"  # shown in Python's warning if the await is forgotten
