"""The recovery memory: what has helped against which family of errors, and what has not.

Rules
-----
- A *family* is a tenant's errors of one tool with one fingerprint (``core.resilience.error_family``).
- Evidence counts once per **episode**. An episode is an outage: it lasts at least ``EPISODE_LEAST``, and ends when the
  tool has succeeded meanwhile, or after ``EPISODE_MOST``. So one bad night is a handful of episodes, however many calls
  it broke. Within an episode a strategy's tally grows by 1 in all: by the share of its uses that worked.
- Old evidence decays, by half in ``HALF_LIFE``.
- ``act``: retries of a family are hopeless after ``ENOUGH`` episodes without one cure. They are left out then, but for
  every ``EXPLORE``-th: what has been cured is found out again.
- ``act``, too: among alternatives of equal rank, next to each other and for the same errors, the one that has worked
  more often comes first; every ``EXPLORE``-th time they come as they are written. Otherwise the order is the author's.
- From ``QUOTED`` episodes on, reasons quote it. An empty memory changes nothing.
- Bounded: ``FAMILIES`` families, the least recent goes first; ``STRATEGIES`` tallies in each.

Why episodes: a thousand calls that fail in one outage are one observation, not a thousand. Why shares within one: a
stand-in that serves nine of ten calls is better than one that serves one of ten, though both have "worked".

Time is the time of day: what is remembered outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.resilience.error_family import fingerprint

Mode = Literal["advise", "act", "off"]

RETRY = "retry"  # the strategy's name; alternatives go by their tool's id after ``TOOL``
TOOL = "tool:"

EPISODE_LEAST = 1800.0  # seconds
EPISODE_MOST = 8 * 3600.0
HALF_LIFE = 7 * 86_400.0
ENOUGH = 20  # episodes
QUOTED = 3  # episodes
EXPLORE = 20
FAMILIES = 2_000
STRATEGIES = 16
_TEXTS = 1_024  # messages whose family is known by heart
_ROUNDING = 0.5  # episodes come as they come: what has decayed a little still counts as one
QUOTABLE = QUOTED - _ROUNDING  # episodes, decayed
_NONE_CURED = 0.5  # a cure counts for one half-life


class Tally(NamedTuple):
    """One strategy's record: episodes, decayed."""

    tried: float = 0.0
    worked: float = 0.0  # the sum of the shares that worked
    cured: float = 0.0  # episodes in which it worked at all
    seconds: float = 0.0  # about how long it takes

    def __str__(self) -> str:
        return f"worked {round(self.worked)} of {round(self.tried)} times"


NO_TALLY = Tally()


class Evidence(NamedTuple):
    """What is known of a family, for a decision and its reason."""

    seen: int  # episodes
    tallies: tuple[tuple[str, Tally], ...] = ()

    def of(self, strategy: str) -> Tally:
        """The tally of ``RETRY``, or of a tool (``TOOL + id``)."""
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
    """How a strategy has done in one episode."""

    __slots__ = ("seconds", "tried", "worked")

    def __init__(self, seconds: float) -> None:
        self.tried = 0
        self.worked = 0
        self.seconds = seconds  # about how long it takes


class Family:
    """One family's record. Only ``Memory`` changes it."""

    __slots__ = (
        "_tallies", "at", "before", "ordered", "seen", "since", "spared", "successes", "tenant", "text", "tool", "uses",
    )  # fmt: skip

    def __init__(self, tenant: str | None, tool: str, text: str) -> None:
        self.tenant = tenant
        self.tool = tool
        self.text = text
        self.seen = 0.0  # episodes, decayed
        self.at = 0.0  # when that was counted
        self.since = 0.0  # when the episode began
        self.successes = -1  # of the tool, when it began
        self.before: dict[str, Tally] = {}  # of the episodes before this one
        self.uses: dict[str, Use] = {}  # in this one
        self.spared = 0  # retries left out since the last that explored
        self.ordered = 0  # alternatives put in another order since the last time they were not
        self._tallies: dict[str, Tally] | None = None  # None: to be worked out

    @property
    def tallies(self) -> dict[str, Tally]:
        """Every strategy's record, this episode's included."""
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
        """Have retries been tried often enough, and never worked?"""
        tally = self.tallies.get(RETRY, NO_TALLY)
        return tally.tried > ENOUGH - _ROUNDING and tally.cured < _NONE_CURED

    @property
    def is_quotable(self) -> bool:
        """Has it been seen often enough to be quoted?"""
        return self.seen > QUOTABLE

    @property
    def evidence(self) -> Evidence | None:
        """What can be quoted; None while it is too little."""
        return Evidence(round(self.seen), tuple(self.tallies.items())) if self.is_quotable else None

    def is_due(self, now: float) -> bool:
        """May its episode be over?"""
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
        """As plain data, to be kept and to be shown."""
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
        """Back from ``to_dict``. Its episode is taken for over as soon as the tool has succeeded again."""
        family = cls(data["tenant"], data["tool"], data["family"])
        family.seen, family.at, family.since = data["seen"], data["at"], data["since"]
        family.before = {name: Tally(*parts) for name, parts in data["tallies"].items()}
        return family


class Memory:
    """All families of one runtime."""

    def __init__(self) -> None:
        self._families: dict[tuple[str | None, str, str], Family] = {}  # the least recent first
        self._texts: dict[tuple[str | None, str, str, str], Family] = {}

    def __len__(self) -> int:
        return len(self._families)

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families.values())

    def meet(self, tenant: str | None, tool: str, fault: Fault, *, now: float, successes: Callable[[], int]) -> Family:
        """An error has come: its family, in the right episode. ``successes`` counts those of the tool so far."""
        family = self.find(tenant, tool, fault)
        if family.is_due(now):
            self.turn_page(family, now, successes())
        return family

    def find(self, tenant: str | None, tool: str, fault: Fault) -> Family:
        """The family of an error; a new one if it has not been seen."""
        text = (tenant, tool, fault.code, fault.message)
        family = self._texts.get(text)
        if family is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            family = self._texts[text] = self._find(tenant, tool, fingerprint(fault))
        return family

    def _find(self, tenant: str | None, tool: str, text: str) -> Family:
        family = self._families.get((tenant, tool, text))
        return family if family is not None else self.add(Family(tenant, tool, text))

    def add(self, family: Family) -> Family:
        """Take in a family: a new one, or one that was kept elsewhere."""
        if len(self._families) >= FAMILIES:
            self._drop(next(iter(self._families)))
            self._texts.clear()
        self._families[family.key] = family
        return family

    def turn_page(self, family: Family, now: float, successes: int) -> None:
        """Begin another episode, unless this one goes on."""
        recovered = successes != family.successes
        if family.seen and not recovered and 0 <= now - family.since < EPISODE_MOST:
            return
        family.begin_episode(now, successes)
        if self._families.pop(family.key, None) is not None:
            self._families[family.key] = family

    def forget(self, tenant: str | None = None, *, tool: str | None = None) -> int:
        """Drop a tenant's families, or those of one tool; how many there were."""
        gone = [key for key in self._families if key[0] == tenant and tool in (None, key[1])]
        for key in gone:
            self._drop(key)
        self._texts.clear()
        return len(gone)

    def _drop(self, key: tuple[str | None, str, str]) -> None:
        self._families.pop(key).seen = 0.0  # so it is due for whoever still holds it


def skips_retry(family: Family) -> bool:
    """Whether to leave out a retry that has never helped; every ``EXPLORE``-th is made all the same."""
    if not family.is_hopeless:
        return False
    family.spared = (family.spared + 1) % EXPLORE
    return family.spared != 0


def order(family: Family, options: Sequence[Fallback]) -> Sequence[Fallback]:
    """Alternatives of equal rank by what has worked; the others stay where they are."""
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
        return (tally.worked + 1) / (tally.tried + 2)  # one half while nothing is known

    return sorted(rank, key=success, reverse=True)


def _spell(strategy: str) -> str:
    return "retries" if strategy == RETRY else strategy.removeprefix(TOOL)
