"""Tools that somebody else runs: an agent framework calls its own functions, failsoft decides about them.

Rules
-----
- Such a tool has an id, options and health like any other, but no function of its own. Every call brings what runs (its
  *runners*): for the tool that is asked for, and for those that may stand in for it.
- It counts as a write unless it is declared (by a manifest entry, a registered tool of the same id or the framework's
  own metadata) or recognised by its name and description as a read.
- Where a tool of the same id is registered, its options and its health hold, and the framework's function runs. Where
  the user has declared it by hand, those words hold, whatever its metadata say.
- Exceptions with which a framework steers itself pass (R21): no retry, no verdict on the tool, and the very same object
  comes out.
- The framework has validated the arguments. What fails to validate inside the tool is therefore the tool's own bug, and
  nobody knows what it had done by then. A tool's own classification comes first.
- Nor does anybody know what an agent had done that ran inside a tool and broke off.

Why no function: a framework's tool needs the context of the agent's run, and that is another one for every call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from failsoft.core.effects.tool_effect import Undeclared, know_effect
from failsoft.core.model.builtin_faults import quote
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.options import Isolation, Override, ToolOptions
from failsoft.errors import FailsoftError, ManifestError
from failsoft.runtime.tools.control import BrokenOffError, BrokenToolError, ControlFlow, qualified_name
from failsoft.runtime.tools.tool import Tool

Runner = Callable[[dict[str, Any]], Any]  # the value; a coroutine of it where the framework awaits
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

    Where the framework makes messages of its tools' values, ``read`` gives all that such a one may stand for.
    """

    def get(self, tool: str, /) -> Runner | None: ...


class LazyRunners(NamedTuple):
    """Runners of an agent with many tools: mostly one is asked for."""

    get: Callable[[str], Runner | None]


class RunnerSet(NamedTuple):
    """The runners that a call carries."""

    runners: Runners
    control: Control  # exceptions that pass


RUNNING: ContextVar[RunnerSet | None] = ContextVar("failsoft_running", default=None)


class Metadata(NamedTuple):
    """A framework's knowledge of its tool, beside the options in its metadata."""

    description: str = ""
    schema: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None  # of the arguments, or what makes it
    hinted: bool = False  # the options on effects are the hints of a trusted server


class FrameworkFunction:
    """Stands where other tools have their function."""

    def __init__(self, id: str, declared: Mapping[str, Any] | None = None, about: Metadata | None = None) -> None:
        self.__name__ = id
        self.declared = declared  # by the user, or by the framework's metadata
        self.introduced = about is not None  # by an adapter: the words are the metadata's
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
    """The same for a framework that blocks: its value."""
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
    """Is there anything to run? A framework's tool is there only in a call that has brought it along."""
    if not isinstance(tool, FrameworkFunction):
        return True
    running = RUNNING.get()
    return running is not None and running.runners.get(tool.__name__) is not None


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
        self.argument_check = None  # the framework has seen to that, too

    @property
    def description(self) -> str:
        return self.fn.about.description if isinstance(self.fn, FrameworkFunction) else ""

    def learn_effect(self, undeclared: Undeclared) -> None:
        """Decide whether it reads or writes; one that says neither counts as a write."""
        hinted = isinstance(self.fn, FrameworkFunction) and self.fn.about.hinted
        known = know_effect(self.options, self.description, undeclared=undeclared, foreign=True, hinted=hinted)
        self._take_effect(known)
        self._choose_fast_path()

    def misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, typed: bool = False) -> None:  # noqa: ARG002
        """Always None: the framework has validated the arguments."""
        return

    def check_output(self, value: Any) -> Fault | None:
        """Check that the value has the declared form; of a framework's own message, its content is checked."""
        running = RUNNING.get()
        read = None if running is None else getattr(running.runners, "read", None)
        fault = None
        for meant in (value,) if read is None or self.options.output is None else read(value):
            fault = super().check_output(meant)
            if fault is None:
                break
        return fault


class FrameworkView(FrameworkTool):
    """A registered tool whose place a framework's function takes: one set of options, one health."""

    __slots__ = ("original",)

    def __init__(self, original: Tool) -> None:
        self.original = original
        super().__init__(FrameworkFunction(original.id), replace(original.options, isolation=Isolation()))
        safe = original.safe_to_repeat is True  # in a framework, a tool of which nothing is known counts as a write
        self._take_effect(original.known_effect._replace(safe=safe))
        self._choose_fast_path()
        self.health, self.slots, self.unavailable_fault = original.health, original.slots, original.unavailable_fault

    def renew_ticket(self) -> None:
        self.original.renew_ticket()  # its health has changed

    def mark_unavailable(self, fault: Fault) -> None:
        self.original.mark_unavailable(fault)


def refuse_other_metadata(known: Tool, declared: Mapping[str, Any]) -> None:
    """Two tools of one name are one tool here: they must not be declared as different ones."""
    before = known.fn.declared if isinstance(known.fn, FrameworkFunction) else declared
    if before != declared:
        raise ManifestError(
            f"{quote(known.id)}: declared as {before} before, and now as {declared}: rename one of the two tools, or "
            "give its agent a Runtime of its own"
        )
