"""The token buckets of one tool, one per tenant. Every method is called with the runtime's lock held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.resilience import rate_limit

if TYPE_CHECKING:
    from failsoft.core.model.rates import Rate


class RateBuckets:
    """The rate limit of a tool, and the tokens left."""

    __slots__ = ("_buckets", "rate")

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._buckets: dict[str | None, rate_limit.Bucket] = {}  # by tenant

    def take(self, tenant: str | None, now: float) -> float:
        """Take the next token; return the seconds until the token is available."""
        bucket, wait = rate_limit.take(self._buckets.get(tenant, rate_limit.FULL), self.rate, now=now)
        self._buckets[tenant] = bucket
        if len(self._buckets) > rate_limit.MOST_BUCKETS:
            self._drop_full(now)
        return wait

    def give_back(self, tenant: str | None, at: float) -> None:
        """Give back the unused token of the time ``at``."""
        bucket = self._buckets.get(tenant)
        if bucket is not None:
            self._buckets[tenant] = rate_limit.give_back(bucket, self.rate, at=at)

    def _drop_full(self, now: float) -> None:
        for tenant in [tenant for tenant, bucket in self._buckets.items() if bucket.full_at <= now]:
            del self._buckets[tenant]
        while len(self._buckets) > rate_limit.MOST_BUCKETS:
            del self._buckets[min(self._buckets, key=lambda tenant: self._buckets[tenant].full_at)]
