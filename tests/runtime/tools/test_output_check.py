"""Declared output types: an invalid one is rejected when the tool is declared, not when it has run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from failsoft import ManifestError, Runtime
from failsoft.runtime.tools.output_check import checker


class Plain:
    """Nothing that pydantic can check."""


class Fussy(BaseModel):
    """An output type whose own code fails."""

    price: int

    @field_validator("price")
    @classmethod
    def judge(cls, value: int) -> int:
        raise ZeroDivisionError(f"no price for {value}")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (3, "output: 3 is neither a type that can be checked nor a JSON Schema"),
        ("array", "output: 'array' is neither a type that can be checked nor a JSON Schema"),
        (Plain, "Plain'> is neither a type that can be checked nor a JSON Schema"),
        ({"type": "arry"}, "output: is not a JSON Schema: $.type: 'arry' is not one of ['array', "),
    ],
    ids=["number", "text", "class", "schema"],
)
def test_an_invalid_output_type_is_rejected_when_the_tool_is_declared(form: Any, said: str) -> None:
    calls: list[int] = []
    rt = Runtime()
    with pytest.raises(ManifestError) as refused:
        rt.add(calls.append, id="search", output=form)
    assert str(refused.value).startswith("search: output: ")
    assert said in str(refused.value)
    assert "search" not in rt.tools


def test_an_invalid_output_type_in_a_manifest_is_reported_with_its_place() -> None:
    with pytest.raises(ManifestError, match=r"^manifest: tools\.size\.output: is not a JSON Schema"):
        Runtime({"tools": {"size": {"entrypoint": {"function": "builtins:len"}, "output": {"type": 3}}}})


def test_a_form_whose_own_code_fails_is_a_mismatch() -> None:
    rt = Runtime()
    rt.add(lambda: {"price": 3}, id="price", output=Fussy)
    fault = rt.call_sync("price").fault
    assert fault is not None
    assert (fault.rule, fault.effect) == ("output_mismatch", "happened")
    assert "no price for 3" in fault.message


def test_values_that_fit_pass() -> None:
    checker(list[int])([1])
    checker({"type": "array"})([1])
    with pytest.raises(ValueError, match=r"\$\[0\]: 'x' is not of type 'integer'"):
        checker({"items": {"type": "integer"}})(["x"])
