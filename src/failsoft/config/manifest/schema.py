"""The manifest's JSON Schema, generated from the blocks: every spelling of every key, with descriptions and defaults.

The shipped ``schema/failsoft.schema.json`` is generated here (a test compares them); editors find it by the modeline.
It describes single blocks. Problems that involve several blocks (cycles, contradictions) are found only by the loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from failsoft.config.manifest.block import Block, keys_of
from failsoft.config.manifest.file_blocks import ManifestBlock
from failsoft.core.model.durations import Seconds, text


def schema() -> dict[str, Any]:
    """Return the schema as plain data."""
    made = _tidy(ManifestBlock.model_json_schema())
    blocks = {block.__name__: block for block in _blocks(Block)}
    for name, described in made["$defs"].items():
        _respell(described, blocks[name])
    _respell(made, ManifestBlock)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "failsoft manifest", **made}


def _blocks(block: type[Block]) -> Iterator[type[Block]]:
    for kind in block.__subclasses__():
        yield kind
        yield from _blocks(kind)


def _tidy(value: Any) -> Any:
    """Remove titles, which only repeat the keys, and pydantic's defaults, which mean "not given"."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" in value:
        properties = {name: _tidy(described) for name, described in value["properties"].items()}
        rest = {key: item for key, item in value.items() if key != "properties"}
        return {**_tidy(rest), "properties": properties}
    return {key: _tidy(item) for key, item in value.items() if key not in ("title", "default")}


def _respell(described: dict[str, Any], block: type[Block]) -> None:
    """Add the other spellings of each key. A required key may have any of its spellings."""
    properties: dict[str, Any] = {}
    required = []
    for name, info in block.model_fields.items():
        usual, *others = keys_of(block, name)
        about = {"description": info.description, **_default(block, name)}
        properties[usual] = {**described["properties"][usual], **about}
        for other in others:
            properties[other] = {**described["properties"][usual], "description": f"The same as {usual}."}
        if usual in described.get("required", ()):
            required.append({"anyOf": [{"required": [key]} for key in (usual, *others)]})
    described.pop("required", None)
    described["properties"] = properties
    if required:
        described["allOf"] = required


def _default(block: type[Block], name: str) -> dict[str, Any]:
    """The default of a field, if it is a plain value."""
    for option in fields(block.makes) if block.makes else ():
        if option.name == name and option.default not in (MISSING, None, "", ()):
            default = option.default
            return {"default": text(default) if isinstance(default, Seconds) else default}
    return {}
