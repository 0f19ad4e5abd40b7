"""Check that a tool's value has the declared form: a type (through pydantic) or a JSON Schema (S-spec 1.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from failsoft.errors import ManifestError


def checker(output: Any) -> Callable[[Any], None]:
    """A function that raises ValueError for a value that does not fit."""
    if isinstance(output, Mapping):
        return _schema_checker(dict(output))
    from pydantic import TypeAdapter

    adapter = TypeAdapter(output)

    def check(value: Any) -> None:
        adapter.validate_python(value, strict=True)  # its ValidationError is a ValueError

    return check


def _schema_checker(schema: dict[str, Any]) -> Callable[[Any], None]:
    try:
        import jsonschema
    except ImportError:
        raise ManifestError('output: a JSON Schema needs the package jsonschema: pip install "jsonschema"') from None
    validator = jsonschema.validators.validator_for(schema)(schema)

    def check(value: Any) -> None:
        for error in validator.iter_errors(value):
            raise ValueError(f"{error.json_path}: {error.message}")

    return check
