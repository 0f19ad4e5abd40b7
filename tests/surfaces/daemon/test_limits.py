"""Limits on bodies, and the form in which requests are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes import real

from failsoft.surfaces.daemon.limits import DEEPEST, LARGEST_BODY, is_deep

GOOD = {"tool": "get_x", "error": "503"}


@real
async def test_only_json_is_read(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client() as client:
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await client.post("/v1/errors", content=json.dumps(GOOD), headers={"content-type": media})
            assert (answer.status_code, answer.json()["status"]) == (415, 415)
        good = {"content-type": "application/json; charset=utf-8"}
        assert (await client.post("/v1/errors", content=json.dumps(GOOD), headers=good)).status_code == 200


@real
async def test_a_compressed_body_is_refused(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client() as client:
        for encoding, status in (("gzip", 415), ("br", 415), ("identity", 200)):
            headers = {"content-type": "application/json", "content-encoding": encoding}
            answer = await client.post("/v1/errors", content=json.dumps(GOOD), headers=headers)
            assert answer.status_code == status


@real
async def test_a_parameter_that_is_there_twice_is_refused(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client("acme") as client:
        answer = await client.get("/v1/events?tenant=acme&tenant=bolt")
        assert (answer.status_code, answer.json()["detail"]) == (400, "tenant: is given more than once")


@real
async def test_a_large_body_is_refused_whether_or_not_it_says_its_size(open_daemon: Any) -> None:
    large = json.dumps({**GOOD, "thread": "x" * LARGEST_BODY}).encode()

    async def parts() -> Any:
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    async with open_daemon() as asked, asked.client(**{"content-type": "application/json"}) as client:
        assert (await client.post("/v1/errors", content=large)).status_code == 413
        assert (await client.post("/v1/errors", content=parts())).status_code == 413


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@real
async def test_a_deep_body_is_refused(open_daemon: Any, opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    nested = opening * 5000 + "1" + closing * 5000
    body = '{"tool": "get_x", "error": {"message": "x", "body": ' + nested + "}}"
    async with open_daemon() as asked, asked.client(**{"content-type": "application/json"}) as client:
        answer = await client.post("/v1/errors", content=body)
        assert answer.status_code == 422
        assert "deeper than 64" in answer.json()["detail"]


def test_depth_counts_brackets_outside_of_texts() -> None:
    assert is_deep(b"[" * (DEEPEST + 1))
    assert not is_deep(b"[" * DEEPEST)
    assert not is_deep(b'["' + b"[{" * 500 + b'\\""]')
    assert not is_deep(b"[[]," * 0 + b"[" + b"[]," * 500 + b"[]]")
    assert not is_deep(b'["\\"' + b"[" * 500 + b'"]')
    assert is_deep(b'{"\\\\":' * (DEEPEST + 1))
    assert is_deep(b'["[]]]]",' * (DEEPEST + 1))
    assert not is_deep(b"[" * DEEPEST + b'"' + b'\\"' * 300_000 + b"[" * 500), "a text that never ends"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b"{", b'{"tool": "x"}', b'{"tool": "x", "error": NaN}', b'{"tool": "", "error": "x"}',
        b'{"tool": "x", "error": "x", "turn_left": 1e999}', b'{"tool": "x", "error": "x", "attempt": true}',
        b'{"tool": "x", "error": "x", "attempt": 0}', b'{"tool": "@acme:x", "error": "x"}', b'{"tool": "x\\u0000", "error": "x"}',
        b'{"tool": "x", "error": "x", "erorr": 1}', b'{"tool": "\xff", "error": "x"}', b'{"tool": "\\ud800", "error": "x"}',
        b'{"tool": "x", "error": "x", "duration": -1}', b'{"tool": "x", "error": {"message": "x", "status": 1000}}',
    ],
)  # fmt: skip
@real
async def test_a_body_with_mistakes_is_refused_with_problem_details(open_daemon: Any, body: bytes) -> None:
    async with open_daemon() as asked, asked.client(**{"content-type": "application/json"}) as client:
        answer = await client.post("/v1/errors", content=body)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        data = answer.json()
        assert data["type"] == "urn:failsoft:problem:invalid-content"
        assert all(one["pointer"].startswith("/") or one["pointer"] == "" for one in data["errors"])


@real
async def test_a_mistake_in_a_body_is_not_repeated_in_the_answer(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/errors", {"tool": "x", "error": 5, "thread": ["secret-value-123"]})
        assert "secret-value-123" not in answer.text


@real
async def test_unknown_paths_and_methods_are_problems_too(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client() as client:
        for path in ("/", "/v1", "/v1/errors/", "/openapi.yaml"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["title"]) == (404, "Not found")
        answer = await client.put("/v1/errors")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@real
async def test_an_unexpected_failure_shows_nothing_of_itself(open_daemon: Any) -> None:
    async with open_daemon() as asked:

        def broken(*_: Any) -> None:
            raise RuntimeError("password=hunter2hunter2")

        asked.daemon.desk.handle = broken
        answer = await asked.post("/v1/errors", GOOD)
        assert answer.status_code == 500
        assert "hunter2" not in answer.text


@real
async def test_a_report_that_the_store_does_not_confirm_is_not_acknowledged(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        asked.daemon.commits._commit = lambda deadline: False
        answer = await asked.post("/v1/errors", GOOD)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await asked.get("/readyz")).status_code == 503


BODIES: list[tuple[dict[str, Any], str, str]] = [
    ({"tool": "x"}, "/error", "is missing"),
    ({"tol": "x", "tool": "y", "error": "z"}, "/tol", "is not known here; did you mean tool?"),
    ({"tool": "x", "error": "y", "attempt": "two"}, "/attempt", "Input should be a valid integer"),
    ({"tool": "x", "error": {"message": "y", "status": "503"}}, "/error/status", "Input should be a valid integer"),
    ({"tool": "x", "error": "y", "turnleft": 3}, "/turnleft", "is not known here; did you mean turn_left?"),
]


@pytest.mark.parametrize(("body", "pointer", "detail"), BODIES)
@real
async def test_a_mistake_in_a_report_is_the_only_one_named(
    open_daemon: Any, body: dict[str, Any], pointer: str, detail: str
) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/errors", body)
        assert (answer.status_code, answer.json()["detail"]) == (422, "the body has a mistake")
        assert answer.json()["errors"] == [{"pointer": pointer, "detail": detail}]


QUERIES = [
    ("GET", "/v1/events?tpye=CallFailed", "tpye: is not a parameter of this route; did you mean type?"),
    ("GET", "/v1/events?type=CallFaild", "type: there is no event CallFaild; did you mean CallFailed?"),
    ("GET", "/v1/turns?last=3", "last: is not a parameter of this route; known: limit, tenant"),
    ("DELETE", "/v1/memory?tol=search", "tol: is not a parameter of this route; did you mean tool?"),
    ("GET", "/v1/status?x=1", "x: is not a parameter of this route"),
]


@pytest.mark.parametrize(("method", "path", "detail"), QUERIES)
@real
async def test_a_misspelt_parameter_is_refused(open_daemon: Any, method: str, path: str, detail: str) -> None:
    async with open_daemon() as asked, asked.client() as client:
        answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["detail"]) == (400, detail)


@real
async def test_events_of_a_type_that_this_version_does_not_know_can_be_asked_for(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client() as client:
        assert (await client.get("/v1/events?type=Xylophone")).json()["events"] == []


@pytest.mark.parametrize(
    "body",
    [
        '{"tool": "get_x", "error": "503", "tool": "pay"}',
        '{"tool": "get_x", "error": {"message": "no", "body": [{"tool": 1, "\\u0074ool": 2}]}}',
    ],
)
@real
async def test_a_body_with_a_key_twice_is_refused_by_the_name_of_the_key(open_daemon: Any, body: str) -> None:
    async with open_daemon() as asked, asked.client() as client:
        answer = await client.post("/v1/errors", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert "'tool'" in answer.json()["errors"][0]["detail"]
