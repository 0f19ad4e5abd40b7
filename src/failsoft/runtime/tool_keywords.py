"""The keywords of tools, for type checkers. All overloads share this list; ``import failsoft`` does not load it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from failsoft.core.model.durations import Duration
from failsoft.core.model.options import (
    AcceptPartial,
    BreakerOptions,
    Fallback,
    Isolation,
    IsolationKind,
    Override,
    Requests,
    RetryOptions,
)

if TYPE_CHECKING:
    from failsoft.core.model.failed_if import FailedIf


class ToolKeywords(TypedDict, total=False):
    """The options of a tool. The other spellings that manifests may use are accepted as well."""

    label: str
    tags: Iterable[str]
    timeout: Duration | None
    timeout_ms: float
    idle_timeout: Duration | None
    retry: RetryOptions | Mapping[str, Any]
    retry_policy: Mapping[str, Any]
    breaker: BreakerOptions | Mapping[str, Any]
    circuit_breaker: Mapping[str, Any]
    error_handling: Mapping[str, Any]
    errorHandling: Mapping[str, Any]
    fallbacks: Iterable[str | Fallback | Mapping[str, Any]]
    classification: Iterable[Override | Mapping[str, Any] | Callable[[Any], Any]]
    required: bool | None
    defaults: Mapping[str, Any]
    idempotent: bool | None
    read_only: bool
    idempotency_key: str | None
    requests: Requests
    isolation: Isolation | IsolationKind | Mapping[str, Any]
    concurrency: int | None
    queue: int
    rate: str | None
    output: Any
    check_types: bool
    accept_partial: AcceptPartial
    verify: Callable[..., Any] | Mapping[str, Any]
    verify_delay: Duration
    verify_timeout: Duration
    verify_key: str | None
    polling: bool
    max_repeats: int | None
    failed_if: FailedIf | None
