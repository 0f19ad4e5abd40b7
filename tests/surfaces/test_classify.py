"""``failsoft classify``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from failsoft import classify
from failsoft.surfaces.cli import cli


def test_classify_prints_the_fault_and_its_rule() -> None:
    result = CliRunner().invoke(cli, ["classify", "503 Service Unavailable, retry after 20s"])
    fault = classify("503 Service Unavailable, retry after 20s")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{fault.code.value}  transient, tool_transient\n")
    for words in (fault.rule, fault.reason, "can help, if repeating the tool is safe", "wait at least 20 s"):
        assert words in result.stdout


def test_a_permanent_error_is_not_retried() -> None:
    result = CliRunner().invoke(cli, ["classify", "401 Unauthorized"])
    assert result.stdout.startswith("UNAUTHENTICATED  permanent, tool_misconfigured\n")
    assert "retry        does not help" in result.stdout
    assert "effect       none: the tool has not acted" in result.stdout


def test_as_json_it_is_the_fault() -> None:
    result = CliRunner().invoke(cli, ["classify", "--json", "429 Too Many Requests"])
    assert json.loads(result.stdout) == classify("429 Too Many Requests").to_dict()


def test_a_text_may_come_from_standard_input() -> None:
    result = CliRunner().invoke(cli, ["classify", "-", "--json"], input="connection refused\n")
    assert json.loads(result.stdout) == classify("connection refused").to_dict()
    result = CliRunner().invoke(cli, ["classify", "-"], input=b"\xff\xfe" + b"x" * 1_000_000)
    assert (result.exit_code, len(result.stdout) < 20_000) == (0, True)


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred\x1b[0m", "[red]red[/red]", "[link=http://x]here[/link]", "\x07:smile:"]
)
def test_hostile_text_is_shown_as_text(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = CliRunner().invoke(cli, ["classify", "--", hostile]).stdout
    text = shown.splitlines()[-1]
    assert "\x1b[31m" not in text
    assert "\x1b]8" not in text
    assert "\x07" not in text
    visible = hostile if "\x1b" not in hostile and "\x07" not in hostile else hostile[-6:].removeprefix("\x1b[0m")
    assert "red" in text if "red" in hostile else visible in text
    if hostile.startswith("["):
        assert hostile in text  # markup is not interpreted


def test_colours_are_the_user_s_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in CliRunner().invoke(cli, ["classify", "503"]).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in CliRunner().invoke(cli, ["classify", "503"]).stdout
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in CliRunner().invoke(cli, ["classify", "503"]).stdout
