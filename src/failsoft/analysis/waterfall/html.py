"""Draw a waterfall as one HTML file that opens anywhere.

Rules
-----
- The page has no script, no external resource and no style attribute. Its content security policy forbids them and
  names its one style sheet by hash.
- Foreign text (names, errors) is escaped, and its control and direction characters are made visible.
- The shapes are distinct without colour, as in a terminal: waits are hatched, failures end in a bar, unfinished
  attempts fade.
- Every attempt is visible, however short. The text under a call gives the details.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from itertools import cycle
from typing import TYPE_CHECKING

from failsoft._version import __version__
from failsoft.analysis.waterfall.row_text import describe_row
from failsoft.analysis.waterfall.terminal import (
    LEGEND,
    SIGNS,
    TICK_MARKS,
    CellKind,
    kind_of,
    kinds_in,
    label,
    name_of,
    summarise,
)
from failsoft.analysis.waterfall.verdict import KINDS, format_seconds, judge
from failsoft.core.redact.printable import visible

if TYPE_CHECKING:
    from failsoft.analysis.waterfall.model import Row, Segment, Timeline
    from failsoft.analysis.waterfall.verdict import TimeKind, Verdict

_UNITS = re.compile(r"(\d) (ms|s|min|h|%|attempts?)\b")  # keep a number and its unit together
_MOST_MARKS = 10
_END = ' text-anchor="end"'
_THINNEST = 0.3  # percent of the axis
_NEAR = 0.2  # fraction of the axis that two labels need
_LONGEST = 200  # characters of an error in the list of failures; the text under its call is complete

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --dim: #667079; --line: #d8dde2; --page: #fff; --mark: #f1f4f7;
  --ok: #2e9e5b; --fallback: #2389a8; --failed: #d0453b; --waiting: #b98200; --queued: #9aa4ad; --left: #8c55b8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --dim: #98a2ab; --line: #343b42; --page: #14181c;
  --mark: #1e242a; --ok: #46bd77; --fallback: #4bb4d2; --failed: #ef6a5f; --waiting: #dfa92c; --queued: #6c7680;
  --left: #b887dd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1280px; background: var(--page); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 20px; } h2 { margin: 28px 0 8px; font-size: 15px; } p { margin: 6px 0; }
.dim { color: var(--dim); } h2 .dim { font-size: 12px; font-weight: 400; margin-left: 8px; } svg { display: block; width: 100%; overflow: visible; }
.shares { margin: 14px 0 6px; }
.call, .axis { display: grid; grid-template-columns: minmax(90px, 200px) 1fr minmax(110px, 260px); gap: 12px;
  align-items: center; padding: 0 6px; border-left: 3px solid transparent; }
.id { color: var(--dim); font-size: 12px; font-weight: 400; margin-left: 8px; }
.share { display: grid; grid-template-columns: minmax(120px, 190px) 60px 44px 1fr; gap: 8px; align-items: center; margin: 2px 0; }
.share .number { text-align: right; font-variant-numeric: tabular-nums; } .share svg { height: 12px; max-width: 320px; }
.failures li { margin: 6px 0; } .warning { color: var(--failed); } footer { margin-top: 32px; font-size: 12px; }
.call > * { min-width: 0; } summary { list-style: none; cursor: pointer; } summary::-webkit-details-marker { display: none; }
summary:hover .call, details[open] { background: var(--mark); } .critical { border-left-color: var(--ink); }
.critical .name { font-weight: 600; } .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.inner .name { padding-left: 16px; } .bar { height: 24px; } .axis { color: var(--dim); font-size: 12px; }
.axis text { fill: var(--dim); font-size: 12px; } .grid { stroke: var(--line); stroke-width: 1; }
.deadline { stroke: var(--left); stroke-width: 2; stroke-dasharray: 4 3; }
.steps { margin: 0; padding: 4px 12px 10px 30px; font-size: 13px; } .steps li { margin: 2px 0; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 14px 0; padding: 0; list-style: none; font-size: 12px; }
.legend svg { width: 22px; height: 14px; display: inline-block; vertical-align: -2px; margin-right: 6px; }
.ok, .useful { fill: var(--ok); } .fallback { fill: var(--fallback); } .failed, .timeout, .killed { fill: var(--failed); }
.timeout { fill-opacity: .6; } .waiting { fill: url(#hatch); } .held { fill: url(#counter); } .queued { fill: url(#dots); } .verifying { fill: var(--queued); fill-opacity: .6; } .left, .cancelled, .running, .unfinished { fill: var(--left); }
.left, .cancelled, .running, .unfinished { fill-opacity: .55; } .outside { fill: var(--line); }
.end { fill: var(--ink); } .sign { font-size: 13px; text-anchor: middle; dominant-baseline: central; }
.refused, .opened { fill: var(--failed); } .skipped { fill: var(--dim); } .hatch { stroke: var(--waiting); stroke-width: 3; }
.dot { fill: var(--queued); } .mark { fill: var(--ink); }
.word-succeeded { color: var(--ok); } .word-failed { color: var(--failed); } .word-skipped { color: var(--dim); }
.word-timed_out, .word-cancelled { color: var(--left); }
@media (max-width: 700px) { body { padding: 12px; } .call { grid-template-columns: minmax(45%, 1fr) auto; gap: 0 8px; padding: 6px 4px; }
  .call .bar { grid-row: 2; grid-column: 1 / 3; } .name { white-space: normal; } .result { text-align: right; }
  .axis { grid-template-columns: 1fr; padding: 0 4px; } .axis span { display: none; }
  .axis .odd { display: none; } .failures { padding-left: 18px; } .share { grid-template-columns: 1fr 60px 44px; } .share svg { display: none; } }
""".strip()

_PATTERNS = (
    '<svg width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
    '<pattern id="counter" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
    '<pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse"><circle class="dot" cx="3" cy="3" r="1.3"/>'
    "</pattern></defs></svg>"
)


def to_html(waterfall: Timeline) -> str:
    """Return the whole page."""
    policy = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
    title = f"Turn {_text(waterfall.turn_id)}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style></head><body>",
            _PATTERNS,
            f"<h1>{title}</h1>",
            *_verdict(judge(waterfall)),
            *_failures(waterfall),
            '<h2>Calls <span class="dim">open one to read about its attempts</span></h2>',
            *_calls(waterfall),
            *_legend(waterfall),
            f'<footer class="dim">Made by failsoft {__version__}</footer>',
            "</body></html>\n",
        ]
    )


def _verdict(verdict: Verdict) -> Iterator[str]:
    """Say where the time went, in words and as one labelled bar per kind."""
    yield "<h2>Where the time went</h2>"
    yield f"<p>{_text(str(verdict))}</p>"
    if verdict.duration:
        sums: dict[TimeKind, float] = {}
        for share in verdict.path:
            sums[share.kind] = sums.get(share.kind, 0.0) + share.seconds
        yield '<div class="shares">'
        for kind, seconds in sums.items():
            title = f"{KINDS[kind]}: {format_seconds(seconds)}"
            bar = _rect(kind, 0.0, seconds, verdict.duration, height=12, title=title)
            yield (
                f'<div class="share"><span>{KINDS[kind]}</span><span class="number">{_text(format_seconds(seconds))}</span>'
                f'<span class="number">{seconds / verdict.duration:.0%}</span>'
                f'<svg height="12" role="img" aria-label="{_text(title)}">{bar}</svg></div>'
            )
        yield "</div>"
    if verdict.cost_of_all_calls:
        yield f'<p class="dim">{_text(verdict.cost_of_all_calls)}</p>'


def _calls(waterfall: Timeline) -> Iterator[str]:
    span = max([waterfall.duration, *(row.end for row in waterfall.rows)]) or 1.0
    step = next((mark for mark in TICK_MARKS if span / mark <= _MOST_MARKS), span)
    marks = [number * step for number in range(int(span / step + 0.01) + 1)]
    texts = "".join(
        f'<text{odd if at < marks[-1] else ""} x="{_percent(at, span)}" y="12"{_END if at > span * 0.9 else ""}>{label(at, step)}</text>'
        for at, odd in zip(marks, cycle(("", ' class="odd"')), strict=False)
        if not _collides(at, marks[-1], span)
    )
    yield f'<div class="axis"><span></span><svg height="16" aria-hidden="true">{texts}</svg><span></span></div>'
    grid = "".join(_line("grid", at, span) for at in marks)
    if waterfall.deadline is not None:
        grid += _line("deadline", waterfall.deadline, span)
    for row in waterfall.rows:
        yield _call(row, span, grid)


def _collides(at: float, last: float, span: float) -> bool:
    """True if a label would overlap the last one, which is right-aligned to its mark."""
    return last > span * 0.9 and 0 < last - at < span * _NEAR


def _call(row: Row, span: float, grid: str) -> str:
    marks = "".join(_segment(row, segment, span) for segment in row.segments)
    for tick in row.ticks:
        title = f"{tick.kind} at {format_seconds(tick.at)}" + (f": {tick.text}" if tick.text else "")
        x = _percent(min(max(tick.at, span * 0.006), span * 0.994), span)
        aside = 9 if tick.kind == "opened" else 0  # beside the attempt that opened the circuit
        marks += f'<text class="sign {tick.kind}" x="{x}" dx="{aside}" y="12">{SIGNS[tick.kind]}<title>{_text(title)}</title></text>'
    classes = "call" + " critical" * row.critical + " inner" * (row.parent is not None)
    result = summarise(row)
    steps = "".join(f"<li>{_text(line)}</li>" for line in describe_row(row))
    name = name_of(row)
    return (
        f'<details><summary><div class="{classes}"><span class="name" title="{_text(row.id)}">{_text(name)}'
        f"{_id(row, name)}</span>"
        f'<svg class="bar" height="24" role="img" aria-label="{_text(result)}">{grid}{marks}</svg>'
        f'<span class="result word-{row.status or "open"}" title="{_text(result)}">{_text(result)}</span></div></summary>'
        f'<ol class="steps">{steps}</ol></details>'
    )


def _segment(row: Row, segment: Segment, span: float) -> str:
    kind = kind_of(row, segment)
    title = f"{segment.tool}: {kind}, {format_seconds(segment.duration)}" + (
        f": {segment.text}" if segment.text else ""
    )
    drawn = _rect(kind, segment.start, segment.end, span, height=14, title=title, y=5)
    if segment.kind in ("failed", "timeout", "killed"):
        end = max(segment.end, segment.start + span * _THINNEST / 100)
        drawn += f'<rect class="end" x="{_percent(end, span)}" y="3" width="2" height="18"/>'
    return drawn


def _rect(kind: str, start: float, end: float, span: float, *, height: int, title: str, y: int = 0) -> str:
    width = max((end - start) / span * 100, _THINNEST)
    return (
        f'<rect class="{kind}" x="{_percent(start, span)}" y="{y}" width="{width:.3f}%" height="{height}">'
        f"<title>{_text(title)}</title></rect>"
    )


def _line(kind: str, at: float, span: float, height: int = 24) -> str:
    x = _percent(at, span)
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="{height}"/>'


def _legend(waterfall: Timeline) -> Iterator[str]:
    present = kinds_in(waterfall)
    entries = [f"<li>{_sample(kind, signs)}{words}</li>" for signs, kind, words in LEGEND if kind in present]
    if waterfall.deadline is not None:
        entries.append(f'<li><svg height="14">{_line("deadline", 0.5, 1.0, 14)}</svg>the turn\'s deadline</li>')
    if entries:
        yield f'<ul class="legend">{"".join(entries)}</ul>'


def _sample(kind: CellKind, signs: str) -> str:
    if kind in SIGNS or kind == "critical":
        name = "mark" if kind == "critical" else kind
        return f'<svg height="14"><text class="sign {name}" x="11" y="8">{signs}</text></svg>'
    end = '<rect class="end" x="20" y="0" width="2" height="14"/>' if kind in ("failed", "timeout", "killed") else ""
    return f'<svg height="14"><rect class="{kind}" width="22" height="14"/>{end}</svg>'


def _failures(waterfall: Timeline) -> Iterator[str]:
    """Describe every call without a value: the error, the decision and its reason."""
    lines = [f"<li>{line}</li>" for row in waterfall.rows if (line := _failure(row, waterfall))]
    if lines:
        yield "<h2>What went wrong</h2>"
        yield f'<ul class="failures">{"".join(lines)}</ul>'


def _failure(row: Row, waterfall: Timeline) -> str:
    if row.status in (None, "succeeded"):
        return ""
    text = f"<b>{_text(row.name)}</b><wbr>{_id(row, row.name)}: "
    if row.status == "skipped":
        root = next((other for other in waterfall.rows if other.id == row.root), None)
        cause = "no time was left" if row.root is None else f"{row.root if root is None else root.name} failed"
        return f"{text}skipped, because {_text(cause)}"
    error = row.error or next((segment.text for segment in reversed(row.segments) if segment.text), "")
    error = error if len(error) <= _LONGEST else f"{error[:_LONGEST]}…"
    text += _text(f"{row.code}: {error}" if row.code and error else error or summarise(row))
    if row.decision:
        text += f'<br><span class="dim">Decision: {_text(row.decision.replace("_", " "))}. {_text(row.reason)}</span>'
    if row.may_have_acted:
        text += '<br><span class="warning">It may have taken effect: check before running it again.</span>'
    return text


def _id(row: Row, name: str) -> str:
    """The call's id, unless the name before it says the same."""
    return "" if row.short_id == name else f'<span class="id">{_text(row.short_id)}</span>'


def _percent(at: float, span: float) -> str:
    return f"{at / span * 100:.3f}%"


def _text(text: str) -> str:
    return _UNITS.sub("\\1\N{NO-BREAK SPACE}\\2", escape(visible(text)))
