from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

from failsoft.config.manifest import check, load, schema
from failsoft.errors import ManifestError

EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.yaml"))
SHIPPED = files("failsoft") / "schema"
VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_shipped_schema_is_up_to_date():
    made = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    assert (SHIPPED / "failsoft.schema.json").read_text() == made, "write json.dumps(schema(), indent=2) to it anew"


def test_the_schema_is_a_valid_json_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_documents_examples_fit_the_schema(path):
    VALIDATOR.validate(json.loads(json.dumps(yaml.safe_load(path.read_text()))))


def test_the_template_loads_without_a_warning_and_fits_the_schema():
    text = (SHIPPED / "failsoft.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=failsoft.schema.json\n")
    manifest = load(text, name="failsoft.yaml")
    assert check(manifest) == check(manifest, known=manifest.tools) == []
    assert manifest.tools["flight_search"].options.retry == load("tools: {a: {}}").tools["a"].options.retry
    VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "written",
    [
        {"tools": {"a": {"timeoutMs": 3, "retryPolicy": {"maxAttempts": 3}}}},
        {
            "tools": {
                "a": {"fallbacks": ["b", {"nodeId": "c", "handleErrors": ["ErrorStatusCode.Unavailable", "INTERNAL"]}]}
            }
        },
        {"tools": {"a": {"isolation": "process"}, "b": {"isolation": {"process": {"maxMemory": "512MB"}}}}},
        {"tools": {"a": {"timeout": None, "concurrency": None}}},
        {"tools": {"a": {"cooldown": {"cooldownDuration": 500}}, "b": {"cooldown": {"cooldown_duration": "2s"}}}},
        {"policies": [{"name": "a", "when": {"tool": "x", "code": ["Unavailable"]}, "then": "escalate"}]},
        {"policies": [{"name": "a", "then": {"tool": "b"}}]},
        {"memory": False},
        {"tools": {"a": {"entrypoint": {"command": ["a"], "exitCodes": {"75": "UNAVAILABLE"}, "max_output": 5000}}}},
    ],
)
def test_manifests_that_load_are_valid_by_the_schema(written):
    load(written)
    VALIDATOR.validate(written)


@pytest.mark.parametrize(
    "written",
    [
        {"version": 2},
        {"defualts": {}},
        {"tools": {"a": {"timeout": 30}}},
        {"tools": {"a": {"timeout": "30 s"}}},
        {"tools": {"a": {"retry": {"max_attempts": 0}}}},
        {"tools": {"a": {"retry": {"maxAttempts": "3"}}}},
        {"tools": {"a": {"fallbacks": [{"handle_errors": []}]}}},
        {"tools": {"a": {"fallbacks": [{"tool": "b", "handle_errors": ["NOPE"]}]}}},
        {"tools": {"a": {"isolation": "fork"}}},
        {"tools": {"a": {"entrypoint": {"http": {}}}}},
        {"policies": [{"name": "a", "then": "escalat"}]},
        {"policies": [{"then": "escalate"}]},
        {"memory": "on"},
        {"tools": []},
    ],
)
def test_manifests_that_do_not_load_are_invalid_by_the_schema(written):
    with pytest.raises(ManifestError):
        load(written)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(written)


def test_the_schema_describes_every_key_and_its_default():
    made = schema()
    assert all("description" in about for block in made["$defs"].values() for about in block["properties"].values())
    retry = made["$defs"]["RetryBlock"]["properties"]
    assert retry["initial_delay"]["default"] == "100ms"
    assert retry["max_attempts"]["default"] == 5
    assert made["$defs"]["ToolBlock"]["properties"]["timeout"]["default"] == "30s"
