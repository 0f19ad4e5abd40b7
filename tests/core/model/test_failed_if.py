"""The option ``failed_if``: what may be written, and what is said about anything else."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft import ManifestError, Runtime
from failsoft.config.manifest import load
from failsoft.core.model.failed_if import FailurePattern, FieldMatch, read_failed_if


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ({"ok": False}, [("ok", (False,))]),
        ({"status": ["error", "failed"]}, [("status", ("error", "failed"))]),
        ({"result.ok": False}, [("result.ok", (False,))]),
        ({"result": {"ok": False, "code": 3}}, [("result.ok", (False,)), ("result.code", (3,))]),
        ({"when": {"message": "failed"}}, [("message", ("failed",))]),
        ({"error": None}, [("error", (None,))]),
    ],
)
def test_a_pattern_names_fields_and_the_values_that_show_a_failure(written: Any, fields: Any) -> None:
    assert read_failed_if(written) == FailurePattern(tuple(FieldMatch(*field) for field in fields))


def test_message_names_the_field_with_the_text_and_text_is_a_regular_expression() -> None:
    made = read_failed_if({"ok": False, "message": "error.text", "text": "^Error"})
    assert made == FailurePattern((FieldMatch("ok", (False,)),), "error.text", "^Error")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "has no condition"),
        ({"message": "error"}, "has no condition"),
        ({"ok": False, "message": False}, "message: False is not the name of a field"),
        ({"ok": False, "message": "a..b"}, "is not the name of a field"),
        ({"ok": []}, "ok: [] is not a text, a number, true, false or null"),
        ({"ok": [object]}, "is not a text, a number"),
        ({"ok": {}}, "ok: is empty"),
        ({3: False}, "3 is not the name of a field"),
        ({"": False}, "is not the name of a field"),
        ({"text": "("}, "is not a regular expression"),
        ({"text": 3}, "write when: {text: …}"),
        ({"text": "^Error", "message": "error"}, "message: no field is compared"),
        ({"when": {"ok": False}, "status": "error"}, "move all fields into when"),
        ({"when": False}, "when: False is not a mapping"),
        ("ok", "expected a pattern such as"),
        (True, "expected a pattern such as"),
    ],
)
def test_a_wrong_pattern_is_refused_with_what_would_be_right(written: Any, said: str) -> None:
    with pytest.raises(ManifestError) as wrong:
        Runtime().add(lambda: None, id="pay", failed_if=written)
    assert "failed_if: " in str(wrong.value)
    assert said in str(wrong.value)


def test_an_async_function_is_refused() -> None:
    async def failed(_: Any) -> bool:
        return True

    with pytest.raises(ManifestError, match="is async and would not be awaited"):
        Runtime().add(lambda: None, id="pay", failed_if=failed)


def test_a_manifest_says_it_in_the_same_words() -> None:
    loaded = load({"tools": {"pay": {"failed_if": {"ok": False, "message": "error"}}}})
    assert loaded.tools["pay"].options.failed_if == FailurePattern((FieldMatch("ok", (False,)),), "error")


def test_an_error_in_a_manifest_names_its_place() -> None:
    with pytest.raises(ManifestError, match=r"tools\.pay\.failed_if.*has no condition"):
        load({"tools": {"pay": {"failed_if": {}}}})
