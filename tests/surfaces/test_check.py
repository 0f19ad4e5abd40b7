"""``failsoft check``."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from failsoft.surfaces.cli import cli
from failsoft.surfaces.cli.console import CommandError
from failsoft.surfaces.cli.files import read

GOOD = """\
tools:
  search: {entrypoint: {function: "tools:search"}, read_only: true}
"""
WARNS = """\
turn: {timeout: 5s}
tools:
  oracle: {entrypoint: {function: "tools:oracle"}}
"""
BAD = """\
tools:
  search:
    entrypoint: {function: "tools:search"}
    timeout: 30
    retries: 3
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(*args: str, manifest: str | None = GOOD, **plans: str) -> Result:
    if manifest is not None:
        Path("failsoft.yaml").write_text(manifest)
    for name, text in plans.items():
        Path(f"{name}.yaml").write_text(text)
    return CliRunner().invoke(cli, ["check", *args])


def test_a_sound_manifest_has_no_findings() -> None:
    result = check()
    assert (result.exit_code, result.stdout) == (0, "failsoft.yaml: ok\n")


def test_all_errors_with_their_places() -> None:
    result = check(manifest=BAD)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("failsoft.yaml:4:14: error: tools.search.timeout: ")
    assert lines[1].startswith("failsoft.yaml:5:5: error: tools.search.retries: ")
    assert lines[-1] == "failsoft.yaml: 2 errors, 0 warnings"


def test_warnings_are_errors_only_when_that_is_asked_for() -> None:
    result = check(manifest=WARNS)
    assert result.exit_code == 0
    assert "failsoft.yaml:3:3: warning: tools.oracle: its effects are not declared" in result.stdout
    assert "of this tool can take" in result.stdout
    assert check("--strict", manifest=WARNS).exit_code == 1
    assert check("--strict").exit_code == 0


@pytest.mark.parametrize(("undeclared", "warned"), [("recognise", 1), ("as_specified", 3), ("never_repeat", 0)])
def test_only_tools_whose_names_do_not_say_what_they_do_are_warned_about(undeclared: str, warned: int) -> None:
    result = check(manifest=f"undeclared: {undeclared}\ntools: {{oracle: {{}}, get_weather: {{}}, pay: {{}}}}")
    assert result.stdout.count("its effects are not declared") == warned


def test_plans_are_held_against_the_manifest() -> None:
    plan = "calls:\n  - {id: a, tool: search}\n  - {id: b, tool: elsewhere, args: {x: {$ref: a}}}\n"
    result = check("plan.yaml", plan=plan)
    assert result.exit_code == 1
    assert "plan.yaml:3:5: error: calls[1].tool: elsewhere is not in the manifest" in result.stdout
    result = check("plan.yaml", "other.yaml", manifest=BAD, plan=plan, other="calls: [{tool: search, depends_on: [x]}]")
    assert result.exit_code == 1
    assert "failsoft.yaml:4:14: error" in result.stdout
    assert "other.yaml:1:" in result.stdout


def test_a_plan_can_be_checked_alone() -> None:
    result = check("plan.yaml", manifest=None, plan="calls: [{tool: search}]")
    assert (result.exit_code, result.stdout) == (0, "plan.yaml: ok\n")
    Path("plans").mkdir()
    Path("plan.yaml").rename("plans/plan.yaml")
    assert check("plans/plan.yaml", manifest=None).stdout == "plans/plan.yaml: ok\n"


def test_a_manifest_may_be_named_like_a_plan() -> None:
    assert check("failsoft.yaml").stdout == "failsoft.yaml: ok\n"
    result = check("other.yaml", other=BAD)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "other.yaml: 2 errors, 0 warnings"
    plan = "calls: [{tool: elsewhere}]"
    result = check("plan.yaml", "other.yaml", manifest=BAD, other=GOOD, plan=plan)
    assert "calls[0].tool: elsewhere is not in the manifest" in result.stdout
    assert result.stdout.splitlines()[-1] == "plan.yaml, other.yaml: 1 error, 0 warnings"
    result = check("one.yaml", "two.yaml", one=WARNS, two=GOOD)
    assert result.stdout.splitlines()[-1] == "one.yaml, two.yaml: 0 errors, 2 warnings"
    result = check("plan.yaml", "one.yaml", "two.yaml", one=WARNS, two=GOOD, plan=plan)
    assert result.exit_code == 2
    assert "one.yaml and two.yaml are both manifests" in result.stderr
    known = "calls: [{tool: search}]"
    assert check("plan.yaml", "one.yaml", "--manifest", "two.yaml", one=WARNS, two=GOOD, plan=known).exit_code == 0


def test_a_plan_that_is_given_for_a_manifest() -> None:
    result = check("--manifest", "plan.yaml", plan="timeout: 3s\ncalls: [{tool: search}]")
    assert result.exit_code == 1
    assert "plan.yaml:1:1: error: this is a plan, which lists calls" in result.stdout


def test_findings_can_be_read_as_json() -> None:
    result = check("--json", manifest=BAD)
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert (said["ok"], said["errors"], said["warnings"], said["checked"]) == (False, 2, 0, ["failsoft.yaml"])
    first = said["problems"][0]
    assert (first["severity"], first["file"], first["line"], first["column"]) == ("error", "failsoft.yaml", 4, 14)
    assert first["message"].startswith("tools.search.timeout: ")
    assert first["place"] == "failsoft.yaml:4:14"
    assert json.loads(check("--json").stdout)["ok"] is True


@pytest.mark.parametrize(
    ("entrypoint", "said"),
    [
        ('{function: "there_of_test_check:search"}', ""),
        ("{command: [python3]}", ""),
        ('{function: "there_of_test_check:NUMBER"}', "there_of_test_check:NUMBER is of type int: name a function"),
        ('{function: "there_of_test_check:serch"}', "has no attribute 'serch'; did you mean search?"),
        ('{function: "nowhere_of_test_check:f"}', "No module named 'nowhere_of_test_check': install it, or start in"),
        ('{function: "broken_of_test_check:f"}', "broken_of_test_check.py:1: OSError: no licence"),
        ('{function: "ends_of_test_check:f"}', "importing its module exits the program"),
        ("{command: [no-such-program, -x]}", "program no-such-program not found: install it"),
    ],
)
def test_the_tools_option_checks_that_entrypoints_exist(entrypoint: str, said: str) -> None:
    Path("there_of_test_check.py").write_text("def search(): ...\nNUMBER = 3")
    Path("broken_of_test_check.py").write_text("raise OSError('no licence')")
    Path("ends_of_test_check.py").write_text("raise SystemExit")
    manifest = f"tools:\n  code: {{read_only: true}}\n  it: {{entrypoint: {entrypoint}, read_only: true}}\n"
    assert check(manifest=manifest).exit_code == ("serch" in entrypoint)  # the module's text shows that one
    result = check("--tools", manifest=manifest)
    assert result.exit_code == bool(said)
    assert said in result.stdout
    assert ("failsoft.yaml:3:3: error: tools.it" in result.stdout) == bool(said)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("idempotency_key: order", "idempotency_key: the function has no parameter 'order' to receive it"),
        ("isolation: process", "isolation: <lambda> cannot run in a process"),
        ("output: {type: arry}", "output: is not a JSON Schema: $.type: 'arry' is not one of"),
    ],
)
def test_an_option_that_does_not_fit_the_function_is_reported_with_its_field(option: str, said: str) -> None:
    Path("options_of_test_check.py").write_text("search = lambda: 1")
    entrypoint = '{function: "options_of_test_check:search"}'
    result = check("--tools", manifest=f"tools:\n  it: {{entrypoint: {entrypoint}, {option}}}\n")
    assert f"failsoft.yaml:2:3: error: tools.it.{said}" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "there is no failsoft.yaml here"),
        (("--manifest", "nowhere.yaml"), "nowhere.yaml: cannot be read: No such file or directory"),
        (("nowhere.yaml",), "nowhere.yaml: cannot be read"),
        (("--manifest", "."), ".: cannot be read: Is a directory"),
    ],
)
def test_files_that_are_not_there(args: tuple[str, ...], message: str) -> None:
    result = check(*args, manifest=None)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    as_json = check(*args, "--json", manifest=None)
    assert as_json.exit_code == 2
    assert message in json.loads(as_json.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("failsoft.yml", "Did you mean failsoft.yaml?"),
        ("quite/elsewhere.yaml", "There is no directory quite: look at the path."),
        ("nothing-alike", "Look at the name, and at the directory you are in."),
        (".", "Try: failsoft.yaml"),
        ("..", "It is a directory: name a file."),
    ],
)
def test_an_unreadable_file_is_answered_with_a_hint(name: str, hint: str) -> None:
    assert check(name).stderr.splitlines()[1:] == [hint]


def test_a_file_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CommandError) as refused:
        read("failsoft.yaml")
    assert str(refused.value) == "failsoft.yaml: cannot be read: Permission denied"
    assert refused.value.hint == "Your user may not read it: look at its permissions."


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_file_without_end() -> None:
    assert "/dev/zero:1:1: error: is larger than 256 kB" in check("--manifest", "/dev/zero").stdout


def test_invalid_yaml_and_hostile_keys_are_reported_as_plain_text() -> None:
    assert "failsoft.yaml:1:" in check(manifest="tools: [").stdout
    result = check(manifest='"[red]\\e[31m": 1\n')
    assert result.exit_code == 1
    assert "[red]" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def search(): ...", False),
        ("def other(): ...", True),
        ("from other import search", False),
        ("from other import *", False),
        ("import search.deep", False),
        ("search = other = None", False),
        ("if True:\n    def search(): ...", False),
        ("def __getattr__(name): ...", False),
        ("globals()['search'] = print", False),
        ("def (", False),  # --tools says what is wrong
    ],
)
def test_functions_that_a_module_does_not_define_are_found_without_importing_it(text: str, found: bool) -> None:
    Path("text_of_test_check.py").write_text(text + "\n" + "1 / 0")
    manifest = 'tools:\n  search: {entrypoint: {function: "text_of_test_check:search"}, read_only: true}\n'
    result = check(manifest=manifest)
    assert result.exit_code == found
    message = "failsoft.yaml:2:3: error: tools.search.entrypoint.function: text_of_test_check has no search"
    assert (message in result.stdout) == found
