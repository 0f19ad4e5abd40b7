"""Write docs/reference/api.md from the signatures and docstrings of the public names: ``python -m tools.api_page``."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from tools.pages import DOCS, table, write

PAGE = DOCS / "reference" / "api.md"

INTRO = """# Python API

<!-- Written by tools/api_page.py from signatures and docstrings. Change those. -->

Everything that `from failsoft import …` gives, then what is in `failsoft.testing`, in the adapters, in `failsoft.otel` and in
`failsoft.prometheus`.
`failsoft.integration` ([Write an adapter](../how-to/write-an-adapter.md)) and `failsoft.stores.ports` are public too, for
adapters and stores of your own, and `failsoft.stores.url` and `failsoft.analysis.source`, which read stores and traces
([Read a trace from code](../how-to/trace.md#read-a-trace-from-code)). All other modules may change at any time. A `Duration` is a text like `"30s"` or a `timedelta`; a bare number is refused.
"""

# (title, module, introduction, names in reading order)
ROOMS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "Running tools",
        "failsoft",
        "",
        ("Runtime", "Turn", "Handle", "tool", "default_runtime", "partial", "in_thread", "progress"),
    ),
    (
        "What comes out",
        "failsoft",
        "",
        ("Outcome", "TurnReport", "Fault", "Code", "ErrorStatusCode", "Decision", "LedgerEntry"),
    ),
    (
        "What the runtime shows",
        "",
        "You meet these, and import them for annotations only: `rt.threads[key]` is a `Thread`, "
        "`rt.memory` is the `RecoveryMemory`, `outcome.explanation` an `Explanation`, `rt.events()` and `rt.subscribe` "
        "give `Event`s (their fields: [Events](events.md)), `rt.subscribe_batches` takes an `EventSink`, "
        "`report.waterfall()` gives a `Waterfall`, `rt.inspect()` a `RuntimeSnapshot`, `rt.samples()` a list of `Sample`s, "
        "`rt.ledger` is the `Ledger`, of `LedgerEntry`s.",
        (
            "failsoft.runtime.threads:Thread",
            "failsoft.runtime.ledger:Ledger",
            "failsoft.core.conversation.thread_state:Offer",
            "failsoft.core.conversation.thread_state:Dangling",
            "failsoft.runtime.persistence.recovery_memory:RecoveryMemory",
            "failsoft.core.model.explanation:Explanation",
            "failsoft.analysis.turn_report:Escalation",
            "failsoft.observe.events:Event",
            "failsoft.observe.subscriptions:EventSink",
            "failsoft.analysis.waterfall:Waterfall",
            "failsoft.runtime.inspect:RuntimeSnapshot",
            "failsoft.runtime.inspect:ToolSnapshot",
            "failsoft.runtime.inspect:CircuitSnapshot",
            "failsoft.runtime.inspect:SubscriberSnapshot",
            "failsoft.runtime.inspect:StoreSnapshot",
            "failsoft.runtime.samples:Sample",
        ),
    ),
    ("Understanding errors", "failsoft", "", ("classify", "Override")),
    (
        "Verification",
        "failsoft",
        "See [Find out what happened](../how-to/find-out-what-happened.md).",
        ("Verified",),
    ),
    (
        "Options",
        "failsoft",
        "In place of any of these a mapping with the same keys will do. Times are read as seconds, whatever was written.",
        ("RetryOptions", "BreakerOptions", "Fallback"),
    ),
    ("Another Error Handler", "failsoft", "", ("Handler", "ErrorReport", "decide")),
    (
        "Instruments",
        "failsoft",
        "Hooks around turns, calls and attempts: [An instrument around your tools]"
        "(../how-to/trace.md#an-instrument-around-your-tools).",
        ("Instrument",),
    ),
    (
        "What instruments get",
        "",
        "",
        (
            "failsoft.observe.instrument:CallInfo",
            "failsoft.observe.instrument:TurnInfo",
            "failsoft.observe.instrument:carried",
        ),
    ),
    (
        "Errors",
        "failsoft",
        "",
        (
            "FailsoftError",
            "CallFailed",
            "CircuitOpen",
            "ToolTimeout",
            "ToolUnavailable",
            "ManifestError",
            "TurnError",
            "LedgerError",
            "NothingDone",
        ),
    ),
    (
        "Testing",
        "failsoft.testing",
        "See [Test your error paths](../how-to/testing.md).",
        (
            "virtual_time",
            "VirtualClock",
            "Deadlock",
            "FaultPlan",
            "HttpError",
            "MemoryStore",
            "check_store",
            "check_breaker_store",
            "check_adapter",
            "adapter_checks",
            "AdapterDriver",
            "Ask",
            "Seen",
            "check_driver",
            "Checked",
        ),
    ),
    (
        "Plain loops",
        "failsoft.adapters.plain",
        "See [Plain loops](../how-to/plain-loop.md).",
        ("run_tool_calls", "run_tool_calls_sync", "close_tool_calls"),
    ),
    (
        "pydantic-ai",
        "failsoft.adapters.pydantic_ai",
        "See [pydantic-ai](../how-to/pydantic-ai.md).",
        ("Agent", "AgentConfig", "Failsoft"),
    ),
    (
        "LangChain",
        "failsoft.adapters.langchain",
        "See [LangChain and LangGraph](../how-to/langchain.md).",
        ("FailsoftMiddleware",),
    ),
    (
        "OpenAI Agents SDK",
        "failsoft.adapters.openai_agents",
        "See [OpenAI Agents SDK](../how-to/openai-agents.md).",
        ("guard_agent",),
    ),
    (
        "Prometheus",
        "failsoft.prometheus",
        "See [Observe](../how-to/observe.md#prometheus).",
        ("PrometheusCollector", "exposition"),
    ),
    (
        "Client of the daemon",
        "failsoft.client",
        "See [Ask a daemon](../how-to/ask-a-daemon.md). `AsyncClient` has the methods of `Client`, to await.",
        ("Client", "AsyncClient", "Advice", "RemoteHandler", "EventReporter", "DaemonError", "DaemonUnavailable"),
    ),
    ("OpenTelemetry", "failsoft.otel", "See [OpenTelemetry](../how-to/opentelemetry.md).", ("OpenTelemetry",)),
)

# Methods that only failsoft itself or a framework calls
INSIDE = {
    "Handle": {
        *("turn", "scheduler", "tool", "call", "result", "set_options", "report_effect_to", "resolve"),
        *("step_out", "full_call", "suspend"),
    },
    "Turn": {"submit_plan", "adopt", "adopt_blocking"},
    "Outcome": {"reword"},
    "VirtualClock": {"reach"},
    "Offer": {"args", "timeout", "retry", "key", "same", "from_dict"},
    "RecoveryMemory": {
        "evidence",
        "note_error",
        "family_of",
        "skips_retry",
        "order",
        "learn",
        "save",
        "renew_after_fork",
    },
    "Dangling": {"from_dict"},
}
INHERITED = {
    "Runtime": (
        *("health", "running", "inspect", "metrics", "policies", "memory", "threads", "explain"),
        *("subscribe", "subscribe_batches", "events", "workers", "tools"),
        *("declare", "run", "run_sync", "agent_run", "end_agent_run"),
    ),
    "Turn": ("left", "expired", "over"),
}  # public members of a base class that is not public
WITHOUT_MEMBERS = {"Agent", "FailsoftMiddleware", "Failsoft", "MemoryStore", "OpenTelemetry"}
WITHOUT_SIGNATURE = {
    *(
        "Handle",
        "Turn",
        "Outcome",
        "TurnReport",
        "Code",
        "ErrorStatusCode",
        "Agent",
        "Handler",
        "AdapterDriver",
        "VirtualClock",
    ),
    *("Thread", "RecoveryMemory", "CallInfo", "TurnInfo"),
}

# Attributes documented only by a comment
ATTRIBUTE = re.compile(
    r"^ {8,12}self\.(?P<name>[a-z]\w*)(?:: (?P<type>[^=#]+?))? = [^#\n]*(?:  # (?P<note>(?!type:).*))?$", re.MULTILINE
)
FIELD = re.compile(r"^    (?P<name>[a-z]\w*): (?P<type>[^=#\n]+?)(?: = (?P<default>[^#\n]*?))?(?:  # (?P<note>.*))?$")
SOURCE = re.compile(r" ?\((?:S-|R\d)[^)]*\)|\bS-\w+'s?\b ?")


def documents(name: str, thing: Any) -> str:
    """Convert a docstring to Markdown, without references to the source documents."""
    text = inspect.getdoc(thing) or ""
    if not text or (inspect.isclass(thing) and text.startswith(f"{name}(")):
        raise SystemExit(f"{name} has no docstring")
    return SOURCE.sub("", text).replace("``", "`")


def signature(thing: Any) -> str:
    """Format the parameters as they would be written."""
    found = inspect.signature(thing)
    shown: list[str] = []
    kinds = [one.kind for one in found.parameters.values()]
    for place, one in enumerate(found.parameters.values()):
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not {one.KEYWORD_ONLY, one.VAR_POSITIONAL} & {*kinds[:place]}:
            shown.append("*")
        mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
        default = "" if one.default is one.empty else f" = {one.default!r}"
        shown.append(f"{mark}{one.name}{kind}{default if kind else default.replace(' ', '')}")
        if one.kind is one.POSITIONAL_ONLY and one.POSITIONAL_ONLY not in kinds[place + 1 :]:
            shown.append("/")
    gives = "" if found.return_annotation in (found.empty, "None", None) else _annotation(found.return_annotation)
    return f"({', '.join(shown)})" + (f" -> {gives}" if gives else "")


def _annotation(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    text = re.sub(r"^Coroutine\[Any, Any, (.*)\]$", r"\1", text)
    return re.sub(r"\b(?:random_source|foreign|testing)\.", "", text)


def is_awaited(thing: Any) -> bool:
    """True if a call of it is awaited."""
    return inspect.iscoroutinefunction(thing) or str(inspect.signature(thing).return_annotation).startswith("Coroutine")


def fields(cls: type) -> list[tuple[str, str, str]]:
    """The fields of a tuple or dataclass, or the attributes that ``__init__`` sets: name, default, meaning."""
    found: list[tuple[str, str, str]] = []
    if is_record(cls):
        declared_in = next((base for base in cls.__mro__ if inspect.get_annotations(base)), cls)
        for line in inspect.getsource(declared_in).splitlines():
            match = FIELD.match(line)
            if match is None:
                if found and line.strip().startswith(("def ", "@", "if TYPE_CHECKING")):
                    break
                continue
            if match["name"] in INSIDE.get(cls.__name__, ()):
                continue
            default = (match["default"] or "").strip()
            default = re.sub(r'Seconds\(([\d.]+)(?:, "[^"]*")?\)', r"\1", default)
            found.append((match["name"], default, _note(cls, match["name"], match["note"])))
    elif "__init__" in vars(cls):
        source = inspect.getsource(vars(cls)["__init__"])
        inside = INSIDE.get(cls.__name__, ())
        told = [match for match in ATTRIBUTE.finditer(source) if match["note"] and match["name"] not in inside]
        found = [(match["name"], "", _note(cls, match["name"], match["note"])) for match in told]
    return found


def is_record(cls: type) -> bool:
    """True for a named tuple or a dataclass: its fields are its parameters."""
    return issubclass(cls, tuple) or hasattr(cls, "__dataclass_fields__")


def _note(cls: type, name: str, note: str | None) -> str:
    if not note:
        documented = re.search(rf'^    {name}: .*\n    """(.*)"""$', inspect.getsource(cls), re.MULTILINE)
        note = documented[1] if documented else ""
    note = re.sub(r"\b(S-\w+|R\d+)(?: [\d.]+)?: ", "", SOURCE.sub("", note))
    return note.replace("``", "`").strip()


def members(name: str, cls: type) -> Iterator[str]:
    """List properties and methods in source order."""
    if name in WITHOUT_MEMBERS:
        return
    inherited = {member: inspect.getattr_static(cls, member) for member in INHERITED.get(name, ())}
    for member, thing in {**vars(cls), **inherited}.items():
        if member.startswith("_") or member in INSIDE.get(name, ()):
            continue
        bare = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
        if not inspect.isfunction(bare):
            bare = inspect.unwrap(bare)
        if isinstance(thing, property):
            yield f"- `.{member}`: {_indented(documents(f'{name}.{member}', thing))}"
        elif inspect.isfunction(bare):
            mark = "await " if is_awaited(bare) else ""
            yield f"- `{mark}.{member}{signature(bare)}`: {_indented(documents(f'{name}.{member}', thing))}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines()).strip()


def describe(name: str, thing: Any, home: str = "") -> Iterator[str]:
    """Describe one public name; ``home`` is the defining module, if it differs from the import path."""
    yield f"### {name}"
    if home:
        yield f"`from {home} import {name}`"
    if not inspect.isclass(thing):
        yield f"`{'await ' * is_awaited(thing)}{name}{signature(thing)}`"
    elif not (name in WITHOUT_SIGNATURE or is_record(thing) or issubclass(thing, BaseException)):
        yield f"`{name}{signature(thing)}`"
    elif issubclass(thing, BaseException) and thing.__bases__ != (Exception,):
        yield f"A kind of {' and '.join(f'`{base.__name__}`' for base in thing.__bases__)}."
    yield documents(name, thing)
    if not inspect.isclass(thing):
        return
    if issubclass(thing, Enum):
        yield ", ".join(f"`{one.name}`" for one in thing) + "."
        return
    about = fields(thing)
    if not any(note for _, _, note in about):
        about = []
    if about and any(default for _, default, _ in about):
        yield table(
            ("field", "default", "meaning"),
            [(f"`{field}`", f"`{default}`" if default else "", note) for field, default, note in about],
        )
    elif about:
        yield table(("field", "meaning"), [(f"`{field}`", note) for field, _, note in about])
    listed = "\n".join(members(name, thing))
    if listed:
        yield "Methods and properties:"
        yield listed


def pages() -> dict[Path, str]:
    """Return the generated page."""
    parts = [INTRO.strip()]
    for title, module, note, names in ROOMS:
        parts.append(f"## {title}")
        if module not in ("", "failsoft"):
            parts.append(f"`from {module} import {', '.join(names)}`")
        if note:
            parts.append(note)
        for path in names:
            home, _, name = path.rpartition(":")
            parts += describe(name, getattr(importlib.import_module(home or module), name), home)
    return {PAGE: "\n\n".join(parts) + "\n"}


if __name__ == "__main__":
    write(pages())
