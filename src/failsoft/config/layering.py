"""One tool's options out of what was said in several places: a file's defaults, a decorator, the file's word on the tool.

Rules
-----
- A *layer* is what one place said: keywords of ``ToolOptions``, but ``retry`` and ``breaker`` may be mappings with only
  the fields that were given.
- What comes later wins. ``retry`` and ``breaker`` are merged field by field where a later layer has them as mappings; a
  finished value replaces all that was said before.
- What a layer says about effects replaces what was said before: a default of ``idempotent: false`` must not contradict
  a tool that is read-only.
- ``CALLS_COUNT``: the breaker counts calls, unless a layer has a ``breaker`` of its own. ``COMMON``: the layer's
  ``breaker`` is a cooldown that also applies to fallbacks without one, unless a later layer replaces it (ADR 41).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from failsoft.core.model.options import BreakerOptions, Fallback, RetryOptions, ToolOptions

Layer = Mapping[str, Any]

_BLOCKS: Mapping[str, type[RetryOptions | BreakerOptions]] = {"retry": RetryOptions, "breaker": BreakerOptions}
_EFFECTS = ("read_only", "idempotent")
CALLS_COUNT, COMMON = "calls_count", "common_cooldown"  # keys of a layer beside those of ``ToolOptions``


def assemble(*layers: Layer) -> ToolOptions:
    """One tool's options out of what was said in several places; what comes later wins."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(name in layer for name in _EFFECTS):
            merged = {name: value for name, value in merged.items() if name not in _EFFECTS}
        if "breaker" in layer:
            merged.pop(COMMON, None)
        for name, value in layer.items():
            merged[name] = _overlay(merged.get(name), value) if name in _BLOCKS else value
    if CALLS_COUNT in merged:
        merged.setdefault("breaker", {"count": "calls"})
    made = ToolOptions(**finish(merged))
    if COMMON in merged and any(fallback.cooldown is None for fallback in made.fallbacks):
        made = replace(made, fallbacks=tuple(_with_cooldown(one, made.breaker) for one in made.fallbacks))
    return made


def _with_cooldown(fallback: Fallback, common: BreakerOptions) -> Fallback:
    return fallback if fallback.cooldown is not None else replace(fallback, cooldown=common)


def finish(layer: Layer) -> dict[str, Any]:
    """A layer as keywords of ``ToolOptions`` (or of ``dataclasses.replace``): its mappings become finished values."""
    return {
        name: _BLOCKS[name](**value) if name in _BLOCKS and isinstance(value, Mapping) else value
        for name, value in layer.items()
        if name not in (CALLS_COUNT, COMMON)
    }


def _overlay(below: Any, above: Any) -> Any:
    if below is None or not isinstance(above, Mapping):
        return above
    return {**below, **above} if isinstance(below, Mapping) else replace(below, **above)
