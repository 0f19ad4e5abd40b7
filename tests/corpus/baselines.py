"""What others' rules say of the same errors: each answers only transient or permanent.

A text reaches classifiers of exceptions as ``RuntimeError(text)``: that is what a framework holds when a remote tool
hands back a string. Each function says what it really calls.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched at import

_STATUS_NAMES = ("status_code", "status", "code", "http_status")
_WITHOUT_STATUS = ("botocore", "grpc", "redis", "psycopg", "asyncpg", "sqlalchemy")
_openai: list[Any] = []


def _error(subject: Any) -> BaseException:
    return subject if isinstance(subject, BaseException) else RuntimeError(subject)


def _answer(transient: object) -> dict[str, str]:
    return {"classification": "transient" if transient else "permanent"}


def status_of(error: BaseException) -> int | None:
    """HTTP status by the usual attributes (no text parsing)."""
    for holder in (error, getattr(error, "response", None), getattr(error, "resp", None)):
        for name in _STATUS_NAMES:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    return None


def always_transient(subject: Any, context: Any = None) -> dict[str, str]:
    return _answer(True)


def always_permanent(subject: Any, context: Any = None) -> dict[str, str]:
    return _answer(False)


def langgraph_default(subject: Any, context: Any = None) -> dict[str, str]:
    """Langgraph's own default_retry_on, called as is."""
    from langgraph._internal._retry import default_retry_on

    return _answer(default_retry_on(_error(subject)))


def http_habit(subject: Any, context: Any = None) -> dict[str, str]:
    """Stamina's documented habit: retry httpx.HTTPError, but of status errors only 5xx (and 429); and the builtin
    OSError and TimeoutError families, as most hand-written wrappers add."""  # noqa: D209
    import aiohttp
    import httpx
    import requests

    error = _error(subject)
    status = status_of(error)
    if status is not None:
        return _answer(status >= 500 or status == 429)
    return _answer(
        isinstance(
            error,
            (
                httpx.TransportError,
                requests.ConnectionError,
                requests.Timeout,
                aiohttp.ClientConnectionError,
                ConnectionError,
                TimeoutError,
            ),
        )
    )


def openai_should_retry(subject: Any, context: Any = None) -> dict[str, str]:
    """The openai SDK's ``_should_retry(response)`` for status errors; timeouts and connection errors are retried."""
    import httpx
    import openai

    error = _error(subject)
    if not _openai:
        _openai.append(openai.OpenAI(api_key="fake"))
    response = getattr(error, "response", None)
    if not isinstance(response, httpx.Response):
        status = status_of(error)
        response = httpx.Response(status) if status else None
    if response is not None and response.status_code >= 400:
        return _answer(_openai[0]._should_retry(response))
    return _answer(isinstance(error, (openai.APIConnectionError, httpx.TransportError, ConnectionError, TimeoutError)))


def litellm_mapping(subject: Any, context: Any = None) -> dict[str, str]:
    """``litellm.exception_type()`` maps the error to an OpenAI-style one; then ``litellm._should_retry(status)``."""
    import litellm

    litellm.suppress_debug_info = True
    error = _error(subject)
    if not isinstance(error, Exception):
        return _answer(False)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            mapped = litellm.exception_type(model="gpt-4o", original_exception=error, custom_llm_provider="openai")
        except Exception as raised:
            mapped = raised
    try:
        return _answer(litellm._should_retry(int(mapped.status_code)))
    except (AttributeError, TypeError, ValueError):
        return _answer(False)


def google_if_transient(subject: Any, context: Any = None) -> dict[str, str]:
    from google.api_core.retry import if_transient_error

    return _answer(if_transient_error(_error(subject)))


def botocore_standard(subject: Any, context: Any = None) -> dict[str, str]:
    """botocore.retries.standard: TransientRetryableChecker or ThrottledRetryableChecker."""
    from botocore.exceptions import ClientError
    from botocore.retries import standard

    class Response:
        status_code: int | None = None

    error = _error(subject)
    response = Response()
    if isinstance(error, ClientError):
        response.status_code = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        retry = standard.RetryContext(1, parsed_response=error.response, http_response=response)
    else:
        response.status_code = status_of(error)
        known = response.status_code is not None
        retry = standard.RetryContext(
            1,
            parsed_response={},
            http_response=response if known else None,
            caught_exception=None if known else error,
        )
    checkers = (standard.TransientRetryableChecker(), standard.ThrottledRetryableChecker())
    return _answer(any(checker.is_retryable(retry) for checker in checkers))


def _redress(classifier: Any, subject: Any) -> dict[str, str]:
    from redress import ErrorClass

    found = classifier(_error(subject))
    found = getattr(found, "klass", found)
    # UNKNOWN is retried (with a cap) by redress's policies
    return _answer(found not in (ErrorClass.AUTH, ErrorClass.PERMISSION, ErrorClass.PERMANENT))


def redress_default(subject: Any, context: Any = None) -> dict[str, str]:
    from redress import default_classifier

    return _redress(default_classifier, subject)


def redress_extras(subject: Any, context: Any = None) -> dict[str, str]:
    """The classifier that redress's extras offer for the error's library, else its default one."""
    import redress

    error = _error(subject)
    classifiers = {
        "botocore": redress.boto3_classifier,
        "grpc": redress.grpc_classifier,
        "redis": redress.redis_classifier,
        "urllib3": redress.urllib3_classifier,
        "aiohttp": redress.aiohttp_classifier,
        "httpx": redress.http_classifier,
        "requests": redress.http_classifier,
        "psycopg": redress.sqlstate_classifier,
        "asyncpg": redress.sqlstate_classifier,
        "sqlalchemy": redress.sqlstate_classifier,
    }
    package = type(error).__module__.partition(".")[0]
    try:
        return _redress(classifiers.get(package, redress.default_classifier), error)
    except Exception:
        return _redress(redress.default_classifier, error)


def redress_extras_status_lifted(subject: Any, context: Any = None) -> dict[str, str]:
    """As ``redress_extras``, with the status lifted from ``.response`` first, as a careful user would."""
    import redress

    error = _error(subject)
    status = status_of(error)
    if status is not None and type(error).__module__.partition(".")[0] not in _WITHOUT_STATUS:
        lifted = RuntimeError(str(error))
        lifted.status_code = status  # type: ignore[attr-defined]  # that is what the classifier reads
        return _redress(redress.http_classifier, lifted)
    return redress_extras(subject, context)


_TRANSIENT = re.compile(
    r"timeout|timed out|rate.?limit|too many|throttl|overloaded|unavailable|temporar|try again|retry|reset|refused"
    r"|connection|deadlock|locked|busy|50[0234]|429|529",
    re.IGNORECASE,
)
_PERMANENT = re.compile(
    r"invalid|not found|unauthori[sz]ed|forbidden|permission|denied|missing|required|unsupported|does not exist|no such"
    r"|quota|billing|validation|40[01345]|422",
    re.IGNORECASE,
)


def _words(subject: Any) -> str:
    return subject if isinstance(subject, str) else f"{type(subject).__name__}: {subject}"


def keywords(subject: Any, context: Any = None) -> dict[str, str]:
    """Naive keywords on type name and text: permanent words win, else transient."""
    return _answer(not _PERMANENT.search(_words(subject)))


def keywords_transient_first(subject: Any, context: Any = None) -> dict[str, str]:
    text = _words(subject)
    return _answer(_TRANSIENT.search(text) or not _PERMANENT.search(text))


ALL = (
    "always_transient",
    "always_permanent",
    "langgraph_default",
    "http_habit",
    "openai_should_retry",
    "litellm_mapping",
    "google_if_transient",
    "botocore_standard",
    "redress_default",
    "redress_extras",
    "redress_extras_status_lifted",
    "keywords",
    "keywords_transient_first",
)
