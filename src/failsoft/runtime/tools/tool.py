"""A registered tool: its options, its function, its health, and the values that the fast path reads."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from failsoft.core.effects.tool_effect import KnownEffect, Undeclared, know_effect
from failsoft.core.effects.verification import unused_without_verify
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.options import ToolOptions
from failsoft.core.model.verify_tool import VerifyTool
from failsoft.core.redact.printable import quote, visible
from failsoft.core.resilience.circuit_breaker import Ticket
from failsoft.errors import ManifestError
from failsoft.runtime.execution.bulkhead import Bulkhead
from failsoft.runtime.tools.description import description_of
from failsoft.runtime.tools.function_kind import kind_of, signature_misfit
from failsoft.runtime.tools.health import ToolHealth
from failsoft.runtime.tools.rate_buckets import RateBuckets

if TYPE_CHECKING:
    from failsoft.core.effects.recognition import ToolEffect
    from failsoft.core.effects.tool_effect import EffectSource
    from failsoft.core.model.entrypoint import Command
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.execution.deadline import Queue
    from failsoft.runtime.execution.processes.target import Target
    from failsoft.runtime.tools.argument_check import Check
    from failsoft.runtime.tools.known_errors import KnownErrors

FastCall = Callable[..., Coroutine[Any, Any, "Outcome[Any]"]]  # a tool's fast path
# The refusal that callers share, until when, and the event type of its records, see ``observe.events``
CachedRefusal = tuple["Outcome[Any]", float, tuple[str, str]]

LOOKS = 20  # values that a pattern is compared with for misspelt fields, and calls whose arguments are looked at
log = logging.getLogger("failsoft")


class Tool:
    """One tool of one runtime."""

    __slots__ = (
        "_absent",
        "_check",
        "_missing",
        "_signature",
        "_warned",
        "argument_check",
        "by_name",
        "cached_refusal",
        "closed_ticket",
        "command",
        "configured_timeout",
        "disabled",
        "effect",
        "effect_reason",
        "effect_source",
        "fast_eligible",
        "fn",
        "guarded",
        "health",
        "id",
        "kind",
        "known_errors",
        "label",
        "looks_at_values",
        "only_reads",
        "options",
        "queue",
        "rate_buckets",
        "safe_to_repeat",
        "slots",
        "target",
        "terms",
        "timeout",
        "unavailable_fault",
        "was_looked_up_in_policies",
    )

    is_known: ClassVar[bool] = True  # False: no tool of this name is registered

    def __init__(
        self,
        fn: Callable[..., Any],
        options: ToolOptions,
        *,
        command: Command | None = None,
        missing: Fault | None = None,
    ) -> None:
        self.id = options.id
        self.label = options.label
        self.options = options
        self.fn = fn
        self.kind = kind_of(fn)
        # The last item: whether its calls may be plain
        self.terms = options.required, options.defaults, self.kind == "async"
        self.configured_timeout: float = math.inf if options.timeout is None else options.timeout  # for messages
        self.timeout = float(self.configured_timeout)
        self.effect: ToolEffect
        self.effect_source: EffectSource
        self.effect_reason: str
        self.safe_to_repeat: bool | None  # None: not declared
        self.only_reads: bool  # its calls never count as an effect of the call around them
        # ``learn_effect`` reads the description as well
        self._take_effect(know_effect(options, undeclared="as_specified"))
        self.health = ToolHealth(options.breaker)
        self.slots = None if options.concurrency is None else Bulkhead(options.concurrency, options.queue)
        self.rate_buckets = None if options.rate is None else RateBuckets(options.rate)
        self.queue: Queue | None = None  # deadline queue of the event loop used last
        self.guarded: Callable[..., Any] = fn
        self.by_name: FastCall | None = None  # the fast path of an async tool, unless it writes
        self.unavailable_fault = self._missing = missing  # the reason if it cannot be used
        self.disabled: Fault | None = None  # by the operator
        self.cached_refusal: CachedRefusal | None = None  # while the circuit is open
        self.command = command
        self.target: Target | None = None
        if command is None and options.isolation.kind == "process":
            from failsoft.runtime.execution.processes.target import target_of

            self.target = target_of(fn)
        # If a tool has only a function and a deadline, a call that succeeds at once needs only its ticket.
        special = (
            self.slots,
            self.rate_buckets,
            self.target,
            command,
            options.output,
            options.key_parameter,
            options.failed_if,
            options.max_repeats,
            options.idle_timeout,
        )
        self.fast_eligible = all(thing is None for thing in special)
        self.known_errors: KnownErrors | None = None  # errors that the fast path may retry; None: it retries none
        self._choose_fast_path()
        self.closed_ticket: Ticket | None = None
        self._signature: inspect.Signature | None = None
        self._check = None if options.output is None else self._checker(options.output)
        self.looks_at_values = LOOKS  # values that are still to be checked for fields that ``failed_if`` misspells
        self.was_looked_up_in_policies = False  # True once the policies were searched for a misspelling of its id
        self._warned = False
        unchecked = command is not None or not options.check_types
        self.argument_check: Check | None = None if unchecked else self._first_check  # of calls by name
        self._absent: set[str] = set()  # fallbacks that a warning has named
        self._check_verify()
        if options.key_parameter is not None:
            self._refuse_missing_parameter(options.key_parameter)
        if options.defaults and (unknown := self.unknown_arguments(options.defaults)):
            raise ManifestError(f"defaults: the function has no parameter {unknown}")
        self.renew_ticket()

    @property
    def is_write(self) -> bool:
        """True if the tool acts on the world and must not be repeated: its calls are recorded before they start."""
        return self.safe_to_repeat is False

    @property
    def is_declared_safe(self) -> bool:
        """True if the author says that the tool may be repeated. This includes its inner calls."""
        return bool(self.safe_to_repeat) and self.known_effect.is_declared

    def renew_ticket(self) -> None:
        """Update the ticket after a possible change of the health."""
        usable = self.fast_eligible and self.unavailable_fault is None and not self.health.holds
        self.closed_ticket = self.health.ticket if usable else None

    def on_health_adopted(self) -> None:
        """Drop cached refusals and tickets: another process has changed the circuit."""
        self.cached_refusal = None
        self.renew_ticket()

    def admits(self, ticket: Ticket) -> bool:
        """True if a ticket of the closed circuit is still valid."""
        health = self.health
        return health.state.generation == ticket.generation and not health.holds and self.unavailable_fault is None

    @property
    def description(self) -> str:
        """The description of the tool, in its author's words."""
        return description_of(self.fn) if self.command is None and self.unavailable_fault is None else ""

    def learn_effect(self, undeclared: Undeclared) -> None:
        """Decide whether the tool reads or writes. Called once, when it is registered."""
        declared = self.options.safe_to_repeat is not None
        known = know_effect(self.options, "" if declared else self.description, undeclared=undeclared)
        self._take_effect(known)
        self._choose_fast_path()
        if self.safe_to_repeat is None and undeclared == "recognise" and self.options.retry.max_attempts > 1:
            self.warn_undeclared()

    @property
    def known_effect(self) -> KnownEffect:
        """The effect with its source and reason."""
        return KnownEffect(self.effect, self.effect_source, self.effect_reason, self.safe_to_repeat)

    def _take_effect(self, known: KnownEffect) -> None:
        self.effect, self.effect_source, self.effect_reason, self.safe_to_repeat = known
        self.only_reads = known.effect == "read" and known.safe is True

    def _choose_fast_path(self) -> None:
        self.known_errors = {} if self._retries_fast() else None

    def _retries_fast(self) -> bool:
        """True if only attempts, time, budget and breaker decide on retries."""
        options = self.options
        if (
            self.kind != "async"
            or not self.fast_eligible
            or self.safe_to_repeat is False
            or options.breaker.count != "attempts"
        ):
            return False
        if options.fallbacks or options.retry.rules is not None:
            return False
        return not any(map(callable, options.classification))

    def mark_unavailable(self, fault: Fault) -> None:
        """Mark the tool as unusable in this deployment. Registering it again makes a ``Tool`` without the mark."""
        self._missing = fault
        self.unavailable_fault = self.disabled or fault
        self.renew_ticket()

    def disable(self, why: str) -> None:
        """Refuse every call from now on."""
        self.disabled = self.unavailable_fault = builtin_faults.tool_disabled(self.id, why)
        self.cached_refusal = None  # callers of an open circuit would get another answer
        self.renew_ticket()

    def enable(self) -> None:
        """Accept calls again, unless the tool is missing."""
        self.disabled, self.unavailable_fault = None, self._missing
        self.renew_ticket()

    def signature(self) -> inspect.Signature | None:
        """The function's signature; some built-in functions have none."""
        if self._signature is None:
            try:
                self._signature = inspect.signature(self.fn)
            except (TypeError, ValueError):
                return None
        return self._signature

    def unknown_arguments(self, names: Iterable[str]) -> str:
        """Name the first unknown argument and similar parameters; "" if the function takes all names."""
        signature = None if self.command is not None or self._missing is not None else self.signature()
        if signature is None:
            return ""
        parameters = signature.parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return ""
        return next(
            (f"{quote(name)!r}{did_you_mean(name, parameters)}" for name in names if name not in parameters),
            "",
        )

    def _check_verify(self) -> None:
        verify = self.options.verify
        if verify is None:
            if self.options.verify_key is not None:
                raise ManifestError("verify_key: there is no verify to use the key: give one, or use idempotency_key")
            for name in unused_without_verify(self.options):
                raise ManifestError(f"{name}: there is no verify that it could apply to: give one, or drop {name}")
            return
        if self.kind in ("stream", "async stream"):
            raise ManifestError(
                "verify: the tool streams its value, which verify could not return: drop one of the two"
            )
        if isinstance(verify, VerifyTool) and verify.tool == self.options.id:
            raise ManifestError(f"verify: tool: {verify.tool} is the write itself: name a tool that reads")
        if isinstance(verify, VerifyTool) and (unknown := self.unknown_arguments(verify.names())):
            raise ManifestError(f"verify: the function has no parameter {unknown}")

    def _refuse_missing_parameter(self, name: str) -> None:
        signature = self.signature()
        parameters = {} if signature is None else signature.parameters
        if name not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            raise ManifestError(
                f"{'verify' if self.options.idempotency_key is None else 'idempotency'}_key: the function has no parameter "
                f"{name!r} to receive it: add one, or name another"
            )

    def _checker(self, output: Any) -> Callable[[Any], None]:
        from failsoft.runtime.tools.output_check import checker

        try:
            return checker(output)
        except ValueError as error:
            raise ManifestError(f"output: {error}") from None

    def misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, typed: bool = False) -> Fault | None:
        """Return the fault of arguments that do not fit the signature (``typed``: or its types); None if they fit."""
        signature = self.signature()
        if signature is None:
            return None
        checked = None if not typed or self.argument_check is None else self.argument_check(kwargs)
        wrong = checked if isinstance(checked, Fault) else None
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            return signature_misfit(signature, args, kwargs, error, wrong)
        return wrong

    def _first_check(self, given: Mapping[str, Any]) -> Mapping[str, Any] | Fault:
        """Compile the check of the arguments' types, and look for other mistakes in the arguments of the first calls."""
        from failsoft.runtime.tools.argument_check import compile_check, doubt_arguments  # direct calls need none

        made, first = compile_check(self.fn, self.signature()), iter(range(LOOKS))

        def check(given: Mapping[str, Any]) -> Mapping[str, Any] | Fault:
            if next(first, None) is None:
                self.argument_check = made
            else:
                doubt_arguments(self.id, given, self.signature())
            return given if made is None else made(given)

        self.argument_check = check
        return check(given)

    def own_value(self, value: Any) -> Any:
        """The value as the tool returned it; a framework may have made a message of it."""
        return value

    def readings(self, value: Any, own: Any) -> Iterable[Any]:  # noqa: ARG002
        """The forms in which a value can be read, the tool's own first."""
        return (own,)

    def is_control_flow(self, value: Any) -> bool:  # noqa: ARG002
        """True if an agent framework controls its run by such values."""
        return False

    def check_output(self, value: Any) -> Fault | None:
        """Return the fault of a value that does not have the declared form; None if it does."""
        if self._check is None:
            return None
        try:
            self._check(value)
        except Exception as error:  # validators are user code
            return builtin_faults.output_mismatch(self.id, error)
        return None

    def warn_undeclared(self) -> None:
        """Log once that it is not known whether repeating this tool is safe."""
        if not self._warned:
            self._warned = True
            log.warning(
                "%s: nothing says whether this tool reads or writes, so it is retried even after an attempt that may "
                "have taken effect: declare read_only=True, idempotent=True or idempotent=False",
                visible(self.id),
            )

    def warn_missing_fallbacks(self, fallbacks: tuple[str, ...], known: Iterable[str] = ()) -> None:
        """Log once for each fallback that is needed and does not exist. Tools may be registered in any order."""
        for id in fallbacks:
            if id not in self._absent:
                self._absent.add(id)
                hint = did_you_mean(id, known)
                log.warning(
                    "%s: its fallback %s does not exist: register a tool of this id, or correct it%s",
                    visible(self.id),
                    visible(id),
                    visible(hint),
                )
