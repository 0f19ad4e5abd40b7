"""`make dist`: build the distributions and use them as a new user would.

1. The build backend pinned by the lock builds sdist and wheel; nothing is downloaded.
2. The wheel contains the whole library and nothing else; the sdist contains everything that `make test` needs.
3. The library imports every package that an extra installs.
4. The wheel built from the sdist is identical, byte for byte.
5. In an empty environment without extras, the first code of the README and the command line work. The library alone
works with nothing else installed.
6. Each extra, alone in its own environment, imports what it is for. Without the extra, the adapter names it.

Steps 5 and 6 install from a package index, as users do: `--build-only` skips them, `--extra NAME` takes one extra.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email import message_from_string
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# For each extra, an import that needs it.
EXTRAS = {
    "pydantic-ai": ("failsoft.adapters.pydantic_ai",),
    "langchain": ("failsoft.adapters.langchain",),
    "openai-agents": ("failsoft.adapters.openai_agents",),
    "otel": ("failsoft.otel",),
    "client": ("failsoft.client",),
    "prometheus": ("failsoft.prometheus",),
    "serve": ("failsoft.surfaces.daemon.app", "failsoft.surfaces.daemon.server"),
}
MODULES = {
    "pydantic-ai-slim": "pydantic_ai",
    "openai-agents": "agents",
    "opentelemetry-api": "opentelemetry",
}  # packages whose module has another name
NOT_SHIPPED = re.compile(r"^(failsoft/)?(bench|tools|docs|examples)/|(^|/)(tests?|__pycache__)/|\.pyc$")
SHIPPED = (
    "py.typed",
    "schema/failsoft.schema.json",
    "schema/failsoft.yaml",
    "surfaces/cli/example.jsonl",
    "prometheus/grafana/dashboard.json",
    "prometheus/grafana/alerts.yaml",
)


class Unfit(Exception):
    """The distribution is not fit to be published."""


# --- building ----------------------------------------------------------------------------------------------------------


def build(source: Path, into: Path) -> tuple[Path, Path]:
    """Build the wheel and the sdist of a source tree."""
    before = {*into.glob("*")} if into.exists() else set()
    run([sys.executable, "-m", "hatchling", "build", "-d", str(into)], cwd=source)
    made = {*into.glob("*")} - before
    wheels, sdists = ([path for path in made if path.name.endswith(end)] for end in (".whl", ".tar.gz"))
    if (len(wheels), len(sdists)) != (1, 1):
        raise Unfit(f"one wheel and one sdist were expected, not {sorted(path.name for path in made)}")
    return wheels[0], sdists[0]


def check_wheel(wheel: Path, source: Path = ROOT) -> int:
    """Raise if the wheel lacks files or has extra ones; return the number of files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        metadata = message_from_string(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    package = source / "src" / "failsoft"
    ours = {f"failsoft/{name}" for name in _files(package)}
    wanted = ours | {f"failsoft/{name}" for name in SHIPPED} | {f"{info}/licenses/LICENSE"}
    _refuse("the wheel lacks", wanted - {*names})
    _refuse("the wheel has what nobody needs", [name for name in names if NOT_SHIPPED.search(name)])
    others = {*names} - ours
    _refuse("the wheel has what is not ours", [name for name in others if not name.startswith(f"{info}/")])
    extras = {*(metadata.get_all("Provides-Extra") or ())}
    _refuse("the wheel's extras are not those of pyproject.toml", extras ^ {*_extras()})
    python = PROJECT["project"]["requires-python"]
    if metadata["Requires-Python"] != python:
        raise Unfit(f"the wheel is for Python {metadata['Requires-Python']}, not {python}")
    if "failsoft = failsoft.surfaces.cli:main" not in scripts:
        raise Unfit("the wheel brings no command `failsoft`")
    return len(names)


def check_sdist(sdist: Path, source: Path = ROOT) -> int:
    """Raise if the tests could not run from the sdist; return the number of files."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "LICENSE", "README.md", "Makefile"}
    for room in ("src", "tests", "bench", "tools", "examples", "requirements", "docs"):
        wanted |= {f"{room}/{name}" for name in _files(source / room)}
    _refuse("the sdist lacks", wanted - names)
    _refuse(
        "the sdist has what nobody needs", [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    )
    return len(names)


def check_extras(project: Mapping[str, Any] = PROJECT, source: Path = ROOT) -> int:
    """Raise if an extra installs a package that the library never imports; return the number of extras."""
    imported = _imports(source / "src")
    extras: Mapping[str, Sequence[str]] = project["project"]["optional-dependencies"]
    idle = [
        f"{extra} ({package})"
        for extra, requirements in extras.items()
        for package in map(_package, requirements)
        if package != project["project"]["name"] and MODULES.get(package, package.replace("-", "_")) not in imported
    ]
    _refuse("nothing in src imports what these extras install", idle)
    return len(extras)


def _package(requirement: str) -> str:
    """Return a requirement's package name, normalised."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return (name[0] if name else requirement).lower().replace("_", "-")


def _imports(source: Path) -> set[str]:
    """List the top-level modules that a source tree imports, including in functions and for type checkers."""
    found = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def check_same(wheel: Path, sdist: Path, scratch: Path) -> None:
    """Raise if the sdist builds a different wheel."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "unpacked", filter="data")
    (source,) = (scratch / "unpacked").iterdir()
    again, _ = build(source, scratch / "again")
    here, there = _contents(wheel), _contents(again)
    _refuse(
        "built from the sdist, the wheel differs in",
        [name for name in here | there if here.get(name) != there.get(name)],
    )
    if wheel.read_bytes() != again.read_bytes():
        raise Unfit("built from the sdist, the wheel has the same files but other bytes")


def _contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _files(room: Path) -> Iterable[str]:
    for path in room.rglob("*"):
        name = path.relative_to(room).as_posix()
        if path.is_file() and "__pycache__" not in name and not any(part.startswith(".") for part in path.parts[-3:]):
            yield name


def _extras() -> list[str]:
    return list(PROJECT["project"]["optional-dependencies"])


def _refuse(what: str, names: Iterable[str]) -> None:
    found = sorted(names)
    if found:
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        raise Unfit(f"{what}: {', '.join(found[:10])}{more}")


# --- using -------------------------------------------------------------------------------------------------------------


def use_without_extras(wheel: Path, scratch: Path) -> None:
    """Run the README's promises with only the wheel's own dependencies."""
    code = scratch / "first.py"
    code.write_text(first_code())
    bare = make_environment(scratch / "bare", ["--no-deps", str(wheel)])
    expect(run([str(bare / "python"), str(code)], cwd=scratch), "succeeded ['AF 1234'] via cached_flights")
    say("README's first code, with nothing else installed")
    plain = make_environment(scratch / "plain", [str(wheel)])
    expect(run([str(plain / "python"), str(code)], cwd=scratch), "succeeded ['AF 1234'] via cached_flights")
    failsoft = str(plain / "failsoft")
    expect(run([failsoft, "--version"], cwd=scratch), f"failsoft {version(wheel)}")
    expect(run([failsoft, "demo"], cwd=scratch), "Where the time went")
    expect(run([failsoft, "init", "mine"], cwd=scratch), "Wrote mine/failsoft.yaml")
    expect(run([failsoft, "check", "mine/failsoft.yaml"], cwd=scratch), "failsoft.yaml: ok")
    expect(run([failsoft, "why", "--trace", "example"], cwd=scratch), "Where the time went")
    say("README's first code, failsoft demo, init, check, why: no extras")
    for extra, modules in EXTRAS.items():
        for module in (module for module in modules if module.startswith("failsoft.")):
            told = run([str(plain / "python"), "-c", f"import {module}"], cwd=scratch, code=1)
            expect(told, f"install failsoft[{extra}]")
    say("adapters without their extra say what to install")


def use_extra(extra: str, wheel: Path, scratch: Path) -> None:
    """Import what an extra is for."""
    began = monotonic()
    modules = EXTRAS[extra] if extra != "all" else tuple(module for each in EXTRAS.values() for module in each)
    python = make_environment(scratch / extra, [f"failsoft[{extra}] @ {wheel.resolve().as_uri()}"]) / "python"
    for module in modules:
        run([str(python), "-c", f"import failsoft, {module}"], cwd=scratch)
    say(f"failsoft[{extra}]: import {', '.join(modules)} ({monotonic() - began:.0f} s)")
    shutil.rmtree(scratch / extra)


def first_code() -> str:
    """Return the first Python block of the README."""
    block = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    if block is None:
        raise Unfit("README shows no Python")
    return block[1]


def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def make_environment(place: Path, packages: Sequence[str]) -> Path:
    """Create an environment with these packages; return the directory of its programs."""
    run([sys.executable, "-m", "venv", str(place)], cwd=place.parent)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq", "--no-input", "install"]
    run([*pip, *packages], cwd=place.parent)
    return place / "bin"


def run(command: Sequence[str], *, cwd: Path, code: int = 0) -> str:
    """Run a program isolated from this environment and return its output; require the given exit code."""
    done = subprocess.run(  # noqa: PLW1510 - checked below
        command,
        cwd=cwd,
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    said = done.stdout + done.stderr
    if done.returncode != code:
        raise Unfit(f"`{' '.join(command)}` ended with {done.returncode}, not {code}:\n{said}")
    return said


def expect(said: str, wanted: str) -> None:
    if wanted not in said:
        raise Unfit(f"{wanted!r} was expected in:\n{said}")


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    ours = ("PYTHON", "VIRTUAL_ENV", "FAILSOFT", "COLUMNS", "FORCE_COLOR")
    return {name: value for name, value in env.items() if not name.startswith(ours)}


def say(what: str) -> None:
    print(f"  ok  {what}", flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--into", type=Path, default=ROOT / "dist", help="where wheel and sdist go")
    asked.add_argument("--build-only", action="store_true", help="install nothing")
    asked.add_argument("--extra", action="append", choices=_extras(), help="only this extra; may be repeated")
    said = asked.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="failsoft-dist-") as place:
            scratch = Path(place)
            shutil.rmtree(said.into, ignore_errors=True)
            wheel, sdist = build(ROOT, said.into)
            say(f"{wheel.name}: {check_wheel(wheel)} files, {wheel.stat().st_size // 1000} kB")
            say(f"{sdist.name}: {check_sdist(sdist)} files, {sdist.stat().st_size // 1000} kB")
            say(f"the library imports what its {check_extras()} extras install")
            check_same(wheel, sdist, scratch)
            say("the sdist gives the same wheel, byte for byte")
            if not said.build_only:
                use_without_extras(wheel, scratch)
                for extra in said.extra or _extras():
                    use_extra(extra, wheel, scratch)
    except Unfit as unfit:
        print(f"  no  {unfit}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
