"""Add tools to a runtime: register a function, or declare a tool that an agent framework runs.

Rules
-----
- Another function under an id that is taken is refused, unless ``replace`` is given.
- The same function defined again, as by a notebook cell that is run again, replaces the first: the latest function and
  options count, and the tool is available again. If one definition made both functions with different values, in a loop
  or by a factory, a warning is logged.
- A disabled tool stays disabled when it is registered again.
- Fallbacks that form a cycle are refused before anything is changed.
- A circuit that was open when the previous process ended stays open for the rest of its time.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from failsoft.config.settings import Settings, place_of, prefix_errors, refuse_cycles, tool_options
from failsoft.core.model.compared import on_misuse
from failsoft.core.model.failed_if import FailurePattern
from failsoft.core.model.frozen_options import replace
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.odd_options import find_odd_options
from failsoft.core.model.options import Isolation, ToolOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.printable import quote
from failsoft.errors import FailsoftError, ManifestError
from failsoft.observe import events
from failsoft.observe.sinks.log import DEBUG, is_logged
from failsoft.runtime.fastpath.call import make_fast_call
from failsoft.runtime.fastpath.guarded import guard
from failsoft.runtime.tools.framework_tool import FrameworkFunction, FrameworkTool, Metadata, refuse_other_metadata
from failsoft.runtime.tools.function_kind import kind_of
from failsoft.runtime.tools.tool import Tool

log = logging.getLogger("failsoft")


@lru_cache(1024)  # once for each tool
def _log_misuse(tool: str, mistake: str) -> None:
    log.warning("%s: %s", tool, mistake)


Outcome._on_misuse = staticmethod(_log_misuse)
on_misuse.append(_log_misuse)

if TYPE_CHECKING:
    from failsoft.runtime.services import Services


def make_tool(fn: Callable[..., Any], options: ToolOptions) -> Tool:
    """Make a tool of a function. Raises if the function does not have what the options refer to.

    A function with ``stays_here`` runs in this process: a worker would find another one under its name.
    """
    kind_of(fn)  # raises for an object that cannot be a tool
    if getattr(fn, "stays_here", False):
        options = replace(options, isolation=Isolation())
    with prefix_errors(f"{place_of(getattr(fn, 'func', fn), options.id)}: "):
        return Tool(fn, options)


def register(services: Services, settings: Settings, tool: Tool, *, replace: bool = True) -> Callable[..., Any]:
    """Add a tool and return its guarded function. With ``replace`` it may take the id of another function."""
    services.runner.refuse_if_closed()
    if not replace:
        _refuse_taken(services.toolbox.tools.get(tool.id), tool)
    if tool.options.fallbacks:
        refuse_cycles([*(known.options for known in services.toolbox.tools.values()), tool.options], settings)
    if services.toolbox.circuits is not None:
        services.toolbox.circuits.register(tool.health, tool.id, adopted=tool.on_health_adopted)
        tool.renew_ticket()
    if is_logged(DEBUG):  # the fast path writes no log lines
        tool.fast_eligible = False
        tool.renew_ticket()
    tool.learn_effect(settings.undeclared)
    why = services.toolbox.disabled.get(tool.id, None if tool.options.enabled else "enabled: false")
    if why is not None:
        tool.disable(why)
    if services.log.instruments is not None:
        services.toolbox.slow_down(tool)
    tool.guarded = guard(services, tool)
    tool.by_name = make_fast_call(services, tool) if tool.kind == "async" and not tool.is_write else None
    _warn_of_odd_options(tool, settings, services.toolbox.tools)
    if tool.label != tool.id.replace("_", " "):
        services.toolbox.labels[tool.id] = tool.label
    services.toolbox.tools[tool.id] = tool
    services.toolbox.index[tool.id] = services.toolbox.index[tool.guarded] = tool
    services.books.conversations.note_registered(tool.id)
    return tool.guarded


def _warn_of_odd_options(tool: Tool, settings: Settings, known: Mapping[str, Tool]) -> None:
    """Log options that are legal but probably not intended. For manifests, ``failsoft check`` reports them."""
    for field, message in find_odd_options(tool.options):
        log.warning("%s: %s: %s", tool.id, field, message)
    if not isinstance(tool, FrameworkTool) and (unnamed := _find_unnamed(tool.fn)):
        log.warning("%s: %s", tool.id, unnamed)
    if isinstance(tool.options.failed_if, FailurePattern) and (fieldless := _find_fieldless(tool)):
        log.warning("%s: %s", tool.id, fieldless)
    if settings.tools and tool.id not in settings.tools:
        unused = [id for id, entry in settings.tools.items() if entry.entrypoint is None and id not in known]
        if hint := did_you_mean(tool.id, unused):
            log.warning("%s: the manifest says nothing about this tool%s", tool.id, hint)


def _find_unnamed(fn: Callable[..., Any]) -> str:
    """Describe the first parameter that a call by name cannot fill; "" if it can fill all."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return ""
    around = str(getattr(fn, "__qualname__", "")).rpartition(".")[0]  # the class of a method
    first = parameters[0].name if parameters else ""
    if first in ("self", "cls") and around and not around.endswith("<locals>"):
        owner = "an object, as in rt.add(obj.method)" if first == "self" else "the class, as in rt.add(Class.method)"
        return f"calls by name cannot fill {first}: register the method of {owner}"
    if [parameter.kind for parameter in parameters] == [inspect.Parameter.VAR_POSITIONAL]:
        return f"calls by name cannot fill *{first}: give its function named parameters"
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
            return f"calls by name cannot fill {parameter.name}, which is positional-only: drop the / of its function"
    return ""


def _find_fieldless(tool: Tool) -> str:
    """Explain why a pattern can match no value of the tool, by its annotation; "" if it may match one."""
    signature = tool.signature()
    returned = None if signature is None else signature.return_annotation
    name = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
    pattern = tool.options.failed_if
    if name not in ("int", "float", "bool", "bytes") or not pattern.fields:
        return ""
    return f"failed_if: {pattern.fields[0].path} is a field, and a value of type {name} has none: give a function of the value"


def _refuse_taken(known: Tool | None, tool: Tool) -> None:
    """Raise if the id belongs to another function: calls of the first would reach the second."""
    if known is None or isinstance(known, FrameworkTool) or known.unavailable_fault is not None:
        return
    if getattr(tool.fn, "stays_here", False):  # a fault plan replaces its tool on purpose
        return
    old, new = (inspect.unwrap(getattr(each.fn, "func", each.fn)) for each in (known, tool))
    if isinstance(known.fn, partial) and isinstance(tool.fn, partial):
        if (known.fn.args, known.fn.keywords) == (tool.fn.args, tool.fn.keywords) and old is new:
            return
    elif old is new:
        return
    elif _origin(old) == _origin(new) and getattr(new, "__name__", "") != "<lambda>":
        if _differ(old, new):
            log.warning(
                "%s: the same definition made the tool of this id already, with other values, and calls no longer reach that "
                'one: id="…" gives each its own, replace=True replaces the first',
                place_of(new, tool.id),
            )
        return
    instead = 'id="…" names one of them differently, replace=True replaces the first'
    if getattr(new, "__name__", "") == "<lambda>":
        instead = 'a lambda has no name of its own: give it one with id="…"'
    raise ManifestError(
        f"{place_of(new, tool.id)}: there is a tool of this id already ({place_of(old, known.id)}), and calls would no "
        f"longer reach it: {instead}"
    )


def _origin(fn: Any) -> tuple[object, ...]:
    """Return the place where a function was defined. Methods are the same only if their objects are the same."""
    fn = fn if hasattr(fn, "__qualname__") else type(fn)
    return fn.__module__, fn.__qualname__, id(getattr(fn, "__self__", None))


def _differ(old: Any, new: Any, depth: int = 3) -> bool:
    """True for two functions that one definition has made with different values, or two objects of one class.

    A definition that is run again is compiled again, so its code is another object.
    """
    code = getattr(old, "__code__", None)
    if code is None:
        return type(old) is type(new) and not hasattr(old, "__qualname__") and not _equal(old, new)
    if code is not getattr(new, "__code__", None):
        return False
    if any(one is other for one, other in zip(old.__closure__ or (), new.__closure__ or (), strict=True)):
        return old is not new  # made in a loop: both refer to the same variable
    return not all(
        _equal(one, other) or (depth > 0 and _are_functions(one, other) and not _differ(one, other, depth - 1))
        for one, other in zip(_values_of(old), _values_of(new), strict=True)
    )


def _are_functions(one: Any, other: Any) -> bool:
    return getattr(one, "__code__", None) is not None and one.__code__ is getattr(other, "__code__", None)


def _values_of(fn: Any) -> list[Any]:
    """The values that a function was made with: defaults, and variables of the function around it."""
    values = [fn.__defaults__, fn.__kwdefaults__]
    for cell in fn.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            values.append(None)
    return values


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # arrays and the like
        return False


def declare(
    services: Services, settings: Settings, id: str, options: Mapping[str, Any], about: Metadata | None = None
) -> None:
    """Declare a framework's tool. A tool that already has the id keeps its options."""
    known = services.toolbox.tools.get(id)
    if known is not None:
        refuse_other_metadata(known, options)
        return
    fn = FrameworkFunction(id, options, about)
    made = tool_options(fn, id, options, settings)
    with prefix_errors(f"{quote(id)}: "):
        tool = FrameworkTool(fn, made)
    register(services, settings, tool)


def set_enabled(services: Services, tool: str | Callable[..., Any], disabled: str | None) -> None:
    """Disable a tool with a reason, or enable it (None)."""
    services.runner.refuse_if_closed()
    if not (disabled is None or isinstance(disabled, str)):
        raise FailsoftError(f"reason: {disabled!r} is not a text")
    found = services.toolbox.find(tool)
    id = found.id
    with services.toolbox.lock:
        services.toolbox.disabled[id] = disabled
        if found.is_known:
            found.enable() if disabled is None else found.disable(disabled)
    if not found.is_known:
        hint = did_you_mean(id, services.toolbox.tools)
        log.warning("there is no tool %s yet: this holds once it is registered%s", quote(id), hint)
        return
    if disabled is None:
        services.log.record_event(events.TOOL_ENABLED, found, None, None, {"message": f"Enabled {id}"})
    else:
        services.log.record_event(
            events.TOOL_DISABLED, found, None, None, {"message": f"Disabled {id}", "reason": disabled}
        )
    services.log.drain_if_due()


def reset_health(services: Services, id: str) -> None:
    """Close the circuits of a tool, also those that it has as a fallback, and forget its spent retries and rate holds."""
    tool = services.toolbox.tools[id]
    as_fallback = [health for (_, fallback), health in services.toolbox.fallback_health().items() if fallback == id]
    with services.toolbox.lock:
        for health in (tool.health, *as_fallback):
            health.reset()
        tool.cached_refusal = None
        tool.renew_ticket()
