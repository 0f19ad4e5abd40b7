"""How many steps a regular expression takes on a text: counted, so that no other load on the machine can change it.

A small backtracking matcher over the pattern as ``re`` has parsed it, in the order in which ``re`` tries things. Limits of
repeats are scaled down to ``CAP``, so that growth shows in short texts: a repeat that ends after 200 characters costs a
constant, one without an end does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.patterns import Found, _class_text, op, parser

CAP = 6
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
SINGLE = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


class TooMany(Exception):
    """More steps than anybody wants to count."""


def _bounds(value: Any) -> tuple[int, int]:
    least, most = int(value[0]), int(value[1])
    return min(least, CAP), (most if most >= 4096 else min(most, CAP))


def width(items: Any) -> int:
    """How long a text is that a part of fixed width fits, limits scaled."""
    total = 0
    for kind, value in items:
        if kind in SINGLE:
            total += 1
        elif kind in REPEATS:
            total += _bounds(value)[0] * width(value[2])
        elif kind is op.BRANCH:
            total += width(value[1][0])
        elif kind is op.SUBPATTERN:
            total += width(value[3])
        elif kind is op.ATOMIC_GROUP:
            total += width(value)
    return total


class Counter:
    """Counts the steps of one pattern."""

    def __init__(self, found: Found) -> None:
        self.tree = parser.parse(found.pattern, found.flags)
        self.flags = found.compiled().flags
        self.anchored = found.anchored
        self.chars: dict[tuple[int, str, int], bool] = {}

    def count(self, text: str, most: int = 300_000) -> int:
        """The steps that ``finditer`` takes, or one attempt at the beginning."""
        self.text, self.steps, self.most = text, 0, most
        self.groups: dict[int, tuple[int, int]] = {}
        place = 0
        while place <= len(text):
            end = next(self.sequence(self.tree, 0, place, self.flags), None)
            if self.anchored:
                break
            place = place + 1 if end is None or end == place else end
        return self.steps

    def sequence(self, items: Any, index: int, place: int, flags: int) -> Iterator[int]:
        if index == len(items):
            yield place
            return
        for end in self.one(*items[index], place, flags):
            yield from self.sequence(items, index + 1, end, flags)

    def takes(self, kind: Any, value: Any, place: int, flags: int) -> bool:
        self.steps += 1
        if self.steps > self.most:
            raise TooMany
        if place >= len(self.text):
            return False
        char = self.text[place]
        key = (id(value) if kind is op.IN else (value or 0) * 8 + int(kind), char, flags)
        known = self.chars.get(key)
        if known is None:
            known = self.chars[key] = self._fits(kind, value, char, flags)
        return known

    def _fits(self, kind: Any, value: Any, char: str, flags: int) -> bool:
        if kind is op.ANY:
            return char != "\n" or bool(flags & re.DOTALL)
        items = value if kind is op.IN else [(op.LITERAL, value)]
        if kind is op.NOT_LITERAL:
            items = [(op.NEGATE, None), *items]
        return re.fullmatch(_class_text(items), char, flags & (re.IGNORECASE | re.ASCII)) is not None

    def one(self, kind: Any, value: Any, place: int, flags: int) -> Iterator[int]:  # noqa: C901 - a case per kind
        if kind in SINGLE:
            if self.takes(kind, value, place, flags):
                yield place + 1
        elif kind in REPEATS:
            yield from self.repeat(kind, value, place, flags)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from self.sequence(branch, 0, place, flags)
        elif kind is op.SUBPATTERN:
            group, add, remove, items = value
            for end in self.sequence(items, 0, place, (flags | add) & ~remove):
                before = self.groups.get(group)
                self.groups[group] = (place, end)
                yield end
                if before is None:
                    self.groups.pop(group, None)
                else:
                    self.groups[group] = before
        elif kind is op.ATOMIC_GROUP:
            end = next(self.sequence(value, 0, place, flags), None)
            if end is not None:
                yield end
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            if self.looks(value, place, flags) == (kind is op.ASSERT):
                yield place
        elif kind is op.AT:
            if self.at(value, place, flags):
                yield place
        elif kind is op.GROUPREF:
            start, end = self.groups.get(value, (0, -1))
            self.steps += 1
            if end >= 0 and self.text.startswith(self.text[start:end], place):
                yield place + end - start
        else:
            raise NotImplementedError(kind)

    def looks(self, value: Any, place: int, flags: int) -> bool:
        direction, items = value
        self.steps += 1
        if direction > 0:
            return next(self.sequence(items, 0, place, flags), None) is not None
        start = place - width(items)
        return start >= 0 and any(end == place for end in self.sequence(items, 0, start, flags))

    def at(self, value: Any, place: int, flags: int) -> bool:
        self.steps += 1
        text, length = self.text, len(self.text)
        if value is op.AT_BEGINNING:
            return place == 0 or bool(flags & re.MULTILINE and text[place - 1] == "\n")
        if value is op.AT_BEGINNING_STRING:
            return place == 0
        if value is op.AT_END:
            last = place == length or (place == length - 1 and text[place] == "\n")
            return last or bool(flags & re.MULTILINE and text[place] == "\n")
        if value is op.AT_END_STRING:
            return place == length
        word = [0 <= i < length and re.match(r"\w", text[i], flags & re.ASCII) is not None for i in (place - 1, place)]
        return (word[0] != word[1]) == (value is op.AT_BOUNDARY)

    def repeat(self, kind: Any, value: Any, place: int, flags: int) -> Iterator[int]:
        least, most = _bounds(value)
        body = value[2]
        if len(body) == 1 and body[0][0] in SINGLE:
            yield from self.run(kind, body[0], place, least, most, flags)
        elif kind is op.POSSESSIVE_REPEAT:
            rounds = 0
            while rounds < most:
                end = next(self.sequence(body, 0, place, flags), None)
                if end is None or end == place:
                    break
                place, rounds = end, rounds + 1
            if rounds >= least:
                yield place
        else:
            yield from self.rounds(kind is op.MIN_REPEAT, body, place, least, most, flags)

    def run(self, kind: Any, item: Any, place: int, least: int, most: int, flags: int) -> Iterator[int]:
        """A repeat of single characters."""
        length = 0
        if kind is op.MIN_REPEAT:
            while length <= most:
                if length >= least:
                    yield place + length
                if not self.takes(*item, place + length, flags):
                    return
                length += 1
            return
        while length < most and self.takes(*item, place + length, flags):
            length += 1
        if length < least:
            return
        if kind is op.POSSESSIVE_REPEAT:
            yield place + length
            return
        for shorter in range(length, least - 1, -1):
            self.steps += 1
            yield place + shorter

    def rounds(self, lazy: bool, body: Any, place: int, least: int, most: int, flags: int) -> Iterator[int]:
        if lazy and least <= 0:
            yield place
        if most > 0:
            for end in self.sequence(body, 0, place, flags):
                if end == place and least <= 0:
                    continue
                yield from self.rounds(lazy, body, end, least - 1, most - 1, flags)
        if not lazy and least <= 0:
            yield place
