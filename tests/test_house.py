"""House rules that no linter knows: documents about the project are true, and the tree keeps its shape."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import failsoft

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "failsoft"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))

MIRRORED = ["core", "config", "observe", "analysis", "stores"]  # tests/<package> has the same tree
ACROSS_MODULES = {  # tests in there that are about no single module, and why
    "core/classify/test_further_rules.py": "rules that hold across several tables",
    "core/classify/test_memory.py": "what `classify` itself remembers, in the package's __init__",
    "core/classify/test_sentences.py": "the documents' sentences, from text to fault",
    "stores/test_conformance.py": "one suite for every store",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
MAKE = re.compile(r"(?:`|^)make ([a-z-]+)", re.MULTILINE)
README_CODE = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    files = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in files or ROOT.glob("[!.]*/**/*") if path.is_file()]


# --- the public API ------------------------------------------------------------------------------------------------


def test_public_names_are_the_ones_we_promised() -> None:
    promised = (ROOT / "tests" / "public_names.txt").read_text().split()
    assert sorted(failsoft.__all__) == promised, "a public name came or went: mend tests/public_names.txt and CHANGELOG"


FIRST_USE = """
import failsoft
rt = failsoft.Runtime()
@rt.tool(read_only=True)
def greet(name: str) -> str:
    return name
assert greet("Ada") == "Ada"
failsoft.classify("x")
"""


def test_start_up_does_without_what_few_calls_need() -> None:
    spared = "import sys; print(*sys.modules.keys() & {'json', 'platform', 'uuid'})"
    loaded = subprocess.run([sys.executable, "-c", FIRST_USE + spared], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_start_up_compiles_no_long_pattern() -> None:
    noted = "import re; lengths, real = [], re.compile\nre.compile = lambda *a: lengths.append(len(a[0])) or real(*a)"
    code = f"{noted}\n{FIRST_USE}\nprint(len(lengths), max(lengths))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    count, longest = map(int, shown)
    assert 0 < count < 30, "compile it on first use: core.startup.lazy_pattern"
    assert longest < 1000, "compile it on first use: core.classify.cache.compiled"


def test_start_up_makes_no_class_by_compiling_text() -> None:
    """Such a class costs as much as seven others: use core.startup.named_tuple and core.model.frozen_options."""
    noted = """
import asyncio, collections, sys, typing
before, made, real = set(sys.modules), [], collections.namedtuple
collections.namedtuple = lambda name, *args, **kwargs: made.append(name) or real(name, *args, **kwargs)
"""
    shown = "print(made, 'dataclasses' in sys.modules and 'dataclasses' not in before)"
    code = f"{noted}\n{FIRST_USE}\n{shown}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] False"


def test_every_public_name_is_there() -> None:
    assert [name for name in failsoft.__all__ if not hasattr(failsoft, name)] == []


def test_import_brings_in_no_third_party_module() -> None:
    show = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    use = "import failsoft; failsoft.Runtime(); failsoft.classify('x'); "

    def modules(code: str) -> set[str]:
        return set(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        )

    brought = modules(use + show) - modules(show) - sys.stdlib_module_names
    assert brought == {"failsoft"}


# --- the tree ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_modules_import_from_where_things_live(module: Path) -> None:
    """``from failsoft import Runtime`` inside the package would go round the layers that the contracts check."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "failsoft" and module != SOURCE / "__main__.py":
            for alias in node.names:
                importlib.import_module(f"failsoft.{alias.name}")


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Every module of failsoft and the modules it imports: at the top, inside functions, and for types only."""
    graph = grimp.build_graph("failsoft", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_modules_import_each_other_in_a_circle(imports: dict[str, set[str]]) -> None:
    """Type-only imports and imports inside functions count."""
    try:
        TopologicalSorter({module: imports[module] for module in sorted(imports)}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])), pytrace=False)


MOST_MEMBERS = 8  # of a protocol: who needs more takes an object per concern
CALL_FIELDS = {"OfferedCall", "ThreadCall", "Write"}  # a call as data, seen from below: these are no services


def protocol_members(protocol: type) -> set[str]:
    """The members of a protocol, those it inherits included."""
    protocols = [base for base in protocol.__mro__ if base.__dict__.get("_is_protocol")]
    names = {name for base in protocols for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return {name for name in names if not name.startswith("_")}


def runtime_protocols() -> dict[str, type]:
    found = {}
    for path in (SOURCE / "runtime").rglob("*.py"):
        name = ".".join(("failsoft", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and value.__module__ == name and value.__dict__.get("_is_protocol"):
                found[value.__name__] = value
    return found


def test_every_copy_made_for_speed_says_what_it_buys() -> None:
    comments = [
        (path.name, text) for path in MODULES for text in re.findall(r"# FAST\b.*", path.read_text(encoding="utf-8"))
    ]
    assert comments
    assert [found for found in comments if not re.search(r"# FAST: .*\d", found[1])] == [], "no number, no copy"


def test_protocols_of_the_runtime_are_narrow() -> None:
    wide = {name: len(protocol_members(protocol)) for name, protocol in runtime_protocols().items()}
    wide = {name: members for name, members in wide.items() if members > MOST_MEMBERS}
    assert wide.keys() == CALL_FIELDS, wide


MOST_POSITIONAL = 5  # parameters: who needs more lacks an object
RECORD = "makes a record: its parameters are the fields, and most callers name them"
FAST = "on the path of every call: an object or keywords would cost more than what it does"
WIDE = {  # functions with more positional parameters, and why
    "Outcome.__init__": RECORD,
    "Run.__init__": RECORD,
    "succeed": FAST,
    "record_success": FAST,
    "_count_recovery": FAST,
    "plan_known": FAST,
    "count_event": FAST,
    "finish": FAST,
    "finish_in": FAST,
    "finish_watched": FAST,
    "_abandon": FAST,
    "timeout_result": FAST,
    "blocked_loop_result": FAST,
    "report_to_breaker": FAST,
    "describe_retry": "the fields of the pipeline's step, in their order",
    "pack_answer": "the fields of a frame, in their order",
    "_fault": RECORD,
}


def functions_of(tree: ast.AST, prefix: str = "", *, in_class: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The functions of a module by qualified name, with their positional parameters; ``self`` is not counted."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            yield prefix + node.name, names[in_class and names[:1] in (["self"], ["cls"]) :]
            yield from functions_of(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions_of(node, f"{prefix}{node.name}.", in_class=True)
        else:
            yield from functions_of(node, prefix, in_class=in_class)


def test_functions_have_at_most_five_positional_parameters() -> None:
    wide = {}
    for path in MODULES:
        for name, parameters in functions_of(ast.parse(path.read_text(encoding="utf-8"))):
            if len(parameters) > MOST_POSITIONAL:
                wide[name] = f"{named(path)}: {name}({', '.join(parameters)})"
    assert [wide[name] for name in sorted(wide.keys() - WIDE.keys())] == [], "an object is missing"
    assert sorted(WIDE.keys() - wide.keys()) == [], "these are narrow now: take them out of WIDE"


def test_methods_count_without_their_object() -> None:
    source = "class A:\n    def f(self, a, b): ...\n    if a:\n        def g(cls, *, a): ...\ndef h(self, /, a): ..."
    expected = [("A.f", ["a", "b"]), ("A.g", []), ("h", ["self", "a"])]
    assert [*functions_of(ast.parse(source))] == expected


def lazy_imports() -> set[tuple[str, str]]:
    """Our own modules that are imported inside functions: by whom, and which."""
    names = {".".join(("failsoft", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    found = set()
    for name, path in names.items():
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTIONS)]
        for node in (node for function in functions for node in ast.walk(function)):
            if isinstance(node, ast.Import):
                found |= {(name, alias.name) for alias in node.names if alias.name in names}
            elif isinstance(node, ast.ImportFrom) and node.module in names:
                modules = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {(name, module if module in names else node.module) for module in modules}
    return found


def test_imports_inside_functions_are_listed_with_their_reason() -> None:
    """They may keep start-up short, if ``import failsoft`` does not load the module anyway. A cycle is no reason."""
    listed: dict[tuple[str, str], str] = {}
    for line in (ROOT / "tests" / "lazy_imports.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pair, _, reason = line.partition(": ")
            importer, _, imported = pair.partition(" -> ")
            assert (importer, imported) not in listed, f"listed twice: {pair}"
            listed[importer, imported] = reason
    found = lazy_imports()
    assert sorted(found - {*listed}) == [], "import at the top, or add it to tests/lazy_imports.txt with its reason"
    assert sorted({*listed} - found) == [], "these are gone: take them out of tests/lazy_imports.txt"
    show = "import sys, failsoft; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout.split()
    for (importer, imported), reason in listed.items():
        saves_time = reason.startswith("start-up, ") and imported not in loaded
        assert saves_time, f"{importer} -> {imported}: {reason!r} is no reason"


@pytest.mark.parametrize("package", MIRRORED)
def test_tests_of_a_pure_package_are_named_after_the_module_they_test(package: str) -> None:
    tests = ROOT / "tests" / package
    unnamed = set()
    for path in tests.rglob("test_*.py"):
        subject = SOURCE / package / path.parent.relative_to(tests) / path.stem.removeprefix("test_")
        if not subject.with_suffix(".py").exists() and not (subject / "__init__.py").exists():
            unnamed.add(path.relative_to(ROOT / "tests").as_posix())
    assert unnamed == {name for name in ACROSS_MODULES if name.startswith(f"{package}/")}


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_every_package_says_what_it_is_for_and_is_on_the_map(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert len(text.split()) >= 12, "say what lives here, what it may import and which test guards it"
    assert "tests/" in text, "say which test guards the package"
    assert re.search(r"(?:[Mm]ay import|Imports)\s", text), "say what the package may import"
    assert f"]({named(package)})" in (ROOT / "ARCHITECTURE.md").read_text(), "run make docs"


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_tests_that_a_package_names_exist(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert [name for name in re.findall(r"``(tests/[^`]+)``", text) if not list(ROOT.glob(name))] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_make_commands_exist(page: Path) -> None:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(MAKE.findall(page.read_text())) <= set(targets)


def test_readme_shows_code_by_line_20() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert "```python" in lines[:20]


@pytest.mark.parametrize("number", range(len(README_CODE)))
def test_readme_code_runs(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", README_CODE[number]]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    shown = [line.removeprefix("# ") for line in README_CODE[number].splitlines() if line.startswith("# ")]
    attempts = re.compile(r"\d+ attempts")  # fewer where the machine is slow
    assert [attempts.sub("", line) for line in ended.stdout.splitlines()] == [attempts.sub("", line) for line in shown]


def test_every_ruling_has_its_record() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in records]
    assert len(numbers) == len(set(numbers)), "two records have the same number"
    told = set()
    for path in records:
        text = path.read_text()
        assert re.findall(r"^## (.+)", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], path.name
        told.update(re.findall(r"\bR\d+\b", text))
    assert {f"R{number}" for number in range(1, 30)} <= told


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a path of one machine", r"(^|[^a-z])/(work|farm|root)/"),
        ("a package index by name", r"pypi\.(org|io)|python" r"hosted|npm" r"js"),
    ],
)
def test_the_tree_names_no_path_of_a_machine_and_no_package_index(what: str, pattern: str) -> None:
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{named(path)}: {what}: {hit[0]!r}" for hit in re.finditer(pattern, text, re.MULTILINE)]
    assert found == []


# --- packaging -----------------------------------------------------------------------------------------------------


def test_all_means_every_extra() -> None:
    extras = dict(PROJECT["project"]["optional-dependencies"])
    (everything,) = extras.pop("all")
    assert Requirement(everything).extras == set(extras)


def locked(name: str) -> dict[str, Version]:
    text = (ROOT / "requirements" / name).read_text()
    return {
        name: Version(version)
        for name, version in re.findall(r"^([\w-]+)(?:\[[^]]+\])?==([\w.+]+)", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("lock", "group"), [("runtime.lock", "build"), ("dev.lock", "dev")], ids=["runtime.lock", "dev.lock"]
)
def test_locks_are_up_to_date(lock: str, group: str) -> None:
    groups = PROJECT["dependency-groups"]
    wanted = [*PROJECT["project"]["dependencies"], *groups["build"], *groups[group]]
    pins = locked(lock)
    for requirement in (Requirement(text) for text in wanted if isinstance(text, str)):
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement} is not locked: make lock"
        assert pin in requirement.specifier, f"{requirement} is locked at {pin}: make lock"


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.lock")), ids=named)
def test_locks_pin_by_hash_and_name_no_host(lock: Path) -> None:
    entries = [entry for entry in re.split(r"\n(?=\S)", lock.read_text().strip()) if not entry.startswith("#")]
    assert entries
    pin = r"[\w-]+(\[[\w, -]+\])?==[\w.+]+( ; [^\n\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+"
    for entry in entries:
        assert re.fullmatch(pin, entry), entry[:200]
