"""Texts of docs/reference/manifest.md: introductions, order, and an example of each option.

``tests/docs`` loads every example, alone in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

INTRO = """# Manifest

<!-- Written by tools/manifest_page.py from the manifest's JSON Schema. Change src/failsoft/config/manifest. -->

A manifest is one YAML (or JSON) file that says what failsoft should know about your tools. You need none: everything has
a default, and most can be said in Python as well, with the same words (`@rt.tool(timeout="5s", read_only=True)`).

- `failsoft init` writes one to begin with, and the JSON Schema that lets editors complete it.
- `failsoft check` lists everything that is wrong with it, with line and column.
- `Runtime("failsoft.yaml")` and `failsoft run plan.yaml` read it.

Where decorator and manifest both say something about a tool, the manifest has the last word; `defaults` hold for what
neither has said.

Keys are snake_case or camelCase: `max_attempts` and `maxAttempts` are the same. A *duration* is a number with a unit, or
several: `500ms`, `30s`, `1m30s`, `2h`. A bare number is refused, except in keys that end in `_ms` and in
`cooldown_duration`, where it is milliseconds. A *size* is `64kB`, `512MB`, `1GiB` or a number of bytes. *Codes* are the
[sixteen status codes](../concepts/taxonomy.md), as `DEADLINE_EXCEEDED` or `DeadlineExceeded`.
"""


class Section(NamedTuple):
    """One block of the file: its place, and an example of each of its options."""

    block: str
    title: str
    note: str
    put: Callable[[Any], Any]  # puts the block into a manifest
    base: dict[str, Any]  # required beside any option
    examples: dict[str, str]  # option -> YAML


def _in_tool(key: str, *, many: bool = False) -> Callable[[Any], Any]:
    return lambda block: {"tools": {"search": {key: [block] if many else block}}}


_TOOL = {
    "timeout": "10s",
    "timeout_ms": "10000",
    "retry": "{max_attempts: 3}",
    "breaker": "{failure_threshold: 3, timeout: 1m}",
    "cooldown": "{min_consecutive_failures: 3, cooldown_duration: 20s}",
    "classification": "[{http_status: 503, as: permanent}]",
    "idempotent": "false",
    "isolation": "process",
    "concurrency": "4",
    "queue": "20",
    "rate": "100/1m",
    "check_types": "false",
    "accept_partial": "true",
    "failed_if": "{ok: false, message: error}",
}

SECTIONS = (
    Section(
        "",
        "The file",
        "",
        lambda block: block,
        {},
        {
            "version": "1",
            "defaults": "{timeout: 10s}",
            "turn": "{timeout: 1m}",
            "tools": "{search: {read_only: true}}",
            "tool": "{id: search, read_only: true}",
            "policies": "[{name: no night calls, when: {tool: call_me}, then: fail_gracefully}]",
            "memory": "act",
            "undeclared": "never_repeat",
            "language": "de",
            "explanations": '{de: {user.tool_transient: "{Label} antwortet gerade nicht."}}',
        },
    ),
    Section(
        "ToolBlock",
        "tools",
        "By id. All of these can be said in `@rt.tool(...)` and `rt.add(...)` too, except `entrypoint`.",
        lambda block: {"tools": {"search": block}},
        {},
        {
            "id": "search",
            "label": "web search",
            "tags": "[slow, web]",
            "entrypoint": '{function: "travel.tools:search"}',
            "read_only": "true",
            "idempotent": "false",
            "idempotency_key": "request_id",
            "requests": "many",
            **_TOOL,
            "fallbacks": "[cached_search]",
            "error_handling": "{retries: [{max_attempts: 3, handle_errors: [UNAVAILABLE]}]}",
            "enabled": "false",
            "required": "true",
            "defaults": "{flights: []}",
            "idle_timeout": "5s",
            "output": "{type: array}",
            "polling": "true",
            "max_repeats": "10",
            "verify": "{tool: get_order, arguments: {order_id: $order_id}, happened_if: {status: paid}}",
            "verify_delay": "2s",
            "verify_timeout": "5s",
            "verify_key": "reference",
        },
    ),
    Section(
        "SharedBlock",
        "defaults",
        "What holds for every tool that says nothing else, by the same words as for one tool.",
        lambda block: {"defaults": block},
        {},
        _TOOL,
    ),
    Section(
        "EntrypointBlock",
        "entrypoint",
        "Either `function` or `command`; the rest belongs to a command. See [Tools in processes](../how-to/processes.md).",
        _in_tool("entrypoint"),
        {},
        {
            "function": '"travel.tools:search"',
            "command": "[python, -m, search]",
            "env": "[API_KEY]",
            "exit_codes": "{3: NOT_FOUND}",
            "max_output": "1MB",
        },
    ),
    Section(
        "RetryBlock",
        "retry",
        "Whether a retry is made at all is another question: see [Is it safe to retry?](../is-it-safe-to-retry.md)",
        _in_tool("retry"),
        {},
        {
            "strategy": "exponential_backoff",
            "max_attempts": "3",
            "initial_delay": "200ms",
            "initial_delay_ms": "200",
            "max_delay": "5s",
            "max_delay_ms": "5000",
            "multiplier": "3",
            "jitter_percent": "20",
            "max_total_time": "10s",
            "max_total_time_ms": "10000",
            "max_hint_wait": "1m",
            "max_hint_wait_ms": "60000",
            "rules": "[{max_attempts: 2, handle_errors: [UNAVAILABLE]}]",
            "budget": "false",
        },
    ),
    Section(
        "RuleBlock",
        "retry.rules, error_handling.retries",
        "A list. An error that no entry lists is not repeated.",
        lambda block: {"tools": {"search": {"retry": {"rules": [block]}}}},
        {"max_attempts": 2, "handle_errors": ["UNAVAILABLE"]},
        {"max_attempts": "2", "handle_errors": "[UNAVAILABLE, DEADLINE_EXCEEDED]"},
    ),
    Section(
        "BreakerBlock",
        "breaker",
        "See [Breaker](../concepts/breaker.md).",
        _in_tool("breaker"),
        {"window": 20},
        {
            "failure_threshold": "3",
            "success_threshold": "2",
            "timeout": "1m",
            "timeout_ms": "60000",
            "count": "calls",
            "window": "20",
            "failure_rate": "0.5",
            "min_calls": "10",
        },
    ),
    Section(
        "CooldownBlock",
        "cooldown",
        "Another form of `breaker`, with `count: calls`. Write one of the two.",
        _in_tool("cooldown"),
        {},
        {"min_consecutive_failures": "3", "cooldown_duration": "20s"},
    ),
    Section(
        "FallbackBlock",
        "fallbacks",
        "A list, tried in its order. A tool's id alone is enough: `[cached_search]`. `node_id` is the same as `tool`.",
        _in_tool("fallbacks", many=True),
        {"tool": "cached_search"},
        {
            "tool": "cached_search",
            "handle_errors": "[UNAVAILABLE, INTERNAL]",
            "cooldown": "{min_consecutive_failures: 3, cooldown_duration: 20s}",
            "retry": "{max_attempts: 1}",
            "error_handling": "{retries: [{max_attempts: 2, handle_errors: [UNAVAILABLE]}]}",
        },
    ),
    Section(
        "HandlingBlock",
        "error_handling",
        "Retries, fallbacks and cooldown in one block. A fallback's own has no `fallbacks`.",
        _in_tool("error_handling"),
        {},
        {
            "retries": "[{max_attempts: 3, handle_errors: [UNAVAILABLE]}]",
            "cooldown": "{min_consecutive_failures: 2, cooldown_duration: 30s}",
            "fallbacks": "[{tool: cached_search}]",
        },
    ),
    Section(
        "OverrideBlock",
        "classification",
        "A list; the first entry that matches decides. An entry needs a condition (`http_status`, `code`, `exception`, "
        "`pattern`) and a meaning (`as`, `category`, `to_code`, `effect`). Several conditions must all hold.",
        _in_tool("classification", many=True),
        {"http_status": 503, "as": "permanent"},
        {
            "http_status": "503",
            "code": "insufficient_quota",
            "exception": "acme.QuotaError",
            "pattern": '"daily limit"',
            "as": "permanent",
            "category": "tool_misconfigured",
            "to_code": "RESOURCE_EXHAUSTED",
            "effect": "none",
        },
    ),
    Section(
        "ProcessBlock",
        "isolation.process",
        "`isolation: process` alone takes the defaults; `{process: {...}}` says more, "
        "and `isolation: {values: json}` is short for `{process: {values: json}}`. "
        "See [Deadlines](../concepts/deadlines.md).",
        lambda block: {"tools": {"search": {"isolation": {"process": block}}}},
        {},
        {"max_calls": "100", "max_memory": "512MB", "context": '["app.request:tenant"]', "values": "json"},
    ),
    Section(
        "TurnBlock",
        "turn",
        "See [Turns](../concepts/turns.md).",
        lambda block: {"turn": block},
        {},
        {"timeout": "1m", "timeout_ms": "60000", "on_timeout": "cancel", "max_calls": "50", "max_calls_per_tool": "10"},
    ),
    Section(
        "PolicyBlock",
        "policies",
        "A list; the first policy whose conditions all hold decides. `even_if_effect_unknown` belongs to a retry. See [Policies](../concepts/policies.md).",
        lambda block: {"policies": [block]},
        {"name": "no night calls", "then": "fail_gracefully"},
        {
            "name": "no night calls",
            "when": "{tool: call_me}",
            "then": "fail_gracefully",
            "even_if_effect_unknown": "true",
        },
    ),
    Section(
        "WhenBlock",
        "policies.when",
        "One value or a list of them.",
        lambda block: {"policies": [{"name": "a policy", "when": block, "then": "escalate"}]},
        {},
        {
            "tool": '"pay_*"',
            "tags": "[slow, web]",
            "category": "tool_misconfigured",
            "code": "[NOT_FOUND, ABORTED]",
            "classification": "transient",
            "attempt": "2",
            "breaker": "half_open",
            "turn_left": "20s",
            "effect": "unknown",
        },
    ),
    Section(
        "ThenBlock",
        "policies.then",
        "A strategy alone is enough: `then: escalate`.",
        lambda block: {"policies": [{"name": "a policy", "then": block}]},
        {},
        {
            "strategy": "escalate",
            "delay": "2s",
            "tool": "cached_search",
            "message": '"Our travel desk is closed."',
        },
    ),
)

PLAN = """# Plans

A plan is a turn written down: `failsoft run plan.yaml`, or `await rt.run_plan(plan)` with a file's path, its text or a
mapping. In a call's arguments `{"$ref": "flights"}` stands for the value of the call `flights`, at any depth; the call
then waits for it. `{"$ref": "flights.price"}` and `{"$ref": "flights[0].id"}` stand for
parts of the value; a call of exactly that id comes first. If the value has no such part, the call's `defaults` are used,
or it fails without running. `{"$literal": …}` stands for what is in it, whatever that looks like.

```yaml
# plan.yaml
timeout: 30s
thread: chat-42
calls:
  - {id: flights, tool: flight_search, args: {city: PAR}}
  - {id: hotels, tool: hotel_search, args: {city: PAR}}
  - id: summary
    tool: summarise
    args: {flights: {$ref: flights}, hotels: {$ref: hotels}}
    defaults: {hotels: []}
```
"""

_CALL = {"tool": "search"}
PLANS = (
    Section(
        "PlanBlock",
        "The plan",
        "",
        lambda block: block,
        {"calls": [_CALL]},
        {
            "timeout": "30s",
            "timeout_ms": "30000",
            "max_calls": "20",
            "max_calls_per_tool": "5",
            "thread": "chat-42",
            "calls": "[{tool: search}]",
        },
    ),
    Section(
        "CallBlock",
        "calls",
        "A list.",
        lambda block: {"calls": [{"id": "flights", "tool": "search"}, block]},
        _CALL,
        {
            "id": "summary",
            "tool": "search",
            "args": "{city: PAR}",
            "depends_on": "[flights]",
            "required": "true",
            "defaults": "{hotels: []}",
            "timeout": "5s",
            "timeout_ms": "5000",
            "retry": "{max_attempts: 1}",
            "idempotency_key": "order-17",
        },
    ),
)

_COMMAND = {"command": ["python", "-m", "search"]}
BESIDE: dict[tuple[str, str], dict[str, Any]] = {  # other options that an example needs
    ("", "language"): {"explanations": {"de": {"user.tool_transient": "{Label} antwortet gerade nicht."}}},
    ("EntrypointBlock", "env"): _COMMAND,
    ("EntrypointBlock", "exit_codes"): _COMMAND,
    ("EntrypointBlock", "max_output"): _COMMAND,
    ("PolicyBlock", "even_if_effect_unknown"): {"then": "retry"},
}


def examples() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Yield every option's example alone in a file: its name, whether it is a plan, and the file."""
    for section in (*SECTIONS, *PLANS):
        for option, example in section.examples.items():
            block = {**section.base, **BESIDE.get((section.block, option), {}), option: yaml.safe_load(example)}
            yield f"{section.title}: {option}", section in PLANS, section.put(block)
