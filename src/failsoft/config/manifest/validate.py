"""Validate a document with a block, and word each problem: its place, what is wrong, what would be right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from reprlib import Repr
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import TypeAdapter, ValidationError

from failsoft.config.manifest.block import Block, Conflict, From, block_at
from failsoft.core.model.misspelt import did_you_mean

if TYPE_CHECKING:
    from failsoft.config.manifest.problem import Path, Problem
    from failsoft.config.manifest.reading import Document

_MAPPING = "is not a mapping: write keys and values"
_SENTENCES = {
    "missing": "is missing",
    "string_type": "is not a text: put it in quotes if it is meant as one",
    "string_too_short": "is empty",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "greater_than_equal": "is too small: write {ge:g} or more",
    "less_than_equal": "is too large: write {le:g} or less",
    "tuple_type": "is not a list: write it in brackets",
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
}
_FIELD = re.compile(r"(\w+): (.*)", re.DOTALL)

_brief = Repr()
_brief.maxdict = _brief.maxlist = _brief.maxtuple = 2


def parse(block: type[Block], document: Document) -> Any:
    """Return the value that the block makes of the document; None if there are problems, which are added to the document."""
    try:
        return _adapter(block).validate_python(document.value)
    except ValidationError as error:
        document.problems += _word(error, block, document)
        return None


@cache
def _adapter(block: type[Block]) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Any, From(block)])


def _word(error: ValidationError, block: type[Block], document: Document) -> Iterator[Problem]:
    for found in error.errors(include_url=False):
        path: Path = found["loc"]
        is_key = path[-1:] == ("[key]",)
        path = path[:-1] if is_key else path
        if document.has_problem(path):
            continue
        kind, value = found["type"], found["input"]
        if kind == "extra_forbidden":
            around = block_at(block, found["loc"][:-1])
            yield document.problem(path, _unknown(path, around or block, document), key=True)
        elif kind == "value_error":
            around = block_at(block, found["loc"])
            yield from _refused(found["ctx"]["error"], path, around, document)
        elif kind == "literal_error":
            words = re.findall(r"'([^']*)'", found["ctx"]["expected"])
            close = did_you_mean(str(value), words)
            yield document.problem(path, f"{_brief.repr(value)} is not one of {', '.join(words)}{close}")
        else:
            sentence = _SENTENCES[kind].format(**found.get("ctx", {})) if kind in _SENTENCES else found["msg"]
            if sentence == _MAPPING:
                around = block_at(block, path[:-1])
                field = "" if around is None or not path else around.keys().get(str(path[-1]), "")
                like = "" if around is None else around.written.get(field, "")
                sentence += f", like {like}" if like else ""
            elif isinstance(value, type) and kind == "string_type":
                sentence = f'is a class: write "{value.__name__}"'
            elif kind == "tuple_type" and path[-1:] == ("calls",):
                sentence += ', each call with its id inside, like [{"id": "a", "tool": "search"}]'
            elif kind == "tuple_type" and path[-1:] == ("command",) and isinstance(value, str) and value.split():
                sentence += f", like {json.dumps(value.split())}"
            elif value is None and kind.startswith("int_"):
                sentence += ": write one, or leave the key out for the default"
            sentence = sentence if kind == "missing" else f"{_brief.repr(value)} {sentence}"
            yield document.problem(path, sentence, key=is_key)


def _unknown(path: Path, block: type[Block], document: Document) -> str:
    key, keys = str(path[-1]), block.keys()
    if key in block.later:
        return block.later[key]
    if key in block.instead:
        return f"is not known here: {block.instead[key]}"
    if len(path) == 2 and path[0] == "tool" and isinstance(_value(path, document), Mapping):
        return "is not known here: write tools instead of tool for tools by their ids"
    if key in keys:
        other = next(
            (other for other in _mapping(path[:-1], document) if other != key and keys.get(other) == keys[key]), ""
        )
        return f"{other} is given too and means the same: keep one"
    known = ", ".join(dict.fromkeys(name.rstrip("_") for name in block.model_fields if not name.endswith("_ms")))
    alike = [name for name in keys if name.islower() == key.islower()]  # suggest the spelling style used here
    return f"is not known here{did_you_mean(key, alike) or f'; known are {known}'}"


def _refused(error: ValueError, path: Path, block: type[Block] | None, document: Document) -> Iterator[Problem]:
    """Word a value's own ``ValueError``, at the field that it names."""
    parts: tuple[tuple[str, str], ...] = (("", str(error)),)
    if isinstance(error, Conflict):
        parts = error.parts
    elif named := _FIELD.fullmatch(str(error)):
        parts = ((named[1], named[2]),) if block or path[-1:] == (named[1],) else parts
    for name, message in parts:
        if block is None or not name or path[-1:] == (name,):
            yield document.problem(path, message)
            continue
        keys = block.keys()
        field = keys.get(name, name)
        if field not in block.model_fields:
            yield document.problem(path, f"{name}: {message}")
            continue
        written = next((key for key in _mapping(path, document) if keys.get(key) == field), name.rstrip("_"))
        yield document.problem((*path, written), message, key=isinstance(error, Conflict))


def _mapping(path: Path, document: Document) -> Mapping[str, Any]:
    value = _value(path, document)
    return value if isinstance(value, Mapping) else {}


def _value(path: Path, document: Document) -> Any:
    value = document.value
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return None
    return value
