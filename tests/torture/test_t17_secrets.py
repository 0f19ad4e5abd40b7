"""T17: ``api_key=sk-…`` in an error reached the model, the log, another tenant, the page. Here none does, by no way."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.core.redact.planted import PLANTED, Planted, survivors
from tests.torture.scale import times

from failsoft import CallFailed, Runtime
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.surfaces.cli.drawing import show_waterfall


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Everything that goes to the log, tracebacks included."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


class Refused(Exception):
    """Carries the text where clients carry it."""

    def __init__(self, text: str) -> None:
        super().__init__(f"the service said no: {text}")
        self.body = {"error": {"message": text}}
        self.add_note(text)


async def leak_everywhere(planted: Planted, folder: Path) -> dict[str, str]:
    """Plant a secret in every source of text and return the output of each sink."""
    with logged() as log:
        rt = Runtime(
            store=SqliteStore(folder / "store.db"),
            trace=folder / "trace.jsonl",
            error_handler=Complaining(planted.text),
            explain=lambda facts: complain(planted.text),
            on_escalation=lambda outcome: complain(planted.text),
        )
        heard: list[str] = []
        rt.subscribe(lambda event: heard.append(repr(event.to_dict())))
        rt.subscribe(lambda event: complain(planted.text))

        async def transient() -> None:
            raise Refused(planted.text) from ConnectionError(planted.text)

        async def bug() -> None:
            complain(planted.text, TypeError)

        def blocks() -> None:
            complain(planted.text, ValueError)

        rt.add(
            transient,
            retry={"max_attempts": 2, "initial_delay": "1ms"},
            breaker={"failure_threshold": 2},
            classification=[{"exception": "Refused", "as": "transient"}],  # whatever the words around the secret say
        )
        rt.add(bug)
        guarded = rt.add(blocks, timeout=None)
        async with rt.turn(thread="chat", tenant="acme") as turn:
            for tool in ("transient", "bug", "blocks", f"no {planted.text} tool"):
                turn.call(tool)
        other = await rt.call("transient", {}, tenant="other")  # is turned away: the circuit is open
        assert other.fault is not None
        assert other.attempts == 0
        with pytest.raises(CallFailed) as failed:
            guarded()
        await rt.flush()
        report = turn.report
        page = Console(record=True, width=200, file=io.StringIO())
        page.print(show_waterfall(report.waterfall(), 200))
        seen = {
            "model": " ".join(outcome.explanation.model for outcome in (*report.outcomes.values(), other)),
            "user": f"{report.message} {[outcome.explanation.user for outcome in report.outcomes.values()]}",
            "operator": " ".join(outcome.explanation.operator for outcome in (*report.outcomes.values(), other)),
            "exception": str(failed.value),
            "outcomes": json.dumps(report.to_dict(), ensure_ascii=False, default=str),
            "rejection of another tenant": json.dumps(other.to_dict(), ensure_ascii=False, default=str),
            "trace": repr([event.to_dict() for event in rt.events()]),
            "subscribers": repr(heard),
            "memory": repr([*rt.memory.families(tenant="acme"), *rt.memory.families()]),
            "metrics": repr([rt.metrics(tool) for tool in rt.tools]),
            "offers": repr(rt.threads("chat", tenant="acme").offers),
            "waterfall": page.export_text(clear=False),
            "HTML": page.export_html(),
        }
        await rt.close()
    seen["trace file"] = (folder / "trace.jsonl").read_text()
    seen["store"] = "".join(path.read_bytes().decode("latin-1") for path in folder.glob("store.db*"))  # noqa: ASYNC240 - nothing else runs
    seen["log"] = log.getvalue()
    assert all(seen.values())
    return seen


def complain(text: str, kind: type[Exception] = RuntimeError) -> Any:
    raise kind(f"posting to {text} failed")


class Complaining:
    """An Error Handler that fails with a secret in its message."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def handle(self, report: Any) -> Any:
        complain(self.text)


def test_t17_more_than_50_formats_are_planted() -> None:
    assert sum(len(list(PLANTED)[part :: times(4, 8)]) for part in range(4)) >= 50


@pytest.mark.parametrize("part", range(4))
def test_t17_no_secret_reaches_any_sink(part: int, tmp_path: Path) -> None:
    leaks: dict[str, list[str]] = {}
    usual = show(
        Planted("the address", ""), tmp_path / "usual"
    )  # "correct " may be part of a secret, and is of our words
    for name in list(PLANTED)[part :: times(4, 8)]:
        planted = PLANTED[name]
        for sink, text in show(planted, tmp_path / f"{len(list(tmp_path.iterdir()))}").items():
            for form in (planted.secret, json.dumps(planted.secret)[1:-1]):
                if survivors(text, form) - survivors(usual[sink], form):
                    leaks.setdefault(sink, []).append(name)
    assert leaks == {}


def show(planted: Planted, folder: Path) -> dict[str, str]:
    folder.mkdir()
    return asyncio.run(leak_everywhere(planted, folder))
