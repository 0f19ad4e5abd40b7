"""Checks of a whole manifest for ``failsoft check``: errors between its parts, and legal but probable mistakes.

Rules
-----
- An *error* cannot work: a tool that does not exist, two policies that contradict each other.
- A *warning* works, but not as a reader would expect: a policy that is never reached, retries that exceed their turn's
  time, a default that nothing uses.
- Code may register more tools; ``known`` lists them. A fallback or a plan's tool that is neither in the manifest nor in
  ``known`` is an error: the manifest can list a tool from code without an entry point.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from failsoft.config.layering import Layer
from failsoft.config.manifest.load import Manifest
from failsoft.config.manifest.plan import LITERAL, REF, Plan, PlannedCall
from failsoft.config.manifest.problem import Problem, Severity
from failsoft.core.effects.tool_effect import know_effect
from failsoft.core.effects.verification import unused_without_verify
from failsoft.core.model.durations import text
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.odd_options import count_attempts, find_odd_options
from failsoft.core.model.options import RetryOptions, ToolOptions
from failsoft.core.model.verify_tool import VerifyTool
from failsoft.core.resilience.backoff import delay
from failsoft.core.resilience.policy import Policy

Finding = tuple[Severity, str, str, str]  # severity, place, field, message

_COUNTED_RETRIES = 50  # delays added up one by one; each further one counts as the longest delay


def check(manifest: Manifest, plan: Plan | None = None, *, known: Collection[str] | None = None) -> list[Problem]:
    """Check a manifest, and a plan to run with it. ``known`` are the tools that code registers."""
    tools = _Tools(manifest, known)
    findings = [*_check_tools(manifest, tools), *_check_policies(manifest.policies, tools)]
    if plan is not None:
        findings += _check_plan(plan, manifest, tools)
    problems = [Problem.at(place, field, message, severity) for severity, place, field, message in findings]
    return sorted(problems, key=lambda problem: (problem.name, problem.line, problem.column))


class _Tools:
    """The known tools."""

    def __init__(self, manifest: Manifest, known: Collection[str] | None) -> None:
        self.ids = {*manifest.tools, *(known or ())}
        self.in_code = known
        self.tags = {id: tool.options.tags for id, tool in manifest.tools.items()}

    def find(self, id: str, place: str, field: str, *, missing: Severity = "error") -> Iterator[Finding]:
        """Report a tool that does not exist. ``missing`` is the severity if code may still register it."""
        if id in self.ids:
            return
        close = did_you_mean(id, self.ids)
        if self.in_code is None:
            instead = close or ": add it, without an entrypoint if code registers it"
            yield missing, place, field, f"{id} is not in the manifest{instead}"
        else:
            yield "error", place, field, f"there is no tool {id}{close}"


def _check_tools(manifest: Manifest, tools: _Tools) -> Iterator[Finding]:
    for id, tool in manifest.tools.items():
        options, place, field = tool.options, tool.place, f"tools.{id}"
        if tool.entrypoint is None and tools.in_code is not None and id not in tools.in_code:
            yield "error", place, field, "it has no entrypoint: add one, or register the tool in code"
        for fallback in options.fallbacks:
            yield from tools.find(fallback.tool, place, f"{field}.fallbacks")
        if know_effect(options, undeclared=manifest.undeclared).safe is None and count_attempts(options.retry) > 1:
            message = "its effects are not declared: write read_only: true, or idempotent: true or false"
            yield "warning", place, field, message
        yield from _check_verify(options, manifest, tools, place, f"{field}.verify")
        yield from _check_defaults(options.required, options.defaults, place, field)
        for odd, message in find_odd_options(options):
            yield "warning", place, f"{field}.{odd}", message
        yield from _check_time(options, manifest.turn.timeout, place, field)


def _check_verify(options: ToolOptions, manifest: Manifest, tools: _Tools, place: str, field: str) -> Iterator[Finding]:
    if options.verify_key is not None and options.verify is None:
        yield "warning", place, f"{field}_key", "there is no verify to use the key: give one, or use idempotency_key"
    if options.verify is None:
        for name in unused_without_verify(options):
            message = "there is no verify that it could apply to: give one"
            yield "warning", place, f"{field}{name.removeprefix('verify')}", message
    if not isinstance(options.verify, VerifyTool):
        return
    reader = options.verify.tool
    yield from tools.find(reader, place, f"{field}.tool")
    entry = manifest.tools.get(reader)
    if entry is not None and know_effect(entry.options, undeclared=manifest.undeclared).effect != "read":
        yield "error", place, f"{field}.tool", f"{reader} is not known to read: write read_only: true there"


def _check_defaults(required: bool | None, defaults: Layer, place: str, field: str) -> Iterator[Finding]:
    if required is False and defaults:
        yield "warning", place, f"{field}.defaults", "required: false skips the call before a default is used: drop one"


def _check_time(options: ToolOptions, turn: float | None, place: str, field: str) -> Iterator[Finding]:
    longest = _longest(options)
    if turn is None or longest is None or longest <= turn:
        return
    what = "an attempt" if options.timeout is not None and options.timeout > turn else "retries"
    longest = options.timeout if what == "an attempt" and options.timeout is not None else longest
    yield (
        "warning",
        place,
        field,
        f"{what} of this tool can take {text(round(longest, 1))} but its turn has {text(turn)}",
    )


def _check_policies(policies: tuple[Policy, ...], tools: _Tools) -> Iterator[Finding]:
    for number, policy in enumerate(policies):
        field, place = f"policies[{number}]", policy.place
        if not policy.when.is_possible:
            yield "error", place, f"{field}.when", "matches nothing: transient and tool_transient always go together"
            continue
        if policy.name in {earlier.name for earlier in policies[:number]}:
            yield "warning", place, f"{field}.name", f"{policy.name} is used twice: give each policy its own name"
        for earlier in policies[:number]:
            if earlier.when.is_possible and earlier.when.covers(policy.when):
                yield _shadow(earlier, policy, place, field)
                break
        if policy.then.strategy == "retry" and "unknown" in policy.when.effect and not policy.even_if_effect_unknown:
            message = "a call that may have taken effect is retried only with even_if_effect_unknown: true"
            yield "warning", place, f"{field}.then", message
        yield from _check_words(policy, tools, place, field)


def _check_words(policy: Policy, tools: _Tools, place: str, field: str) -> Iterator[Finding]:
    """Check the names in a policy, and its text."""
    if left := policy.then.placeholder:
        yield (
            "warning",
            place,
            f"{field}.then.message",
            f"{left} is shown unchanged: a policy's text has no placeholders",
        )
    if policy.then.tool is not None:
        yield from tools.find(policy.then.tool, place, f"{field}.then.tool", missing="warning")
    for glob in policy.when.tool:
        near = did_you_mean(glob, tools.ids)
        if (tools.in_code is not None or near) and not any(fnmatchcase(id, glob) for id in tools.ids):
            yield "warning", place, f"{field}.when.tool", f"{glob} matches no tool{near}"
    tags = {tag for tool in tools.tags.values() for tag in tool}
    for tag in set(policy.when.tags) - tags:
        if near := did_you_mean(tag, tags):
            yield "warning", place, f"{field}.when.tags", f"no tool of the manifest has the tag {tag}{near}"


def _shadow(earlier: Policy, policy: Policy, place: str, field: str) -> Finding:
    where = f"{earlier.name!r} ({earlier.place})" if earlier.place else repr(earlier.name)
    if policy.when.covers(earlier.when) and policy.then != earlier.then:
        return "error", place, field, f"contradicts {where}, which has the same conditions and comes first: keep one"
    return (
        "warning",
        place,
        field,
        f"is never reached: {where} comes first and matches everything that this one matches",
    )


# References as other products write them; a bare $id only if it cannot be an amount of money
_PLACEHOLDER = re.compile(r"\$\{ *([^{} ]+) *\}|\{\{ *([^{} ]+) *\}\}|\$ref:? +([^{} ]+)|\$([A-Za-z_][\w-]*)")


def find_odd_arguments(plan: Plan) -> Iterator[tuple[str, str]]:
    """Find arguments that look like references but are passed unchanged: their place, and a message."""
    ids = {call.id for call in plan.calls}
    for number, call in enumerate(plan.calls):
        for path, message in _odd_arguments(call, f"calls[{number}]", ids):
            yield f"{call.place}: {path}" if call.place else path, message


def _odd_arguments(call: PlannedCall, field: str, ids: Collection[str]) -> Iterator[tuple[str, str]]:
    yield from _odd(call.args, f"{field}.args", ids)


def _call_of(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _odd(value: object, path: str, ids: Collection[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        (*others, key) = value or ("",)
        if not others and isinstance(key, str) and key.startswith("$"):
            hint = did_you_mean(key.lower(), (REF, LITERAL))
            if hint:
                yield f"{path}.{key}", f"is passed to the tool unchanged{hint}"
        elif not others and key == "ref" and isinstance(value[key], str) and _call_of(value[key]) in ids:
            yield (
                f"{path}.{key}",
                f'is passed to the tool unchanged; write "{REF}" for the value of {_call_of(value[key])}',
            )
        for name, item in value.items():
            yield from _odd(item, f"{path}.{name}", ids)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _odd(item, f"{path}[{number}]", ids)
    elif isinstance(value, str) and (named := _PLACEHOLDER.fullmatch(value)):
        id = next(filter(None, named.groups()))
        if id in ids:
            yield (
                path,
                f'{value!r:.80} is passed to the tool as a text; write {{"{REF}": "{id}"}} for the value of {id}',
            )


def _check_limits(plan: Plan, manifest: Manifest) -> Iterator[Finding]:
    """Find limits that refuse calls of the plan itself."""
    most = manifest.turn.max_calls if plan.max_calls is None else plan.max_calls
    most_per_tool = plan.max_calls_per_tool or manifest.turn.max_calls_per_tool
    counts = Counter(call.tool for call in plan.calls)
    if most is not None and len(plan.calls) > most:
        message = f"the plan has {len(plan.calls)} calls and its turn may make {most}: the others are refused"
        yield "warning", plan.calls[most].place, "max_calls", message
    for tool, count in counts.items():
        if most_per_tool is not None and count > most_per_tool:
            last = [call for call in plan.calls if call.tool == tool][most_per_tool]
            message = f"the plan calls {tool} {count} times and its turn may do so {most_per_tool} times"
            yield "warning", last.place, "max_calls_per_tool", f"{message}: the others are refused"


def _check_plan(plan: Plan, manifest: Manifest, tools: _Tools) -> Iterator[Finding]:
    yield from _check_limits(plan, manifest)
    ids = {call.id for call in plan.calls}
    turn = manifest.turn.timeout if plan.timeout is None else plan.timeout
    for number, call in enumerate(plan.calls):
        place, field = call.place, f"calls[{number}]"
        yield from tools.find(call.tool, place, f"{field}.tool")
        tool = manifest.tools.get(call.tool)
        options = _with(call, tool.options if tool else ToolOptions(id=call.tool))
        if call.required is not None or call.defaults:
            yield from _check_defaults(options.required, options.defaults, place, field)
        filled = {argument for arguments in call.needs.values() for argument in arguments}
        for path, message in _odd_arguments(call, field, ids):
            yield "warning", place, path, message
        for argument in call.defaults:
            if argument not in filled:
                message = "no other call fills this argument, so the default is never used"
                yield "warning", place, f"{field}.defaults.{argument}", message
        if tool or call.timeout or call.retry:
            yield from _check_time(options, turn, place, field)


def _with(call: PlannedCall, options: ToolOptions) -> ToolOptions:
    """Merge a call's own options into its tool's."""
    retry = call.retry or {}
    return replace(
        options,
        timeout=options.timeout if call.timeout is None else call.timeout,
        retry=retry if isinstance(retry, RetryOptions) else replace(options.retry, **retry),
        required=options.required if call.required is None else call.required,
        defaults={**options.defaults, **call.defaults},
    )


def _longest(options: ToolOptions) -> float | None:
    """The longest time that one call can take without its fallbacks; None if there is no limit."""
    if options.timeout is None:
        return None
    retry, retries = options.retry, count_attempts(options.retry) - 1
    if not retries:
        return options.timeout
    counted = min(retries, _COUNTED_RETRIES)
    waits = sum(delay(retry, number, jitter=1.0) for number in range(1, counted + 1))
    waits += (retries - counted) * retry.max_delay * (1 + retry.jitter_percent / 100)
    return min(options.timeout * (retries + 1) + waits, 2 * options.timeout + retry.max_total_time)
