"""Every torture test has a protection that can be taken out, and a line in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.torture.protections import PROTECTIONS, Protection

ROOT = Path(__file__).parents[2]
LATER = {12}  # needs a shared store


def numbers_of(names: list[str]) -> list[int]:
    return [int(name) for name in names]


def test_every_number_has_its_test_its_protection_and_its_line() -> None:
    modules = numbers_of([path.name[6:8] for path in sorted(Path(__file__).parent.glob("test_t[0-9][0-9]_*.py"))])
    lines = re.findall(r"^\| T(\d+) \|", (ROOT / "docs" / "torture.md").read_text(), re.MULTILINE)
    assert {number for number in range(1, 29) if number not in LATER} <= {*modules}
    assert [*PROTECTIONS] == modules
    assert numbers_of(lines) == modules


@pytest.mark.parametrize("protection", PROTECTIONS.values(), ids=[f"T{number}" for number in PROTECTIONS])
def test_every_patch_still_fits(protection: Protection) -> None:
    source = (ROOT / "src" / "failsoft" / protection.file).read_text()
    assert source.count(protection.old) == 1
    compile(source.replace(protection.old, protection.new), protection.file, "exec")
