"""``failsoft check``: list all errors and warnings of a manifest and its plans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from shutil import which
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from failsoft.errors import ManifestError
from failsoft.surfaces.cli.console import clean, json_option, make_console, manifest_option, print_json
from failsoft.surfaces.cli.files import find_manifest, import_from_here, read

if TYPE_CHECKING:
    from failsoft.config.manifest import Manifest, Problem

T = TypeVar("T")
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+):(?P<column>[0-9]+): (?P<rest>.*)", re.DOTALL)


class Finding(NamedTuple):
    """One line of the output."""

    severity: str
    file: str
    line: int
    column: int
    message: str  # includes the field, if there is one

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@click.command(short_help="Validate a manifest and its plans.")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@manifest_option
@click.option("--tools", "import_tools", is_flag=True, help="Also import the functions and find the programs.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@json_option
def check(files: Sequence[str], manifest: str | None, import_tools: bool, strict: bool, as_json: bool) -> int:
    """Validate a manifest, and plans that run with it.

    A FILE is a manifest or a plan: a plan has calls. Without a manifest among the files, failsoft.yaml is checked as
    well.
    All errors are listed with file, line and column, and so is everything that is legal but probably not intended.
    Functions missing from modules in this directory are errors. --tools also checks that all tools can be imported;
    without it they may be installed elsewhere.
    Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.
    """
    sources = {name: read(name) for name in ((manifest,) if manifest else ()) + tuple(files)}
    manifests = [name for name in sources if name == manifest or _is_manifest(sources[name])]
    if not manifests and (path := find_manifest(None, needed=not files)) is not None:
        manifests, sources = [path], {path: read(path), **sources}
    plans = [name for name in sources if name not in manifests]
    if plans and len(manifests) > 1 and manifest is None:
        raise click.UsageError(
            f"{' and '.join(manifests)} are both manifests: choose the one for the plans with --manifest"
        )
    findings = _find_all(sources, manifests, plans, import_tools=import_tools)
    errors = sum(finding.severity == "error" for finding in findings)
    failed = bool(findings) if strict else bool(errors)
    if as_json:
        problems = [{**finding._asdict(), "place": finding.place} for finding in findings]
        counts = {"errors": errors, "warnings": len(findings) - errors}
        print_json({"ok": not failed, "checked": list(sources), **counts, "problems": problems})
    else:
        _show(findings, errors, list(sources))
    return int(failed)


def _is_manifest(source: bytes) -> bool:
    from failsoft.config.manifest import find_kind

    return find_kind(source) == "manifest"


def _find_all(
    sources: Mapping[str, bytes], manifests: Sequence[str], plans: Sequence[str], *, import_tools: bool
) -> list[Finding]:
    """Collect all findings. Plans are checked against the first manifest."""
    from failsoft.config.manifest import Manifest, load, load_plan
    from failsoft.config.manifest import check as validate
    from failsoft.surfaces.cli.module_source import find_misfits, find_undefined

    findings: list[Finding] = []
    loaded = [_try(findings, partial(load, sources[name], name=name)) for name in manifests]
    for manifest in loaded:
        if manifest is not None:
            findings += map(_to_finding, validate(manifest))
            findings += _missing(manifest) if import_tools else map(_to_finding, find_undefined(manifest))
    first_manifest = loaded[0] if loaded else None
    for name in plans:
        plan = _try(findings, partial(load_plan, sources[name], name=name))
        if plan is not None:  # without a manifest, only findings about the plan alone
            problems = [
                *validate(first_manifest or Manifest(), plan),
                *find_misfits(plan, first_manifest or Manifest()),
            ]
            found = map(_to_finding, problems)
            findings += [each for each in found if each.file == name and (first_manifest or not _is_unknown(each))]
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.file, finding.line, finding.column))


def _missing(manifest: Manifest) -> Iterator[Finding]:
    """Find tools that are not where the manifest says. This imports their modules and calls nothing."""
    from failsoft.config.manifest import Problem
    from failsoft.core.model.entrypoint import Command
    from failsoft.runtime.tools.entrypoint import load_entrypoint

    import_from_here()
    for id, tool in manifest.tools.items():
        field, why = f"tools.{id}", ""
        try:
            loaded_tool = None if tool.entrypoint is None else load_entrypoint(tool, manifest.defaults)
            if loaded_tool is not None and loaded_tool.unavailable_fault is not None:
                why = loaded_tool.unavailable_fault.message
        except ManifestError as error:
            inside, _, why = error.problems[0].removeprefix(f"{tool.place}: {field}.").partition(": ")
            field = f"{field}.{inside}"
        except SystemExit:
            why = 'importing its module exits the program: move that code below if __name__ == "__main__":'
        if isinstance(tool.entrypoint, Command) and which(tool.entrypoint.argv[0]) is None:
            why = f"program {tool.entrypoint.argv[0]} not found: install it, or write its full path"
        if why:
            yield _to_finding(Problem.at(tool.place, field, why, "error"))


def _is_unknown(finding: Finding) -> bool:
    return "is not in the manifest" in finding.message


def _try(findings: list[Finding], make: Callable[[], T]) -> T | None:
    try:
        return make()
    except ManifestError as error:
        findings += [_read_problem(problem) for problem in error.problems]
        return None


def _read_problem(text: str) -> Finding:
    match = _PLACE.fullmatch(text)
    if match is None:
        return Finding("error", "", 0, 0, text)
    return Finding("error", match["file"], int(match["line"]), int(match["column"]), match["rest"])


def _to_finding(problem: Problem) -> Finding:
    message = f"{problem.field}: {problem.message}" if problem.field else problem.message
    return Finding(problem.severity, problem.name, problem.line, problem.column, message)


def _show(findings: Sequence[Finding], errors: int, checked: Sequence[str]) -> None:
    from rich.text import Text

    console = make_console()
    for finding in findings:
        style = "bold red" if finding.severity == "error" else "yellow"
        place = f"{clean(finding.place)}: " if finding.place else ""
        line = Text.assemble(place, (finding.severity, style), f": {clean(finding.message)}")
        console.print(line, soft_wrap=True)  # one problem per line, for editors and grep
    counts = (
        f"{errors} error{'s' * (errors != 1)}, {len(findings) - errors} warning{'s' * (len(findings) - errors != 1)}"
    )
    good = ("ok", "bold green") if not findings else (counts, "bold red" if errors else "yellow")
    console.print(Text.assemble(f"{clean(', '.join(checked))}: ", good), soft_wrap=True)
