"""Find the function behind a manifest's entry point; what is missing makes the tool unavailable, not the manifest bad."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from failsoft.core import own_faults
from failsoft.core.entrypoint import Command, Entrypoint
from failsoft.core.options import Isolation, ToolOptions
from failsoft.runtime.isolation.target import unwrap
from failsoft.runtime.tool import Tool


def load_entrypoint(entrypoint: Entrypoint, options: ToolOptions) -> Tool:
    """The tool; one whose function cannot be imported is there, but says why it is not available."""
    if isinstance(entrypoint, Command):
        return Tool(_elsewhere, options, command=entrypoint)
    module_name, _, name = entrypoint.path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        missing = own_faults.tool_marked_unavailable(entrypoint.path, error)
        return Tool(_elsewhere, replace(options, isolation=Isolation()), missing=missing)
    return Tool(unwrap(found), options)


def _elsewhere(**arguments: Any) -> None:
    """Stands for a tool that is not a function of this process, and takes any arguments."""
