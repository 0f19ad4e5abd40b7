"""The command line as a whole: help, versions, mistakes, completion, both doors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import failsoft
from failsoft.surfaces.cli import cli

COMMANDS = ("demo", "run", "check", "init", "classify", "why", "trace", "completion")


def invoke(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_all_commands_and_exit_codes(option: str) -> None:
    result = invoke(option)
    assert result.exit_code == 0
    assert all(f"  {command}" in result.stdout for command in COMMANDS)
    assert "Exit codes: 0 success, 1 the work failed, 2" in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]  # every line is whole


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = invoke(command, "-h")
    assert result.exit_code == 0
    assert command == "trace" or "Exit code" in result.stdout
    assert command == "trace" or "--json" in result.stdout


@pytest.mark.parametrize("command", ["list", "show", "tail", "export", "replay", "prune"])
def test_every_command_about_traces_explains_itself(command: str) -> None:
    result = invoke("trace", command, "-h")
    assert result.exit_code == 0
    assert "Exit code" in result.stdout
    assert "--json" in result.stdout


def every_option() -> Iterator[tuple[str, click.Option]]:
    waiting: list[tuple[str, click.Command]] = [("failsoft", cli)]
    while waiting:
        name, command = waiting.pop()
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield f"{name} {parameter.opts[-1]}", parameter
        if isinstance(command, click.Group):
            waiting += [(f"{name} {sub}", found) for sub, found in command.commands.items()]


@pytest.mark.parametrize("option", [pytest.param(option, id=name) for name, option in every_option()])
def test_every_option_says_what_it_is_for(option: click.Option) -> None:
    assert option.help
    assert not option.help.startswith("["), "a default alone says nothing"


def test_the_version_is_printed() -> None:
    assert invoke("--version").stdout == f"failsoft {failsoft.__version__}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nope",), "No such command"),
        (("run",), "Missing argument 'PLAN'"),
        (("run", "plan.yaml", "--bogus"), "No such option '--bogus'"),
        (("completion", "powershell"), "'powershell' is not one of"),
        (("classify", " "), "no text to classify"),
    ],
)
def test_wrong_use_is_reported_once_and_exits_with_2(args: tuple[str, ...], message: str) -> None:
    result = invoke(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.replace("Error: ", "")
    assert "Try: failsoft" in result.stderr
    assert "Traceback" not in result.stderr


def test_wrong_use_is_reported_as_json_with_the_json_option() -> None:
    result = invoke("run", "--json", "--bogus")
    assert (result.exit_code, result.stderr) == (2, "")
    error = json.loads(result.stdout)["error"]
    assert error["exit_code"] == 2
    assert "--bogus" in error["message"]
    assert error["hint"] == "Try: failsoft run --help"
    assert invoke("classify", "--", "--json").stdout.startswith("UNKNOWN")  # after -- it is a text like others


@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o"), ("zsh", "#compdef failsoft"), ("fish", "complete")]
)
def test_every_shell_has_a_completion_script(shell: str, sign: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert sign in result.stdout
    assert "_FAILSOFT_COMPLETE" in result.stdout
    told = json.loads(invoke("completion", shell, "--json").stdout)
    assert told == {"shell": shell, "script": result.stdout.removesuffix("\n")}


def test_completion_answers_the_shell() -> None:
    env = {**os.environ, "_FAILSOFT_COMPLETE": "bash_complete", "COMP_WORDS": "failsoft c", "COMP_CWORD": "1"}
    ended = subprocess.run([sys.executable, "-m", "failsoft"], env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["plain,check", "plain,classify", "plain,completion"]


def test_the_module_and_the_script_run_the_same_program() -> None:
    ended = subprocess.run([sys.executable, "-m", "failsoft", "--version"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"failsoft {failsoft.__version__}\n")
    scripts = Path(failsoft.__file__).parents[2] / "pyproject.toml"
    assert 'failsoft = "failsoft.surfaces.cli:main"' in scripts.read_text()


def test_help_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys, contextlib\nfrom failsoft.surfaces.cli import cli\n"
        "with contextlib.suppress(SystemExit): cli.main(['--help'])\n"
        "print('LOADED', *(name for name in ('rich', 'pydantic', 'yaml', 'failsoft.analysis.waterfall') if name in sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "LOADED "[:-1]


@pytest.mark.parametrize("args", [(), ("trace",)], ids=["failsoft", "failsoft trace"])
def test_a_missing_command_is_answered_with_help(args: tuple[str, ...]) -> None:
    result = invoke(*args)
    assert result.exit_code in (0, 2)  # by click's version
    told = result.stdout + result.stderr
    assert told == invoke(*args, "--help").stdout


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(main: Coroutine[Any, Any, Any]) -> None:
        main.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run", interrupt)
    result = invoke("demo", "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["error"]["message"] == "stopped"
