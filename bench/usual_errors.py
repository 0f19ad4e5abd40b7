"""The errors that S12 classifies, made as their libraries make them. Each text has a number of its own."""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Callable
from itertools import pairwise
from typing import Any

MEGABYTE = 1_000_000

Make = Callable[[int], Any]  # makes the error with this number
Ready = Callable[[], Make]  # raises ImportError if a library is missing


def chained(*errors: BaseException) -> BaseException:
    """Chain errors: the first raised from the second, raised from the third …"""
    for outer, inner in pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError("nothing was raised")


def refused(n: int) -> OSError:
    return ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ('127.0.0.1', {n})")


def sqlite() -> Make:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    return lambda n: raised(lambda: connection.execute(f"SELECT * FROM orders_{n}"))


def requests_status() -> Make:
    import requests

    def make(n: int) -> BaseException:
        response = requests.Response()
        response.status_code, response.reason, response.url = (
            503,
            "Service Unavailable",
            f"https://api.acme.test/v1/{n}",
        )
        response._content = b'{"message": "upstream is restarting", "request": %d}' % n
        return raised(response.raise_for_status)

    return make


def requests_refused() -> Make:
    import requests
    from urllib3.connection import HTTPSConnection
    from urllib3.connectionpool import HTTPSConnectionPool
    from urllib3.exceptions import MaxRetryError, NewConnectionError

    pool, connection = HTTPSConnectionPool("api.acme.test", 443), HTTPSConnection("api.acme.test", 443)

    def make(n: int) -> BaseException:
        socket = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        new = chained(NewConnectionError(connection, f"Failed to establish a new connection: {socket}"), socket)
        retries = chained(MaxRetryError(pool, f"/v1/orders/{n}", new), new)
        error = requests.ConnectionError(retries)
        error.__context__ = retries
        return error

    return make


def httpx_status() -> Make:
    import httpx

    def make(n: int) -> BaseException:
        request = httpx.Request("GET", f"https://api.acme.test/v1/{n}")
        response = httpx.Response(429, headers={"retry-after": "7"}, json={"error": f"slow down, {n}"}, request=request)
        return raised(response.raise_for_status)

    return make


def httpx_refused() -> Make:
    import httpcore
    import httpx

    def make(n: int) -> BaseException:
        text = f"All connection attempts to {n} failed"
        return chained(httpx.ConnectError(text), httpcore.ConnectError(text), OSError(text), refused(n))

    return make


def aiohttp_refused() -> Make:
    from aiohttp import ClientConnectorError
    from aiohttp.client_reqrep import ConnectionKey

    key = ConnectionKey("api.acme.test", 443, True, True, None, None, None)

    def make(n: int) -> BaseException:
        inner = refused(n)
        return chained(ClientConnectorError(key, inner), inner)

    return make


def sdk_status(library: str, error: str, status: int, body: Callable[[int], Any]) -> Ready:
    """Make an SDK's status error; OpenAI's and Anthropic's are made in the same way."""

    def ready() -> Make:
        import importlib

        import httpx

        kind = getattr(importlib.import_module(library), error)

        def make(n: int) -> BaseException:
            said = body(n)
            request = httpx.Request("POST", "https://api.acme.test/v1/chat/completions")
            response = httpx.Response(status, headers={"x-request-id": f"req_{n}"}, json=said, request=request)
            made: BaseException = kind(f"Error code: {status} - {said}", response=response, body=said)
            return made

        return make

    return ready


def openai_body(n: int) -> Any:
    words = f"Rate limit reached for gpt-4o: Limit 30000, Used {n}. Please try again in 2.4s."
    return {"error": {"message": words, "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}


def anthropic_body(n: int) -> Any:
    return {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": f"req_{n}"}


def openai_connection() -> Make:
    import httpx
    import openai

    connect = httpx_refused()

    def make(n: int) -> BaseException:
        request = httpx.Request("POST", "https://api.acme.test/v1/chat/completions")
        return chained(openai.APIConnectionError(request=request), connect(n))

    return make


def grpc_status() -> Make:
    import grpc
    from grpc.aio import AioRpcError, Metadata

    def make(n: int) -> BaseException:
        words = f"failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:{n}: Connection refused"
        debug = f'UNKNOWN:Error received from peer {{grpc_status:14, grpc_message:"{words}"}}'
        return AioRpcError(grpc.StatusCode.UNAVAILABLE, Metadata(), Metadata(), words, debug)

    return make


def psycopg_unique() -> Make:
    from psycopg.errors import UniqueViolation

    words = 'duplicate key value violates unique constraint "orders_pkey"\nDETAIL:  Key (id)=(%d) already exists.'
    return lambda n: UniqueViolation(words % n)


def asyncpg_deadlock() -> Make:
    from asyncpg.exceptions import DeadlockDetectedError

    return lambda n: DeadlockDetectedError(f"deadlock detected\nDETAIL:  Process {n} waits for ShareLock.")


def redis_refused() -> Make:
    from redis.exceptions import ConnectionError as RedisConnectionError

    return lambda n: chained(
        RedisConnectionError(f"Error 111 connecting to localhost:{n}. Connection refused."), refused(n)
    )


def pydantic_invalid() -> Make:
    from pydantic import BaseModel

    class Order(BaseModel):
        number: int
        customer: str

    return lambda n: raised(lambda: Order.model_validate({"number": f"no {n}"}))


def mcp_error() -> Make:
    from mcp import MCPError

    return lambda n: MCPError(-32602, f"Invalid params for request {n}: 'path' is a required property")


def gateway(n: int) -> str:
    body = {"error": {"code": 503, "message": f"The model is overloaded ({n}). Please try again later."}}
    return f"HTTP 503 Service Unavailable: {json.dumps(body)}"


# name -> function that prepares the errors, or raises ImportError
USUAL: dict[str, Ready] = {
    "ConnectionRefusedError": lambda: refused,
    "PermissionError": lambda: lambda n: PermissionError(errno.EACCES, "Permission denied", f"/srv/data/{n}.csv"),
    "TimeoutError": lambda: lambda n: TimeoutError(f"no answer within {n} ms"),
    "ValueError": lambda: lambda n: ValueError(f"invalid literal for int() with base 10: 'x{n}'"),
    "json.JSONDecodeError": lambda: lambda n: raised(lambda: json.loads(f'{{"order": {n}, ')),
    "RuntimeError, an address in it": lambda: lambda n: RuntimeError(f"<Session at 0x7f3a{n:08x}> is closed"),
    "RuntimeError, a sentence": lambda: lambda n: RuntimeError(f"The shop could not handle order {n} just now."),
    "Exception, a sentence": lambda: lambda n: Exception(f"Order {n} was not found in the warehouse"),
    "sqlite3.OperationalError": sqlite,
    "requests.HTTPError": requests_status,
    "requests.ConnectionError, its chain": requests_refused,
    "httpx.HTTPStatusError": httpx_status,
    "httpx.ConnectError, its chain": httpx_refused,
    "aiohttp.ClientConnectorError": aiohttp_refused,
    "openai.RateLimitError": sdk_status("openai", "RateLimitError", 429, openai_body),
    "openai.APIConnectionError, its chain": openai_connection,
    "anthropic.InternalServerError": sdk_status("anthropic", "InternalServerError", 529, anthropic_body),
    "grpc.aio.AioRpcError": grpc_status,
    "psycopg UniqueViolation": psycopg_unique,
    "asyncpg DeadlockDetectedError": asyncpg_deadlock,
    "redis ConnectionError": redis_refused,
    "pydantic ValidationError": pydantic_invalid,
    "mcp.MCPError": mcp_error,
    "text: an MCP tool's": lambda: lambda n: f"Error executing tool search: no index named 'orders-{n}'",
    "text: a gateway's": lambda: gateway,
    "text: a web page": lambda: (
        lambda n: f"<html><head><title>502 Bad Gateway</title></head><body>nginx {n}</body></html>"
    ),
}


def long_text(n: int) -> str:
    return (f"row {n}: connection to the upstream was reset, value=17; " * (MEGABYTE // 50))[:MEGABYTE]


LONG: dict[str, Ready] = {
    "text": lambda: long_text,
    "RuntimeError": lambda: lambda n: RuntimeError(long_text(n)),
    "OSError": lambda: lambda n: OSError(errno.EIO, long_text(n)),
    "KeyError": lambda: lambda n: KeyError(long_text(n)),
}
