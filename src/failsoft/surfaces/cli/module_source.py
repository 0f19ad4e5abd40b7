"""Read the source of modules in this directory for facts about a manifest's functions. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from failsoft.config.manifest import Problem
from failsoft.core.model.entrypoint import Function
from failsoft.core.model.misspelt import did_you_mean

if TYPE_CHECKING:
    from failsoft.config.manifest import Manifest, ManifestTool, Plan


class Parameters(NamedTuple):
    """The parameters that a call by name can fill."""

    names: tuple[str, ...]
    needed: tuple[str, ...]


def find_undefined(manifest: Manifest) -> Iterator[Problem]:
    """Find functions that are missing from their modules, and options that name missing parameters."""
    for id, tool in manifest.tools.items():
        if not isinstance(tool.entrypoint, Function):
            continue
        module, _, path = tool.entrypoint.path.partition(":")
        field = f"tools.{id}.entrypoint.function"
        tree = _parse(module)
        if tree is None:
            if not _file(module) and (near := did_you_mean(module, [file.stem for file in Path().glob("*.py")])):
                yield Problem.at(tool.place, field, f"there is no module {module} in this directory{near}", "warning")
            continue
        name = path.partition(".")[0]
        names = _names_in(tree)
        if names is not None and name not in names:
            yield Problem.at(tool.place, field, f"{module} has no {name}{did_you_mean(name, names)}", "error")
        else:
            yield from _find_odd_parameters(f"tools.{id}", tool)


def _find_odd_parameters(field: str, tool: ManifestTool) -> Iterator[Problem]:
    parameters = parameters_of(tool)
    options = tool.options
    if parameters is None:
        return
    keys = {name: getattr(options, name) for name in ("idempotency_key", "verify_key")}
    for option, name in [*keys.items(), *((f"defaults.{name}", name) for name in options.defaults)]:
        if name is not None and name not in parameters.names:
            hint = did_you_mean(name, parameters.names)
            yield Problem.at(tool.place, f"{field}.{option}", f"the function has no parameter {name!r}{hint}", "error")


def find_misfits(plan: Plan, manifest: Manifest) -> Iterator[Problem]:
    """Find arguments of a plan's calls that the functions of their tools do not take, or need."""
    for number, call in enumerate(plan.calls):
        tool = manifest.tools.get(call.tool)
        parameters = None if tool is None else parameters_of(tool)
        if tool is None or parameters is None:
            continue
        field = f"calls[{number}].args"
        for name in call.args:
            if name not in parameters.names:
                message = f"{call.tool} has no parameter {name!r}{did_you_mean(name, parameters.names)}"
                yield Problem.at(call.place, f"{field}.{name}", message, "error")
        filled = {*call.args, *call.defaults, *tool.options.defaults, tool.options.key_parameter}
        if missing := [name for name in parameters.needed if name not in filled]:
            yield Problem.at(call.place, field, f"{call.tool} needs {', '.join(missing)}", "error")


def parameters_of(tool: ManifestTool) -> Parameters | None:
    """The parameters of a tool's function; None if its source does not show them."""
    if not isinstance(tool.entrypoint, Function):
        return None
    module, _, name = tool.entrypoint.path.partition(":")
    tree = _parse(module)
    if tree is None or (names := _names_in(tree)) is None or name not in names:
        return None
    made = [node for node in ast.walk(tree) if _defines(node, name)]
    fn = made[0]
    if len(made) > 1 or fn not in tree.body or not isinstance(fn, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    given = fn.args
    if fn.decorator_list or given.vararg or given.kwarg or given.posonlyargs:
        return None
    needed = given.args[: len(given.args) - len(given.defaults)]
    by_name = [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return Parameters(
        tuple(each.arg for each in (*given.args, *given.kwonlyargs)), tuple(each.arg for each in (*needed, *by_name))
    )


def _defines(node: ast.AST, name: str) -> bool:
    """True if a node defines a name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any((alias.asname or alias.name).partition(".")[0] == name for alias in node.names)
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name


def _file(module: str) -> Path | None:
    at = Path(*module.split("."))
    return next((file for file in (at.with_suffix(".py"), at / "__init__.py") if file.is_file()), None)


def _parse(module: str) -> ast.Module | None:
    """Parse a module in this directory; None if there is none, or if ``--tools`` has to report its error."""
    file = _file(module)
    try:
        return None if file is None else ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return None


def _names_in(tree: ast.Module) -> set[str] | None:
    """The names that a module may define; None if that cannot be known."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    dynamic = {"*", "__getattr__", "globals", "setattr", "exec"} & {
        *names,
        *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)),
    }
    return None if dynamic or not names else names
