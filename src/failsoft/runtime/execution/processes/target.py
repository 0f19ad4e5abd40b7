"""Name a tool's function so that a worker process can find it.

Rules
-----
- A function is named by module and qualified name, and must be found there. Lambdas, functions inside functions, methods
  of an instance, functions of a script, and wrappers with the name of what they wrap are refused when they are declared.
- ``python -m package.tools`` runs as ``__main__``, but can be imported as ``package.tools``: that name is used.
- The name usually leads to the guarded function. A guard has the attribute ``__failsoft__``; the worker runs what
  the innermost guard wraps. Decorators inside the guard run in the worker, those around it in the application.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from failsoft.errors import ManifestError

GUARD = "__failsoft__"  # every guarded function has it, with a true value


class Target(NamedTuple):
    """A function of a module, by name."""

    module: str
    qualname: str
    names: tuple[str, ...] = ()  # its parameters, to name an argument that was given by position

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


def target_of(fn: Callable[..., Any]) -> Target:
    """Return the name by which a worker finds ``fn``. Raises ``ManifestError`` if there is none."""
    fn = unwrap(fn)
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not module or not qualname:
        raise _refused(fn, "it is not a function", "give a function that is defined in a module")
    if "<lambda>" in qualname:
        raise _refused(fn, "a lambda has no name to import", "write it as a function of a module")
    if "<locals>" in qualname:
        raise _refused(fn, "it is defined inside a function", "move it to the top of a module")
    owner = getattr(fn, "__self__", None)
    if owner is not None and not inspect.isclass(owner) and not inspect.ismodule(owner):
        raise _refused(fn, "it is bound to an instance", "give a function of a module")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise _refused(fn, "a stream cannot leave its process", "return a list, or use isolation: thread")
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is None:
            raise _refused(fn, "a worker cannot import a script", "move it to a module, and import it in the script")
        module = spec.name
    if _leads_inside(fn, module, qualname):
        raise _refused(fn, "its name leads to the function that it wraps", "decorate that one where it is defined")
    code = getattr(fn, "__code__", None)
    return Target(module, qualname, () if code is None else code.co_varnames[: code.co_argcount])


def _leads_inside(fn: Callable[..., Any], module: str, qualname: str) -> bool:
    """True if a worker would find the function that ``fn`` wraps, and so skip ``fn`` itself."""
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    found, inner = unwrap(found), getattr(fn, "__wrapped__", None)
    while inner is not None and inner is not found:
        inner = getattr(inner, "__wrapped__", None)
    return inner is not None


def _refused(fn: object, why: str, instead: str) -> ManifestError:
    name = getattr(fn, "__qualname__", None) or repr(fn)
    return ManifestError(f"isolation: {name} cannot run in a process: {why}; {instead}")


def parse(path: str) -> Target:
    """Read a target from a manifest's ``package.module:name``."""
    module, _, qualname = path.partition(":")
    return Target(module, qualname)


def find(module: str, qualname: str) -> Any:
    """Look up the object under the name. Raises ``ImportError`` or ``AttributeError``."""
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def unwrap(found: Any) -> Any:
    """Return the function that the innermost guard around ``found`` wraps; ``found`` itself without a guard."""
    inner = link = found
    while (below := getattr(link, "__wrapped__", None)) is not None:
        if getattr(link, GUARD, None):
            inner = below
        link = below
    return inner


def variable(path: str) -> ContextVar[Any]:
    """Return the context variable with this ``package.module:name``."""
    found = find(*path.split(":", 1))
    if not isinstance(found, ContextVar):
        raise ManifestError(f"context: {path} is of type {type(found).__name__}, not a ContextVar: name one")
    return found
