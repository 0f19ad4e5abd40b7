"""The base of all manifest blocks.

Rules
-----
- A block describes what may be *written*: snake_case and camelCase names, older names, short forms. ``make`` converts
  it to the value that failsoft uses. That value does the final validation.
- A block holds only what was given (``given``). The defaults are in the options of ``core.model``, nowhere else.
- ``x_ms: 500`` and ``x: 500ms`` mean the same, so only one of them is allowed.
- Unknown keys are refused. A finished value from Python passes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from reprlib import repr as brief
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    AliasChoices,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic.alias_generators import to_camel
from pydantic_core import core_schema

from failsoft.config.manifest.problem import Path
from failsoft.core.model.durations import PATTERN as DURATION
from failsoft.core.model.durations import Seconds, seconds
from failsoft.core.model.fault import Code
from failsoft.core.model.rates import RATE_PATTERN, read_rate
from failsoft.core.model.sizes import PATTERN as SIZE
from failsoft.core.model.sizes import size
from failsoft.core.model.validation import read_code


class Conflict(ValueError):
    """Keys in one block that exclude each other: each key, and what to do about it."""

    def __init__(self, *parts: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{key}: {message}" for key, message in parts))
        self.parts = parts


def spellings(*names: str) -> AliasChoices:
    """All spellings of a field."""
    return AliasChoices(*dict.fromkeys(spelling for name in names for spelling in (name, to_camel(name))))


def as_written(description: str, *names: str) -> Any:
    """An optional field; ``names`` replace its own name."""
    return Field(default=None, description=description, validation_alias=spellings(*names) if names else None)


class Block(BaseModel):
    """One mapping of a manifest."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: spellings(name.rstrip("_"))),
    )

    shorthand: ClassVar[dict[str, Any] | None] = None  # the schema of the short form, if there is one
    makes: ClassVar[type | None] = None  # the options class whose defaults the schema shows
    later: ClassVar[dict[str, str]] = {}  # keys of later versions, and the message for each
    instead: ClassVar[dict[str, str]] = {}  # common wrong keys, and the message for each
    written: ClassVar[dict[str, str]] = {}  # examples of fields that are mappings

    @classmethod
    def expand(cls, value: Any) -> Any:
        """Expand a short form to a mapping or to the finished value."""
        return value

    @classmethod
    def keys(cls) -> dict[str, str]:
        """All accepted keys, and the field of each."""
        return {key: name for name in cls.model_fields for key in keys_of(cls, name)}

    def given(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """The fields that were written; ``x_ms`` is returned as ``x``."""
        names = [name for name in type(self).model_fields if name in self.model_fields_set]
        self.refuse_both(*((name, name.removesuffix("_ms")) for name in names if name.endswith("_ms")))
        return {name.removesuffix("_ms"): getattr(self, name) for name in names if name not in without}

    def refuse_both(self, *pairs: tuple[str, str]) -> None:
        """Refuse the first field of each pair if the second is written too."""
        both = [(one, other) for one, other in pairs if {one, other} <= self.model_fields_set]
        if both:
            raise Conflict(*((one, f"{other} is given too and means the same: keep one") for one, other in both))

    def make(self) -> Any:
        """Make the value that this block describes."""
        raise NotImplementedError


class From:
    """Annotation for a value that is written as a block, or passed from Python as an object of a class in ``ready``."""

    def __init__(self, block: type[Block], *ready: type) -> None:
        self.block = block
        self.ready = ready

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._make, handler.generate_schema(self.block))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        written = handler(schema)
        return {"anyOf": [self.block.shorthand, written]} if self.block.shorthand else written

    def _make(self, value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        value = value if isinstance(value, self.ready) else self.block.expand(value)
        return value if isinstance(value, self.ready) else validate(value).make()


def keys_of(block: type[Block], name: str) -> tuple[str, ...]:
    """The accepted keys of a field, the usual one first."""
    alias = block.model_fields[name].validation_alias
    assert isinstance(alias, AliasChoices), "every field of a block has spellings"
    return tuple(str(choice) for choice in alias.choices)


def block_at(block: type[Block], path: Path) -> type[Block] | None:
    """The block class that describes the value at ``path``; None if no block does."""
    while path:
        name = block.keys().get(str(path[0]))
        if name is None:
            return None
        info = block.model_fields[name]
        inner, levels = _inner(Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation)
        if inner is None or len(path) <= levels:
            return None
        block, path = inner, path[1 + levels :]
    return block


def _inner(annotation: Any) -> tuple[type[Block] | None, int]:
    """The block class inside an annotation, and how many lists or mappings surround it."""
    for data in getattr(annotation, "__metadata__", ()):
        if isinstance(data, From):
            return data.block, 0
    for argument in get_args(annotation):
        block, levels = _inner(argument)
        if block:
            return block, levels + (getattr(annotation, "__origin__", None) in (tuple, dict))
    return None, 0


class OneOrMore:
    """Annotation for a tuple of values that may be written as a single value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: [value] if isinstance(value, str | int | float) else value, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


class Read:
    """Annotation for a plain value that a function reads."""

    def __init__(self, read: Callable[[Any], Any], schema: dict[str, Any]) -> None:
        self.read = read
        self.schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema)


# --- plain values ------------------------------------------------------------------------------------------------------

_DURATION = {"type": "string", "pattern": f"^{DURATION}$", "examples": ["500ms", "30s", "1m30s"]}
_NUMBER = {"type": "number", "minimum": 0}
_SIZE = {
    "anyOf": [{"type": "string", "pattern": f"^{SIZE}$", "examples": ["512MB"]}, {"type": "integer", "minimum": 1}]
}
_WORDS = "|".join(code.title().replace("_", "") for code in Code)  # the CamelCase spelling
_CODE = {"type": "string", "anyOf": [{"enum": list(Code)}, {"pattern": f"^(ErrorStatusCode\\.)?({_WORDS})$"}]}


def _milliseconds(value: object, *, zero: bool = False) -> Seconds:
    if isinstance(value, int | float):
        return seconds(value, zero=zero, bare_ms=True)
    raise ValueError(f"{brief(value)} is not a number of milliseconds: write one, or use the name without ms")


def _version(value: object) -> int:
    if value != 1 or not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{brief(value)} is not a version of the manifest: write 1")
    return 1


Text = Annotated[str, Field(strict=True, min_length=1)]
Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Version = Annotated[int, Read(_version, {"const": 1})]
Duration = Annotated[float, Read(seconds, _DURATION)]
Delay = Annotated[float, Read(partial(seconds, zero=True), _DURATION)]
Milliseconds = Annotated[float, Read(_milliseconds, _NUMBER)]
DelayMs = Annotated[float, Read(partial(_milliseconds, zero=True), _NUMBER)]
DurationOrMs = Annotated[float, Read(partial(seconds, bare_ms=True), {"anyOf": [_DURATION, _NUMBER]})]
Size = Annotated[int, Read(size, _SIZE)]
RateText = Annotated[str, Read(read_rate, {"type": "string", "pattern": f"^{RATE_PATTERN}$"})]
ErrorCode = Annotated[Code, Read(read_code, _CODE)]
