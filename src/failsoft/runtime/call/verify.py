"""Ask a tool's ``verify`` what became of an attempt, without depending on it.

Rules
-----
- It has ``verify_timeout``, in a turn at most the remaining time. Then it is cancelled, and the call continues without
  it; a plain function goes on in its OS thread.
- If it is slow, raises or returns anything but a ``Verified``, the effect stays unknown, and the event says why.
- A tool that reads back must be known to read. It runs as a guarded call with its own retries and its own timeout.
- It holds no slot of the tool. Calls that it makes are shown inside the call, but do not change the call's effect.
- It is not asked while a task that the attempt has started may still act. The answer ``none`` is rejected if such a
  task has acted meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from failsoft.core.effects.read_back import MissingArgumentError, fill_in_arguments, judge, unread
from failsoft.core.effects.verification import (
    ACTED_SINCE,
    NO_TIME,
    ONLY_A_PART,
    OTHER_TOOL,
    TASK_RUNS,
    doubt_none,
    late_verify,
    limit_verify,
    read_verified,
    without_value,
)
from failsoft.core.model.builtin_faults import BEGUN_BEFORE
from failsoft.core.model.fault import Fault
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.verified import Verified
from failsoft.core.model.verify_tool import VerifyTool
from failsoft.core.redact.sanitise import sanitise
from failsoft.runtime.call.attempt_result import unawaited
from failsoft.runtime.call.model import Call
from failsoft.runtime.call.own_thread import run_in_own_thread
from failsoft.runtime.call.steps import VerifyReply
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.tools.framework_tool import FrameworkFunction, keep_apart, values_of

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import DriverServices
    from failsoft.runtime.call.steps import Verify
    from failsoft.runtime.tools.tool import Tool


async def verify(rt: DriverServices, call: Call, step: Verify, *, blocking: bool = False) -> VerifyReply:
    """Ask ``verify`` about the latest attempt of a call. ``blocking``: the tools of its framework block."""
    remaining = None if call.turn is None else call.turn.left()
    if call.abandoned or (remaining is not None and remaining <= 0):
        return _reply(rt, call, Verified.unknown(NO_TIME))
    if call.inside:
        return _reply(rt, call, Verified.unknown(TASK_RUNS))
    before, call.acted, call.wrote = (call.acted, call.wrote), False, False
    try:
        limit = limit_verify(step.tool.options.verify_timeout, remaining)
        verified = await _ask_in_time(rt, call, step, limit, blocking=blocking)
    except BaseException:
        call.acted, call.wrote = before
        raise
    if verified.answer == "none" and call.may_have_acted_inside:
        verified = Verified.unknown(ACTED_SINCE)
    if step.fault.rule == BEGUN_BEFORE and _may_have_used_another(rt, call.tool):
        verified = doubt_none(verified, OTHER_TOOL)
    if verified.answer != "none":
        call.acted, call.wrote = before
    return _reply(rt, call, verified)


def _reply(rt: DriverServices, call: Call, verified: Verified) -> VerifyReply:
    return VerifyReply(verified, rt.time.now(), None if call.turn is None else call.turn.left(), call.abandoned)


def _may_have_used_another(rt: DriverServices, tool: Tool) -> bool:
    """True if an earlier call of this tool may have been made by a fallback that writes."""
    fallbacks = [fallback.tool for fallback in tool.options.fallbacks]
    fallbacks += [policy.then.tool for policy in rt.runner.pipeline_options.policies if policy.then.tool is not None]
    found = [rt.toolbox.tools.get(fallback) for fallback in fallbacks]
    return any(other is None or other.effect != "read" for other in found)


async def _ask_in_time(rt: DriverServices, call: Call, step: Verify, limit: float, *, blocking: bool) -> Verified:
    asking = asyncio.ensure_future(_ask(rt, call, step.tool, step.fault, blocking))
    try:
        await asyncio.wait([asking], timeout=limit)
        if not asking.done():
            return late_verify(limit)
        answer = asking.result()
        if inspect.iscoroutine(answer):
            answer.close()  # Python warns of coroutines that are never awaited
        return _check_value(step.tool, read_verified(answer))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return Verified.unknown("verify cancelled itself")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # user code
        return Verified.unknown(f"verify raised {sanitise(type(error).__name__)}: {sanitise(error)}")
    finally:
        if not asking.done():
            asking.cancel()  # do not wait: a verify that ignores cancellation must not delay the call
            asking.add_done_callback(_forget)


def _forget(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled():
        asked.exception()  # retrieve it, or asyncio logs a warning


async def _ask(rt: DriverServices, call: Call, tool: Tool, fault: Fault, blocking: bool) -> Any:
    if call.span is None:
        return await _ask_bare(rt, call, tool, fault, blocking)
    entered = call.span.enter_verify(tool.id)
    try:
        answer = await _ask_bare(rt, call, tool, fault, blocking)
    except BaseException as error:
        entered.exit(error)
        raise
    entered.exit()
    return answer


async def _ask_bare(rt: DriverServices, call: Call, tool: Tool, fault: Fault, blocking: bool) -> Any:
    ask = tool.options.verify
    assert ask is not None
    SCOPE.set(_scope_for_verify(call))  # for this task only
    arguments = call.named_arguments(rt.time, tool)
    if isinstance(ask, VerifyTool):
        return await _read_back(rt, ask, arguments, blocking)
    key = arguments.get(tool.options.verify_key, call.key) if tool.options.verify_key is not None else call.key
    if inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(getattr(ask, "__call__", None)):  # noqa: B004
        return await ask(arguments, key, fault)
    answer = await run_in_own_thread(rt.places.thread_pool, lambda: ask(arguments, key, fault), "verify it in")
    return await answer if inspect.isawaitable(answer) else answer


async def _read_back(rt: DriverServices, spec: VerifyTool, arguments: dict[str, Any], blocking: bool) -> Verified:
    """Call another tool, and judge its value."""
    reader = rt.toolbox.tools.get(spec.tool)
    if reader is None:
        return Verified.unknown(f"there is no tool {spec.tool}{did_you_mean(spec.tool, rt.toolbox.tools)}")
    if reader.effect != "read":
        return Verified.unknown(f"{spec.tool} is not known to read: declare it read_only")
    try:
        wanted = fill_in_arguments(spec, arguments)
        inner = rt.runner.open_call(reader, (), wanted)
        inner.typed = True
        keep_apart()
        if blocking and isinstance(reader.fn, FrameworkFunction):
            run = partial(rt.runner.run_blocking, inner)
            outcome = await run_in_own_thread(rt.places.thread_pool, run, "read back in")
        else:
            outcome = await rt.runner.run(inner)
        if outcome.fault is not None:
            ran = outcome.attempts > 0
            return judge(spec, arguments, fault=outcome.fault) if ran else unread(spec, outcome.fault)
        read = judge(spec, arguments, values_of(outcome.value))
        if outcome.missing is not None:
            return doubt_none(read, ONLY_A_PART)
        return doubt_none(read, "" if outcome.via == reader.id else f"{outcome.via} was read in place of {reader.id}")
    except MissingArgumentError as missing:
        return Verified.unknown(str(missing))


def _scope_for_verify(call: Call) -> Call:
    """Make a scope with the call's id for the calls that ``verify`` makes.

    Their effects must not count for the call.
    """
    scope = Call(
        call.id, call.tool, call.args, call.kwargs, call.started, turn=call.turn, parent=call.parent,
        thread=call.thread, tenant=call.tenant,
    )  # fmt: skip
    scope.caller = call.caller
    return scope


def _check_value(tool: Tool, verified: Verified) -> Verified:
    """Drop a value that the tool could not have returned."""
    if not verified.value_known or verified.answer != "happened":
        return verified
    wrong = unawaited(tool, verified.value) or tool.check_output(verified.value)
    return verified if wrong is None else without_value(verified, f"the value cannot be used: {wrong.message}")
