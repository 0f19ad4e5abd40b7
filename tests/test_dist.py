"""The distributions: built offline and inspected. ``make dist`` installs them as well."""

from __future__ import annotations

import shutil
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tools import dist_check
from tools.dist_check import Unfit

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as it is now."""
    copy = tmp_path_factory.mktemp("dist") / "failsoft"
    kept = shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
    shutil.copytree(ROOT, copy, ignore=kept)
    shutil.copy(ROOT / ".gitignore", copy)
    return copy


@pytest.fixture(scope="module")
def built(source: Path) -> tuple[Path, Path]:
    return dist_check.build(source, source.parent / "built")


@pytest.mark.slow
def test_the_wheel_has_the_library_and_nothing_else(built: tuple[Path, Path], source: Path) -> None:
    assert dist_check.check_wheel(built[0], source) > 150


@pytest.mark.slow
def test_the_sdist_has_what_the_tests_need_and_gives_the_same_wheel(
    built: tuple[Path, Path], source: Path, tmp_path: Path
) -> None:
    assert dist_check.check_sdist(built[1], source) > 400
    dist_check.check_same(*built, tmp_path)


def without(*names: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: {name: data for name, data in files.items() if not name.endswith(names)}


SPOILED: dict[str, tuple[Callable[[dict[str, bytes]], dict[str, bytes]], str]] = {
    "no py.typed": (without("py.typed"), "lacks: failsoft/py.typed"),
    "no licence": (without("LICENSE"), "lacks: .*licenses/LICENSE"),
    "no schema": (without("schema.json"), "lacks: failsoft/schema/failsoft.schema.json"),
    "no example": (without("example.jsonl"), "lacks: failsoft/surfaces/cli/example.jsonl"),
    "tests": (lambda files: {**files, "tests/test_x.py": b""}, "nobody needs: tests/test_x.py"),
    "bench": (lambda files: {**files, "failsoft/bench/s1.py": b""}, "nobody needs: failsoft/bench/s1.py"),
    "somebody else's": (lambda files: {**files, "other/__init__.py": b""}, "not ours: other/__init__.py"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SPOILED)
def test_a_wheel_that_is_not_right_is_noticed(
    built: tuple[Path, Path], source: Path, tmp_path: Path, case: str
) -> None:
    spoil, said = SPOILED[case]
    with zipfile.ZipFile(built[0]) as archive:
        files = spoil({name: archive.read(name) for name in archive.namelist()})
    with zipfile.ZipFile(tmp_path / built[0].name, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(Unfit, match=said):
        dist_check.check_wheel(tmp_path / built[0].name, source)


def test_every_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {*dist_check.EXTRAS, "all"} == {*project["project"]["optional-dependencies"]}


def test_every_extra_is_imported_by_the_library() -> None:
    assert dist_check.check_extras() == len(dist_check.EXTRAS) + 1


@pytest.mark.parametrize("requirement", ["redis>=5", "Some_Engine[x]>=3; python_version > '3'", "dbos"])
def test_an_extra_that_no_code_uses_is_noticed(requirement: str) -> None:
    project = {"project": {"name": "failsoft", "optional-dependencies": {"idle": [requirement]}}}
    with pytest.raises(Unfit, match=r"nothing in src imports .*: idle \((redis|some-engine|dbos)\)"):
        dist_check.check_extras(project)


def test_readmes_first_code_is_found() -> None:
    assert "rt.call(" in dist_check.first_code()
