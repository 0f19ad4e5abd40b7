"""Values by tenant and id, latest last: a table that is full makes room at the cost of the tenant that has most."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class TenantTable(Generic[V]):
    """The values of all tenants. A tenant without values is forgotten."""

    def __init__(self) -> None:
        self._of: dict[str | None, OrderedDict[str, V]] = {}
        self._by_size: dict[int, dict[str | None, None]] = {}  # tenants by their number of values
        self._many = 0

    def __len__(self) -> int:
        return self._many

    def tenants(self) -> list[str | None]:
        """The tenants that have values."""
        return [*self._of]

    def of(self, tenant: str | None) -> Mapping[str, V]:
        """The values of a tenant by id, latest last."""
        return self._of.get(tenant, OrderedDict())

    def values(self) -> Iterator[V]:
        """The values of all tenants."""
        for own in self._of.values():
            yield from own.values()

    def put(self, tenant: str | None, id: str, value: V) -> None:
        """Add or replace a value; it is the tenant's latest."""
        own = self._of.setdefault(tenant, OrderedDict())
        before = len(own)
        own[id] = value
        own.move_to_end(id)
        self._resize(tenant, before, len(own))

    def replace(self, tenant: str | None, id: str, value: V) -> None:
        """Replace a value in its place."""
        self._of[tenant][id] = value

    def pop(self, tenant: str | None, id: str) -> V | None:
        """Remove a value and return it; None if there is none."""
        own = self._of.get(tenant)
        if own is None or id not in own:
            return None
        found = own.pop(id)
        self._resize(tenant, len(own) + 1, len(own))
        return found

    def drop_oldest(self, tenant: str | None) -> str:
        """Remove the oldest value of a tenant; return its id."""
        own = self._of[tenant]
        oldest, _ = own.popitem(last=False)
        self._resize(tenant, len(own) + 1, len(own))
        return oldest

    def largest(self) -> str | None:
        """Return the tenant that has most values."""
        return next(iter(self._by_size[max(self._by_size)]))

    def _resize(self, tenant: str | None, before: int, after: int) -> None:
        if before == after:
            return
        self._many += after - before
        if before:
            alike = self._by_size[before]
            del alike[tenant]
            if not alike:
                del self._by_size[before]
        if after:
            self._by_size.setdefault(after, {})[tenant] = None
        else:
            del self._of[tenant]
