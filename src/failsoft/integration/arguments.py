"""Read the JSON arguments that models write, for adapters whose framework does not read or check them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.runtime.tools.control import BrokenToolError, MisfitError

__all__ = ["BrokenToolError", "MisfitError", "find_misfit", "read_arguments"]


def read_arguments(given: Any) -> Mapping[str, Any] | Fault:
    """Return the arguments, or the fault if they cannot be read."""
    if isinstance(given, str):
        try:
            given = json.loads(given if given.strip() else "{}")  # some models send nothing if none are needed
        except (ValueError, RecursionError) as error:
            return builtin_faults.bad_arguments(detail=f"They are not valid JSON: {error}.")
    if given is None or isinstance(given, Mapping):
        return given or {}
    return builtin_faults.bad_arguments(detail=f"They must be one JSON object, not {type(given).__name__}.")


def find_misfit(schema: Mapping[str, Any], given: Any) -> Fault | None:
    """Find the arguments that a tool's JSON Schema refuses."""
    from jsonschema.validators import Draft202012Validator  # start-up: needed only after a mistake

    arguments = read_arguments(given)
    if isinstance(arguments, Fault):
        return arguments
    missing: list[str] = []
    wrong: dict[str, str] = {}
    for error in Draft202012Validator(schema).iter_errors(arguments):
        if error.path:
            wrong[str(error.path[0])] = f"{'.'.join(map(str, error.path))}: {error.message}."
        elif error.validator == "required":
            missing = [name for name in error.validator_value if name not in arguments]
        else:
            wrong.setdefault("arguments", f"{error.message}.")
    if not (missing or wrong):
        return None
    return builtin_faults.bad_arguments(missing=missing, invalid=wrong, detail=" ".join(wrong.values()))
