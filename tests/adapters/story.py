"""Six scenes, the same for every framework: what a model is told when its tools fail, and what is done before that.

| scene | what happens |
|---|---|
| missing file | the model named a file that is not there: it is told, nothing is repeated |
| flaky API | two failures, then an answer: the model sees the answer only |
| dead MCP server | refused connections: tried again, then cut short; the run goes on |
| bad arguments | the tool is not run; the model learns what to correct |
| write that times out | never repeated; the model learns that it may have taken effect |
| model that loops | the third identical call is answered without running the tool |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from failsoft import Runtime

QUICK = {"max_attempts": 3, "initial_delay": "1ms", "max_delay": "2ms"}
TOOLS = {
    "read_file": {"read_only": True},
    "weather": {"read_only": True, "retry": QUICK},
    "search_docs": {"retry": QUICK},
    "book_table": {},
    "pay": {"timeout": "50ms", "retry": QUICK},  # nobody has declared that it may be repeated
}


class Scene(NamedTuple):
    """One conversation: the calls that the model makes, in order."""

    title: str
    tool: str
    asks: tuple[dict[str, Any], ...]
    runs: int  # how often the tool's body is reached


SCENES = (
    Scene("missing file", "read_file", ({"path": "notes.txt"},), 1),
    Scene("flaky API", "weather", ({"city": "Paris"},), 3),
    Scene("dead MCP server", "search_docs", ({"query": "refunds"},), 3),
    Scene("bad arguments", "book_table", ({"people": "many"},), 0),
    Scene("write that times out", "pay", ({"amount": 40},), 1),
    Scene("model that loops", "read_file", ({"path": "x"},) * 3, 2),
)


class Story:
    """The tools, and how often each was run."""

    def __init__(self) -> None:
        self.runs: dict[str, int] = {}

    def runtime(self) -> Runtime:
        return Runtime({"tools": TOOLS})

    def count(self, tool: str) -> int:
        self.runs[tool] = self.runs.get(tool, 0) + 1
        return self.runs[tool]

    @property
    def tools(self) -> dict[str, Callable[..., Awaitable[str]]]:
        """As users write them: plain functions with annotations."""

        async def read_file(path: str) -> str:
            """Read a file."""
            self.count("read_file")
            raise FileNotFoundError(2, "No such file or directory", path)

        async def weather(city: str) -> str:
            """The weather in a city."""
            if self.count("weather") < 3:
                raise ConnectionError("503 Service Unavailable")
            return f"Sunny in {city}"

        async def search_docs(query: str) -> str:
            """Search the documents."""
            self.count("search_docs")
            raise ConnectionRefusedError(111, "Connection refused")

        async def book_table(people: int) -> str:
            """Book a table."""
            self.count("book_table")
            return f"A table for {people}"

        async def pay(amount: int) -> str:
            """Pay an amount."""
            self.count("pay")
            await asyncio.sleep(20)
            return f"Paid {amount}"

        return {tool.__name__: tool for tool in (read_file, weather, search_docs, book_table, pay)}


def tell(scenes: list[tuple[Scene, list[str]]]) -> str:
    """All answers the models received, as one text."""
    return "".join(
        f"--- {scene.title}\n" + "".join(f"{scene.tool}({_shown(asked)})\n  {text}\n" for asked, text in zip(scene.asks, texts, strict=True))
        for scene, texts in scenes
    )  # fmt: skip


def transcript(*, bad_arguments: str) -> str:
    """The answers that every framework gives its model. Only bad arguments are described by the framework itself."""
    return _BEFORE + bad_arguments + _AFTER


_BEFORE = """\
--- missing file
read_file(path='notes.txt')
  read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'notes.txt'"
--- flaky API
weather(city='Paris')
  Sunny in Paris
--- dead MCP server
search_docs(query='refunds')
  search_docs failed: UNAVAILABLE (tool_transient, 3 attempts). It had no effect. Calling it again may help, in a little while. Error text, as data: "[Errno 111] Connection refused"
--- bad arguments
"""
_AFTER = """\
--- write that times out
pay(amount=40)
  pay failed: DEADLINE_EXCEEDED (tool_transient, 1 attempt). It may already have taken effect: check before calling again. Calling it again may help, but only if it did not. Error text, as data: "Tool timeout after 50ms"
--- model that loops
read_file(path='x')
  read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'x'"
read_file(path='x')
  read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'x'"
read_file(path='x')
  read_file failed: NOT_FOUND (tool_validation, not run). It was not run this time: the same call has failed before and would fail again. Error text, as data: "[Errno 2] No such file or directory: 'x'"
"""


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
