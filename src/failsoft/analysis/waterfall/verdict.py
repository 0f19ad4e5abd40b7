"""Say where a turn's time went.

Rules
-----
- ``path`` divides the turn's own time along its critical path. Every moment counts once, so the parts add up to the
  turn's duration. It answers "what must become faster?".
- ``work`` adds up the time of all calls, parallel or not. It answers "what did failures cost?".
- Time in which no call was running is ``outside``: the turn's body, or the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failsoft.analysis.waterfall.model import PAUSES

if TYPE_CHECKING:
    from failsoft.analysis.waterfall.model import Segment, SegmentKind, Timeline

TimeKind = Literal["failed", "waiting", "held", "verifying", "queued", "unfinished", "useful", "outside"]

_KINDS: dict[SegmentKind, TimeKind] = {
    "ok": "useful",
    "failed": "failed",
    "timeout": "failed",
    "killed": "failed",
    "waiting": "waiting",
    "held": "held",
    "queued": "queued",
    "verifying": "verifying",
    "running": "unfinished",
    "left": "unfinished",
    "cancelled": "unfinished",
}
_ORDER: tuple[TimeKind, ...] = ("failed", "waiting", "held", "verifying", "queued", "unfinished", "useful", "outside")
KINDS: dict[TimeKind, str] = {  # labels
    "failed": "failed attempts",
    "waiting": "waiting to retry",
    "held": "held back by a rate limit",
    "verifying": "finding out what happened",
    "queued": "waiting for a place to run",
    "unfinished": "unfinished",
    "useful": "useful",
    "outside": "outside tools",
}
_MOST_NAMED = 3  # tools named in one sentence
_LITTLE = 0.01  # fraction of the total below which queueing and outside time are not mentioned
_SHORT = 0.095  # seconds; shorter times are shown in milliseconds


class Share(NamedTuple):
    """A part of the time."""

    kind: TimeKind
    seconds: float
    tool: str | None = None  # None: outside all tools
    attempts: int = 0


class Verdict(NamedTuple):
    """The breakdown of a turn's time in numbers; ``str()`` gives a sentence."""

    duration: float
    path: tuple[Share, ...]
    work: tuple[Share, ...]
    labels: Mapping[str, str] = {}  # of the tools that have one

    def name(self, tool: str) -> str:
        """The tool's name for people."""
        return _name(tool, self.labels)

    def seconds(self, *kinds: TimeKind) -> float:
        """The turn's own time spent on these kinds."""
        return sum(share.seconds for share in self.path if share.kind in kinds)

    @property
    def loss(self) -> Share | None:
        """The tool whose failures and waits took most time over all calls."""
        lost: dict[str, Share] = {}
        for share in self.work:
            if share.kind in ("failed", "waiting", "held", "verifying") and share.tool is not None:
                so_far = lost.get(share.tool, Share("failed", 0.0, share.tool))
                seconds, attempts = so_far.seconds + share.seconds, so_far.attempts + share.attempts
                lost[share.tool] = so_far._replace(seconds=seconds, attempts=attempts)
        return max(lost.values(), key=lambda share: share.seconds, default=None)

    @property
    def cost_of_all_calls(self) -> str:
        """Describe the cost of all calls together in one or two sentences; empty if there is none."""
        total = sum(share.seconds for share in self.work)
        together = _list(_sum(share._replace(tool=None) for share in self.work), total, self.labels)
        if not total or not together:
            return ""
        sentence = f"All calls together took {format_seconds(total)}: {together}."
        if self.loss is not None and self.loss.attempts:
            sentence += f" Most was lost to {self.name(self.loss.tool or '')}: {self._describe_loss(self.loss)}."
        return sentence

    def _describe_loss(self, loss: Share) -> str:
        waited = any(share.tool == loss.tool and share.kind in ("waiting", "held") for share in self.work)
        sentence = _describe_failed([loss._replace(tool=None)], self.labels)
        if not waited:
            return sentence
        return f"{sentence} and the waits between them" if loss.attempts > 1 else f"{sentence} and waits"

    def to_dict(self) -> dict[str, Any]:
        loss = self.loss
        return {
            "text": str(self),
            "duration": round(self.duration, 3),
            "path": [_plain(share) for share in self.path],
            "work": [_plain(share) for share in self.work],
            "loss": None if loss is None else _plain(loss),
        }

    def __str__(self) -> str:
        nothing = "too short to break down" if self.work else "no tool ran"
        return f"{format_seconds(self.duration)}: {_list(self.path, self.duration, self.labels) or nothing}."


def judge(waterfall: Timeline) -> Verdict:
    """Compute where the time went."""
    rows = [row for row in waterfall.rows if row.parent is None]
    path = list(_along((s for row in rows if row.critical for s in row.segments), waterfall.duration))
    work = [_share(segment, segment.duration) for row in rows for segment in row.segments]
    labels = {row.tool: row.name for row in waterfall.rows}
    return Verdict(waterfall.duration, _sum(path), _sum(work), labels)


def format_seconds(seconds: float) -> str:
    """Format a time for people."""
    return f"{seconds:.1f} s" if seconds >= _SHORT else f"{seconds * 1000:.0f} ms"


def _along(segments: Iterable[Segment], duration: float) -> Iterator[Share]:
    """Divide the turn's time into parts, and yield each with its use."""
    at = 0.0
    for segment in sorted(segments, key=lambda each: each.start):
        start = min(max(segment.start, at), duration)
        end = min(max(segment.end, start), duration)
        yield Share("outside", start - at)
        yield _share(segment, end - start)
        at = end
    yield Share("outside", duration - at)


def _share(segment: Segment, seconds: float) -> Share:
    return Share(_KINDS[segment.kind], seconds, segment.tool, int(segment.kind not in PAUSES))


def _sum(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Add up shares by kind and tool: losses first, within a kind the largest first."""
    sums: dict[tuple[TimeKind, str | None], Share] = {}
    for share in shares:
        key = (share.kind, share.tool)
        so_far = sums.get(key, Share(share.kind, 0.0, share.tool))
        seconds, attempts = so_far.seconds + share.seconds, so_far.attempts + share.attempts
        sums[key] = so_far._replace(seconds=round(seconds, 6), attempts=attempts)
    kept = [share for share in sums.values() if share.seconds > 0 or share.attempts]
    return tuple(sorted(kept, key=lambda share: (_ORDER.index(share.kind), -share.seconds)))


def _name(tool: str, labels: Mapping[str, str]) -> str:
    return labels.get(tool) or tool.replace("_", " ")


def _list(shares: Iterable[Share], total: float, labels: Mapping[str, str]) -> str:
    by_kind: dict[TimeKind, list[Share]] = {kind: [] for kind in _ORDER}
    for share in shares:
        by_kind[share.kind].append(share)
    clauses = [
        *(_describe_failed(group, labels) for group in _groups(by_kind["failed"])),
        *_describe_sum(by_kind["waiting"], "waiting to try again", labels),
        *_describe_sum(by_kind["held"], "held back by a rate limit", labels),
        *_describe_sum(by_kind["verifying"], "finding out what happened", labels),
        *_describe_sum(by_kind["queued"], "waiting for a place to run", labels, least=total * _LITTLE),
        *_describe_sum(by_kind["unfinished"], "unfinished", labels),
        *_describe_sum(by_kind["useful"], "useful", labels),
        *_describe_sum(by_kind["outside"], "outside tools", labels, least=total * _LITTLE),
    ]
    return ", ".join(clauses)


def _groups(failed: list[Share]) -> list[list[Share]]:
    """The largest shares separately, the rest together."""
    named, rest = failed[:_MOST_NAMED], failed[_MOST_NAMED:]
    return [[share] for share in named] + ([rest] if rest else [])


def _describe_failed(shares: list[Share], labels: Mapping[str, str]) -> str:
    seconds, attempts = sum(share.seconds for share in shares), sum(share.attempts for share in shares)
    described = f"{format_seconds(seconds)} in {attempts} failed attempt{'s' * (attempts != 1)}"
    if len(shares) > 1:
        return f"{described} of {len(shares)} other tools"
    return described if shares[0].tool is None else f"{described} of {_name(shares[0].tool, labels)}"


def _describe_sum(shares: list[Share], what: str, labels: Mapping[str, str], *, least: float = 0.0) -> list[str]:
    seconds = sum(share.seconds for share in shares)
    if seconds < max(least, 0.0005):
        return []
    tools = list(dict.fromkeys(_name(share.tool, labels) for share in shares if share.tool is not None))
    of_tools = f" ({', '.join(tools)})" if what in ("useful", "unfinished") and 0 < len(tools) <= _MOST_NAMED else ""
    return [f"{format_seconds(seconds)} {what}{of_tools}"]


def _plain(share: Share) -> dict[str, Any]:
    return {**share._asdict(), "seconds": round(share.seconds, 3)}
