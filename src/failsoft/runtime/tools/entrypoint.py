"""Find the function behind a manifest's entry point.

Rules
-----
- If the module, one of its imports or the name in it does not exist, the tool is unavailable. The manifest is still
  valid: another machine may have them.
- A module that is broken (it does not compile, or its own code fails) is a ``ManifestError`` with the line of the manifest
  and the file and line of the module.
"""

from __future__ import annotations

import importlib
import traceback
from typing import TYPE_CHECKING, Any

from failsoft.config.layering import Layer, assemble
from failsoft.config.settings import effects_of, prefix_errors
from failsoft.core.model import builtin_faults
from failsoft.core.model.entrypoint import Function
from failsoft.core.model.frozen_options import replace
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.options import Isolation, ToolOptions
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import ManifestError
from failsoft.runtime.execution.processes.target import unwrap
from failsoft.runtime.tools.tool import Tool

if TYPE_CHECKING:
    from failsoft.config.manifest import ManifestTool


def load_entrypoint(entry: ManifestTool, defaults: Layer) -> Tool:
    """Return the tool; if its function cannot be found, the tool is unavailable and has the reason.

    ``said`` has the options in the manifest; they come before its ``defaults`` for all tools.
    """
    field = f"tools.{entry.options.id}."
    with prefix_errors(f"{entry.place}: {field}" if entry.place else field):
        if isinstance(entry.entrypoint, Function):
            return _load_function(entry.entrypoint.path, entry, defaults)
        return Tool(_elsewhere, entry.options, command=entry.entrypoint)


def _load_function(path: str, entry: ManifestTool, defaults: Layer) -> Tool:
    options = entry.options
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        return _missing(path, options, f"{error}: install it, or start in the directory that it is in")
    except ImportError as error:
        return _missing(path, options, error)
    except Exception as error:
        raise ManifestError(f"entrypoint.function: {module_name} cannot be imported: {_describe(error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            return _missing(path, options, f"{error}{did_you_mean(part, dir(found))}")
    if not callable(found):
        raise ManifestError(f"entrypoint.function: {path} is of type {type(found).__name__}: name a function")
    if effects := effects_of(found):
        options = assemble(defaults, effects, {"id": options.id}, entry.layer)
    return Tool(unwrap(found), options)


def _missing(path: str, options: ToolOptions, why: object) -> Tool:
    fault = builtin_faults.tool_marked_unavailable(path, why)
    return Tool(_elsewhere, replace(options, isolation=Isolation()), missing=fault)


def _describe(error: Exception) -> str:
    """Describe what is wrong with a module, and where."""
    message = sanitise(error.msg if isinstance(error, SyntaxError) else error)
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {what}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    places = dict.fromkeys(f"{frame.filename}:{frame.lineno}" for frame in frames[:1] + frames[-1:])
    return ": ".join([*places, what])  # the line of the module, then the line that raised


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or filename in (__file__, importlib.__file__)


def _elsewhere(**arguments: Any) -> None:
    """Placeholder for a tool without a function in this process; takes any arguments."""
