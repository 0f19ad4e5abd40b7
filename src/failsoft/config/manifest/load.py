"""Load manifests, and options that Python callers write as mappings.

All problems are raised together as one ``ManifestError``. Nothing is loaded in part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from failsoft.config.layering import Layer, assemble, finish
from failsoft.config.manifest.block import keys_of
from failsoft.config.manifest.detect import refuse_other
from failsoft.config.manifest.file_blocks import BookBlock, ManifestBlock, Memory
from failsoft.config.manifest.problem import Path, Problem, raise_problems
from failsoft.config.manifest.protection_blocks import FallbackBlock
from failsoft.config.manifest.reading import Document, read
from failsoft.config.manifest.tool_blocks import OptionsBlock
from failsoft.config.manifest.validate import parse
from failsoft.core.effects.tool_effect import Undeclared
from failsoft.core.explain.catalogue import Texts, find_problems
from failsoft.core.model.entrypoint import Entrypoint
from failsoft.core.model.options import Fallback, ToolOptions, TurnOptions
from failsoft.core.resilience.policy import Policy
from failsoft.core.turn.cycles import find_cycles, format_cycle


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestTool:
    """A tool in a manifest. ``layer`` holds the file's own options for it, which win over those in code."""

    options: ToolOptions
    layer: Layer
    entrypoint: Entrypoint | None = None  # None: code registers the tool
    place: str = ""  # file:line:column


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """A loaded manifest."""

    name: str = ""
    version: int = 1
    defaults: Layer = field(default_factory=dict)
    turn: TurnOptions = field(default_factory=TurnOptions)
    tools: Mapping[str, ManifestTool] = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    memory: Memory = "advise"  # earlier recoveries are quoted, not acted upon
    language: str = "en"
    explanations: Mapping[str, Texts] = field(default_factory=dict)  # by language
    undeclared: Undeclared = "recognise"


def load(source: str | bytes | Mapping[str, Any], *, name: str = "") -> Manifest:
    """Read a manifest: the text of a file (YAML or JSON) called ``name``, or a mapping."""
    document = open_document(source, name or "manifest")
    refuse_other(document, "manifest")
    content = parse(ManifestBlock, document)
    _refuse_cycles(document)
    tools = {} if content is None else _assemble(document, content)
    if content is not None:
        _refuse_texts(document, content)
    raise_problems(document.problems)
    assert content is not None, "a document that cannot be parsed has problems"
    policies = tuple(
        replace(policy, place=document.place(("policies", number)))
        for number, policy in enumerate(content.get("policies", ()))
    )
    return Manifest(**{**content, "name": document.name, "tools": tools, "policies": policies})


def parse_options(options: Mapping[str, Any], *, place: str = "") -> Layer:
    """Parse a tool's options, written with any of a manifest's names, to a layer."""
    layer: Layer = _parse(OptionsBlock, options, place)
    return layer


def parse_tool(options: Mapping[str, Any], *, place: str = "") -> ToolOptions:
    """Parse a tool's options, ``id`` included, to ``ToolOptions``."""
    layer = parse_options(options, place=place)
    if "id" not in layer:
        raise_problems([Document(place).problem(("id",), "is missing")])
    return assemble(layer)


def parse_option(name: str, value: Any, *, place: str = "") -> dict[str, Any]:
    """Parse one option to keywords for ``ToolOptions`` or ``dataclasses.replace``; ``errorHandling`` makes several."""
    return finish(parse_options({name: value}, place=place))


def parse_policies(policies: Iterable[Policy | Mapping[str, Any]], *, place: str = "") -> tuple[Policy, ...]:
    """Parse policies written in Python."""
    book: tuple[Policy, ...] = _parse(BookBlock, {"policies": policies}, place)
    return tuple(replace(policy, place=policy.place or place) for policy in book)


def open_document(source: str | bytes | Mapping[str, Any], name: str) -> Document:
    """Open a text or a mapping as a document; raise for a text that cannot be read to its end."""
    if name.endswith(".py"):
        raise_problems([Problem.at(name, "", "this is Python code; a manifest or a plan is YAML or JSON", "error")])
    document = Document(name, dict(source)) if isinstance(source, Mapping) else read(source, name=name)
    if not document.is_whole:
        raise_problems(document.problems)
    return document


def _parse(block: Any, value: Mapping[str, Any], place: str) -> Any:
    document = Document(place, dict(value))
    made = parse(block, document)
    raise_problems(document.problems)
    return made


def _refuse_cycles(document: Document) -> None:
    """Find cycles in the written text, not in the parsed tools, so that they are reported with all other problems."""
    paths: dict[str, Path] = {}
    edges: dict[str, list[str]] = {}
    for section, written in _items(document.value):
        if section == "tools":
            paths |= {id: ("tools", id) for id, _ in _items(written)}
            edges |= {id: list(_fallbacks(tool)) for id, tool in _items(written)}
        elif section == "tool":
            paths |= {str(id): ("tool",) for key, id in _items(written) if key == "id"}
            edges |= {id: list(_fallbacks(written)) for id, path in paths.items() if path == ("tool",)}
    for cycle in find_cycles(edges):
        message = (
            f"these tools are fallbacks of each other in a cycle, {format_cycle(cycle)}: drop one of the fallbacks"
        )
        document.problems.append(document.problem((*paths[cycle[0]], "fallbacks"), message))


def _refuse_texts(document: Document, content: Mapping[str, Any]) -> None:
    """Report texts with a key that is never used, and texts with unknown facts."""
    languages = content.get("explanations", {})
    for language, texts in languages.items():
        for key, text in texts.items():
            for problem in find_problems({key: text}):
                message = problem.removeprefix(f"{key}: ")
                document.problems.append(document.problem(("explanations", language, key), message))
    wanted = content.get("language", "en")
    known = {"en", *languages}
    if not {wanted, wanted.partition("-")[0]} & known:
        message = f"there are no explanations in {wanted}: there are {', '.join(sorted(known))}"
        document.problems.append(document.problem(("language",), message))


def _fallbacks(tool: object) -> Iterator[str]:
    """The readable ids of a tool's fallbacks."""
    for key, value in _items(tool):
        if key in keys_of(OptionsBlock, "error_handling"):
            yield from _fallbacks(value)
        elif key in keys_of(OptionsBlock, "fallbacks") and isinstance(value, list | tuple):
            for entry in value:
                yield from [entry] if isinstance(entry, str) else [entry.tool] if isinstance(entry, Fallback) else ()
                yield from (str(id) for name, id in _items(entry) if name in keys_of(FallbackBlock, "tool"))


def _items(value: object) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()


def _assemble(document: Document, content: Mapping[str, Any]) -> dict[str, ManifestTool]:
    """Merge each tool with the file's defaults."""
    tools = {}
    for id, tool in content["tools"].items():
        path: Path = ("tools", id) if "tools" in document.value else ("tool",)
        try:
            options = assemble(content.get("defaults", {}), {"id": id}, tool.layer)
        except ValueError as wrong:
            document.problems.append(document.problem(path, f"{wrong} (with the file's defaults)"))
        else:
            place = document.place(path)
            tools[id] = ManifestTool(options=options, layer=tool.layer, entrypoint=tool.entrypoint, place=place)
    return tools
