"""Tell manifests from plans, which are easily confused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from failsoft.config.manifest.file_blocks import ManifestBlock
from failsoft.config.manifest.problem import raise_problems
from failsoft.config.manifest.reading import Document, read

DocumentKind = Literal["manifest", "plan"]

_INSTEAD: dict[DocumentKind, str] = {
    "plan": "this is a manifest, which lists tools; a plan lists calls",
    "manifest": "this is a plan, which lists calls; a manifest lists tools",
}


def find_kind(source: str | bytes) -> DocumentKind | None:
    """Say whether a text is a manifest or a plan; None if neither is recognised."""
    return _look(read(source, name="").value)


def refuse_other(document: Document, wanted: DocumentKind) -> None:
    """Refuse a document of the other kind in one sentence, instead of one error for each key."""
    if _look(document.value) not in (wanted, None):
        raise_problems([document.problem((), _INSTEAD[wanted])])


def _look(value: object) -> DocumentKind | None:
    if not isinstance(value, Mapping):
        return None
    manifest = bool(value.keys() & ManifestBlock.keys().keys())
    if ("calls" in value) == manifest:
        return None
    return "manifest" if manifest else "plan"
