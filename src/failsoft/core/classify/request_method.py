"""The request that an error answers: one that only reads says nothing about a write.

A tool that has paid and then asks for the receipt fails with the refusal of the second request. The refusal is remote
evidence, but of a request that could not have been the payment. Clients keep the request in their errors (httpx, requests,
aiohttp, openai) or name the operation (botocore).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from failsoft.core.classify.evidence import read

METHOD: Final = "request_method"  # where the error of a worker process has it
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOKING: Final = re.compile(r"(?:Get|List|Describe|Head|BatchGet)[A-Z]")
_STATED: Final = re.compile(r"\W{0,3}(GET|HEAD|OPTIONS) (?:/|https?:)")  # "GET /orders/77: 404"
_LINKS: Final = 20  # of a chain of causes, or leaves of groups


def answers_a_read(error: object) -> bool:
    """True if the error, or one that it was raised from, answers a request that can only read."""
    links, seen = [error], 0
    while links and seen < _LINKS:
        link = links.pop()
        seen += 1
        if isinstance(link, BaseException):
            if method_of(link) in _READING:
                return True
            links.append(link.__cause__)
            if isinstance(link, BaseExceptionGroup):
                links.extend(islice(link.exceptions, _LINKS))
    return False


def method_of(error: BaseException) -> str | None:
    """Find the method of the request behind an error; None if the error does not know it."""
    operation = read(error, "operation_name")
    if isinstance(operation, str):
        return "GET" if _LOOKING.match(operation) else None
    for holder in (error, read(error, "response")):
        for name in ("request", "request_info"):
            method = None if holder is None else read(read(holder, name), "method")
            if isinstance(method, str):
                return method.upper()
    method = read(error, METHOD)
    if isinstance(method, str):
        return method
    said = error.args[0] if error.args else None
    stated = _STATED.match(said) if isinstance(said, str) else None
    return None if stated is None else stated[1]
