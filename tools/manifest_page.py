"""Write docs/reference/manifest.md from the manifest's JSON Schema: ``python -m tools.manifest_page``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from tools.manifest_words import INTRO, PLAN, PLANS, SECTIONS, Section
from tools.pages import DOCS, table, write

from failsoft.config.manifest.block import Block, keys_of
from failsoft.config.manifest.plan import CallBlock, PlanBlock
from failsoft.config.manifest.schema import schema
from failsoft.core.model.entrypoint import Command
from failsoft.core.model.options import Isolation
from failsoft.core.model.rates import RATE_PATTERN

PAGE = DOCS / "reference" / "manifest.md"
_DEFAULTS = {  # defaults that the schema cannot know because they depend on another block
    "memory": "advise",
    "undeclared": "recognise",
    "language": "en",
    "isolation": Isolation().kind,
    "max_output": "10MB",
    "even_if_effect_unknown": False,
}
assert Command(argv=["x"]).max_output == 10_000_000


def _type(described: Mapping[str, Any]) -> str:
    """Name a schema's type in a word or two."""
    if "$ref" in described:
        return f"[{_titles()[described['$ref'].rpartition('/')[2]]}](#{_anchor(described['$ref'].rpartition('/')[2])})"
    if "anyOf" in described:
        kinds = list(dict.fromkeys(_type(one) for one in described["anyOf"]))
        if kinds[1:] == [f"list of {kinds[0]}"]:
            return f"{kinds[0]}; or a list of them"
        return (
            " or ".join(kinds).replace("true or false or", "true, false or").replace("size or whole number ≥ 1", "size")
        )
    if "enum" in described:
        return "code" if "DATA_LOSS" in described["enum"] else ", ".join(f"`{_yaml(one)}`" for one in described["enum"])
    if "const" in described:
        return f"`{_yaml(described['const'])}`"
    pattern = described.get("pattern", "")
    if pattern == f"^{RATE_PATTERN}$":
        return "calls and a time"
    if "ms|s|m|h" in pattern:
        return "duration"
    if "MB" in pattern:
        return "size"
    if "DataLoss" in pattern:
        return "code"
    kind = described.get("type")
    if kind == "array":
        inner = _type(described["items"])
        return f"list of {inner}" + ("s" if inner in ("code", "text") else "")
    below = described.get("additionalProperties")
    if kind == "object" and isinstance(below, dict) and "$ref" in below:
        return f"mapping of ids to {_type(below)}"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "`null`",
        "object": "mapping",
    }
    return names.get(kind or "", "anything") + _range(described)


def _range(described: Mapping[str, Any]) -> str:
    least, most = described.get("minimum"), described.get("maximum")
    if most is not None:
        return f", {least:g} to {most:g}"
    return f" ≥ {least:g}" if least else ""


def _yaml(value: Any) -> str:
    plain = isinstance(value, str) and yaml.safe_load(value) == value  # a bare `off` is not text
    return value if plain else json.dumps(value)


def _titles() -> dict[str, str]:
    known = {section.block: section.title for section in (*SECTIONS, *PLANS)}
    return {**known, "FallbackHandlingBlock": "error_handling", "IsolationBlock": "isolation.process"}


def _anchor(block: str) -> str:
    return "".join(char for char in _titles()[block].replace(" ", "-") if char.isalnum() or char in "-_")


def _options(section: Section, described: Mapping[str, Any]) -> str:
    properties = {
        name: about
        for name, about in described["properties"].items()
        if not about.get("description", "").startswith("The same as")
    }
    missing = properties.keys() ^ section.examples.keys()
    if missing:
        raise SystemExit(f"{section.title}: an example too few or too many: {', '.join(sorted(missing))}")
    required = {key for part in described.get("allOf", ()) for key in part["anyOf"][0]["required"]}
    required |= {*described.get("required", ())}
    rows = []
    for name in section.examples:  # in reading order
        about = properties[name]
        default = about.get("default", _DEFAULTS.get(name))
        shown = "needed" if name in required else "" if default is None else f"`{_yaml(default)}`"
        rows.append((f"`{name}`", _type(about), shown, about["description"], f"`{name}: {section.examples[name]}`"))
    return table(("option", "what to write", "default", "meaning", "example"), rows)


def _names(section: Section) -> str:
    return f"These may stand here: {', '.join(f'`{name}`' for name in section.examples)}."


def _others(described: Mapping[str, Any]) -> str:
    """List the spellings other than camelCase."""
    found: dict[str, list[str]] = {}
    for name, about in described["properties"].items():
        usual = about.get("description", "").removeprefix("The same as ").rstrip(".")
        if about.get("description", "").startswith("The same as") and name == name.lower():
            found.setdefault(usual, []).append(name)
    said = [f"{' and '.join(f'`{one}`' for one in names)} for `{usual}`" for usual, names in found.items()]
    return f"Also accepted: {', '.join(said)}." if said else ""


def _sections(sections: tuple[Section, ...], blocks: Mapping[str, Any]) -> Iterator[str]:
    for section in sections:
        described = blocks[section.block]
        yield f"## {section.title}"
        yield section.note
        yield _options(section, described) if section.block != "SharedBlock" else _names(section)
        yield _others(described) if section.block != "SharedBlock" else ""


def _plan_blocks() -> dict[str, Any]:
    made = PlanBlock.model_json_schema()
    blocks = {"PlanBlock": made, "CallBlock": made["$defs"]["CallBlock"]}
    kinds: dict[str, type[Block]] = {"PlanBlock": PlanBlock, "CallBlock": CallBlock}
    for name, block in kinds.items():
        usual = {keys_of(block, field)[0]: info.description for field, info in block.model_fields.items()}
        properties = blocks[name]["properties"]
        blocks[name] = {
            "required": blocks[name].get("required", ()),
            "properties": {key: {**_plain(properties[key]), "description": usual[key]} for key in usual},
        }
    return blocks


def _plain(described: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key != "default"}


def pages() -> dict[Path, str]:
    """Return the generated page."""
    made = schema()
    blocks = {"": made, **made["$defs"]}
    shipped = (files("failsoft") / "schema" / "failsoft.yaml").read_text(encoding="utf-8")
    parts = [
        INTRO.strip(),
        "This is what `failsoft init` writes:",
        f"```yaml\n{shipped.strip()}\n```",
        *_sections(SECTIONS, blocks),
        PLAN.strip(),
        *_sections(PLANS, _plan_blocks()),
    ]
    return {PAGE: "\n\n".join(part for part in parts if part) + "\n"}


if __name__ == "__main__":
    write(pages())
