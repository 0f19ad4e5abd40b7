"""Merge a tool's options from several layers: the file's defaults, the decorator, the file's entry for the tool.

Rules
-----
- A *layer* holds the keywords of ``ToolOptions`` that one place sets. In a layer, ``retry`` and ``breaker`` may be
  mappings with only some of their fields.
- Later layers win. A ``retry`` or ``breaker`` that is a mapping is merged field by field; a finished value replaces all
  earlier ones.
- A layer that declares effects replaces all earlier declarations of effects: a default of ``idempotent: false`` must
  not contradict a read-only tool.
- ``CALLS_COUNT``: the breaker counts calls, unless a layer has its own ``breaker``. ``COMMON``: the layer's ``breaker``
  is a cooldown that also applies to fallbacks without one, unless a later layer replaces it (ADR 41).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from failsoft.core.model.frozen_options import replace
from failsoft.core.model.options import BreakerOptions, Fallback, RetryOptions, ToolOptions

Layer = Mapping[str, Any]

_BLOCKS: Mapping[str, type[RetryOptions | BreakerOptions]] = {"retry": RetryOptions, "breaker": BreakerOptions}
_EFFECTS = ("read_only", "idempotent")
CALLS_COUNT, COMMON = "calls_count", "common_cooldown"  # keys of a layer that are not fields of ``ToolOptions``


def assemble(*layers: Layer) -> ToolOptions:
    """Merge layers into one tool's options. Later layers win."""
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
    """Convert a layer to keywords of ``ToolOptions`` or ``dataclasses.replace``: its mappings become option objects."""
    return {
        name: _BLOCKS[name](**value) if name in _BLOCKS and isinstance(value, Mapping) else value
        for name, value in layer.items()
        if name not in (CALLS_COUNT, COMMON)
    }


def _overlay(below: Any, above: Any) -> Any:
    if below is None or not isinstance(above, Mapping):
        return above
    return {**below, **above} if isinstance(below, Mapping) else replace(below, **above)
