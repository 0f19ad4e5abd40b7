"""The side of a worker process: continue the trace of the caller."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import attach
from opentelemetry.propagate import extract


def open_context(carried: Mapping[str, str]) -> None:
    """Make the caller's attempt the parent of the spans that the tool makes."""
    attach(extract({name.lower().replace("_", "-"): value for name, value in carried.items()}))
