"""The recovery memory: a record of which strategies helped against which errors.

Rules
-----
- A *family* is all errors of one tenant and tool with one fingerprint (``core.resilience.error_family``).
- Evidence counts once per **episode**, that is, per outage. An episode lasts at least ``EPISODE_LEAST``. It ends once the
  tool has succeeded, or after ``EPISODE_MOST``. Within an episode a strategy's tally grows by 1 in total: by the share of
  its uses that worked.
- Old evidence decays with the half-life ``HALF_LIFE``.
- Mode ``act`` skips retries of a family after ``ENOUGH`` episodes without a cure. Every ``EXPLORE``-th retry still runs,
  to notice when the cause is gone.
- Mode ``act`` also sorts adjacent alternatives that handle the same errors: the most successful comes first. Every
  ``EXPLORE``-th time they keep their written order.
- From ``QUOTED`` episodes on, reasons quote the evidence. An empty memory changes nothing.
- At most ``FAMILIES`` families are kept (the least recent is dropped) with ``STRATEGIES`` tallies each.

Episodes exist because a thousand calls that fail in one outage are one observation. Shares exist because a fallback that
serves nine calls of ten is better than one that serves one of ten.

Times are wall-clock times, because the memory outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.resilience.error_family import fingerprint
from failsoft.core.startup.named_tuple import NamedTuple

Mode = Literal["advise", "act", "off"]

RETRY = "retry"  # name of the retry strategy; an alternative is named TOOL + its id
TOOL = "tool:"

EPISODE_LEAST = 1800.0  # seconds
EPISODE_MOST = 8 * 3600.0
HALF_LIFE = 7 * 86_400.0
ENOUGH = 20  # episodes
QUOTED = 3  # episodes
EXPLORE = 20
FAMILIES = 2_000
STRATEGIES = 16
_TEXTS = 1_024  # error texts whose family is cached
_ROUNDING = 0.5  # tolerance: an episode that has decayed slightly still counts
QUOTABLE = QUOTED - _ROUNDING  # episodes, decayed
_NONE_CURED = 0.5  # below this, no cure counts; one cure counts for one half-life


class Tally(NamedTuple):
    """The record of one strategy, in decayed episodes."""

    tried: float = 0.0
    worked: float = 0.0  # the sum of the shares that worked
    cured: float = 0.0  # episodes in which it worked at all
    seconds: float = 0.0  # typical duration

    def __str__(self) -> str:
        return f"worked {round(self.worked)} of {round(self.tried)} times"


NO_TALLY = Tally()


class Evidence(NamedTuple):
    """The evidence about a family, as used by a decision and quoted in its reason."""

    seen: int  # episodes
    tallies: tuple[tuple[str, Tally], ...] = ()

    def of(self, strategy: str) -> Tally:
        """Return the tally of ``RETRY`` or of a tool (``TOOL + id``)."""
        return next((tally for name, tally in self.tallies if name == strategy), NO_TALLY)

    def __str__(self) -> str:
        known = "; ".join(f"{_spell(name)} {tally}" for name, tally in self.tallies)
        episodes = "1 episode" if self.seen == 1 else f"{self.seen} episodes"
        return f"seen in {episodes}" + (f"; {known}" if known else "")

    def to_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, **{name: [round(part, 3) for part in tally] for name, tally in self.tallies}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evidence:
        return cls(data["seen"], tuple((name, Tally(*parts)) for name, parts in data.items() if name != "seen"))


class Use:
    """The uses of one strategy in the current episode."""

    __slots__ = ("seconds", "tried", "worked")

    def __init__(self, seconds: float) -> None:
        self.tried = 0
        self.worked = 0
        self.seconds = seconds  # typical duration


class Family:
    """The record of one family. Only ``Memory`` changes it."""

    __slots__ = (
        "_tallies", "at", "before", "ordered", "seen", "since", "spared", "successes", "tenant", "text", "tool", "uses",
    )  # fmt: skip

    def __init__(self, tenant: str | None, tool: str, text: str) -> None:
        self.tenant = tenant
        self.tool = tool
        self.text = text
        self.seen = 0.0  # episodes, decayed
        self.at = 0.0  # when ``seen`` was computed
        self.since = 0.0  # start of the current episode
        self.successes = -1  # the tool's success count at that start
        self.before: dict[str, Tally] = {}  # tallies of earlier episodes
        self.uses: dict[str, Use] = {}  # uses in the current episode
        self.spared = 0  # retries skipped since the last exploring one
        self.ordered = 0  # times alternatives were sorted since the last exploring one
        self._tallies: dict[str, Tally] | None = None  # cache; None: stale

    @property
    def tallies(self) -> dict[str, Tally]:
        """The tally of every strategy, including the current episode."""
        made = self._tallies
        if made is None:
            made = self._tallies = {**self.before}
            for name, use in self.uses.items():
                tried, worked, cured, _ = self.before.get(name, NO_TALLY)
                made[name] = Tally(
                    tried + 1, worked + use.worked / use.tried, cured + (use.worked > 0), use.seconds
                )  # fmt: skip
        return made

    @property
    def key(self) -> tuple[str | None, str, str]:
        return self.tenant, self.tool, self.text

    @property
    def is_hopeless(self) -> bool:
        """True if retries were tried often enough and never worked."""
        tally = self.tallies.get(RETRY, NO_TALLY)
        return tally.tried > ENOUGH - _ROUNDING and tally.cured < _NONE_CURED

    @property
    def is_quotable(self) -> bool:
        """True if the family was seen often enough to be quoted."""
        return self.seen > QUOTABLE

    @property
    def evidence(self) -> Evidence | None:
        """The evidence to quote; None while there is too little."""
        return Evidence(round(self.seen), tuple(self.tallies.items())) if self.is_quotable else None

    def is_due(self, now: float) -> bool:
        """True if the current episode may be over."""
        return now - self.since >= EPISODE_LEAST or not self.seen or now < self.since

    def begin_episode(self, now: float, successes: int) -> None:
        kept = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        self.seen = self.seen * kept + 1
        self.before = {
            name: Tally(tried * kept, worked * kept, cured * kept, seconds)
            for name, (tried, worked, cured, seconds) in self.tallies.items()
        }
        self.at = self.since = now
        self.successes = successes
        self.uses.clear()
        self._tallies = None

    def learn(self, strategy: str, worked: bool, seconds: float) -> None:
        use = self.uses.get(strategy)
        if use is None:
            if strategy not in self.before and len(self.tallies) >= STRATEGIES:
                return
            usual = self.before.get(strategy)
            use = self.uses[strategy] = Use(seconds if usual is None else usual.seconds)
        use.tried += 1
        use.worked += worked
        use.seconds += (seconds - use.seconds) * 0.2
        self._tallies = None

    def to_dict(self) -> dict[str, Any]:
        """Return the family as plain data."""
        return {
            "tenant": self.tenant,
            "tool": self.tool,
            "family": self.text,
            "seen": self.seen,
            "at": self.at,
            "since": self.since,
            "tallies": {name: list(tally) for name, tally in self.tallies.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Family:
        """Restore a family from ``to_dict``. The tool's next success ends its episode."""
        family = cls(data["tenant"], data["tool"], data["family"])
        family.seen, family.at, family.since = data["seen"], data["at"], data["since"]
        family.before = {name: Tally(*parts) for name, parts in data["tallies"].items()}
        return family


class Memory:
    """The families of one runtime."""

    def __init__(self) -> None:
        self._families: dict[tuple[str | None, str, str], Family] = {}  # least recent first
        self._texts: dict[tuple[str | None, str, str, str], Family] = {}

    def __len__(self) -> int:
        return len(self._families)

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families.values())

    def note_error(
        self, tenant: str | None, tool: str, fault: Fault, *, now: float, successes: Callable[[], int]
    ) -> Family:
        """Return the family of a new error, in its current episode. ``successes`` returns the tool's success count."""
        family = self.find(tenant, tool, fault)
        if family.is_due(now):
            self.begin_episode_if_due(family, now, successes())
        return family

    def find(self, tenant: str | None, tool: str, fault: Fault) -> Family:
        """Return the family of an error, adding it if it is new."""
        text = (tenant, tool, fault.code, fault.message)
        family = self._texts.get(text)
        if family is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            family = self._texts[text] = self._find(tenant, tool, fingerprint(fault))
        return family

    def knows(self, tenant: str | None, tool: str, fault: Fault) -> bool:
        """True if the tenant has met this error itself."""
        return (tenant, tool, fingerprint(fault)) in self._families

    def _find(self, tenant: str | None, tool: str, text: str) -> Family:
        family = self._families.get((tenant, tool, text))
        return family if family is not None else self.add(Family(tenant, tool, text))

    def add(self, family: Family) -> Family:
        """Add a family: a new one, or one restored from a store."""
        if len(self._families) >= FAMILIES:
            self._drop(next(iter(self._families)))
            self._texts.clear()
        self._families[family.key] = family
        return family

    def begin_episode_if_due(self, family: Family, now: float, successes: int) -> None:
        """Begin a new episode unless the current one continues."""
        recovered = successes != family.successes
        if family.seen and not recovered and 0 <= now - family.since < EPISODE_MOST:
            return
        family.begin_episode(now, successes)
        if self._families.pop(family.key, None) is not None:
            self._families[family.key] = family

    def forget(self, tenant: str | None = None, *, tool: str | None = None) -> int:
        """Drop the families of a tenant, or of one of its tools. Returns their number."""
        gone = [key for key in self._families if key[0] == tenant and tool in (None, key[1])]
        for key in gone:
            self._drop(key)
        self._texts.clear()
        return len(gone)

    def _drop(self, key: tuple[str | None, str, str]) -> None:
        self._families.pop(key).seen = 0.0  # due at once for any code that still holds the family


def skips_retry(family: Family) -> bool:
    """True if a hopeless retry is to be skipped. Every ``EXPLORE``-th retry is made anyway."""
    if not family.is_hopeless:
        return False
    family.spared = (family.spared + 1) % EXPLORE
    return family.spared != 0


def order(family: Family, options: Sequence[Fallback]) -> Sequence[Fallback]:
    """Sort adjacent alternatives that handle the same errors by their success; the others keep their places."""
    if len(options) < 2 or family.seen < QUOTABLE:
        return options
    best = [one for _, rank in groupby(options, lambda option: option.handle_errors) for one in _sort(family, rank)]
    if best == list(options):
        return options
    family.ordered = (family.ordered + 1) % EXPLORE
    return best if family.ordered else options


def _sort(family: Family, rank: Iterable[Fallback]) -> list[Fallback]:
    def success(option: Fallback) -> float:
        tally = family.tallies.get(TOOL + option.tool, NO_TALLY)
        return (tally.worked + 1) / (tally.tried + 2)  # one half without evidence

    return sorted(rank, key=success, reverse=True)


def _spell(strategy: str) -> str:
    return "retries" if strategy == RETRY else strategy.removeprefix(TOOL)
