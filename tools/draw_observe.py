"""Draw docs/assets/observe-*.svg from the scrapes of a scripted outage: ``python -m tools.draw_observe``.

An hour passes in virtual time, with a scrape every 15 seconds. ``observe-scrape.svg`` is a part of the last scrape in a
terminal. ``observe-panels.svg`` shows four panels of the dashboard, computed from the scrapes as their queries say. It is
not a screenshot of Grafana.
"""

from __future__ import annotations

import asyncio
import io
import random
from html import escape
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse
from rich.console import Console
from rich.text import Text

from failsoft import Runtime
from failsoft.prometheus import exposition
from failsoft.testing import HttpError, virtual_time

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
STEP, HOUR, WINDOW = 15, 3600, 8  # seconds, seconds, scrapes over which a rate is computed
OUTAGE = range(1200, 2100)  # seconds
COLOURS = ("#3274d9", "#e0742b", "#37872d", "#c4162a", "#8f3bb8")
Scrape = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def work(rt: Runtime, scrapes: list[Scrape]) -> None:
    """An hour of calls; ``flight_search`` is down for a quarter of it."""
    luck, loop = random.Random(7), asyncio.get_running_loop()
    start = loop.time()

    async def flight_search(city: str) -> str:
        await asyncio.sleep(luck.uniform(0.1, 0.6))
        if int(loop.time() - start) in OUTAGE or luck.random() < 0.02:
            raise HttpError(503)
        return f"flights to {city}"

    async def flight_cache(city: str) -> str:
        await asyncio.sleep(0.02)
        return f"flights to {city}, as of yesterday"

    async def pay(amount: int) -> str:
        await asyncio.sleep(40 if luck.random() < 0.01 else 0.3)
        return f"paid {amount}"

    rt.add(flight_cache, read_only=True)
    rt.add(flight_search, read_only=True, fallbacks=["flight_cache"])
    rt.add(pay, idempotent=False, timeout="5s")
    for at in range(HOUR):
        async with rt.turn(timeout="30s") as turn:
            turn.call("flight_search", {"city": "PAR"})
            if at % 10 == 0:
                turn.call("pay", {"amount": at})
        while len(scrapes) * STEP <= loop.time() - start:
            scrapes.append(read(exposition(rt)[0].decode()))
        await asyncio.sleep(max(0.0, at + 1 - (loop.time() - start)))
        if loop.time() - start >= HOUR:
            return


def read(text: str) -> Scrape:
    """The values of a scrape."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def total(scrape: Scrape, name: str, **labels: str) -> float:
    """The sum of a series over all other labels."""
    wanted = set(labels.items())
    return sum(value for (found, at), value in scrape.items() if found == name and wanted <= set(at))


def rates(scrapes: list[Scrape], name: str, **labels: str) -> list[float]:
    """The rate of a counter, as ``rate(name[2m])`` computes it."""
    values = [total(scrape, name, **labels) for scrape in scrapes]
    return [
        max(0.0, values[at] - values[max(0, at - WINDOW)]) / (STEP * max(1, min(at, WINDOW)))
        for at in range(len(values))
    ]


def panels(scrapes: list[Scrape]) -> list[tuple[str, str, dict[str, list[float]]]]:
    """Title, unit and lines of each panel."""
    attempts = rates(scrapes, "failsoft_tool_attempts_total", tool="flight_search")
    repeated = rates(scrapes, "failsoft_tool_attempts_total", tool="flight_search", kind="failed_with_retry")
    states = {"open": 2.0, "half_open": 1.0}
    circuit = [
        sum(
            total(scrape, "failsoft_breaker_state", tool="flight_search", state=state) * value
            for state, value in states.items()
        )
        for scrape in scrapes
    ]
    return [
        ("Amplification: attempts per call of flight_search", "", {"flight_search": [a / (a - r) if a > r else 0 for a, r in zip(attempts, repeated, strict=True)], "1.1": [1.1] * len(scrapes)}),
        ("Circuit of flight_search: 0 closed, 1 half-open, 2 open", "", {"flight_search": circuit}),
        ("Fallbacks per second, errors per second", "", {"flight_search to flight_cache": rates(scrapes, "failsoft_fallback_total"), "UNAVAILABLE": rates(scrapes, "failsoft_tool_errors_total", code="UNAVAILABLE")}),
        ("Unknown effects of pay, total", "", {"pay": [total(scrape, "failsoft_effect_unknown_total", tool="pay") for scrape in scrapes]}),
    ]  # fmt: skip


def draw_panel(title: str, lines: dict[str, list[float]], x: int, y: int, width: int, height: int) -> list[str]:
    """One panel with axes, lines and a legend."""
    top = max(max(values) for values in lines.values()) or 1.0
    left, right, upper, lower = x + 46, x + width - 30, y + 38, y + height - 42
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" class="panel"/>']
    parts.append(f'<text x="{x + 14}" y="{y + 23}" class="title">{escape(title)}</text>')
    for share in (0, 0.5, 1):
        at = lower - (lower - upper) * share
        parts.append(f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" class="tick" text-anchor="end">{top * share:.3g}</text>')
    for minute in range(0, 61, 15):
        at = left + (right - left) * minute / 60
        parts.append(f'<text x="{at:.1f}" y="{lower + 15}" class="tick" text-anchor="middle">{minute} min</text>')
    for index, (name, values) in enumerate(lines.items()):
        points = " ".join(
            f"{left + (right - left) * at / (len(values) - 1):.1f},{lower - (lower - upper) * value / top:.1f}"
            for at, value in enumerate(values)
        )
        parts.append(f'<polyline points="{points}" style="stroke:{COLOURS[index]}"/>')
        at = left + index * 210
        parts.append(f'<rect x="{at}" y="{lower + 24}" width="10" height="10" style="fill:{COLOURS[index]}"/>')
        parts.append(f'<text x="{at + 15}" y="{lower + 33}" class="tick">{escape(name)}</text>')
    return parts


def draw_panels(scrapes: list[Scrape]) -> str:
    """All panels as one SVG."""
    width, height, gap = 560, 240, 16
    parts = [
        "<style>.panel{fill:#fff;stroke:#d0d7de}.title{font:600 13px sans-serif;fill:#1f2328}.tick{font:11px sans-serif;fill:#57606a}.grid{stroke:#e6e9ec}polyline{fill:none;stroke-width:1.6}</style>"
    ]
    parts.append('<rect width="100%" height="100%" fill="#f4f5f7"/>')
    for index, (title, _, lines) in enumerate(panels(scrapes)):
        x, y = gap + index % 2 * (width + gap), gap + index // 2 * (height + gap)
        parts += draw_panel(title, lines, x, y, width, height)
    total_width, total_height = 2 * width + 3 * gap, 2 * height + 3 * gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total_height}" width="{total_width}">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def draw_scrape(text: str) -> str:
    """A part of the scrape in a terminal, as one SVG."""
    kept = [
        line
        for line in text.splitlines()
        if line.startswith(("failsoft_tool_calls", "failsoft_tool_attempts", "failsoft_breaker_state", "failsoft_effect", "failsoft_fallback_total", "failsoft_turn_time", "failsoft_retry_budget", "failsoft_recovery_seconds"))
        and "_created" not in line
        and "_unknown" not in line
    ]  # fmt: skip
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ curl -s localhost:9464/metrics    (some of its lines)", style="bold"))
    for line in kept:
        name, _, value = line.rpartition(" ")
        console.print(Text.assemble((name, "cyan"), " ", (value, "bold yellow")))
    return console.export_svg(title="a part of one scrape", unique_id="observe")


def main() -> None:
    """Let an hour pass and draw it."""
    scrapes: list[Scrape] = []
    with virtual_time() as clock:
        rt: Any = Runtime()
        exposition(rt)
        clock.run(work(rt, scrapes))
        text = exposition(rt)[0].decode()
    (ASSETS / "observe-scrape.svg").write_text(draw_scrape(text), encoding="utf-8")
    (ASSETS / "observe-panels.svg").write_text(draw_panels(scrapes), encoding="utf-8")


if __name__ == "__main__":
    main()
