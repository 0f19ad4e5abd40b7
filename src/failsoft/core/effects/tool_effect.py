"""The effect of a tool, the source of that knowledge, and whether the tool may be repeated.

Declared options come first, then the hints of a trusted server, then the tool's name and description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.effects.recognition import ToolEffect
    from failsoft.core.model.options import ToolOptions

EffectSource = Literal["declared", "hinted", "recognised", "unknown"]
Undeclared = Literal["recognise", "as_specified", "never_repeat"]


class KnownEffect(NamedTuple):
    """The effect of a tool, the source of that knowledge, and whether the tool may be repeated."""

    effect: ToolEffect
    source: EffectSource
    reason: str
    safe: bool | None  # True: may be repeated; False: not if its effect is unknown; None: undeclared

    @property
    def warns_user(self) -> bool:
        """True if the user must learn that a failed call may have gone through, because repeating it is not safe."""
        return self.effect == "write" and not self.safe

    @property
    def is_declared(self) -> bool:
        """True if the effect was declared, in code, in a manifest or as a hint; False if it is recognised or unknown."""
        return self.source in ("declared", "hinted")

    def after_inner_write(self) -> KnownEffect:
        """The effect after a known write inside the tool may have acted.

        It overrides the tool's name, but not its author.
        """
        if self.is_declared or self.safe is False:
            return self
        return KnownEffect("write", self.source, "a write inside it may have acted", safe=False)


UNKNOWN = KnownEffect("neither", "unknown", "not declared", safe=None)


def know_effect(
    options: ToolOptions,
    description: str = "",
    *,
    undeclared: Undeclared = "recognise",
    foreign: bool = False,
    hinted: bool = False,
) -> KnownEffect:
    """Determine the effect of a tool.

    ``foreign``: an agent framework runs the tool. It then counts as a write unless something says otherwise.
    ``hinted``: the options on effects are a server's hints.
    """
    said: EffectSource = "hinted" if hinted else "declared"
    if options.read_only:
        return KnownEffect("read", said, f"{said} read-only", safe=True)
    if options.idempotency_key is not None:
        return KnownEffect("write", "declared", "an idempotency key makes repeating it safe", safe=True)
    if options.idempotent is not None:
        reason = f"{said} {'idempotent' if options.idempotent else 'not idempotent'}"
        return KnownEffect("write", said, reason, safe=options.idempotent)
    if options.verify is not None:
        return KnownEffect("write", "declared", "verify is given", safe=False)
    if undeclared == "as_specified":
        return UNKNOWN._replace(safe=False if foreign else None)
    from failsoft.core.effects.recognition import recognise  # lazy: only undeclared tools need the tables

    effect, reason = recognise(options.id, description)
    source: EffectSource = "unknown" if effect == "neither" else "recognised"
    if undeclared == "never_repeat" or effect == "write" or (foreign and effect == "neither"):
        return KnownEffect(effect, source, reason, safe=False)
    return KnownEffect(effect, source, reason, safe=True if effect == "read" else None)
