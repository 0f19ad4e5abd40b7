"""``failsoft serve``: the Error Handler as a daemon. ``failsoft token``: who may ask it."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failsoft.errors import FailsoftError
from failsoft.surfaces.cli.console import CommandError, json_option, print_json, print_text
from failsoft.surfaces.cli.files import check_address, import_from_here, read

if TYPE_CHECKING:
    from failsoft.surfaces.daemon.tokens import Token

_NEEDED = "failsoft serve needs starlette, uvicorn and httptools"
_INSTALL = "Try: pip install 'failsoft[serve]'"


def state_directory() -> Path:
    """The directory of the daemon's store and tokens, unless options name others."""
    base = os.environ.get("FAILSOFT_STATE")
    if base:
        return Path(base)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "failsoft"


_tokens_option = click.option(
    "--tokens",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The token file.  [default: tokens.json in the state directory]",
)


@click.command(
    short_help="Run the Error Handler as a daemon.",
    epilog="The state directory is $FAILSOFT_STATE, else $XDG_STATE_HOME/failsoft, else ~/.local/state/failsoft.",
)
@click.option("-m", "--manifest", metavar="FILE", help="The tools. Without it the daemon only decides about reports.")
@click.option("--store", metavar="URL", help="Where everything is kept.  [default: daemon.db in the state directory]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8585, show_default=True, type=click.IntRange(0, 65535), help="The port; 0: any free one."
)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that other machines reach.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Also answer for this host name.")
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="Allow this origin of web pages.")
@click.option("--tls-certificate", metavar="FILE", help="The certificate for TLS.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate.")
@click.option(
    "--rate", default=2000.0, show_default=True, type=click.FloatRange(min=1), help="Requests per second and token."
)
@_tokens_option
@click.option("--openapi", is_flag=True, help="Print the OpenAPI document and exit.")
@json_option
def serve(openapi: bool, as_json: bool, **options: Any) -> int:
    """Run the Error Handler as a daemon: executors in any language report errors and get decisions.

    Every request but GET /healthz needs a token. The first start makes one and says in which file.
    """
    try:
        from failsoft.surfaces.daemon.app import ROUTES
        from failsoft.surfaces.daemon.openapi import describe
    except ImportError as error:
        raise CommandError(f"{_NEEDED}: {error.name} is missing", hint=_INSTALL) from None
    if openapi:
        print_json(describe(ROUTES))
        return 0
    from failsoft.surfaces.daemon.server import run_server

    listening = asyncio.Event()
    return run_server(_serve(listening, as_json=as_json, **options), listening.is_set)


async def _serve(
    listens: asyncio.Event,
    *,
    as_json: bool,
    manifest: str | None,
    store: str | None,
    host: str,
    port: int,
    allow_remote: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    tls_certificate: str | None,
    tls_key: str | None,
    rate: float,
    tokens: Path | None,
) -> int:
    from failsoft.surfaces.daemon.access import AccessOptions, allowed_hosts
    from failsoft.surfaces.daemon.app import build_app
    from failsoft.surfaces.daemon.daemon import Daemon
    from failsoft.surfaces.daemon.server import ServerOptions, make_server, refuse_exposure, shorten_pauses
    from failsoft.surfaces.daemon.store_lock import lock_store
    from failsoft.surfaces.daemon.tokens import TokenBook

    listening = ServerOptions(host, port, allow_remote, tls_certificate, tls_key)
    refuse_exposure(listening)
    _check_names(hosts, origins)
    _check_tls(tls_certificate, tls_key)
    if manifest is not None:
        read(manifest)  # raises a clear error if it cannot be read
        import_from_here()
    state = state_directory()
    if store is None:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = f"sqlite:///{(state / 'daemon.db').absolute()}"
    database = check_address(store, to_write=True)
    try:
        lock = None if database is None else lock_store(database.resolve())
    except FailsoftError as error:
        raise CommandError(str(error), code=1) from None
    book = TokenBook(tokens or state / "tokens.json")
    daemon = Daemon(manifest, store=store)
    access = AccessOptions(allowed_hosts(host, hosts), frozenset(origins), rate)
    server = make_server(build_app(daemon, book, access), daemon, listening)
    running = asyncio.create_task(server.serve())
    ready = asyncio.create_task(server.ready.wait())
    await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if not server.started:
        try:
            await running
        except FailsoftError as error:
            raise CommandError(str(error), code=1) from None
        raise CommandError("the daemon could not be started", code=1)
    shorten_pauses()
    server.end_in_time()
    listens.set()
    bound = server.servers[0].sockets[0].getsockname()[1]
    address = f"{'https' if tls_certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{bound}"
    if as_json:
        print_json({"url": address, "tokens": str(book.path), "store": store}, indent=None)
    else:
        print_text(f"failsoft listens on {address}\nTokens: {book.path}\nStop it with Ctrl-C.")
    await running
    if lock is not None:
        os.close(lock)
    return 0


def _check_names(hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
    """Refuse names that no request could have."""
    for host in hosts:
        if not host or "/" in host or any(letter.isspace() for letter in host):
            raise CommandError(
                f"--allow-host {host}: expected the name of a host, without http:// and path",
                hint="Write it like: --allow-host failsoft.example",
            )
    for origin in origins:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not host or "/" in host:
            raise CommandError(
                f"--allow-origin {origin}: expected scheme, host and port of a web page, without a path",
                hint="Write it like: --allow-origin https://dashboard.example",
            )


def _check_tls(certificate: str | None, key: str | None) -> None:
    """Refuse files that are not a certificate and its key."""
    if certificate is None or key is None:
        return
    read(certificate)  # raises a clear error if it cannot be read
    read(key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CommandError(
            f"--tls-certificate {certificate} and --tls-key {key} are not a certificate and its key: {error}",
            hint="Both must be PEM files, and the key must not be encrypted.",
        ) from None


@click.group(short_help="List, add, rotate and remove the daemon's tokens.")
def token() -> None:
    """List, add, rotate and remove the daemon's tokens. A running daemon notices within a second."""


def _open(tokens: Path | None, *, create: bool = False) -> tuple[Path, list[Token]]:
    from failsoft.surfaces.daemon.tokens import open_tokens

    path = tokens or state_directory() / "tokens.json"
    if tokens is not None and not create and not path.exists():
        raise CommandError(f"there is no token file {path}", hint="failsoft token add makes one.")
    return path, open_tokens(path)


def _find(found: list[Token], name: str, path: Path) -> Token:
    known = next((each for each in found if each.grant.name == name), None)
    if known is None:
        raise CommandError(
            f"{path} has no token {name!r}", hint=f"Known: {', '.join(t.grant.name for t in found)}", code=1
        )
    return known


@token.command("list")
@_tokens_option
@json_option
def list_tokens(tokens: Path | None, as_json: bool) -> int:
    """List the tokens by name, with their roles and tenants. The tokens themselves are not shown."""
    path, found = _open(tokens)
    shown = [{k: v for k, v in each.to_dict().items() if k != "token"} for each in found]
    if as_json:
        print_json({"file": str(path), "tokens": shown})
    else:
        for each in shown:
            tenant = "" if each["tenant"] is None else f"  tenant {each['tenant']}"
            print_text(f"{each['name']}  {', '.join(each['roles'])}{tenant}")
    return 0


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    type=click.Choice(["report", "read", "operate"]),
    help="What it may do.",
)
@click.option("--tenant", help="Bind it to a tenant: it then sees nothing else.")
@_tokens_option
@json_option
def add_token(name: str, roles: tuple[Any, ...], tenant: str | None, tokens: Path | None, as_json: bool) -> int:
    """Add a token called NAME and print it."""
    from failsoft.surfaces.daemon.tokens import Grant, Token, make_secret, write_tokens

    if not name.strip() or not name.isprintable():
        raise CommandError(
            "NAME: expected a name for the token, such as its user's", hint="Try: failsoft token add executor"
        )
    path, found = _open(tokens, create=True)
    if any(each.grant.name == name for each in found):
        raise CommandError(f"{path} has a token {name!r} already", hint=f"Try: failsoft token rotate {name}")
    if tenant == "":
        raise FailsoftError("--tenant: give a name, or leave the option out")
    made = Token(make_secret(), Grant(name, frozenset(roles), tenant))
    write_tokens(path, [*found, made])
    _print(made, as_json=as_json)
    return 0


@token.command("rotate")
@click.argument("name", default="operator")
@_tokens_option
@json_option
def rotate_token(name: str, tokens: Path | None, as_json: bool) -> int:
    """Replace the token called NAME (operator, unless given) by a new one and print it. The old one is void."""
    from failsoft.surfaces.daemon.tokens import make_secret, write_tokens

    path, found = _open(tokens)
    known = _find(found, name, path)
    made = known._replace(secret=make_secret())
    write_tokens(path, [made if each is known else each for each in found])
    _print(made, as_json=as_json)
    return 0


@token.command("remove")
@click.argument("name")
@_tokens_option
@json_option
def remove_token(name: str, tokens: Path | None, as_json: bool) -> int:
    """Remove the token called NAME."""
    from failsoft.surfaces.daemon.tokens import write_tokens

    path, found = _open(tokens)
    known = _find(found, name, path)
    write_tokens(path, [each for each in found if each is not known])
    if as_json:
        print_json({"removed": name})
    else:
        print_text(f"removed {name} from {path}")
        if not any(each.grant.allows("operate") for each in found if each is not known):
            click.echo("No token may operate the daemon any more: failsoft token add NAME --role operate", err=True)
    return 0


def _print(made: Token, *, as_json: bool) -> None:
    if as_json:
        print_json(made.to_dict())
    else:
        print_text(made.secret)
