"""Read and combine the settings of tools and turns from the manifest and from code."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import iscoroutinefunction, signature
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, cast

from failsoft.config.layering import Layer, assemble
from failsoft.core.effects.tool_effect import Undeclared
from failsoft.core.model.durations import Duration, seconds
from failsoft.core.model.options import RetryOptions, ToolOptions, TurnOptions
from failsoft.core.model.validation import one_of, several
from failsoft.core.resilience.recovery_memory import Mode
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.core.turn.cycles import find_cycles, format_cycle
from failsoft.errors import ManifestError

if TYPE_CHECKING:
    from pathlib import Path

    from failsoft.config.manifest import ManifestTool
    from failsoft.core.explain.catalogue import Texts
    from failsoft.core.resilience.policy import Policy

log = logging.getLogger("failsoft")

_NATIVE = frozenset(ToolOptions.__slots__)


class Settings(NamedTuple):
    """The settings of a manifest; defaults without one."""

    turn: TurnOptions = TurnOptions()
    defaults: Mapping[str, Any] = {}
    tools: Mapping[str, ManifestTool] = {}
    policies: tuple[Policy, ...] = ()
    memory: Mode = "advise"
    language: str = "en"
    explanations: Mapping[str, Texts] = {}  # by language
    undeclared: Undeclared = "recognise"

    def with_default(self, name: str, value: Any) -> Settings:
        """Return settings with this option as a default for all tools."""
        try:
            assemble({"id": "any"}, {name: value})
        except ValueError as error:
            raise ManifestError(f"Runtime: {error}") from None
        return self._replace(defaults={**self.defaults, name: value})


def read_manifest(manifest: str | Path | Mapping[str, Any]) -> Settings:
    """Read a manifest from a file or a mapping."""
    from failsoft.config.manifest import load

    if not isinstance(manifest, Mapping | str | os.PathLike):
        raise ManifestError(f"manifest: expected the path of a file or a mapping, got {brief(manifest)}")
    if isinstance(manifest, str) and "\n" in manifest:
        raise ManifestError(
            "manifest: expected a path or a mapping, got the text of a manifest: "
            "give the path of its file, or a mapping (yaml.safe_load)"
        )
    loaded = load(manifest) if isinstance(manifest, Mapping) else load(read_file(manifest), name=str(manifest))
    return Settings(
        loaded.turn, loaded.defaults, loaded.tools, loaded.policies, loaded.memory, loaded.language, loaded.explanations,
        loaded.undeclared,
    )  # fmt: skip


def read_file(path: str | Path) -> bytes:
    from pathlib import Path

    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from None


def tool_options(fn: Callable[..., Any], id: str | None, options: Mapping[str, Any], settings: Settings) -> ToolOptions:
    """Merge a tool's options: the manifest's defaults, then the decorator, then the manifest's entry for the tool."""
    named = getattr(fn, "func", fn)  # a functools.partial takes its function's name
    given = options.get("id") if id is None else id
    name = given if given is not None else getattr(named, "__name__", None) or type(named).__name__
    place = place_of(named, name)
    layer = options if _is_native(options) else _parsed(options, place)
    entry = settings.tools.get(name)
    try:
        own = {**layer, "id": name}
        return assemble(settings.defaults, effects_of(fn), own, {} if entry is None else entry.layer)
    except (TypeError, ValueError) as error:
        raise ManifestError(f"{place}: {error}") from None


def effects_of(fn: Callable[..., Any]) -> Layer:
    """The effects declared on a guarded function. They apply wherever the function is registered again."""
    found: Any = fn
    while found is not None and not hasattr(found, "__failsoft__"):
        found = getattr(found, "__wrapped__", None)
    options = getattr(getattr(found, "__failsoft__", None), "options", None)
    if not isinstance(options, ToolOptions):
        return {}
    declared = {name: getattr(options, name) for name in ("read_only", "idempotent", "idempotency_key", "verify")}
    if options.verify is not None:
        declared |= {name: getattr(options, name) for name in ("verify_delay", "verify_timeout", "verify_key")}
    layer = {name: value for name, value in declared.items() if value is not None and value is not False}
    if options.idempotent is False:
        layer["idempotent"] = False
    return layer if options.requests == "one" else {**layer, "requests": options.requests}


def read_policies(policies: Iterable[Policy | Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Read policies written in Python: ``Policy`` objects or mappings as in a manifest."""
    try:
        book: tuple[Any, ...] = several("policies", policies, object)
    except ValueError as error:
        raise ManifestError(str(error)) from None
    if not book:
        return ()
    from failsoft.core.resilience.policy import Policy

    if all(isinstance(policy, Policy) for policy in book):
        return cast("tuple[Policy, ...]", book)
    from failsoft.config.manifest import parse_policies

    return parse_policies(book, place="Runtime")


def join_policies(manifest: tuple[Policy, ...], given: Iterable[Policy | Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Join the manifest's policies and those of the code. Log a name that is used twice: traces quote names."""
    book = (*manifest, *read_policies(given))
    if book:
        from failsoft.core.resilience.policy import repeated_names

        for name in repeated_names(book):
            log.warning("policies: %r is used twice: give each policy its own name, traces quote it", name)
        for policy in book:
            if left := policy.then.placeholder:
                log.warning(
                    "policies: %r: message: %s is shown unchanged: a policy's text has no placeholders",
                    policy.name,
                    left,
                )
    return book


def read_time(name: str, value: Duration, *, zero: bool = False) -> float:
    """Read a duration in seconds."""
    try:
        return seconds(value, zero=zero)
    except ValueError as error:
        raise ManifestError(f"{name}: {error}") from None


@contextmanager
def prefix_errors(place: str) -> Iterator[None]:
    """Prefix each problem of a ``ManifestError`` with its place."""
    try:
        yield
    except ManifestError as error:
        raise ManifestError(*(place + problem for problem in error.problems)) from error.__cause__


def require_text_names(where: str, **names: object) -> None:
    """Require text for ids, threads and tenants: they are keys in traces and stores."""
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise ManifestError(f"{where}: {name}: {brief(value)} is not a text: put str() around it")


def require_callables(handler: object = None, **functions: object) -> None:
    """Refuse functions that cannot be called, before the first failure needs them."""
    for name, function in functions.items():
        if not callable(function) and (function is not None or name == "subscribe"):
            raise ManifestError(f"{name}: {brief(function)} cannot be called: give a function")
        if name in ("subscribe", "on_other") and iscoroutinefunction(function):
            raise ManifestError(f"{name}: {brief(function)} is async and would not be awaited: give a plain function")
        # an explain that fails is reported at its first use, and the default text is used
        if name != "explain" and callable(function) and (wrong := _takes_no(function)):
            raise ManifestError(f"{name}: {brief(function)} {wrong}: give a function of one argument")
    if isinstance(handler, type):
        raise ManifestError(
            f"error_handler: {handler.__name__} is a class: give an instance of it, {handler.__name__}()"
        )
    if handler is not None and not callable(getattr(handler, "handle", None)):
        raise ManifestError(f"error_handler: {brief(handler)} has no method handle: give a Handler")


def _takes_no(function: Callable[..., Any]) -> str:
    """Explain why a function cannot be called with one argument; empty if it can, or if its signature is not known."""
    try:
        taken = signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        taken.bind(None)
    except TypeError as wrong:
        return f"cannot be called with one argument ({wrong})"
    return ""


def require_sink(sink: object) -> None:
    """Refuse an object that lacks a method of an event sink."""
    lacking = [name for name in ("write", "close") if not callable(getattr(sink, name, None))]
    if lacking or isinstance(sink, type):
        why = "is a class: give an instance" if isinstance(sink, type) else f"has no method {' and no '.join(lacking)}"
        raise ManifestError(f"subscribe_batches: {brief(sink)} {why}")


def require_capacity(where: str, capacity: object) -> None:
    """Require a positive number of events."""
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise ManifestError(f"{where}: capacity: {brief(capacity)} is not a positive number of events")


def refuse_odd_flag(name: str, value: object) -> None:
    """Refuse a text such as "no", which counts as true."""
    if not isinstance(value, bool):
        raise ManifestError(f"{name}: {brief(value)} is neither true nor false")


def refuse_odd_parts(clock: object, random: object, trace: object, store_required: object) -> None:
    """Refuse arguments whose mistakes would otherwise appear far from their cause."""
    for name, value, method in (("clock", clock, "monotonic"), ("random", random, "random")):
        if value is not None and not hasattr(value, method):
            raise ManifestError(f"{name}: {brief(value)} has no method {method}: see failsoft.testing")
    if not (trace is None or isinstance(trace, str | os.PathLike)):
        raise ManifestError(f'trace: {brief(trace)} is not the path of a file: write "trace.jsonl"')
    if trace is not None and str(trace).lower().endswith((".html", ".htm")):
        raise ManifestError(
            f"trace: {brief(trace)}: events are written as JSON lines: name a .jsonl file, and make the page of it with "
            "failsoft trace export"
        )
    refuse_odd_flag("store_required", store_required)


def read_mode(mode: Mode) -> Mode:
    try:
        one_of("memory", mode, Mode)
    except ValueError as error:
        raise ManifestError(str(error)) from None
    return mode


def read_undeclared(undeclared: Undeclared) -> Undeclared:
    try:
        one_of("undeclared", undeclared, Undeclared)
    except ValueError as error:
        raise ManifestError(str(error)) from None
    return undeclared


def refuse_cycles(options: Iterable[ToolOptions], settings: Settings) -> None:
    """Refuse fallbacks that lead in a cycle. Registered options win over those of the manifest."""
    edges = {id: [via.tool for via in tool.options.fallbacks] for id, tool in settings.tools.items()}
    edges |= {tool.id: [via.tool for via in tool.fallbacks] for tool in options}
    for cycle in find_cycles(edges):
        raise ManifestError(
            f"{cycle[0]}: fallbacks: these tools are fallbacks of each other in a cycle, {format_cycle(cycle)}: "
            "drop one of the fallbacks"
        )


def merge_retry(options: ToolOptions, own: RetryOptions | Mapping[str, Any]) -> RetryOptions:
    """Merge a call's own retry options into those of its tool."""
    if isinstance(own, RetryOptions):
        return own
    return assemble({"id": options.id, "retry": options.retry}, _parsed({"retry": own}, options.id)).retry


def refuse_lost_key(options: ToolOptions, key: str | None, place: str = "") -> None:
    """Refuse an idempotency key for a tool that has no parameter to receive it."""
    where = f"{place}: " if place else ""
    if not (key is None or isinstance(key, str)):
        raise ManifestError(f"{where}{options.id}: idempotency_key: {brief(key)} is not a text: put str() around it")
    if key is not None and options.key_parameter is None:
        raise ManifestError(
            f"{where}{options.id} takes no idempotency key: name its parameter with idempotency_key first"
        )


def _is_native(options: Mapping[str, Any]) -> bool:
    """True if the options are keywords of ``ToolOptions``: pydantic need not be imported then."""
    return all(
        name in _NATIVE and (name in ("defaults", "failed_if", "output") or not _has_mapping(value))
        for name, value in options.items()
    )


def _has_mapping(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _parsed(options: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    from failsoft.config.manifest import parse_options

    return parse_options(options, place=place)


def place_of(fn: Any, name: str) -> str:
    """The function's file and line, if known, and the tool's id."""
    while (inner := getattr(fn, "__wrapped__", None)) is not None:
        fn = inner
    code = getattr(fn, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: {name}" if code is not None else name
