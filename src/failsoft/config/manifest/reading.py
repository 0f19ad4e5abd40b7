"""Read YAML (and so JSON) strictly: plain values, each with its line and column.

Rules
-----
- One UTF-8 document of at most 256 kB, nested at most 32 deep.
- No anchors, aliases, merge keys or tags. Keys are text and occur once. ``scalars`` says what unquoted words mean.
- A key without a value is refused: ``timeout:`` would mean "no timeout" by accident.
- Problems are collected and reported together; only a syntax error stops the reading.

Why events and not ``compose``: values are built in one pass with an explicit stack, so deep nesting cannot exceed the
interpreter's recursion limit, and an alias is refused before it is followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.reader import ReaderError

from failsoft.config.manifest.problem import Path, Problem, Severity, name_field
from failsoft.config.manifest.scalars import join_surrogates, resolve, resolve_key

LARGEST = 256 * 1024  # bytes
DEEPEST = 32

_BREAK = re.compile("[\x85\u2028\u2029]")  # line ends in some versions of YAML, plain characters in JSON
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_SENTENCES = (  # the parser's message, and ours; {where} is the start of the part that is not closed
    (r".*'\\t'.*", "a tab cannot be here: use spaces"),
    (r".*flow sequence.*", "the bracket of {where} is not closed, or a comma is missing before this"),
    (r".*flow mapping.*", "the brace of {where} is not closed, or a comma is missing before this"),
    (r".*end of stream.*quoted.*", "the quote of {where} is not closed"),
    (r".*but found '<stream end>'.*", "the file ends where a value should be: is something above not closed?"),
    (r"expected the node content, but found ('.').*", "a value should be here, not {0}"),
    (r"found character ('.') that cannot start.*", "{0} cannot begin a value: put it in quotes"),
    (
        r"mapping values are not allowed.*",
        "no key can be here: put a text with a colon in quotes, or look at the indentation",
    ),
    (r"expected <block end>.*", "this line does not fit those above it: look at its indentation"),
)

Position = tuple[int, int]  # line and column, from 1


@dataclass(slots=True)
class Document:
    """A parsed document and the position of each value. A mapping made in Python has no positions."""

    name: str
    value: Any = None
    problems: list[Problem] = field(default_factory=list)
    is_whole: bool = True  # whether the end was reached
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    faulty: set[Path] = field(default_factory=set)  # values that already have a problem

    def problem(self, path: Path, message: str, *, key: bool = False, severity: Severity = "error") -> Problem:
        """Make a problem at the value (or the key) of ``path``, or at the nearest known position."""
        exact = (self.keys if key else self.values).get(path)
        nearest = (self.values.get(path[:length]) for length in range(len(path), -1, -1))
        line, column = exact or next((position for position in nearest if position), (0, 0))
        return Problem(message, name_field(path), self.name, line, column, severity)

    def place(self, path: Path) -> str:
        """The ``file:line:column`` of the key of ``path``."""
        return self.problem(path, "", key=True).place

    def has_problem(self, path: Path) -> bool:
        """True if reading found a problem at ``path`` or around it."""
        return any(path[:length] in self.faulty for length in range(len(path) + 1))


def read(source: str | bytes, *, name: str) -> Document:
    """Read the text of a file. Never raises for its content: see the document's ``problems``."""
    builder = _Builder(Document(name))
    text = ""
    try:
        text = _decode(source)
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
        if not builder.has_begun:
            raise _Unreadable("it is empty: a manifest has tools, a plan has calls")
    except _Unreadable as wrong:
        builder.give_up(str(wrong), wrong.position)
    except ReaderError as wrong:
        shown = ascii(chr(wrong.character))
        builder.give_up(f"the character {shown} cannot be here", _count(text[: wrong.position]))
    except yaml.MarkedYAMLError as wrong:
        builder.give_up(_explain(wrong), _position(wrong.problem_mark or wrong.context_mark))
    except (yaml.YAMLError, ValueError, OverflowError):  # such as an escape or a version with an enormous number
        builder.give_up("cannot be read from here on")
    return builder.document


class _Unreadable(Exception):
    """Stops the reading."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.position = position


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being filled."""

    value: dict[str, Any] | list[Any]
    path: Path
    key: str | None = None  # in a mapping: the key whose value comes next
    is_repeated: bool = False  # the key occurred before: its value is dropped


class _Builder:
    """Builds a document from parser events."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.has_begun = False
        self._stack: list[_Frame] = []
        self._end: Position = (1, 1)

    def give_up(self, message: str, position: Position | None = None) -> None:
        line, column = position or self._end
        self.document.problems.append(Problem(message, "", self.document.name, line, column))
        self.document.is_whole = False

    def take(self, event: Any) -> None:
        self._end = _position(event.end_mark)
        at = _position(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent):
            if self.has_begun:
                raise _Unreadable("a second document begins here: keep one to a file", at)
            self.has_begun = True
        elif isinstance(event, yaml.CollectionEndEvent):
            self._store(self._stack.pop().value)
        elif isinstance(event, yaml.NodeEvent):
            self._node(event, at)

    def _node(self, event: Any, at: Position) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame and isinstance(frame.value, dict) and frame.key is None:
            if not isinstance(event, yaml.ScalarEvent):
                raise _Unreadable("a key must be a text, not a mapping, a list or an alias", at)
            self._key(event, at, frame)
            return
        path = self._path()
        self.document.values.setdefault(path, at)
        self._refuse_marks(event, path, at)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(self._stack) == DEEPEST:
                raise _Unreadable(f"this is nested more than {DEEPEST} deep: use fewer levels", at)
            self._stack.append(_Frame({} if isinstance(event, yaml.MappingStartEvent) else [], path))
        else:
            self._store(self._scalar(event, path, at) if isinstance(event, yaml.ScalarEvent) else None)

    def _key(self, event: yaml.ScalarEvent, at: Position, frame: _Frame) -> None:
        try:
            key = join_surrogates(event.value) if event.style else resolve_key(event.value)
        except ValueError as wrong:
            key = event.value
            self._spoil((*frame.path, key), str(wrong), at)
        path = (*frame.path, key)
        frame.key, frame.is_repeated = key, key in frame.value
        if frame.is_repeated:
            self._note(path, f"is there twice, first in line {self.document.keys[path][0]}: keep one", at)
        self.document.keys.setdefault(path, at)
        self._refuse_marks(event, path, at)

    def _scalar(self, event: yaml.ScalarEvent, path: Path, at: Position) -> Any:
        try:
            return join_surrogates(event.value) if event.style else resolve(event.value)
        except ValueError as wrong:
            self._spoil(path, str(wrong), at)
            return None

    def _refuse_marks(self, event: Any, path: Path, at: Position) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._spoil(path, "aliases are not supported: write the value out", at)
        elif event.anchor is not None:
            self._note(path, "anchors and aliases are not supported: drop it", at)
        elif event.tag is not None:
            self._note(path, "a tag is not needed: drop it, and quote texts", at)

    def _path(self) -> Path:
        if not self._stack:
            return ()
        frame = self._stack[-1]
        return (*frame.path, len(frame.value) if isinstance(frame.value, list) else frame.key or "")

    def _store(self, value: Any) -> None:
        if not self._stack:
            self.document.value = value
            return
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        if not frame.is_repeated:
            frame.value[frame.key or ""] = value
        frame.key = None

    def _note(self, path: Path, message: str, at: Position) -> None:
        self.document.problems.append(Problem(message, name_field(path), self.document.name, *at))

    def _spoil(self, path: Path, message: str, at: Position) -> None:
        self._note(path, message, at)
        self.document.faulty.add(path)


def _decode(source: str | bytes) -> str:
    try:
        raw = source.encode() if isinstance(source, str) else source
    except UnicodeEncodeError as wrong:
        raise _Unreadable("half of a surrogate pair cannot be here", _count(wrong.object[: wrong.start])) from None
    if len(raw) > LARGEST:
        raise _Unreadable(f"is larger than {LARGEST // 1024} kB: split it up")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        before = raw[: wrong.start].decode(errors="replace")
        raise _Unreadable("is not UTF-8 from here on: save it as UTF-8", _count(before)) from None
    if odd := _BREAK.search(text):
        message = f"the character {odd[0]!a} cannot be here: write it as an escape, in double quotes"
        raise _Unreadable(message, _count(text[: odd.start()]))
    if text.lstrip()[:1] in ("{", "["):  # JSON may be indented with tabs
        text = _INDENT.sub(lambda indent: indent[0].replace("\t", " "), text)
    return text


def _count(before: str) -> Position:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _position(mark: Any) -> Position:
    return mark.line + 1, mark.column + 1


def _explain(wrong: yaml.MarkedYAMLError) -> str:
    message = (
        f"{wrong.problem or 'cannot be read'} ({wrong.context})" if wrong.context else wrong.problem or "cannot be read"
    )
    where = "line {}, column {}".format(*_position(wrong.context_mark or wrong.problem_mark))
    for pattern, sentence in _SENTENCES:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return sentence.format(*found.groups(), where=where)
    return message
