"""The token buckets of one tool, one per tenant. Every method is called with the runtime's lock held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.resilience import rate_limit

if TYPE_CHECKING:
    from failsoft.core.model.rates import Rate


class RateBuckets:
    """The rate limit of a tool, and the tokens left."""

    __slots__ = ("_full_at", "rate")

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._full_at: dict[str | None, float] = {}  # by tenant

    def take(self, tenant: str | None, now: float) -> float:
        """Take the next token; return the seconds until the token is available."""
        bucket, wait = rate_limit.take(self._full_at.get(tenant, rate_limit.FULL), self.rate, now=now)
        self._full_at[tenant] = bucket
        if len(self._full_at) > rate_limit.MOST_BUCKETS:
            self._drop_full(now)
        return wait

    def give_back(self, tenant: str | None) -> None:
        """Give back a token that was not used."""
        bucket = self._full_at.get(tenant)
        if bucket is not None:
            self._full_at[tenant] = rate_limit.give_back(bucket, self.rate)

    def _drop_full(self, now: float) -> None:
        for tenant in [tenant for tenant, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[tenant]
        while len(self._full_at) > rate_limit.MOST_BUCKETS:
            del self._full_at[min(self._full_at, key=self._full_at.__getitem__)]
