"""Trace files from elsewhere: other versions, other hands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from failsoft.observe import events
from failsoft.surfaces.cli import cli

TYPES = sorted({value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)})
BARE = {"timestamp": "2026-01-01T00:00:00.000Z", "turn_id": "t", "call_id": "a", "tool_id": "x", "seq": 1}
READERS = (("show",), ("list",), ("tail",), ("replay",), ("export", "--format", "html"))


@pytest.mark.parametrize("event_type", [*TYPES, "SomethingNew"])
def test_events_without_their_fields_can_be_read_by_every_command(event_type: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps({**BARE, "event_type": event_type}) + "\n")
    for command in [("why",), *(("trace", *reader) for reader in READERS)]:
        result = CliRunner().invoke(cli, [*command, "--trace", str(path)])
        assert result.exit_code == 0, (command, result.exception)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"timestamp": "yesterday"}, "'yesterday' is not an ISO time"),
        ({"timestamp": 12}, "timestamp is not text"),
        ({"timestamp": None}, "timestamp is not text"),
        ({"event_type": 3}, "event_type is not text"),
        ({"turn_id": 5}, "turn_id is not text"),
        ({"delay_ms": "x"}, "delay_ms is not a number"),
        ({"needs": [1]}, "needs is not an object"),
        ({"needs": {"b": 5}}, "needs of 'b' is not a list of ids"),
        ({"needs": {"b": [["a"]]}}, "needs of 'b' is not a list of ids"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_line_that_is_not_an_event_is_reported_with_its_number(
    fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    good = {**BARE, "event_type": "TurnStarted"}
    path.write_text(f"{json.dumps(good)}\n{json.dumps({**good, **fields})}\n")
    result = CliRunner().invoke(cli, ["why", "--trace", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"trace.jsonl:2: this line is not an event: {said}" in result.stderr
    assert 'Runtime(trace="trace.jsonl")' in result.stderr
