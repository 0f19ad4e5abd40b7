"""``failsoft run``: run a plan with a manifest, without Python code."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failsoft.core.model.builtin_faults import UNKNOWN_TOOL
from failsoft.core.model.json_values import shown
from failsoft.errors import ManifestError
from failsoft.runtime.runtime import Runtime
from failsoft.surfaces.cli.console import CommandError, clean, json_option, make_console, manifest_option, print_json
from failsoft.surfaces.cli.files import cannot_write, check_address, find_manifest, import_from_here, read

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.config.manifest import Plan
    from failsoft.core.model.outcome import Outcome


@click.command(short_help="Run a plan with the tools of a manifest.")
@click.argument("plan")
@manifest_option
@click.option(
    "--trace", metavar="FILE", type=click.Path(path_type=Path), help="Append every event to FILE, as JSON lines."
)
@click.option("--store", metavar="URL", help="Store the events, for `failsoft why`: sqlite:///failsoft.db")
@json_option
def run(plan: str, manifest: str | None, trace: Path | None, store: str | None, as_json: bool) -> int:
    """Run the turn that PLAN describes, with the tools of a manifest.

    PLAN is a YAML or JSON file, or - for standard input. Functions are also searched in the current directory.
    Exit codes: 0 every call succeeded, 1 some did not, 2 the plan, the manifest or an option is wrong.
    """
    path = find_manifest(manifest)
    assert path is not None, "find_manifest raises if none is found"
    rt = _open(path, trace, store)
    loaded_plan = _load(plan, rt)
    console = None if as_json else make_console()
    report = asyncio.run(_play(rt, loaded_plan, console))
    if console is None:
        print_json({**report.to_dict(), "waterfall": report.waterfall().to_dict()})
    else:
        console.print(_closing(report, console.width))
        _hint_at_tools(console, report, rt, path)
    return int(bool(report.failures or report.skipped))


def _open(manifest: str, trace: Path | None, store: str | None) -> Runtime:

    read(manifest)  # raises a clear error if it cannot be read
    check_address(store, to_write=True)
    if trace is not None:
        from failsoft.observe.sinks.jsonl import FOREIGN, holds_other_data

        if holds_other_data(trace):
            raise CommandError(f"--trace {trace}: {FOREIGN}")
        try:
            trace.open("a").close()
        except OSError as error:
            raise cannot_write(trace, error) from None
    import_from_here()
    try:
        return Runtime(manifest, trace=trace, store=store or "memory:")
    except ManifestError as error:
        raise CommandError(f"{manifest} has mistakes", problems=error.problems) from None
    except SystemExit:
        raise CommandError(
            f"importing a module named in {manifest} exits the program",
            hint='Move its script code below: if __name__ == "__main__":',
        ) from None


def _load(name: str, rt: Runtime) -> Plan:
    from failsoft.config.manifest import load_plan
    from failsoft.runtime.turn.plan_runner import refuse_lost_keys

    shown = "standard input" if name == "-" else name
    try:
        plan = load_plan(read(name), name=shown)
        refuse_lost_keys(plan, rt._engine.toolbox.tools)
    except ManifestError as error:
        raise CommandError(f"{shown} has mistakes", problems=error.problems) from None
    return plan


def _hint_at_tools(console: Console, report: TurnReport, rt: Runtime, manifest: str) -> None:
    """If a tool was not found, list the available tools and those without an entrypoint."""
    from failsoft.config.manifest import load

    if all(outcome.fault is None or outcome.fault.rule != UNKNOWN_TOOL for outcome in report.failures.values()):
        return
    hint = f"The tools are: {', '.join(rt.tools) or 'none'}."
    without_entrypoint = [
        id for id, tool in load(read(manifest), name=manifest).tools.items() if tool.entrypoint is None
    ]
    if without_entrypoint:
        hint += f" {manifest} has no entrypoint for {', '.join(without_entrypoint)}: add one to run them here."
    console.print(clean(hint), soft_wrap=True)


async def _play(rt: Runtime, plan: Plan, console: Console | None) -> TurnReport:
    from failsoft.runtime.turn.plan_runner import turn_of
    from failsoft.surfaces.cli.live import watching

    handles: dict[str, Any] = {}
    shown = nullcontext() if console is None else watching(rt, console, handles)
    async with rt, shown, turn_of(plan, rt.turn) as turn:
        handles.update(turn.submit_plan(plan))
    return turn.report


def _closing(report: TurnReport, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.surfaces.cli.drawing import paragraphs, section, show_verdict, show_waterfall

    picture = report.waterfall()
    failures = [outcome for outcome in report.failures.values() if outcome.fault is not None]
    parts: list[RenderableType] = [
        show_waterfall(picture, width),
        Text(),
        section("Where the time went", show_verdict(picture.verdict, width - 4)),
    ]
    if report.results:
        values = [f"{id}: {shown(value)}" for id, value in report.results.items()]
        parts.append(section("Results", paragraphs(values, width - 4)))
    if failures:
        parts.append(section("What went wrong", *map(_show_failure, failures)))
    parts.append(section("What the user would be told", paragraphs([report.message], width - 4)))
    return Group(*parts)


def _show_failure(outcome: Outcome[Any]) -> RenderableType:
    from rich.text import Text

    fault = outcome.fault
    assert fault is not None, "only failures with a fault are passed"
    return Text.assemble(
        f"{clean(outcome.label)} ",
        (f"{clean(outcome.id)}", "bright_black"),
        ": ",
        (fault.code.value, "red"),
        f", {fault.category}: {clean(fault.message)} ",
        (f"(rule {clean(fault.rule)})", "bright_black"),
    )
