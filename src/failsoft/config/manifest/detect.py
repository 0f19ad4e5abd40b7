"""Which of the two a file is, a manifest or a plan: they are easily taken for each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from failsoft.config.manifest.file_blocks import ManifestBlock
from failsoft.config.manifest.problem import raise_problems
from failsoft.config.manifest.reading import Document, read

Kind = Literal["manifest", "plan"]

_INSTEAD: dict[Kind, str] = {
    "plan": "this is a manifest, it says what tools there are; a plan lists calls",
    "manifest": "this is a plan, it lists calls; a manifest says what tools there are",
}


def find_kind(source: str | bytes) -> Kind | None:
    """What a file's text is, None if that cannot be seen."""
    return _look(read(source, name="").value)


def refuse_other(document: Document, wanted: Kind) -> None:
    """Raise for a document that is the other one: one sentence, and not that each of its keys is unknown."""
    if _look(document.value) not in (wanted, None):
        raise_problems([document.problem((), _INSTEAD[wanted])])


def _look(value: object) -> Kind | None:
    if not isinstance(value, Mapping):
        return None
    manifest = bool(value.keys() & ManifestBlock.keys().keys())
    if ("calls" in value) == manifest:
        return None
    return "manifest" if manifest else "plan"
