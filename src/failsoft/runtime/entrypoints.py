"""Find the function behind a manifest's entry point; what is missing makes the tool unavailable, not the manifest bad."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from failsoft.core import own_faults
from failsoft.core.entrypoint import Entrypoint, Function
from failsoft.core.fault import Fault


def load_entrypoint(entrypoint: Entrypoint) -> tuple[Callable[..., Any], Fault | None]:
    """The function, or a stand-in and why it is missing."""
    if isinstance(entrypoint, Function):
        return _function(entrypoint.path)
    raise NotImplementedError


def _function(path: str) -> tuple[Callable[..., Any], Fault | None]:
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        return _absent, own_faults.tool_marked_unavailable(path, error)
    return found, None


def _absent(**arguments: Any) -> None:
    """Never called: the tool that it stands for is not available."""
