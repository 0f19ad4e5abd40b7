"""Entrypoints of a manifest: missing ones make a tool unavailable, broken modules are reported with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from failsoft import ManifestError, Runtime


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The file of a module used by this test only; the manifest beside it names its function ``search``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = re.sub(r"\W", "_", f"tools_{request.node.name}")
    (tmp_path / "failsoft.yaml").write_text(
        f'tools:\n  search:\n    entrypoint: {{function: "{name}:search"}}\n    read_only: true\n'
    )
    return tmp_path / f"{name}.py"


def make(module: Path) -> Runtime:
    return Runtime(module.with_name("failsoft.yaml"))


BROKEN = {
    "syntax": ("def search(:\n    pass\n", r"\.py:1: SyntaxError: \S.*"),
    "indent": ("def search():\npass\n", r"\.py:2: IndentationError: expected an indented block.*"),
    "null byte": ("x = 1\0\n", r"SyntaxError: .*null bytes.*"),
    "its own code": ("import os\n\n1 / 0\n", r"\.py:3: ZeroDivisionError: division by zero"),
    "what it calls": ("import json\n\njson.loads('{')\n", r"\.py:3: \S+decoder\.py:\d+: JSONDecodeError: .*"),
    "no text": ("raise RuntimeError\n", r"\.py:1: RuntimeError"),
    "secret": (
        "raise ValueError('api_key=sk-abcdefghijklmnopqrstuvwxyz123456')\n",
        r".*ValueError: api_key=\[redacted\]",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_module_is_reported_with_file_and_line(module: Path, case: str) -> None:
    source, said = BROKEN[case]
    module.write_text(source)
    with pytest.raises(ManifestError) as raised:
        make(module)
    (problem,) = raised.value.problems
    place = rf"\S+failsoft\.yaml:2:3: tools\.search\.entrypoint\.function: {module.stem} cannot be imported: "
    assert re.fullmatch(f"{place}.*{said}", problem), problem
    assert isinstance(raised.value.__cause__, Exception)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "No module named 'tools_"),
        ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
        ("def seach(): ...\n", "has no attribute 'search'; did you mean seach?"),
    ],
    ids=["no module", "an import of its own", "no function"],
)
def test_a_missing_entrypoint_makes_the_tool_unavailable(module: Path, source: str | None, said: str) -> None:
    if source is not None:
        module.write_text(source)
    rt = make(module)
    assert not rt.health("search").available
    outcome = rt.call_sync("search")
    assert outcome.fault is not None
    assert outcome.fault.category == "tool_unavailable"
    assert said in outcome.fault.message


def test_an_entrypoint_that_is_not_a_function_is_rejected(module: Path) -> None:
    module.write_text("search = 42\n")
    with pytest.raises(
        ManifestError,
        match=r"failsoft\.yaml:2:3: tools\.search\.entrypoint\.function: .*:search is of type int: name a function",
    ):
        make(module)


def test_other_refusals_say_where_as_well(module: Path) -> None:
    module.write_text("search = lambda: 1\n")
    text = module.with_name("failsoft.yaml").read_text() + "    isolation: process\n"
    module.with_name("failsoft.yaml").write_text(text)
    with pytest.raises(ManifestError, match=r"failsoft\.yaml:2:3: tools\.search\.isolation: <lambda> cannot run"):
        make(module)


def test_an_interrupt_while_importing_is_propagated(module: Path) -> None:
    module.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        make(module)
