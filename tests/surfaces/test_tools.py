"""``failsoft tools``: the known effects of each tool and their source."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from failsoft.surfaces.cli import cli

MANIFEST = """\
tools:
  weather: {entrypoint: {function: "tools_of_test_tools:weather"}}
  pay: {entrypoint: {function: "tools_of_test_tools:pay"}}
  oracle: {entrypoint: {function: "tools_of_test_tools:oracle"}}
  ask: {read_only: true}
  search_in_code: {timeout: 3s}
"""
CODE = '''\
from failsoft import Runtime

async def weather(city):
    """Get the weather.

    More about it."""

def pay(amount): ...

def oracle(): ...

rt = Runtime()
rt.add(pay)
'''


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    Path("failsoft.yaml").write_text(MANIFEST)
    Path("tools_of_test_tools.py").write_text(CODE)
    yield
    sys.modules.pop("tools_of_test_tools", None)


def tools(*args: str) -> Result:
    return CliRunner().invoke(cli, ["tools", *args])


def test_each_tool_of_a_manifest_is_listed_with_its_reason() -> None:
    result = tools()
    assert result.exit_code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in result.stdout.splitlines()}
    assert lines["weather"] == 'read recognised yes its description says "Get"'
    assert lines["pay"] == 'write recognised unless it may have acted "pay" in its name'
    assert lines["oracle"] == "neither unknown even if it may have acted its name and description do not say"
    assert lines["ask"] == "read declared yes declared read-only"
    assert lines["search_in_code"] == 'read recognised yes "search" in its name'
    assert "Declare read_only: true" in result.stdout
    assert result.stderr == ""


def test_tools_are_listed_as_json() -> None:
    listed = json.loads(tools("--json").stdout)["tools"]
    assert [tool["id"] for tool in listed] == ["weather", "pay", "oracle", "ask", "search_in_code"]
    assert listed[0] == {
        "id": "weather",
        "description": "Get the weather.",
        "effect": "read",
        "effect_source": "recognised",
        "effect_reason": 'its description says "Get"',
        "safe_to_repeat": True,
    }


def test_the_tools_of_a_runtime_in_code() -> None:
    listed = json.loads(tools("tools_of_test_tools:rt", "--json").stdout)["tools"]
    assert [(tool["id"], tool["effect"]) for tool in listed] == [("pay", "write")]


def test_the_manifests_undeclared_setting_applies() -> None:
    Path("failsoft.yaml").write_text(f"undeclared: never_repeat\n{MANIFEST}")
    listed = json.loads(tools("--json").stdout)["tools"]
    assert [tool["safe_to_repeat"] for tool in listed] == [False, False, False, True, False]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("nowhere:rt",), "nowhere:rt cannot be found"),
        (("tools_of_test_tools:missing",), "cannot be found"),
        (("tools_of_test_tools:pay",), "is of type function: expected a Runtime"),
        (("tools_of_test_tools",), "expected a Runtime"),
        (("", "-m", "failsoft.yaml"), "give a manifest or a Runtime"),
        (("-m", "missing.yaml"), "cannot be read"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_an_unusable_target_is_reported(args: tuple[str, ...], says: str, as_json: bool) -> None:
    result = tools(*args, *(["--json"] if as_json else []))
    assert result.exit_code == 2
    assert says in (json.loads(result.stdout)["error"]["message"] if as_json else result.stderr)


def test_a_manifest_without_tools() -> None:
    Path("failsoft.yaml").write_text("turn: {timeout: 5s}")
    assert tools().stdout == "There are no tools.\n"
