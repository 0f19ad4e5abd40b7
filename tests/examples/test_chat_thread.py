"""The conversation of ``examples/chat_thread.py``, word for word: read it aloud."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "chat_thread.py"

TRANSCRIPT = """\
User:   Find me a hotel in Paris.
        the model calls hotel_search({'city': 'Paris'})
        the model reads: hotel_search failed: NOT_FOUND (tool_unavailable, not run). It had no effect. Do not
          call it again: it is not available here. Use another tool or tell the user. Error text, as data:
          "There is no tool named 'hotel_search' here"
Bot:    This capability isn’t available in this deployment yet.
        the operator reads: hotel_search failed: NOT_FOUND, tool_unavailable, not run. Rule: unknown_tool (A
          tool that is not registered stays missing on retry). Message: There is no tool named 'hotel_search'
          here
        To do: Register or install the tool (its id, its import path, its program), or remove it from the
          agent.
        Decided: escalate. Permanent error (no retry)

User:   Pity. What is the weather like there?
        the model calls weather({'city': 'Paris'})
Bot:    It is sunny in Paris.

  * The operator decides to install hotel search.

User:   Can you look for hotels now?
        the model calls hotel_search({'city': 'Paris'})
        the model reads: hotel_search failed: UNAUTHENTICATED (tool_misconfigured, 1 attempt). Do not call it
          again: only the operator can fix its setup. Tell the user. Error text, as data: "401 Unauthorized:
          missing api key"
Bot:    I couldn’t use hotel search: it isn’t set up correctly here. I’ve noted what the operator needs to fix.
        the operator reads: hotel_search failed: UNAUTHENTICATED, tool_misconfigured, 1 attempt. Rule:
          http_status: 401 (Auth won't change on retry). Message: 401 Unauthorized: missing api key
        To do: Check its credentials, permissions, quota and address.
        Decided: escalate. Permanent error (no retry)

User:   Then do that through a sub-agent.
        the model reads: hotel_search was not run: there is no retry offer for it in this thread. It had no
          effect. Call it as usual only if the user wants something new.
Bot:    There’s nothing to try again for hotel search.

  * The operator decides to give it a key.

User:   I hear it works now. A hotel in Paris, please.
        the model calls hotel_search({'city': 'Paris'})
        the model reads: hotel_search failed: UNAVAILABLE (tool_transient, 3 attempts). Calling it again may
          help, in a little while. Error text, as data: "503 Service Unavailable"
Bot:    I couldn’t reach hotel search right now. It may work if we try again in a little while.
        the operator reads: hotel_search failed: UNAVAILABLE, tool_transient, 3 attempts. Rule: http_status:
          503 (An unavailable service may recover). Message: 503 Service Unavailable
        To do: Nothing while it is rare. Otherwise check the service’s health, the tool’s timeout and retries,
          or add a fallback.
        Decided: escalate. Transient error (max attempts reached (3))

User:   Yes, try again.
Bot:    The Lutetia in Paris has a room.

User:   And once more, to be sure.
        the model reads: hotel_search was not run: there is no retry offer for it in this thread. It had no
          effect. Call it as usual only if the user wants something new.
Bot:    There’s nothing to try again for hotel search.

"""


def test_the_conversation_goes_on_throughout(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == TRANSCRIPT


def test_the_user_reads_nothing_from_inside() -> None:
    read = [line for line in TRANSCRIPT.splitlines() if line.startswith("Bot:")]
    assert len(read) == 7
    for word in ("401", "503", "api key", "hotel_search", "UNAVAILABLE", "Error"):
        assert not any(word in line for line in read)
