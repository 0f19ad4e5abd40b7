"""Arguments as models write them: JSON text, for adapters whose framework has not read it, or says too little about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault


class MisfitError(ValueError):
    """The arguments do not fit the tool. Raised in its place: the fault is known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class BrokenToolError(TypeError):
    """Something did not validate inside a tool, although its arguments fit: not the model's fault, but the tool's."""


def was_entered(error: BaseException, caller: Callable[..., Any] | None = None) -> bool:
    """True if an exception came from inside a tool: arguments that do not fit are refused where the tool is called.

    ``caller`` is the function that called the tool; without it, the one that caught the exception did.
    """
    trace = error.__traceback__
    while caller is not None and trace is not None and trace.tb_frame.f_code is not caller.__code__:
        trace = trace.tb_next
    return trace is None or trace.tb_next is not None


def read_arguments(given: Any) -> Mapping[str, Any] | Fault:
    """The arguments, or what is wrong with them."""
    if isinstance(given, str):
        try:
            given = json.loads(given if given.strip() else "{}")  # some models leave them out where none are needed
        except (ValueError, RecursionError) as error:
            return builtin_faults.bad_arguments(detail=f"They are not valid JSON: {error}.")
    if given is None or isinstance(given, Mapping):
        return given or {}
    return builtin_faults.bad_arguments(detail=f"They must be one JSON object, not {type(given).__name__}.")


def find_misfit(schema: Mapping[str, Any], given: Any) -> Fault | None:
    """What is wrong with arguments that a tool has refused, as far as its JSON Schema tells."""
    from jsonschema.validators import Draft202012Validator  # only a mistake pays for it

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
