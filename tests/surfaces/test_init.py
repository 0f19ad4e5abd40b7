"""``failsoft init``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from failsoft.config.manifest import load, schema
from failsoft.surfaces.cli import cli


def test_the_written_manifest_loads_and_passes_check(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["init", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    manifest = tmp_path / "new" / "failsoft.yaml"
    assert manifest.read_text().startswith("# yaml-language-server: $schema=failsoft.schema.json\n")
    assert load(manifest.read_bytes()).tools
    assert json.loads((tmp_path / "new" / "failsoft.schema.json").read_text()) == schema()
    checked = CliRunner().invoke(cli, ["check", "--manifest", str(manifest)])
    assert (checked.exit_code, checked.stdout) == (0, f"{manifest}: ok\n")


def test_init_overwrites_files_only_with_force(tmp_path: Path) -> None:
    mine = tmp_path / "failsoft.yaml"
    mine.write_text("version: 1\n")
    result = CliRunner().invoke(cli, ["init", str(tmp_path)])
    assert result.exit_code == 2
    assert f"{mine} already exists: nothing was written" in result.stderr
    assert "--force" in result.stderr
    assert mine.read_text() == "version: 1\n"
    assert not (tmp_path / "failsoft.schema.json").exists()
    assert CliRunner().invoke(cli, ["init", str(tmp_path), "--force"]).exit_code == 0
    assert "tools:" in mine.read_text()


def test_written_files_are_listed_as_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["init", "--json", str(tmp_path)])
    assert json.loads(result.stdout) == {
        "written": [str(tmp_path / "failsoft.yaml"), str(tmp_path / "failsoft.schema.json")]
    }
    result = CliRunner().invoke(cli, ["init", "--json", str(tmp_path)])
    assert result.exit_code == 2
    assert "already exist" in json.loads(result.stdout)["error"]["message"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli, ["init", str(tmp_path / "file" / "below")])
    assert result.exit_code == 2
    assert result.stderr.endswith(" is not a directory\nName a directory; it is created if needed.\n")
    no_place = "/proc/nothing" if Path("/proc").exists() else "\0"
    assert "cannot be written" in CliRunner().invoke(cli, ["init", no_place]).stderr


def test_the_suggested_next_step_names_the_target_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init"]).stdout.endswith("into failsoft.yaml, then run failsoft check.\n")
    there = "into there/failsoft.yaml, then run failsoft check --manifest there/failsoft.yaml.\n"
    assert CliRunner().invoke(cli, ["init", "there"]).stdout.endswith(there)
