"""Every regular expression that failsoft has, found by reading its source; and texts that make each of them work hardest.

``collect()`` reads the source of every module. A call of ``re`` or of ``compiled`` whose pattern is a constant, a table's
``pattern`` field and every compiled pattern in a module or a table are found by themselves. A pattern that is put
together at run time is known by its place in ``MADE``; a call at any other place fails the collection, so that no new
pattern goes unmeasured.

``attacks(pattern)`` reads the parsed pattern: for each repeat the text that leads to it, and one that it repeats.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import failsoft
from failsoft.core.classify.tables.acted import ELSEWHERE
from failsoft.core.startup.lazy_pattern import LazyPattern

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]

FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
ANCHORED = {"match", "fullmatch"}
NOT_ERRORS = (  # modules that read nothing but what the user of the library has written, or what failsoft itself has
    "failsoft.testing.",
    "failsoft.surfaces.cli.demo",
)


class Found(NamedTuple):
    """A pattern and where it is; ``anchored`` if it is only ever tried at one place of a text."""

    where: str
    pattern: str
    flags: int
    anchored: bool = False

    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    def run(self, text: str) -> None:
        """Use the pattern on a text as failsoft does: once at its beginning, or everywhere."""
        if self.anchored:
            self.compiled().match(text)
            self.compiled().fullmatch(text)
        else:
            for _ in self.compiled().finditer(text):
                pass


def _phrases() -> Iterator[tuple[str, int]]:
    from failsoft.core.classify import phrase_match
    from failsoft.core.classify.tables.phrases import PHRASES

    for phrase in PHRASES:
        row = phrase_match._Row(phrase.pattern)
        for start in row.starts:
            yield row.pattern(start), 0


def _noise() -> Iterator[tuple[str, int]]:
    from failsoft.core.classify import text_reader

    yield "|".join(pattern for _, pattern in text_reader._NOISE), 0
    for _, pattern in text_reader._NOISE:
        yield pattern, 0


def _spots() -> Iterator[tuple[str, int]]:
    from failsoft.core.classify import text_reader

    return ((pattern, 0) for _, pattern, _ in text_reader._PATTERNS)


def _formats() -> Iterator[tuple[str, int]]:
    from failsoft.core.redact import secret_formats

    for table in (secret_formats.SHAPES, secret_formats.TOKENS, secret_formats.WORDS, secret_formats.BLOCKS):
        yield from ((form.pattern, re.ASCII) for form in table)


def _nothing() -> Iterator[tuple[str, int]]:
    return iter(())


def _elsewhere() -> Iterable[tuple[str, int]]:
    return [(pattern, 0) for row in ELSEWHERE for pattern in row]


# where a pattern is put together at run time -> what it may be
MADE: dict[str, Callable[[], Iterable[tuple[str, int]]]] = {
    "failsoft.core.classify.phrase_match._Row.fits": _phrases,
    "failsoft.core.classify.text_reader.Reading.full": _noise,
    "failsoft.core.classify.text_reader.Reading.codes": _spots,
    "failsoft.core.redact.secret_formats.Format.find": _formats,
    "failsoft.core.redact.secret_formats.compiled": _nothing,  # what it is called with is found where it is called
    "failsoft.core.classify.cache.compiled": _nothing,
    "failsoft.core.startup.lazy_pattern.LazyPattern.__getattr__": _nothing,  # found as what it has become, by its name
    "failsoft.core.classify.contradictions.says_done_elsewhere": _elsewhere,
    "failsoft.core.classify.overrides._by_row": _nothing,  # the user's own patterns are not checked for their cost
    "failsoft.core.classify.overrides._is_a": lambda: [(r"(?<![\w.])ConnectionError\b", 0)],
    "failsoft.core.model.failed_if._read_text": _nothing,
    "failsoft.core.classify.returned.match_pattern": _nothing,  # likewise: the user's pattern in failed_if
    "failsoft.core.model.override._refuse_odd_pattern": _nothing,
    "failsoft.config.manifest.reading._explain": _nothing,
}


def modules() -> list[ModuleType]:
    found = []
    for info in pkgutil.walk_packages(failsoft.__path__, "failsoft."):
        if info.name.startswith(NOT_ERRORS) or "adapters" in info.name or info.name.endswith("__main__"):
            continue
        found.append(importlib.import_module(info.name))
    return found


def collect() -> list[Found]:
    """Every pattern, once, by the first place that has it."""
    found: dict[tuple[str, int, bool], Found] = {}
    for module in modules():
        for one in _Reader(module).found:
            found.setdefault((one.pattern, one.flags, one.anchored), one)
    return [*found.values()]


class _Reader(ast.NodeVisitor):
    """Reads one module's source for patterns."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.inside: list[str] = []
        self.found: list[Found] = []
        self.used: dict[str, set[str]] = {}  # methods of a compiled pattern, by the pattern's name or text
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                self.used.setdefault(ast.unparse(node.func.value), set()).add(node.func.attr)
        self.visit(tree)
        for name, value in vars(module).items():
            if isinstance(value, (re.Pattern, LazyPattern)) and isinstance(value.pattern, str):
                anchored = bool(self.used.get(name)) and self.used[name] <= ANCHORED
                self.found.append(Found(f"{module.__name__}.{name}", value.pattern, value.flags, anchored))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _within(self, node: Any) -> None:
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
            if function.attr in FUNCTIONS:
                self._take(node, function.attr in ANCHORED)
        elif isinstance(function, ast.Name) and function.id == "compiled":
            methods = self.used.get(ast.unparse(node), set())
            self._take(node, bool(methods) and methods <= ANCHORED)

    def _take(self, node: ast.Call, anchored: bool) -> None:
        where = ".".join([self.module.__name__, *self.inside])
        if where in MADE:
            self.found += [Found(where, pattern, flags) for pattern, flags in MADE[where]()]
            return
        if not self.inside and ast.unparse(node.func) == "re.compile":
            return  # a module's own: found as what it has become, by its name
        try:
            scope = vars(self.module)
            pattern = eval(compile(ast.Expression(node.args[0]), where, "eval"), scope)
            flags = next((eval(ast.unparse(k.value), scope) for k in node.keywords if k.arg == "flags"), 0)
            if len(node.args) > 1 and ast.unparse(node.func) == "re.compile":
                flags = eval(ast.unparse(node.args[1]), scope)
        except NameError:
            raise LookupError(f"{where}: a pattern put together at run time; say in MADE what it may be") from None
        if isinstance(node.func, ast.Name) and getattr(scope.get("compiled"), "__module__", "").endswith("formats"):
            flags = re.ASCII
        self.found.append(Found(where, pattern, int(flags), anchored))


# --- texts -----------------------------------------------------------------------------------------------------------

CHARS = "aA0z_ -.:/=\\\"'\n%&@,;()[]{}<>!#$*+?^|~éx1fF\t"


def alphabet(items: Any, flags: int) -> list[str]:
    """A few characters that a class takes, of different kinds."""
    one = re.compile(_class_text(items), flags & (re.IGNORECASE | re.ASCII))
    taken = [char for char in CHARS if one.fullmatch(char)]
    exact = [chr(value) for kind, value in items if kind is op.LITERAL]
    exact += [chr(value[0]) for kind, value in items if kind is op.RANGE]
    if items and items[0][0] is op.NEGATE:
        exact = []
    return list(dict.fromkeys([*exact[:6], *taken[:6]])) or ["\u2603"]


def _class_text(items: Any) -> str:
    text = ""
    for kind, value in items:
        if kind is op.NEGATE:
            text += "^"
        elif kind is op.LITERAL:
            text += f"\\U{value:08x}"
        elif kind is op.RANGE:
            text += f"\\U{value[0]:08x}-\\U{value[1]:08x}"
        elif kind is op.CATEGORY:
            text += {
                op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
                op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
            }[value]  # fmt: skip
    return f"[{text}]"


class Repeat(NamedTuple):
    """A repeat of a pattern: a text that leads to it, and texts that it repeats."""

    before: str
    bodies: tuple[str, ...]
    most: int


def sample(items: Any, flags: int) -> str:
    """A text that a part of a pattern fits, what it only looks at aside."""
    return "".join(_one(kind, value, flags) for kind, value in items)


def _one(kind: Any, value: Any, flags: int) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is op.ANY:
        return "a"
    if kind is op.IN:
        return alphabet(value, flags)[0]
    if kind is op.BRANCH:
        return sample(value[1][0], flags)
    if kind is op.SUBPATTERN:
        return sample(value[3], flags)
    if kind is op.ATOMIC_GROUP:
        return sample(value, flags)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return sample(value[2], flags) * min(int(value[0]), 40)
    return ""


def repeats(items: Any, flags: int, before: str = "", least: int = 8) -> Iterator[Repeat]:
    """The repeats of a pattern that can take more than a few rounds."""
    for kind, value in items:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            body = value[2]
            if int(value[1]) >= least:
                yield Repeat(before, tuple(_bodies(body, flags)), int(value[1]))
            yield from repeats(body, flags, before, least)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from repeats(branch, flags, before, least)
        elif kind is op.SUBPATTERN:
            yield from repeats(value[3], flags, before, least)
        elif kind is op.ATOMIC_GROUP:
            yield from repeats(value, flags, before, least)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from repeats(value[1], flags, before, least)
        before += _one(kind, value, flags)


def _bodies(body: Any, flags: int) -> list[str]:
    if len(body) == 1:
        kind, value = body[0]
        if kind is op.IN:
            return alphabet(value, flags)
        if kind is op.SUBPATTERN:
            return _bodies(value[3], flags)
        if kind is op.BRANCH:
            return [text for branch in value[1] for text in _bodies(branch, flags)][:8]
    return [sample(body, flags)]


def unbounded(found: Found) -> bool:
    """Whether the pattern has a repeat without a limit."""
    tree = parser.parse(found.pattern, found.flags & ~re.DEBUG)
    return any(repeat.most >= 4096 for repeat in repeats(tree, found.flags))


def attacks(found: Found, least: int = 8) -> list[tuple[str, str, str]]:
    """Beginning, what is repeated, and end: texts on which the pattern has much to try, and little to find."""
    tree = parser.parse(found.pattern, found.flags)
    made: dict[tuple[str, str, str], None] = {}
    for repeat in repeats(tree, found.flags, least=least):
        before, bodies = repeat.before, repeat.bodies
        for body in [*bodies, "".join(bodies)]:
            made[before, body, "\0"] = made["", before + body, "\0"] = made["", body, "\0"] = None
            made["", before + body * 20, ""] = None
            if len(bodies) > 1:
                made["", before + body * 12 + bodies[0] + bodies[-1], ""] = None
    whole = sample(tree, found.flags)
    if whole:
        made["", whole[:-1], "\0"] = made["", whole, ""] = None
    return [*made]


def grown(attack: tuple[str, str, str], length: int) -> str:
    before, body, end = attack
    return (before + body * (length // max(len(body), 1) + 1))[: length - len(end)] + end
