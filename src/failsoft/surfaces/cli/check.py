"""``failsoft check``: everything that is wrong with a manifest and its plans, or hardly meant, at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from failsoft.errors import ManifestError
from failsoft.surfaces.cli.files import find_manifest, read
from failsoft.surfaces.cli.show import clean, json_option, make_console, manifest_option, print_json

if TYPE_CHECKING:
    from failsoft.core.manifest import Manifest, Plan, Problem

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+):(?P<column>[0-9]+): (?P<rest>.*)", re.DOTALL)


class Finding(NamedTuple):
    """One line of the answer."""

    severity: str
    file: str
    line: int
    column: int
    message: str  # with the field, where there is one

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@click.command(short_help="Look over a manifest and its plans.")
@click.argument("plans", metavar="[PLAN]...", nargs=-1)
@manifest_option
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@json_option
def check(plans: Sequence[str], manifest: str | None, strict: bool, as_json: bool) -> int:
    """Check a manifest, and PLANs that are to run with it.

    All mistakes are listed with file, line and column, and so is what is legal but hardly meant.
    Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.
    """
    path = find_manifest(manifest, needed=not plans)
    findings = _look(path, plans)
    errors = sum(finding.severity == "error" for finding in findings)
    failed = bool(findings) if strict else bool(errors)
    checked = [*([path] if path else []), *plans]
    if as_json:
        problems = [{**finding._asdict(), "place": finding.place} for finding in findings]
        counts = {"errors": errors, "warnings": len(findings) - errors}
        print_json({"ok": not failed, "checked": checked, **counts, "problems": problems})
    else:
        _show(findings, errors, checked)
    return int(failed)


def _look(path: str | None, plans: Sequence[str]) -> list[Finding]:
    from failsoft.core.manifest import Manifest, load, load_plan
    from failsoft.core.manifest import check as look_over

    findings: list[Finding] = []
    manifest: Manifest | None = None
    if path is not None:
        manifest = _try(findings, lambda: load(read(path), name=path))
    loaded: list[Plan] = []
    for name in plans:
        plan = _try(findings, lambda name=name: load_plan(read(name), name=name))
        loaded += [] if plan is None else [plan]
    if manifest is not None:
        findings += [_found(problem) for problem in look_over(manifest)]
    for plan in loaded:  # without a manifest to hold them against, only what they say by themselves
        against = manifest if manifest is not None else Manifest()
        found = [_found(problem) for problem in look_over(against, plan)]
        findings += [
            finding for finding in found if finding.file == plan.name and (manifest or not _is_unknown(finding))
        ]
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.file, finding.line, finding.column))


def _is_unknown(finding: Finding) -> bool:
    return "is not in the manifest" in finding.message


def _try(findings: list[Finding], make: Any) -> Any:
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


def _found(problem: Problem) -> Finding:
    message = f"{problem.field}: {problem.message}" if problem.field else problem.message
    return Finding(problem.severity, problem.name, problem.line, problem.column, message)


def _show(findings: Sequence[Finding], errors: int, checked: Sequence[str]) -> None:
    from rich.text import Text

    console = make_console()
    for finding in findings:
        style = "bold red" if finding.severity == "error" else "yellow"
        place = f"{clean(finding.place)}: " if finding.place else ""
        line = Text.assemble(place, (finding.severity, style), f": {clean(finding.message)}")
        console.print(line, soft_wrap=True)  # one problem a line, so that editors and grep find their way
    names = ", ".join(Path(name).name for name in checked)
    counts = (
        f"{errors} error{'s' * (errors != 1)}, {len(findings) - errors} warning{'s' * (len(findings) - errors != 1)}"
    )
    good = ("ok", "bold green") if not findings else (counts, "bold red" if errors else "yellow")
    console.print(Text.assemble(f"{clean(names)}: ", good))
