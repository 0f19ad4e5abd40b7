"""Framework tools: an agent framework runs the functions, failsoft decides about the calls.

Rules
-----
- A framework tool has an id, options and health, but no function. Every call carries the functions to run (its *runners*):
  for the tool that is asked for, and for its fallbacks.
- It counts as a write unless it is declared (by a manifest entry, a registered tool of the same id or the framework's
  own metadata) or recognised by its name and description as a read.
- If a tool of the same id is registered, its options and its health count, and the framework's function runs. Options
  that the user has declared come before the framework's metadata.
- Exceptions that a framework uses for control flow are raised unchanged: no retry, and no verdict on the tool.
- The framework has validated the arguments. A validation error from inside the tool is therefore a bug of the tool, and
  its effect is unknown. The tool's own classification comes first.
- The effect of an agent that was interrupted inside a tool is unknown too.

Why no function: a framework's tool needs the context of the agent's run, which is different for every call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from failsoft.core.effects.tool_effect import Undeclared, know_effect
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.frozen_options import replace
from failsoft.core.model.options import Isolation, Override, ToolOptions
from failsoft.core.redact.printable import quote
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.errors import FailsoftError, ManifestError
from failsoft.runtime.tools.control import BrokenOffError, BrokenToolError, ControlFlow, qualified_name
from failsoft.runtime.tools.tool import Tool

Runner = Callable[[dict[str, Any]], Any]  # returns the value, or a coroutine if the framework awaits
Control = tuple[type[BaseException], ...]

_CONTRACT = (
    *(
        Override(
            exception=name, as_="permanent", category="internal_contract_bug", to_code=Code.INTERNAL, effect="unknown"
        )
        for name in ("pydantic_core._pydantic_core.ValidationError", qualified_name(BrokenToolError))
    ),
    Override(exception=qualified_name(BrokenOffError), effect="unknown"),
)


class Runners(Protocol):
    """The runners by tool id: a mapping, or an object that makes a runner on demand.

    If the framework turns values into messages, ``own`` returns the value that a message was made from, and ``read`` all
    values that it may have been made from. ``for_reading`` returns the runners for tools that read back what became of a
    write, if their attempts must be kept apart from those of the call.
    """

    def get(self, tool: str, /) -> Runner | None: ...


class LazyRunners(NamedTuple):
    """Runners that are made on demand: an agent may have many tools, and a call usually needs one."""

    get: Callable[[str], Runner | None]
    for_reading: Callable[[], Runners] | None = None


class RunnerSet(NamedTuple):
    """The runners that a call carries."""

    runners: Runners
    control: Control  # exceptions that are raised unchanged


RUNNING: ContextVar[RunnerSet | None] = ContextVar("failsoft_running", default=None)


class Metadata(NamedTuple):
    """A framework's description of its tool, apart from the options in its metadata."""

    description: str = ""
    schema: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None  # of the arguments, or its factory
    hinted: bool = False  # the options on effects are the hints of a trusted server


class FrameworkFunction:
    """Takes the place of a tool's function."""

    def __init__(self, id: str, declared: Mapping[str, Any] | None = None, about: Metadata | None = None) -> None:
        self.__name__ = id
        self.declared = declared  # by the user, or by the framework's metadata
        self.is_from_metadata = about is not None  # declared by an adapter from the metadata
        self.about = about or Metadata()

    @property
    def schema(self) -> Mapping[str, Any] | None:
        found = self.about.schema
        return found() if callable(found) else found

    async def __call__(self, **arguments: Any) -> Any:
        return await start(self, arguments)


def start(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> Coroutine[Any, Any, Any]:
    """Start the runner that the call carries for this tool, with a copy of the arguments: a function may change them."""
    runner, control = _find(tool)
    made: Coroutine[Any, Any, Any] = runner({**arguments})
    return _mark(made, control) if control else made


def run_here(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Run the runner that the call carries for this tool, for a framework that blocks."""
    runner, control = _find(tool)
    try:
        return runner({**arguments})
    except control as error:
        raise ControlFlow(error) from None


def _find(tool: Callable[..., Any]) -> tuple[Runner, Control]:
    running = RUNNING.get()
    runner = None if running is None else running.runners.get(tool.__name__)
    if running is None or runner is None:
        raise FailsoftError(f"{quote(tool.__name__)} belongs to an agent framework: it runs only inside the agent")
    return runner, running.control


def is_runnable(tool: Callable[..., Any]) -> bool:
    """True if there is a function to run. A framework tool has one only in a call that carries its runner."""
    if not isinstance(tool, FrameworkFunction):
        return True
    running = RUNNING.get()
    return running is not None and running.runners.get(tool.__name__) is not None


def keep_apart() -> None:
    """Let the calls of this task use the runners for tools that read back."""
    running = RUNNING.get()
    make = None if running is None else getattr(running.runners, "for_reading", None)
    if running is not None and make is not None:
        RUNNING.set(running._replace(runners=make()))


async def _mark(made: Coroutine[Any, Any, Any], control: Control) -> Any:
    try:
        return await made
    except control as error:
        raise ControlFlow(error) from None


class FrameworkTool(Tool):
    """A tool that a framework runs."""

    __slots__ = ()

    def __init__(self, fn: FrameworkFunction, options: ToolOptions) -> None:
        if options.isolation.kind == "process":
            raise ManifestError(
                "isolation: an agent framework runs it, and that is in this process: guard the "
                'function with @runtime.tool(isolation="process"), and give the guarded one to the agent'
            )
        super().__init__(fn, replace(options, classification=(*options.classification, *_CONTRACT)))
        self.argument_check = None  # the framework has checked the types, too

    @property
    def description(self) -> str:
        return self.fn.about.description if isinstance(self.fn, FrameworkFunction) else ""

    def learn_effect(self, undeclared: Undeclared) -> None:
        """Decide whether the tool reads or writes. Without a declaration it counts as a write."""
        hinted = isinstance(self.fn, FrameworkFunction) and self.fn.about.hinted
        known = know_effect(self.options, self.description, undeclared=undeclared, foreign=True, hinted=hinted)
        self._take_effect(known)
        self._choose_fast_path()

    def misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, typed: bool = False) -> None:  # noqa: ARG002
        """Always None: the framework has validated the arguments."""
        return

    def own_value(self, value: Any) -> Any:
        """The value as the tool returned it, before the framework made a message of it."""
        running = RUNNING.get()
        own = None if running is None else getattr(running.runners, "own", None)
        return value if own is None else own(value)

    def readings(self, value: Any, own: Any) -> Iterable[Any]:
        """The tool's own value, and the values that the framework's message may represent."""
        running = RUNNING.get()
        read = None if running is None else getattr(running.runners, "read", None)
        return (own, *(() if read is None else read(value)))

    def is_control_flow(self, value: Any) -> bool:
        """True for an exception by which the framework controls its run, returned instead of raised."""
        running = RUNNING.get()
        return running is not None and bool(running.control) and isinstance(value, running.control)

    def check_output(self, value: Any) -> Fault | None:
        """Check that the value has the declared form; for a framework's message, check its content."""
        fault = None
        for meant in (value,) if self.options.output is None else values_of(value):
            fault = super().check_output(meant)
            if fault is None:
                break
        return fault


def values_of(value: Any) -> Sequence[Any]:
    """Return the values that a framework's message may have been made from; other values as they are."""
    running = RUNNING.get()
    read = None if running is None else getattr(running.runners, "read", None)
    return (value,) if read is None else tuple(read(value))


class FrameworkView(FrameworkTool):
    """A registered tool, run by a framework's function. It shares the options and the health of the original."""

    __slots__ = ("original",)

    def __init__(self, original: Tool) -> None:
        self.original = original
        super().__init__(FrameworkFunction(original.id), replace(original.options, isolation=Isolation()))
        safe = original.safe_to_repeat is True  # in a framework, an undeclared tool counts as a write
        self._take_effect(original.known_effect._replace(safe=safe))
        self._choose_fast_path()
        self.health, self.slots, self.unavailable_fault = original.health, original.slots, original.unavailable_fault

    def renew_ticket(self) -> None:
        self.original.renew_ticket()  # the shared health has changed

    def mark_unavailable(self, fault: Fault) -> None:
        self.original.mark_unavailable(fault)


def refuse_other_metadata(known: Tool, declared: Mapping[str, Any]) -> None:
    """Raise if a tool of the same name was declared with other options: by name they are one tool."""
    before = known.fn.declared if isinstance(known.fn, FrameworkFunction) else declared
    if before != declared:
        raise ManifestError(
            f"{quote(known.id)}: declared as {before} before, and now as {declared}: rename one of the two tools, or "
            "give its agent a Runtime of its own"
        )
