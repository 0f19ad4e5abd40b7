"""The OpenAPI document: it is valid, complete, and the daemon keeps to it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.fakes import real
from tests.surfaces.daemon.conftest import SECRETS, write_all_tokens

from failsoft.surfaces.daemon.access import AccessOptions
from failsoft.surfaces.daemon.app import ROUTES, build_app
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.openapi import describe
from failsoft.surfaces.daemon.tokens import TokenBook

HERE = "tests.surfaces.daemon.tools_of_tests"
EXAMPLES = 8  # per operation
FORBIDDEN = re.compile(r"command|environ|^env$|module|entrypoint|argv|executable|cwd|path", re.IGNORECASE)
DOCUMENT = describe(ROUTES)


@real
async def test_the_document_is_behind_the_token_and_has_every_route(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        assert (await asked.get("/openapi.json", "reporter")).status_code == 403
        document = (await asked.get("/openapi.json", "reader")).json()
    assert document == DOCUMENT
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    served = {(route.method, route.path.replace("{id:path}", "{id}")) for route in ROUTES}
    assert listed == served | {("GET", "/healthz")}
    ids = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len({*ids}) == len(ids)


def test_no_field_of_a_request_carries_a_command_an_environment_or_a_module() -> None:
    def names(schema: Any) -> set[str]:
        if isinstance(schema, list):
            return {name for each in schema for name in names(each)}
        if not isinstance(schema, dict):
            return set()
        return {*schema.get("properties", {})} | {name for each in schema.values() for name in names(each)}

    assert {name for name in names(DOCUMENT["components"]["schemas"]) if FORBIDDEN.search(name)} == set()


@pytest.mark.parametrize("mode", [*GenerationMode])
def test_generated_requests_get_answers_that_the_document_describes(tmp_path: Path, mode: GenerationMode) -> None:
    """Ask every operation with generated requests, valid and invalid."""
    write_all_tokens(tmp_path / "tokens.json")
    tools = {"get_weather": {"entrypoint": {"function": f"{HERE}:get_weather"}}, "elsewhere": {}}
    daemon = Daemon({"tools": tools})
    app = build_app(daemon, TokenBook(tmp_path / "tokens.json"), AccessOptions(rate=1e9))
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", app, headers={"authorization": f"Bearer {SECRETS['operator']}", "host": "127.0.0.1"}
    )
    asked: set[str] = set()

    for found in schema.get_all_operations():
        operation = found.ok()
        with suppress(Unsatisfiable):  # there is nothing to get wrong with /healthz
            make_test(operation, asked, mode)()
    served = {f"{route.method} {route.path.replace('{id:path}', '{id}')}" for route in ROUTES}
    assert asked | {"GET /healthz"} == served - {"GET /openapi.json"} | {
        "GET /healthz"
    }  # the document was asked for first


def make_test(operation: Any, asked: set[str], mode: GenerationMode) -> Any:
    """Make the test of one operation."""

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate], database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def ask(case: Any) -> None:
        asked.add(operation.label)
        case.call_and_validate(
            headers={"authorization": f"Bearer {SECRETS['operator']}", "host": "127.0.0.1"},
            checks=[
                not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
            ],
        )  # fmt: skip

    return ask
