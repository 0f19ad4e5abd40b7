"""What was said about tools and turns, in the manifest and in code, brought together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from failsoft.core.layers import assemble
from failsoft.core.options import RetryOptions, ToolOptions, TurnOptions
from failsoft.errors import ManifestError


class RuntimeSettings(NamedTuple):
    """What a manifest says; empty without one."""

    turn: TurnOptions = TurnOptions()
    defaults: Mapping[str, Any] = {}
    layers: Mapping[str, Mapping[str, Any]] = {}

    @property
    def turn_timeout(self) -> float | None:
        return self.turn.timeout

    @property
    def on_timeout(self) -> str:
        return self.turn.on_timeout

    def functions(self) -> Iterator[tuple[ToolOptions, Callable[..., Any]]]:
        yield from ()


def read_manifest(manifest: str | Path | Mapping[str, Any]) -> RuntimeSettings:
    raise ManifestError("manifest: not here yet")


def tool_options(
    fn: Callable[..., Any], id: str | None, options: Mapping[str, Any], settings: RuntimeSettings
) -> ToolOptions:
    """A tool's options: the manifest's defaults, then the decorator's word, then the manifest's on this tool."""
    name = id or getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None)
    if not name:
        raise ManifestError(f"{fn!r} has no name: say id=")
    try:
        return assemble(settings.defaults, {"id": name, **options}, settings.layers.get(name, {}))
    except (TypeError, ValueError) as error:
        raise ManifestError(f"{_place(fn)}{name}: {error}") from None


def merged(retry: RetryOptions, said: RetryOptions | Mapping[str, Any]) -> RetryOptions:
    """A call's own word on retries, over the tool's."""
    return said if isinstance(said, RetryOptions) else replace(retry, **said)


def _place(fn: Callable[..., Any]) -> str:
    code = getattr(getattr(fn, "func", fn), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""
