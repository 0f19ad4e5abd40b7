"""Tools that run in remote executors, as their reports show them.

Rules
-----
- Options come from the manifest, by the tool's id; a tool that is not in it has the manifest's defaults.
- If a report has no tenant and its tool is in the manifest, it shares circuit and metrics with the daemon's own calls
  of the tool. Every other pair of tenant and tool has its own: one tenant's failures never open another's circuit.
- A fallback with a cooldown of its own has a circuit for each tool that it replaces.
- A tool counts as a write unless it is declared or recognised as a read.
- An operator disables a tool for one tenant's reports, or for reports without a tenant. A tool of the manifest is
  disabled for all, by the runtime.
- The number of tools and of open calls is limited. Beyond the limit, a tool has no history: every report starts over.
  The tenant that has most open calls loses its oldest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from failsoft.config.settings import Settings, tool_options
from failsoft.core.effects.tool_effect import KnownEffect, know_effect
from failsoft.core.model.fault import Fault
from failsoft.core.resilience.circuit_breaker import CircuitState, Result, Ticket
from failsoft.observe.metrics import Metrics
from failsoft.runtime.call.admission import TRANSITIONS
from failsoft.runtime.services import Services
from failsoft.runtime.tools.framework_tool import FrameworkFunction
from failsoft.runtime.tools.health import ToolHealth
from failsoft.surfaces.daemon.reported_calls import ReportedCall
from failsoft.surfaces.daemon.tenant_table import TenantTable

if TYPE_CHECKING:
    from failsoft.core.model.options import Fallback, ToolOptions
    from failsoft.runtime.tools.tool import Tool

MOST_TOOLS: Final = 1_000  # of one tenant
MOST_TOOLS_IN_ALL: Final = 20_000
MOST_CALLS: Final = 20_000
PROBE_SECONDS: Final = 30.0  # a remote probe that is not reported loses its slot after this time


class ReportedTool:
    """One tool of one tenant."""

    __slots__ = ("_rt", "disabled", "health", "id", "known", "metrics", "options", "tenant", "tool")

    def __init__(
        self, rt: Services, tenant: str | None, options: ToolOptions, known: KnownEffect, tool: Tool | None
    ) -> None:
        self._rt = rt
        self.disabled: str | None = None  # the reason, for this tenant
        self.id = options.id
        self.tenant = tenant
        self.options = options
        self.known = known
        self.tool = tool  # None: not a tool of the daemon itself
        self.health = ToolHealth(options.breaker) if tool is None else tool.health
        self.metrics = Metrics()  # for a tool that is not the daemon's own

    @property
    def successes(self) -> int:
        """The successes so far."""
        return self.metrics.successes if self.tool is None else self._rt.log.trace.successes(self.id)

    @property
    def is_disabled(self) -> bool:
        """True if an operator has disabled the tool."""
        return self.disabled is not None or self._rt.toolbox.disabled.get(self.id) is not None

    def emit(self, event_type: str, call_id: str | None, turn_id: str | None, fields: dict[str, Any]) -> None:
        """Record an event about the tool, and count it. It is not logged: the executor has its own log."""
        if self.tenant is not None:
            fields["tenant"] = self.tenant
        if self.tool is None:
            self.metrics.count(event_type, fields)
        self._rt.log.trace.record((event_type, self._rt.time.now(), self.tool or self.id, call_id, turn_id, fields))

    def report(
        self, result: Result, fault: Fault | None, call_id: str | None, turn_id: str | None
    ) -> tuple[CircuitState, bool]:
        """Report an attempt to the breaker; return the state in which it was made, and whether it opened the circuit."""
        now = self._rt.time.now()
        with self._rt.toolbox.lock:
            before = self.health.observe(now)
            ticket = self._ticket(before, now)
            changed = None if ticket is None else self.health.record(ticket, result, now, fault)
            if self.tool is not None:
                self.tool.renew_ticket()
        if before == "half_open":
            self._emit_transition("half_open", None, call_id, turn_id)
        if changed is not None:
            self._emit_transition(changed, fault, call_id, turn_id)
        return before, changed == "open"

    def _ticket(self, state: CircuitState, now: float) -> Ticket | None:
        """Return a ticket for a remote attempt that has been made already; None if the circuit is open."""
        if state == "closed":
            return Ticket(self.health.state.generation, None)
        if state == "open":
            return None
        answer = self.health.admit(now, PROBE_SECONDS)
        return answer if isinstance(answer, Ticket) else None

    def _emit_transition(
        self, state: CircuitState, fault: Fault | None, call_id: str | None, turn_id: str | None
    ) -> None:
        event_type, message = TRANSITIONS[state]
        fields: dict[str, Any] = {"message": f"{message} {self.id}", "circuit_breaker_state": state}
        if state == "closed":
            fields["recovery_ms"] = round((self._rt.time.now() - self.health.opened_at) * 1000, 3)
        elif state == "open" and fault is not None:
            fields |= {"code": fault.code.value, "error": fault.message}
        self.emit(event_type, call_id, turn_id, fields)

    def observe(self) -> CircuitState:
        """The circuit's state now."""
        with self._rt.toolbox.lock:
            return self.health.observe(self._rt.time.now())

    def circuit(self) -> dict[str, Any]:
        """The circuit as plain data."""
        now = self._rt.time.now()
        with self._rt.toolbox.lock:
            return {
                "state": self.health.observe(now),
                "failure_count": self.health.state.failures,
                "retry_after": self.health.open_for(now),
            }

    def reset(self) -> None:
        """Close the circuit, fill the retry budget, and drop the rate holds."""
        with self._rt.toolbox.lock:
            self.health.reset()

    def spend_retry(self) -> bool:
        """Take one retry out of the tool's budget; False if it is spent."""
        successes = self.successes
        with self._rt.toolbox.lock:
            return self.health.spend(self._rt.time.now(), successes)


class ReportBook:
    """The tools and open calls that remote executors have reported about."""

    def __init__(self, rt: Services, settings: Settings) -> None:
        self._rt = rt
        self._settings = settings
        self._tools: dict[str | None, dict[str, ReportedTool]] = {}
        self._known = 0  # tools of all tenants
        self._pairs: dict[tuple[str | None, str, str], ToolHealth] = {}  # of fallbacks with a cooldown, by primary
        self._calls: TenantTable[ReportedCall] = TenantTable()

    def tool(self, tenant: str | None, id: str) -> ReportedTool:
        """Return a tenant's tool; add a new one if there is room."""
        of_tenant = self._tools.get(tenant)
        found = None if of_tenant is None else of_tenant.get(id)
        if found is not None and (found.tool is None or self._rt.toolbox.tools.get(id) is found.tool):
            return found
        made = self._make(tenant, id)
        if found is not None or self._has_room(of_tenant):
            self._known += found is None
            self._tools.setdefault(tenant, {})[id] = made
            if made.tool is None and self._rt.toolbox.circuits is not None:
                self._rt.toolbox.circuits.register(made.health, "reported", tenant or "", id)
        return made

    def reach(self, tenant: str | None, primary: str, id: str, via: Fallback | None) -> ReportedTool:
        """Return the tool that a call has reached. A fallback with its own cooldown has a circuit for each primary."""
        tool = self.tool(tenant, id)
        if via is None or via.cooldown is None:
            return tool
        made = ReportedTool(self._rt, tenant, tool.options, tool.known, tool.tool)
        made.disabled, made.metrics = tool.disabled, tool.metrics
        first = self.tool(tenant, primary).tool
        if first is not None and tool.tool is not None:
            made.health = self._rt.toolbox.health_of(first, tool.tool, via)
            return made
        key = tenant, primary, id
        health = self._pairs.get(key) or ToolHealth(via.cooldown)
        made.health = health
        if key not in self._pairs and len(self._pairs) < MOST_TOOLS_IN_ALL:
            self._pairs[key] = health
            if self._rt.toolbox.circuits is not None:
                self._rt.toolbox.circuits.register(health, "reported", tenant or "", primary, id)
        return made

    def _has_room(self, of_tenant: dict[str, ReportedTool] | None) -> bool:
        return self._known < MOST_TOOLS_IN_ALL and (of_tenant is None or len(of_tenant) < MOST_TOOLS)

    def _make(self, tenant: str | None, id: str) -> ReportedTool:
        registered = self._rt.toolbox.tools.get(id)
        if registered is not None:
            own = registered if tenant is None else None
            return ReportedTool(self._rt, tenant, registered.options, registered.known_effect, own)
        options = tool_options(FrameworkFunction(id), id, {}, self._settings)
        known = know_effect(options, undeclared=self._settings.undeclared, foreign=True)
        return ReportedTool(self._rt, tenant, options, known, None)

    def find(self, tenant: str | None, id: str) -> ReportedTool | None:
        """Return a tool that only remote executors have; None if the tenant has reported no tool of this id."""
        found = self._tools.get(tenant, {}).get(id)
        return found if id not in self._rt.toolbox.tools else None

    def tools(self, tenant: str | None) -> list[ReportedTool]:
        """The tools of a tenant (None: of no tenant) that are not the daemon's own."""
        return [tool for tool in self._tools.get(tenant, {}).values() if tool.tool is None]

    def call(self, tenant: str | None, id: str | None, tool: str) -> ReportedCall:
        """Return an open call. When there are too many, the tenant that has most of them loses its least recent one."""
        if id is None:
            return ReportedCall(tool)
        found = self._calls.of(tenant).get(id) or ReportedCall(tool)
        self._calls.put(tenant, id, found)
        if len(self._calls) > MOST_CALLS:
            self._calls.drop_oldest(self._calls.largest())
        return found

    def end_call(self, tenant: str | None, id: str | None) -> ReportedCall | None:
        """Return a call that has ended, and forget it."""
        return None if id is None else self._calls.pop(tenant, id)
