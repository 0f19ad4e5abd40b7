"""``failsoft doctor``: it finds what is broken, and says how to fix it."""

from __future__ import annotations

import json
import socket
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from failsoft.surfaces.cli import cli
from failsoft.surfaces.cli import doctor as module
from failsoft.surfaces.cli.doctor import is_in_range, requirements
from failsoft.surfaces.daemon.tokens import open_tokens


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_EXTRAS", {"langchain": "failsoft.adapters.langchain"})  # one is enough, and faster


def doctor(*args: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", "--port", str(free_port()), *args])


def found(*args: str) -> dict[str, dict[str, Any]]:
    answer = json.loads(doctor("--json", *args).stdout)
    return {finding["name"]: finding for finding in answer["findings"]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_sound_installation_has_nothing_broken() -> None:
    result = doctor()
    assert result.exit_code == 0
    assert "Nothing is broken." in result.stdout
    names = found()
    assert names["failsoft"]["area"] == "versions"
    assert names["langchain"]["detail"].endswith("failsoft.adapters.langchain can be used")
    assert {finding["status"] for finding in names.values()} <= {"ok", "missing"}


def test_every_extra_is_looked_at() -> None:
    extras = {extra for _, _, extra in requirements() if extra not in (None, "all")}
    assert {"pydantic-ai", "langchain", "openai-agents"} <= extras
    assert extras == {name for name, finding in found().items() if finding["area"] == "extras"}


def test_an_extra_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_installed", lambda name: None if name == "langchain" else metadata.version(name))
    langchain = found()["langchain"]
    assert langchain["status"] == "missing"
    assert langchain["remedy"] == 'pip install "failsoft[langchain]"'
    assert doctor().exit_code == 0
    assert 'langchain: pip install "failsoft[langchain]"' in doctor().stdout


def test_a_framework_that_is_too_old_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_installed", lambda name: "0.3.1" if name == "langchain" else metadata.version(name))
    assert found()["langchain"]["status"] == "error"
    assert "langchain 0.3.1 is not" in found()["langchain"]["detail"]
    assert doctor().exit_code == 1


def test_an_adapter_that_cannot_be_imported_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EXTRAS", {"langchain": "failsoft.adapters.no_such_module"})
    assert found()["langchain"]["status"] == "error"
    assert "ModuleNotFoundError" in found()["langchain"]["detail"]


def test_a_store_is_written_and_read_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/failsoft.db"
    assert found("--store", url)[url]["detail"].startswith("written and read back in")
    assert found("--store", "memory:")["memory:"]["detail"] == "keeps nothing beyond the process"


@pytest.mark.parametrize(
    ("url", "detail"), [("sqlite:////proc/failsoft/a.db", "cannot be read back"), ("foo://x", "no store is known")]
)
def test_a_store_that_cannot_be_used_is_an_error(url: str, detail: str) -> None:
    finding = found("--store", url)[url]
    assert finding["status"] == "error"
    assert detail in finding["detail"]
    assert finding["remedy"]


def test_a_password_in_the_address_of_a_store_is_not_shown() -> None:
    result = doctor("--store", "postgresql://me:k7Xq-geheim9@db/failsoft")
    assert result.exit_code == 1
    assert "geheim9" not in result.output


def test_mistakes_in_a_manifest_are_named() -> None:
    Path("failsoft.yaml").write_text("tools: {pay: {timeout: soon}}\n")
    finding = found()["failsoft.yaml"]
    assert finding["status"] == "error"
    assert "timeout" in finding["detail"]
    assert finding["remedy"] == "failsoft check failsoft.yaml"
    Path("failsoft.yaml").write_text("tools: {pay: {timeout: 3s, read_only: false, idempotent: false}}\n")
    assert found()["failsoft.yaml"]["status"] == "ok"


def test_a_port_that_is_taken_is_a_warning() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(cli, ["doctor", "--json", "--port", port])
    (finding,) = [one for one in json.loads(result.stdout)["findings"] if one["area"] == "port"]
    assert finding["status"] == "warning"
    assert finding["remedy"] == "failsoft serve --port ANOTHER"


@pytest.mark.parametrize(("text", "mode", "said"), [("{", 0o600, "is not a token file"), ("{}", 0o644, "chmod 600")])
def test_tokens_that_the_daemon_refuses_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, mode: int, said: str
) -> None:
    monkeypatch.setenv("FAILSOFT_STATE", str(tmp_path))
    assert "tokens.json" not in found()
    path = tmp_path / "tokens.json"
    open_tokens(path)
    assert found()["tokens.json"]["detail"] == "1 token for failsoft serve"
    path.write_text(text)
    path.chmod(mode)
    assert doctor().exit_code == 1
    broken = found()["tokens.json"]
    assert (broken["status"], said in broken["detail"]) == ("error", True)
    assert "makes a new one" in broken["remedy"]


def test_a_state_directory_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_STATE", str(tmp_path / "a" / "b"))
    assert found()[str(tmp_path / "a" / "b")]["status"] == "ok"
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").touch()
    for odd in (str(tmp_path / "file"), str(tmp_path / "file" / "b")):
        monkeypatch.setenv("FAILSOFT_STATE", odd)
        assert found()[odd]["status"] == "warning"
        assert "FAILSOFT_STATE" in found()[odd]["remedy"]


def test_a_wall_clock_that_jumps_or_is_years_behind_is_named() -> None:
    def findings(*walls: float) -> list[str]:
        times = iter(walls)
        return [one.status for one in module._clock(lambda: next(times), lambda: 0.0, lambda _: None)]

    assert findings(1e6, 1e6) == ["error"]
    assert findings(1.8e9, 1.8e9, 1.8e9, 1.8e9 + 60) == ["warning"]
    assert findings(1.8e9, 1.8e9, 1.8e9, 1.8e9) == ["ok"]


@pytest.mark.parametrize(
    ("version", "allowed", "is_in"),
    [
        ("2.7", ">=2.7,<3", True),
        ("2.6.9", ">=2.7,<3", False),
        ("3.0.0", ">=2.7,<3", False),
        ("2.10.1", ">=2.7", True),
        ("1.0rc1", ">=1.0", True),
        ("5", "", True),
    ],
)
def test_version_ranges(version: str, allowed: str, is_in: bool) -> None:
    assert is_in_range(version, allowed) is is_in
