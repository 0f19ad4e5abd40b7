"""Who may ask the daemon: tokens, roles, hosts, origins, rates."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import real
from tests.surfaces.daemon.conftest import SECRETS

from failsoft.surfaces.daemon.access import Access, AccessOptions, allowed_hosts, host_name
from failsoft.surfaces.daemon.app import ROUTES
from failsoft.surfaces.daemon.tokens import Grant, TokenBook, TokenError, open_tokens, read_tokens, write_tokens

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
PATHS = sorted({route.path.replace("{id:path}", "x") for route in ROUTES} | {"/", "/nowhere", "/healthz/", "//healthz"})


@pytest.mark.parametrize("path", PATHS)
@real
async def test_every_route_and_method_refuses_requests_without_a_token(open_daemon: Any, path: str) -> None:
    async with open_daemon() as asked, asked.client(None) as client:
        for method in METHODS:
            answer = await client.request(method, path)
            assert answer.status_code in (401, 429), (method, path)
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "header",
    [
        f"Basic {SECRETS['operator']}",
        "Bearer",
        "Bearer ",
        f"Bearer {SECRETS['operator']}x",
        f"Bearer {SECRETS['operator'][:-1]}",
        f"bearer{SECRETS['operator']}",
        "Bearer \xff\xfe",
    ],
)
@real
async def test_a_token_that_is_not_exactly_right_is_refused(open_daemon: Any, header: str) -> None:
    async with open_daemon() as asked, asked.client(None) as client:
        answer = await client.get("/readyz", headers={b"authorization": header.encode("latin-1")})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


@real
async def test_a_token_in_the_address_or_in_a_second_header_does_not_count(open_daemon: Any) -> None:
    secret = SECRETS["operator"]
    async with open_daemon() as asked, asked.client(None) as client:
        assert (await client.get(f"/readyz?token={secret}&access_token={secret}")).status_code == 401
        twice = [("authorization", f"Bearer {secret}"), ("authorization", "Bearer x")]
        assert (await client.get("/readyz", headers=twice)).status_code == 401


@real
async def test_health_is_open_and_says_nothing(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client(None) as client:
        answer = await client.get("/healthz")
        assert (answer.status_code, answer.content) == (204, b"")
        assert (await client.post("/healthz")).status_code == 401


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
@real
async def test_every_route_needs_its_role(open_daemon: Any, route: Any) -> None:
    other = {"report": "reader", "read": "reporter", "operate": "reader"}[route.role]
    async with open_daemon() as asked, asked.client(other) as client:
        answer = await client.request(route.method, route.path.replace("{id:path}", "x"))
        assert answer.status_code == 403
        assert route.role in answer.json()["detail"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil", "", "localhost:x", "[::1]x"]
)
@real
async def test_a_host_that_is_not_listed_is_misdirected(open_daemon: Any, host: str) -> None:
    async with open_daemon() as asked:
        answer = await asked.get("/readyz", host=host)
        assert (answer.status_code, answer.headers["content-type"]) == (421, "application/problem+json")
        assert (await asked.get("/healthz", host=host)).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:8585", "[::1]:8585", "failsoft.internal"])
@real
async def test_listed_hosts_are_answered(open_daemon: Any, host: str) -> None:
    options = AccessOptions(allowed_hosts("127.0.0.1", ["failsoft.internal"]))
    async with open_daemon(options=options) as asked:
        assert (await asked.get("/readyz", host=host)).status_code == 200


def test_ports_and_cases_of_hosts_do_not_matter() -> None:
    assert [host_name(host) for host in ("A.b:1", "[::1]:80", "a:b", "[::1]:x")] == ["a.b", "[::1]", "", ""]


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://127.0.0.1:8585"])
@real
async def test_no_origin_is_allowed_unless_it_is_listed(open_daemon: Any, origin: str) -> None:
    async with open_daemon() as asked:
        assert (await asked.get("/readyz", origin=origin)).status_code == 403
    options = AccessOptions(origins=frozenset({"https://ops.example"}))
    async with open_daemon(options=options) as asked:
        assert (await asked.get("/readyz", origin=origin)).status_code == 403
        allowed = await asked.get("/readyz", origin="https://ops.example", **{"sec-fetch-site": "cross-site"})
        assert allowed.status_code == 200
        assert "access-control-allow-origin" not in allowed.headers


@real
async def test_requests_that_a_browser_sends_from_another_site_are_refused(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            assert (await asked.get("/readyz", **{"sec-fetch-site": site})).status_code == status


@real
async def test_a_token_has_a_rate_of_its_own(open_daemon: Any) -> None:
    async with open_daemon(options=AccessOptions(rate=2.0)) as asked:
        statuses = [(await asked.get("/readyz")).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert (await asked.get("/readyz", who="reader")).status_code == 200


@real
async def test_guessing_tokens_is_slowed_down(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client(None) as client:
        statuses = {(await client.get("/readyz")).status_code for _ in range(40)}
        assert statuses == {401, 429}


@real
async def test_a_path_is_authorised_as_it_was_received(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client(None) as client:
        for path in ("/healthz/../v1/errors", "/v1/errors?x=/healthz", "/healthz%2f..%2freadyz", "/healthz;/readyz"):
            assert (await client.post(path)).status_code == 401
            assert (await client.get(path)).status_code == 401


# --- the token file ---------------------------------------------------------------------------------------------------


def test_the_first_start_makes_a_private_file_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "state" / "tokens.json"
    (made,) = open_tokens(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.grant == Grant("operator", frozenset({"operate"}))
    assert len(made.secret) > 40
    assert open_tokens(path) == [made]


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    open_tokens(path)
    path.chmod(0o640)
    with pytest.raises(TokenError, match="can be read by others: chmod 600"):
        read_tokens(path)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"tokens": [{}]}', '{"tokens": [{"name": "a", "token": "short", "roles": ["read"]}]}',
        '{"tokens": [{"name": "a", "token": "0123456789012345678901", "roles": ["root"]}]}',
        '{"tokens": [{"name": "a", "token": "0123456789012345678901", "roles": []}]}',
        '{"tokens": [{"name": "a", "token": "0123456789012345678901", "roles": ["read"], "tenent": "b"}]}',
    ],
)  # fmt: skip
def test_a_file_with_mistakes_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(TokenError, match="is not a token file"):
        read_tokens(path)


def test_a_running_daemon_notices_rotated_tokens(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.json", [0.0]
    (old,) = open_tokens(path)
    book = TokenBook(path, lambda: now[0])
    new = old._replace(secret="another-token-0123456789")
    write_tokens(path, [new])
    now[0] += 1.0
    assert (book.find(old.secret), book.find(new.secret)) == (None, new.grant)
    path.chmod(0o644)
    now[0] += 1.0
    assert book.find(new.secret) is None


def test_a_new_token_is_known_as_soon_as_it_is_used(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.json", [0.0]
    (old,) = open_tokens(path)
    book = TokenBook(path, lambda: now[0])
    new = old._replace(secret="another-token-0123456789")
    write_tokens(path, [new])
    now[0] += 0.06
    assert book.find(old.secret) == old.grant
    assert book.find(new.secret) == new.grant
    assert book.find(old.secret) is None


def test_unknown_tokens_make_the_daemon_look_at_its_file_a_few_times_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now, looks = tmp_path / "tokens.json", [0.0], []
    open_tokens(path)
    book = TokenBook(path, lambda: now[0])
    monkeypatch.setattr(book, "_refresh", lambda: looks.append(now[0]))
    for _ in range(1_000):
        now[0] += 0.001
        assert book.find("an-unknown-token-0123456789") is None
    assert 15 <= len(looks) <= 20


@real
async def test_http_1_0_may_leave_out_its_host_but_not_name_another_one(tmp_path: Path) -> None:
    reached: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["http_version"])

    async def ask(version: str, *hosts: bytes) -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", host) for host in hosts]
        scope = {"type": "http", "http_version": version, "method": "GET", "path": "/healthz", "headers": headers}
        await Access(app, TokenBook(tmp_path / "tokens.json"), AccessOptions(), lambda: 0.0)(scope, app, send)
        return int(sent[0]["status"])

    assert await ask("1.0") == 204
    assert await ask("1.0", b"localhost") == 204
    assert await ask("1.0", b"evil.example") == 421
    assert await ask("1.0", b"localhost", b"localhost") == 400
    assert await ask("1.1") == 400
    assert not reached
