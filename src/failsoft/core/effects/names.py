"""Judge a tool by its name: the first verb decides, and later words can change its meaning."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from failsoft.core.effects import things
from failsoft.core.effects import words as table

ToolEffect = Literal["read", "write", "neither"]


class Named(NamedTuple):
    """The effect that a name or a description shows, and the word that shows it."""

    effect: ToolEffect
    reason: str
    weak: bool = False  # the word may be a noun, so the description can contradict it


PARTS = re.compile(r"__+|[./:]+")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_REQUEST = re.compile(r"(get|head|post|put|patch|delete)[ :]+/", re.IGNORECASE)  # "GET /users/{id}"
_VERSION = re.compile(r"[vV]?\d+")
_METHOD = re.compile(r"__(?:get|head|post|put|patch|delete)$")  # "read_items_items__get"


def by_name(name: str) -> Named | None:
    request = _REQUEST.match(name)
    if request is not None and request.group(1).lower() not in table.READ_METHODS:
        return None if _ends_in_read(name) and request.group(1).lower() == "post" else _write(request.group(1))
    parts = [part for part in PARTS.split(_METHOD.sub("", name)) if part and not _VERSION.fullmatch(part)]
    for number, part in enumerate(reversed(parts)):
        words = action_of(part)
        if number and len(words) == 1 and words[0] in table.COMPUTES:
            continue
        if number and len(words) > 1 and words[0] in table.READS_THAT_ARE_NOUNS:  # "check_deposits.adjustment"
            continue
        said = _by_words(words) if number == 0 else _by_pure_verbs(words)
        if number == 0 and said is None and len(words) == 1 and len(parts) > 1:  # "payments.capture"
            said = _by_object([*action_of(parts[-2]), *words])
        if said is not None:
            return said
    method = _METHOD.search(name)
    return method and _by_words([method.group().strip("_")])


def _ends_in_read(path: str) -> bool:
    """True if the last word of a path is a verb of reading: "POST /orders/search" may only ask."""
    return reads(["", *words_of(PARTS.split(path)[-1])][-1])


def words_of(part: str) -> list[str]:
    """Split a part of a name into words, without a trailing version or "tool"."""
    words = _without_compounds([word.lower() for word in WORDS.findall(part)])
    while len(words) > 1 and (words[-1] in table.ENDINGS or words[-1].isdigit()):
        words.pop()
    return words


def action_of(part: str) -> list[str]:
    """Split a part of a name into words, without the service before a verb: "slack_post_message", "ZOOM_END_MEETING"."""
    words = words_of(part)
    if len(words) > 1 and words[0] in table.COMMAND_LINES and words[1] not in table.COMMANDS_THAT_SHOW:
        return words[1:] if words[1] in table.WRITES_FIRST | table.WRITES_IN_FRONT else words
    if len(words) < 3 or words[1] not in table.WRITES_FIRST | table.WRITES_IN_FRONT:
        return words
    prefixed = words[0] in table.SERVICES or (not _may_be_verb(words[0]) and (part.isupper() or _has_object(words)))
    return words[1:] if prefixed else words


def _has_object(words: list[str]) -> bool:
    """True if the second word of a name is a verb with an object, and the first a service: "drive_share_file".

    After an owner, or before something to look at, the second word is a noun: "user_order_item", "hotel_book_price".
    """
    last = words[-1]
    looked_at = (
        last in things.LOOKED_AT | things.INFORMATION or last.endswith(("s", "ing")) or reads(last) or writes(last)
    )
    return not (looked_at or words[0] in things.OWNERS or words[2] in table.PREPOSITIONS)


def _may_be_verb(word: str) -> bool:
    known = table.READS_FIRST | table.WRITES_FIRST | table.WRITES_IN_FRONT | table.OPEN | table.LIGHT
    other = (
        table.READS_BEFORE_NOUN
        | table.MANNERS
        | table.PHRASAL_WRITES.keys()
        | table.PHRASAL_READS.keys()
        | table.ACTING_VERBS
    )
    return reads(word) or writes(word) or word in known or word in other


def _by_words(words: list[str]) -> Named | None:
    """Judge the part of a name that names the action."""
    if not words:
        return None
    if len(words) > 2 and words[-2] == "by" and words[-1] in things.KEYS:  # "page_by_handle": the key is not a verb
        words = words[:-1]
    first, last = words[0], words[-1]
    if len(words) > 1 and first in table.MANNERS and reads(words[1]):
        return _by_words(words[1:])
    if len(words) == 2 and first in table.JOBS and last in table.STATES:
        return None
    if first == "resolve" and things.LOOKED_UP & set(words[1:]):
        return _read(first) if len(words) == 2 else None
    if _only_shows(words):
        return _read(last)
    if first in table.OPEN and not phrasal(first, words[1:]):
        asked = _object(table.ASKS_OF, first, words[1:])
        return joined(words) or (_read(f"{first} … {asked}") if asked else _managed(words[1:]))
    if first in table.READS_FIRST:
        return joined(words) or _read(first)
    if first in table.READS_BEFORE_NOUN and words[1:2] not in ([], ["up"]):
        acts = len(words) > 2 and (writes(last) or any(map(writes, words[2:-1])))  # "current_user_follow_playlist"
        return None if acts else _read(first, weak=True)
    if len(words) > 1 and first in table.WRITES_FIRST and not _action(words):
        return None if last in things.LOOKED_AT | things.INFORMATION else _write(first, weak=True)
    return _by_pure_verbs(words) or joined(words) or _by_new(words) or _by_last(words)


def _only_shows(words: list[str]) -> bool:
    """True for "git_log", "pods_top", "tip_calculator" and "unit_converter"."""
    if len(words) != 2:
        return False
    first, last = words
    if last in table.COMMANDS_THAT_SHOW:
        return first in table.COMMAND_LINES or (first.endswith("s") and not reads(first))
    agent = _agent(last)
    calculates = agent is not None and agent.effect == "read" and first in table.WRITES_FIRST
    return calculates or (last == "converter" and first in things.MEASURES)


def _by_new(words: list[str]) -> Named | None:
    """Judge a name that ends in a new thing, without a verb: "new_event", but not "new_events"."""
    new = words[-2:-1] == ["new"] and (not words[-1].endswith("s") or words[-1].endswith("ss"))
    return _write(f"new {words[-1]}") if new else None


def _by_last(words: list[str]) -> Named | None:
    last = words[-1]
    if _switches(words):
        return _write(f"{words[-2]} {last}")
    if len(words) == 3 and words[1] == "to" and things.MEASURES.issuperset({words[0], last}):  # "gallon_to_liter"
        return _read(f"to {last}")
    if last in table.ACTIVITIES:
        return Named("neither", f'"{last}" in its name', weak=True)
    if last in table.WRITES_LAST or (len(words) == 1 and last in table.WRITES_FIRST | table.WRITES_IN_FRONT):
        return _write(last, weak=last in table.WRITES_FIRST)
    return _by_object(words) or _agent(last)


def _switches(words: list[str]) -> bool:
    """True for "maintenance_off" and "metafields_set", but not for "depends_on" and "data_set"."""
    if len(words) < 2:
        return False
    before, last = words[-2:]
    if last in ("on", "off"):
        return not before.endswith(("ds", "ed"))
    return last == "set" and (before in table.SETTABLE or (before.endswith("s") and not before.endswith("ss")))


def _by_object(words: list[str]) -> Named | None:
    """Judge a verb that follows its object: "payment_capture", "accounts.open"."""
    acting = phrasal(words[-1], [words[-2].removesuffix("s")]) if words[-1] in table.ACTING_VERBS and words[:-1] else ""
    return _write(acting) if acting else None


def _by_pure_verbs(words: list[str]) -> Named | None:
    """Judge by the first word that is a verb in any position."""
    if len(words) > 1 and not (reads(words[0]) or writes(words[0]) or words[0] in table.LIGHT):
        agent = _agent(words[-1])
        if agent is not None:
            return agent
    for at, word in enumerate(words):
        behind = words[at + 1 :]
        following = behind[0] if behind else ""
        acting = phrasal(word, behind)
        if acting:
            return _write(acting)
        if word in table.PARTED and _is_parted(word, behind):
            return _write(f"{word} … {behind[-1]}")
        if following in table.PHRASAL_READS.get(word, ()):
            return joined(words) or _read(f"{word} {following}")
        if word in table.LIGHT and _is_light(words, at):
            return light(word, behind)
        if reads(word):
            return _turned(word, words[:at], behind)
        if writes(word) or (word in table.WRITES_IN_FRONT and behind and (at == 0 or word == "set")):
            return _write(word)
        if following in table.ARTICLES and _is_write_form(word):
            return _write(word)
        if word in table.OPEN and behind:
            return joined(words) or _managed(behind)
    return None


def _managed(behind: list[str]) -> Named | None:
    """Judge a verb that follows a noun: "monitor_create", "export_list"."""
    managed = table.MANAGES.get(behind[0]) if len(behind) == 1 else None
    return Named(managed, f'"{behind[0]}" in its name') if managed else None


def phrasal(verb: str, behind: list[str]) -> str:
    """Return the words after a verb that make it a write: "check in", "open bank account"; empty if none do."""
    if behind and behind[0] in table.PHRASAL_WRITES.get(verb, ()):
        return f"{verb} {behind[0]}"
    acted_on = _object(table.ACTS_ON, verb, behind)
    return f"{verb} … {acted_on}" if acted_on else ""


def _object(rows: table.Objects, verb: str, behind: list[str]) -> str:
    """Return the object that the verb has in one of the rows: the word after the verb, or the last word."""
    if not behind:
        return ""
    objects = frozenset().union(*(objects for verbs, objects in rows if verb in verbs))
    return next((word for word in (behind[0], behind[-1]) if word in objects), "")


def _is_write_form(word: str) -> bool:
    """True for "post" and "sends", as in "slack_sends_a_message"."""
    return any(writes(form) or form in table.WRITES_FIRST for form in (word.removesuffix("s"), word.removesuffix("es")))


def _is_parted(verb: str, behind: list[str]) -> bool:
    """True if the verb's particle ends the name: "check_guest_in", "turn_lights_off"."""
    return len(behind) > 1 and behind[-1] in table.PHRASAL_WRITES[verb] and not behind[-2].endswith(("ed", "en"))


def joined(words: list[str]) -> Named | None:
    """Return the write after a conjunction: "get_or_create", "download_and_install".

    A word that can also be a noun counts only after the first verb or at the end: "check_and_book", "log_in_and_post".
    """
    for at, (conjunction, word) in enumerate(pairwise(words)):
        if conjunction in table.CONJUNCTIONS:
            noun = word in table.WRITES_FIRST | table.WRITES_IN_FRONT
            if writes(word) or word == "run" or (noun and (at <= 1 or at + 2 == len(words))):
                return _write(f"{conjunction} {word}")
    return None


def _without_compounds(words: list[str]) -> list[str]:
    kept: list[str] = []
    for word in words:
        if kept and (kept[-1], word) in table.COMPOUND_NOUNS:
            kept[-1] = f"{kept[-1]} {word}"
        else:
            kept.append(word)
    return kept


def _is_light(words: list[str], at: int) -> bool:
    """True if a word of LIGHT is a verb here: not in "rate_of_make", nor before another verb in "do_list_objects"."""
    first, behind = at == 0, words[at + 1 :]
    if words[at] in ("make", "do") and not first:
        return False
    if words[at] == "do" and behind and reads(behind[0]):
        return False
    return bool(behind or not first) and (first or words[at - 1] != "of")


def light(verb: str, behind: list[str]) -> Named | None:
    for word in behind:
        if word in table.LIGHT_READS:
            return joined(behind) or _read(f"{verb} {word}")
        if word in table.LIGHT_OPEN:
            return None
    return _write(verb)


def _turned(verb: str, before: list[str], behind: list[str]) -> Named | None:
    """Return a read, unless the words around the verb change its meaning."""
    both = joined([verb, *behind])
    if both is not None:
        return both
    last = behind[-2:-1] if behind[-1:] == ["all"] else behind[-1:]  # "find_replace_all"
    if last and last[0] in table.SECOND_HALVES and verb not in table.READS_THAT_ARE_NOUNS:
        return None
    noun = verb in table.READS_THAT_ARE_NOUNS
    rare = before and before[0] not in table.SERVICES and may_be_rare_verb(before[0])
    if noun and not behind and rare:  # "scrub_list", "anonymize_view"
        return None
    if noun and behind and writes(behind[-1]):
        return None if behind[-1] in table.WRITES_THAT_ARE_NOUNS else _write(behind[-1])
    if (
        verb == "list" and len(behind) > 1 and writes(behind[0]) and not behind[-1].endswith("s")
    ):  # "todo_list_add_item"
        return _write(behind[0]) if before and behind[0] not in table.WRITES_THAT_ARE_NOUNS else None
    if verb == "read" and not behind and before and before[-1] in table.READ_MARKS:
        return None
    asks_for_things = len(behind) == 1 and behind[0].endswith("s")  # "datadog_query_metrics"
    if verb in ("query", "qry") and (
        (before and not asks_for_things) or table.LANGUAGES & {*before, *behind}
    ):  # "run_query", "sql_db_query", "query_graphql"
        return None
    if verb == "list" and ("sale" in behind or "on" in behind[:1]):  # "list_item_for_sale", "list_on_ebay"
        return None
    if verb in ("get", "fetch", "obtain", "request", "retrieve") and behind[-1:] and behind[-1] in things.ISSUED:
        return Named("neither", f'"{verb} … {behind[-1]}" in its name may issue one')
    if verb in ("get", "obtain", "request") and len(behind) == 2 and _by_new(behind) is not None:  # "get_new_address"
        return Named("neither", f'"{verb} new {behind[-1]}" in its name may make one')
    if verb == "convert" and _converts_record(behind):
        return None
    return _read(verb, weak=(noun and bool(before)) or verb == "convert")


def _converts_record(behind: list[str]) -> bool:
    """True unless only a measure or a notation changes: "convert_lead", but not "convert_currency"."""
    records = things.CONVERTED & {*behind[:1], *(after for to, after in pairwise(behind) if to == "to")}
    return bool(records) or things.MEASURES.isdisjoint(behind)


def _action(words: list[str]) -> bool:
    """True if the first word is a noun and a verb follows: "message_get_status", "comment_list"."""
    return any(reads(word) or writes(word) for word in (words[1], words[-1]))


def _agent(word: str) -> Named | None:
    """Judge a noun that names an agent by its verb: "reader", "updater", "creator"."""
    for ending in ("er", "or", "r"):
        verb = word.removesuffix(ending)
        if verb != word:
            for form in (verb, verb + "e"):
                if form in table.READS and form != "convert":
                    return _read(word)
                if form in table.WRITES:
                    return _write(word)
    return None


def reads(word: str) -> bool:
    return word in table.READS or any(
        word.removeprefix(prefix) in table.READS for prefix in ("batch", "bulk") if word.startswith(prefix)
    )


def writes(word: str) -> bool:
    if word in table.READS or word in table.WRITES_FIRST | table.OPEN:  # "re-lease", "re-turn", "re-call": no prefix
        return False
    return word in table.WRITES or any(
        word.removeprefix(prefix) in table.WRITES
        or (prefix not in ("batch", "bulk") and word.removeprefix(prefix) in table.WRITES_FIRST | table.WRITES_IN_FRONT)
        for prefix in table.PREFIXES
        if word.startswith(prefix)
    )


def may_be_rare_verb(word: str) -> bool:
    return word in table.RARE_WRITES or (word.endswith(table.VERB_ENDINGS) and word not in table.NO_VERBS)


def _read(word: str, *, weak: bool = False) -> Named:
    return Named("read", f'"{word}" in its name', weak)


def _write(word: str, *, weak: bool = False) -> Named:
    return Named("write", f'"{word}" in its name', weak)
