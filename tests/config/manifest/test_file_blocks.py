"""Texts of one's own in a manifest, by language."""

from __future__ import annotations

import jsonschema
import pytest

from failsoft.config.manifest import load, schema
from failsoft.errors import ManifestError

VALIDATOR = jsonschema.Draft202012Validator(schema())
TEXT = """\
language: de-AT
explanations:
  de:
    user.tool_transient: "{Label} antwortet gerade nicht."
    flight_search/user.circuit_open: "Die Flugsuche macht Pause."
    turn.completed: "Fertig: {labels}"
"""


def test_texts_are_read_by_language():
    manifest = load(TEXT)
    assert manifest.language == "de-AT"
    assert manifest.explanations["de"]["turn.completed"] == "Fertig: {labels}"
    assert (load({}).language, load({}).explanations) == ("en", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("language: fr", "f.yaml:1:11: language: there are no explanations in fr: there are en"),
        ("language: English", 'f.yaml:1:11: language: \'English\' is not a language: write "en", "de" or "pt-BR"'),
        ("explanations: {user.x: {}}", "'user.x' is not a language"),
        ("explanations: {de: {user.tool_transiet: x}}", "no text has this key; did you mean user.tool_transient?"),
        ("explanations: {de: {turn.completed: '{label}'}}", "there is no fact {label}; there are labels"),
        ("explanations: {de: {names: 3}}", "3 is not a text"),
    ],
)
def test_texts_that_nothing_would_show_are_refused(text, said):
    with pytest.raises(ManifestError) as caught:
        load(text, name="f.yaml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "written", [{"language": "English"}, {"explanations": {"de": {"names": 3}}}, {"explanations": {"de": "x"}}]
)
def test_the_schema_knows_their_form(written):
    VALIDATOR.validate({"language": "de", "explanations": {"de": {"names": "sie"}}})
    with pytest.raises(ManifestError):
        load(written)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(written)
