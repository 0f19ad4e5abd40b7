"""T26: YAML took the last of two keys, ``1:30`` for 90, ``no`` for False, bombs for food. Here: refused, with the place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from failsoft import ManifestError, Runtime

HEAD = "version: 1\ntools:\n  search:\n    "
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)

REFUSED = {
    "duplicate key": (f"{HEAD}timeout: 1s\n    timeout: 2s\n", ":5:5: "),
    "duplicate tool": (f"{HEAD}timeout: 1s\n  search:\n    timeout: 2s\n", ":5:3: "),
    "sexagesimal": (f"{HEAD}timeout: 1:30\n", ":4:14: "),
    "no": (f"{HEAD}read_only: no\n", ":4:16: "),
    "on": (f"{HEAD}read_only: on\n", ":4:16: "),
    "octal": (f"{HEAD}retry: {{max_attempts: 010}}\n", ":4:27: "),
    "date": (f"{HEAD}label: 2025-11-05\n", ":4:12: "),
    "alias": (f"{HEAD}tags: [*x]\n", ":4:12: "),
    "anchor": (f"{HEAD}tags: &x [a]\n", ":4:11: "),
    "merge key": (f"{HEAD}<<: {{timeout: 1s}}\n", ":4:5: "),
    "tag": (f"{HEAD}label: !!python/object/apply:os.system ['true']\n", ":4:12: "),
    "no unit": (f"{HEAD}timeout: 30\n", ":4:14: "),
    "not a number": (f"{HEAD}retry: {{multiplier: .nan}}\n", ":4:25: "),
    "unknown key": (f"{HEAD}tiemout: 30s\n", ":4:5: "),
    "bomb": (BOMB, ":1:5: "),
    "20,000 levels": ("[" * 20_000, ":1:33: "),
    "20,000 mappings": ("{a: " * 20_000, ":1:"),
    "33 levels": ("version: " + "[" * 33 + "]" * 33, ":1:"),
    "256 kB and a byte": ("#" * 262_145, ":1:1: "),
    "two documents": ("version: 1\n---\nversion: 1\n", ":2:1: "),
    "tab": ("version: 1\ntools:\n\tsearch: {}\n", ":3:1: "),
}


@pytest.mark.parametrize(("source", "place"), REFUSED.values(), ids=REFUSED.keys())
def test_t26_ambiguous_yaml_is_rejected_with_its_place(source: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "failsoft.yaml"
    path.write_text(source)
    began = time.process_time()
    with pytest.raises(ManifestError) as refused:
        Runtime(manifest=path)
    assert time.process_time() - began < 5
    assert f"failsoft.yaml{place}" in str(refused.value)


def test_t26_unambiguous_values_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "failsoft.yaml"
    path.write_text(f'{HEAD}timeout: 1m30s\n    read_only: true\n    label: "no"\n')
    rt = Runtime(manifest=path)

    async def search() -> None: ...

    rt.add(search)
    options = rt._engine.toolbox.tools["search"].options
    assert (options.timeout, options.read_only, options.label) == (90.0, True, "no")
