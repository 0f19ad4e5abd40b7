"""Tenants: find the tenant that an id, a tool or an event belongs to.

Rules
-----
- The ids of a tenant's turns and calls start with ``@tenant:``. Ids that callers choose must not start with ``@``, so
  an id shows its tenant, also in the store and after a restart.
- A token that is bound to a tenant acts for this tenant only. It sees nothing that belongs to others or to no tenant.
- An event belongs to the tenant that it names, or that its turn's or call's id names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.tokens import Grant


def scoped(tenant: str | None, id: str) -> str:
    """Return the id under which a tenant's turn or call is recorded."""
    return id if tenant is None else f"@{quote(tenant, safe='')}:{id}"


def owner_of(id: str | None) -> str | None:
    """Return the tenant that an id names."""
    if not id or not id.startswith("@"):
        return None
    name, found, _ = id[1:].partition(":")
    return unquote(name) if found else None


def tenant_for(grant: Grant, named: str | None) -> str | None:
    """Return the tenant of a request; raise if its token is bound to another one."""
    if grant.tenant is None:
        return named
    if named is not None and named != grant.tenant:
        raise Problem(403, "this token is bound to another tenant")
    return grant.tenant


def full_id(grant: Grant, id: str) -> str:
    """Return the full id: a caller that is bound to a tenant may leave out the prefix."""
    if grant.tenant is None or id.startswith(scoped(grant.tenant, "")):
        return id
    return scoped(grant.tenant, id)


def tenant_of(event: Mapping[str, Any]) -> str | None:
    """Return the tenant that an event belongs to."""
    named = event.get("tenant")
    if named is not None:
        return str(named)
    return owner_of(event.get("turn_id")) or owner_of(event.get("call_id"))
