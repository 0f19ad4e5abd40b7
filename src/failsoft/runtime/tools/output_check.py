"""Check that a tool's value has the declared form: a type (through pydantic) or a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import repr as brief
from typing import Any


def checker(output: Any) -> Callable[[Any], None]:
    """Return a function that raises for a value that does not fit. Raises ValueError if ``output`` is not a form."""
    if isinstance(output, Mapping):
        return _schema_checker(dict(output))
    from pydantic import PydanticUserError, TypeAdapter

    odd = f"{brief(output)} is neither a type that can be checked nor a JSON Schema: write list[str], or a mapping"
    if isinstance(output, str):
        raise ValueError(odd)  # noqa: TRY004 - pydantic would look for a type of that name, with the first value
    try:
        adapter = TypeAdapter(output)
    except PydanticUserError:
        raise ValueError(odd) from None

    def check(value: Any) -> None:
        adapter.validate_python(value, strict=True)  # its ValidationError is a ValueError

    return check


def _schema_checker(schema: dict[str, Any]) -> Callable[[Any], None]:
    import jsonschema

    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        first = error.context[0] if error.context else error  # of several alternatives, the first explains best
        raise ValueError(f"is not a JSON Schema: {error.json_path}: {first.message}") from None
    validator = kind(schema)

    def check(value: Any) -> None:
        for error in validator.iter_errors(value):
            raise ValueError(f"{error.json_path}: {error.message}")

    return check
