"""``failsoft doctor``: check the installation, and suggest fixes."""

from __future__ import annotations

import importlib
import platform
import re
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import failsoft
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import FailsoftError, ManifestError
from failsoft.stores.ports import key_of
from failsoft.stores.url import known_schemes, open_store
from failsoft.surfaces.cli.console import clean, json_option, make_console, manifest_option, print_json
from failsoft.surfaces.cli.files import find_manifest, read
from failsoft.surfaces.cli.serve import state_directory
from failsoft.surfaces.daemon.tokens import TokenError, read_tokens

if TYPE_CHECKING:
    from failsoft.stores.ports import Store

PORT = 8585
_MARKS = {
    "ok": ("ok", "green"),
    "missing": ("not installed", "yellow"),
    "warning": ("warning", "yellow"),
    "error": ("error", "red"),
}
_EXTRAS = {  # extra: the module of failsoft that uses it
    "pydantic-ai": "failsoft.adapters.pydantic_ai",
    "langchain": "failsoft.adapters.langchain",
    "openai-agents": "failsoft.adapters.openai_agents",
    "otel": "failsoft.otel",
    "prometheus": "failsoft.prometheus",
    "client": "failsoft.client",
    "serve": "failsoft.surfaces.daemon.app",
}
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]++)(?:\[[^]]*\])?(?P<allowed>[^;]*+)(?:;.*extra == [\"'](?P<extra>[^\"']+)[\"'])?"
)
_BOUND = re.compile(r"(>=|<=|==|<|>|!=|~=)\s*([0-9.]+)")
_FIRST_RELEASE = 1_700_000_000.0  # 2023: a clock before that is wrong
_DRIFT = 0.5  # seconds
_KEY = key_of("failsoft doctor")


class Finding(NamedTuple):
    """One line of the report."""

    area: str
    name: str
    status: str  # ok, missing (an extra that is not installed), warning, error
    detail: str
    remedy: str = ""


@click.command(
    short_help="Check the installation, and suggest fixes.",
    epilog="Examples: failsoft doctor · failsoft doctor --store sqlite:///failsoft.db -m prod.yaml",
)
@manifest_option
@click.option("--store", metavar="URL", help="Also open this store, write to it and read back.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=PORT, show_default=True, help="The port for failsoft serve."
)
@json_option
def doctor(manifest: str | None, store: str | None, port: int, as_json: bool) -> int:
    """Check versions, extras, adapters, manifest, store, clock, port and the daemon's state directory.

    An extra that is not installed is not an error: the report says how to install it. Exit codes: 0 nothing is broken, 1
    something is, 2 the command could not be carried out.
    """
    findings = [
        *_versions(),
        *_extras(),
        *_manifest(manifest),
        *_store(store),
        *_clock(time.time, time.monotonic, time.sleep),
        *_port(port),
        *_state(),
    ]
    broken = any(finding.status == "error" for finding in findings)
    if as_json:
        print_json({"ok": not broken, "findings": [finding._asdict() for finding in findings]})
    else:
        _show(findings)
    return int(broken)


# --- the checks -------------------------------------------------------------------------------------------------------


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "failsoft", "ok", failsoft.__version__)
    yield Finding(
        "versions", "Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    for name, allowed, extra in requirements():
        if extra is None:
            yield _dependency(name, allowed)


def _dependency(name: str, allowed: str) -> Finding:
    version = _installed(name)
    if version is None:
        return Finding("versions", name, "error", "not installed", f'pip install "{name}{allowed}"')
    if not is_in_range(version, allowed):
        return Finding("versions", name, "error", f"{version} is not {allowed}", f'pip install "{name}{allowed}"')
    return Finding("versions", name, "ok", version)


def _extras() -> Iterator[Finding]:
    wanted: dict[str, list[tuple[str, str]]] = {}
    for name, allowed, extra in requirements():
        if extra is not None and extra != "all" and name != "failsoft":
            wanted.setdefault(extra, []).append((name, allowed))
    for extra, parts in sorted(wanted.items()):
        yield _extra(extra, parts)


def _extra(extra: str, parts: list[tuple[str, str]]) -> Finding:
    remedy = f'pip install "failsoft[{extra}]"'
    versions = {name: _installed(name) for name, _ in parts}
    if absent := [name for name, version in versions.items() if version is None]:
        return Finding("extras", extra, "missing", f"needs {', '.join(absent)}", remedy)
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    for name, allowed in parts:
        version = versions[name]
        assert version is not None
        if not is_in_range(version, allowed):
            return Finding("extras", extra, "error", f"{name} {version} is not {allowed}", remedy)
    if (module := _EXTRAS.get(extra)) is not None:
        try:
            importlib.import_module(module)
        except Exception as error:
            why = sanitise(f"{module} cannot be imported: {type(error).__name__}: {error}")
            return Finding("extras", extra, "error", f"{shown}; {why}", f"{remedy} --upgrade")
        return Finding("extras", extra, "ok", f"{shown}; {module} can be used")
    return Finding("extras", extra, "ok", shown)


def _manifest(path: str | None) -> Iterator[Finding]:
    found = find_manifest(path, needed=path is not None)
    if found is None:
        yield Finding("manifest", "failsoft.yaml", "ok", "there is none here; tools can be declared in code")
        return
    from failsoft.config.manifest import check, load

    try:
        problems = check(load(read(found), name=found))
    except ManifestError as error:
        yield Finding("manifest", found, "error", error.problems[0], f"failsoft check {found}")
        return
    if problems:
        count = f"{len(problems)} warning{'s' * (len(problems) > 1)}"
        yield Finding("manifest", found, "warning", count, f"failsoft check {found}")
    else:
        yield Finding("manifest", found, "ok", "no mistakes")


def _store(url: str | None) -> Iterator[Finding]:
    if url is None:
        yield Finding("store", "schemes", "ok", ", ".join(known_schemes()), "failsoft doctor --store URL tries one")
        return
    shown = sanitise(url)
    try:
        opened = open_store(url, wall=time.time)
        took = 0.0 if opened is None else _use(opened)
    except FailsoftError as error:
        yield Finding("store", shown, "error", sanitise(str(error)), "write it like sqlite:///failsoft.db")
    except Exception as error:
        why = sanitise(f"{type(error).__name__}: {error}")
        yield Finding("store", shown, "error", why, "check the path, its permissions, and that the disk is not full")
    else:
        detail = (
            "keeps nothing beyond the process" if opened is None else f"written and read back in {took * 1000:.0f} ms"
        )
        yield Finding("store", shown, "ok", detail)


def _use(store: Store) -> float:
    """Write a record, read it back and delete it; return the seconds that took."""
    began = time.monotonic()
    try:
        store.put("memory", _KEY, began, ttl=60.0)
        if store.take("memory", _KEY) != began:
            raise OSError("what was written cannot be read back")
        return time.monotonic() - began
    finally:
        store.close()


def _clock(wall: Callable[[], float], steady: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[Finding]:
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(wall()))
    remedy = "synchronise the clock (NTP): offers, retention and events are dated by it"
    if wall() < _FIRST_RELEASE:
        yield Finding("clock", "wall clock", "error", f"{shown} is in the past", remedy)
        return
    offset = wall() - steady()
    sleep(0.05)
    drift = abs(wall() - steady() - offset)
    if drift > _DRIFT:
        yield Finding("clock", "wall clock", "warning", f"it was set by {drift:.1f} s while this command ran", remedy)
    else:
        yield Finding("clock", "wall clock", "ok", shown)


def _port(port: int) -> Iterator[Finding]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            yield Finding("port", str(port), "warning", f"taken ({error.strerror})", "failsoft serve --port ANOTHER")
        else:
            yield Finding("port", str(port), "ok", "free for failsoft serve")


def _state() -> Iterator[Finding]:
    """Check that ``failsoft serve`` can write to its state directory, without making it."""
    directory = state_directory()
    shown = clean(str(directory))
    try:
        made = next(each for each in (directory, *directory.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=made):
            yield Finding("state", shown, "ok", "failsoft serve can write there")
    except OSError as error:
        remedy = "name another one in FAILSOFT_STATE, or give failsoft serve --store and --tokens"
        yield Finding("state", shown, "warning", f"failsoft serve cannot write there ({error.strerror})", remedy)
    yield from _tokens(directory / "tokens.json")


def _tokens(path: Path) -> Iterator[Finding]:
    """Check the daemon's tokens, if it has made some."""
    if not path.exists():
        return
    try:
        many = len(read_tokens(path))
    except TokenError as error:
        remedy = f"mend {path}, or move it away: failsoft serve makes a new one, with a new token"
        yield Finding("state", "tokens.json", "error", clean(str(error)), clean(remedy))
    else:
        yield Finding("state", "tokens.json", "ok", f"{many} token{'s' if many != 1 else ''} for failsoft serve")


# --- requirements -----------------------------------------------------------------------------------------------------


def requirements() -> Iterator[tuple[str, str, str | None]]:
    """Name, version range and extra of everything that failsoft requires."""
    for line in metadata.requires("failsoft") or ():
        match = _REQUIREMENT.match(line)
        if match is not None:
            yield match["name"], match["allowed"].strip(), match["extra"]


def is_in_range(version: str, allowed: str) -> bool:
    """True if a release number is within a range like ``>=2.7,<3``. Other bounds count as met."""
    numbers = _numbers(version)
    tests: dict[str, Callable[[list[int]], bool]] = {
        ">=": lambda bound: numbers >= bound,
        "<": lambda bound: numbers < bound,
        ">": lambda bound: numbers > bound,
        "<=": lambda bound: numbers <= bound,
    }
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(allowed) if sign in tests)


def _numbers(version: str) -> list[int]:
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return [] if release is None else [int(part) for part in release[0].split(".")]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


# --- output -----------------------------------------------------------------------------------------------------------


def _show(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    area = ""
    for finding in findings:
        word, style = _MARKS[finding.status]
        table.add_row(
            "" if finding.area == area else finding.area,
            clean(finding.name),
            Text(word, style=style),
            clean(finding.detail),
        )
        area = finding.area
    console.print(table)
    todo = [finding for finding in findings if finding.remedy and finding.status != "ok"]
    if todo:
        console.print()
        for finding in todo:
            console.print(f"{clean(finding.name)}: {clean(finding.remedy)}", soft_wrap=True)
    if not any(finding.status == "error" for finding in findings):
        console.print("\nNothing is broken.")
