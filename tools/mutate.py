"""Mutation testing: change one thing in a module, run its tests, see whether they fail.

    python tools/mutate.py src/failsoft/core/resilience/circuit_breaker.py -- tests/core/test_breaker.py

Prints the surviving mutants and killed/total. ``--least 90`` fails below 90 %. Each mutant runs in a forked process
that compiles the changed syntax tree instead of the module; the source is not written.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import hypothesis.stateful  # loaded once, before the forks
import pytest

OPERATORS: dict[type[ast.AST], tuple[Any, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any", "append": "appendleft", "appendleft": "append"}
PYTEST = ("-x", "-q", "--tb=native", "-p", "no:cacheprovider")
UNSEEN = {"annotation", "returns", "decorator_list", "type_params", "type_ignores"}  # not executed


class Mutant(NamedTuple):
    parent: ast.AST
    field: str
    place: int | None  # index in a list of nodes
    new: ast.AST
    line: int
    change: str


def mutants(parent: ast.AST) -> Iterator[Mutant]:
    """Yield every single change below the given node, in source order."""
    for field, value in ast.iter_fields(parent):
        if field in UNSEEN:
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or is_idle(child):
                continue
            for new in alternatives(child):
                change = f"{brief(child)}  →  {brief(new)}"
                yield Mutant(parent, field, place, ast.copy_location(new, child), getattr(child, "lineno", 0), change)
            yield from mutants(child)


def alternatives(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - a table
    match node:
        case ast.Compare(left, ops, comparators):
            for place, op in enumerate(ops):
                for other in OPERATORS[type(op)]:
                    yield ast.Compare(left, [*ops[:place], other(), *ops[place + 1 :]], comparators)
        case ast.BinOp(left, op, right):
            for other in OPERATORS.get(type(op), ()):
                yield ast.BinOp(left, other(), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OPERATORS[type(op)][0](), values)
            for place in range(len(values)):
                rest = values[:place] + values[place + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(value):
            yield from (ast.Constant(other) for other in constants(value))
        case ast.If() | ast.IfExp():
            for outcome in (True, False):
                decided = copy.copy(node)
                decided.test = ast.Constant(outcome)
                yield decided
        case ast.Return(value) if value is not None and not is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign() | ast.Raise() | ast.Expr() | ast.Delete():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.Call(func, args, keywords):
            name = getattr(func, "id", getattr(func, "attr", ""))
            if name in TWINS:
                twin = copy.copy(func)
                setattr(twin, "id" if isinstance(func, ast.Name) else "attr", TWINS[name])
                yield ast.Call(twin, args, keywords)
            for place in range(len(keywords)):
                yield ast.Call(func, args, keywords[:place] + keywords[place + 1 :])


def constants(value: object) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (value + 1, value - 1)
    return (f"{value}~",) if isinstance(value, str) else ()


def is_idle(node: ast.AST) -> bool:
    """True for imports, docstrings, Literal[...] and type-checking code: a change there has no effect."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
            return True
        case ast.Subscript(ast.Name("Literal")) | ast.If(ast.Name("TYPE_CHECKING")):
            return True
    return False


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def brief(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 70 else text[:69] + "…"


class MutantLoader(importlib.machinery.SourceFileLoader):
    """A loader that returns the changed tree's code for the module."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        name = ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :]).removesuffix(".__init__")
        super().__init__(name, str(path.resolve()))
        self.tree = tree

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.util.spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None
        )

    def get_code(self, _: str) -> CodeType:
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec")


def start(path: Path, tree: ast.Module, mutant: Mutant | None, tests: list[str], limit: int) -> int:
    """Fork a process that runs the tests on the mutant; exit status 0 if they pass."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(limit)  # an endless loop counts as killed
    if mutant is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
    if mutant is not None and mutant.place is None:
        setattr(mutant.parent, mutant.field, mutant.new)
    elif mutant is not None:
        getattr(mutant.parent, mutant.field)[mutant.place] = mutant.new
    sys.meta_path.insert(0, MutantLoader(path, tree))
    passed = False
    try:
        passed = pytest.main([*PYTEST, *tests]) == 0
    finally:
        os._exit(not passed)


def survivors(path: Path, tree: ast.Module, found: list[Mutant], tests: list[str], *, jobs: int) -> list[Mutant]:
    begin = time.monotonic()
    if os.waitstatus_to_exitcode(os.waitpid(start(path, tree, None, tests, 600), 0)[1]):
        sys.exit("the tests do not pass on the module as it is")
    limit = 10 + 5 * int(time.monotonic() - begin)
    alive: list[Mutant] = []
    running: dict[int, Mutant] = {}
    waiting = found[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[start(path, tree, mutant, tests, limit)] = mutant
        pid, status = os.wait()
        mutant = running.pop(pid)
        if status == 0:
            alive.append(mutant)
    return sorted(alive, key=lambda mutant: mutant.line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--least", type=float, default=0.0, metavar="PERCENT", help="fail below this share of kills")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    sys.path[:0] = ["src", "."]
    tree = ast.parse(chosen.module.read_text(encoding="utf-8"))
    found = list(mutants(tree))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins take longer to load than the tests to run
    hypothesis.settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("mutants")
    alive = survivors(chosen.module, tree, found, chosen.tests, jobs=chosen.jobs)
    for mutant in alive:
        print(f"{chosen.module}:{mutant.line}: {mutant.change}")
    killed = len(found) - len(alive)
    share = 100 * killed / len(found)
    print(f"{chosen.module}: {killed}/{len(found)} killed, {share:.1f} %")
    sys.exit(share < chosen.least)


if __name__ == "__main__":
    main()
