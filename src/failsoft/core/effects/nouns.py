"""Judge a tool that has no verb in its name, by the thing that the name and the description are about."""

from __future__ import annotations

import re

from failsoft.core.effects import things
from failsoft.core.effects import words as table
from failsoft.core.effects.descriptions import forms_of, may_change
from failsoft.core.effects.names import PARTS, WORDS, Named, ToolEffect, action_of, may_be_rare_verb, writes

# Commands on hashes, lists, sets, streams and sorted sets: "hget", "lpush".
_DATA_COMMAND = re.compile(
    r"m?[hlrsxz]?(?:(?P<read>get(?:all)?|range|len|(?<=[sz])card|keys|vals|exists|members|score|ttl)"
    r"|(?P<write>set|del|add|rem|push|pop|trim|incrby|decrby|ack))"
)
_AMONG = frozenset("by for of in per between near".split())
_INFLECTION = re.compile(r"(?:[lt]?(?:ed|ing|er)|l?ation|ion)s?")  # "cancelled", "sending", "insertion"
_CONJUNCTION = re.compile(r"(?:and|or|then)(\w+)")
_ARTICLE = re.compile(r"^\W*(?:(?:the|an?|all|any|your|this) )?", re.IGNORECASE)


def by_thing(name: str, description: str) -> Named | None:
    """Judge a name without a verb by its last noun: "weather", "account_balance", "order_history"."""
    parts = [action_of(part) for part in PARTS.split(name)]
    parts = [words for words in parts if words]
    if not parts:
        return None
    words = [word for part in parts for word in part]
    last = words[-1]
    said = f'its name ends in "{last}" and has no verb'
    opening = [word.lower() for word in WORDS.findall(_ARTICLE.sub("", description[:60]))][:1]
    if any(form in table.OPEN | table.LIGHT for word in opening for form in forms_of(word)):  # "Capture the details"
        return None
    if may_change(description):
        return None
    if _is_asked_about(words):
        return Named("read", said)
    number = last in ("rate", "rates") and bool(things.RATED & set(words[-2:-1]))  # "currency_exchange_rates"
    if not any(
        _may_be_verb(word) for word in words[: -2 if number else -1] if word not in things.OWNERS | table.SERVICES
    ):
        if last in things.INFORMATION or number:
            return Named("read", said)
        if last in things.INFORMATION_OF and (things.OWNERS | table.SERVICES).issuperset(parts[-1][:-1]):
            return Named("read", said)
        if last in things.THINGS_TO_LOOK_AT and things.DESCRIBE_A_THING.union(words) & set(opening):
            return Named("read", said)
    if _are_things(words):
        return Named("read", f'"{last}" in its name, and no verb')
    return _by_unparted_verb(parts[-1][0]) if len(parts[-1]) == 1 else None


def _are_things(words: list[str]) -> bool:
    """True for a name of nouns alone: "album_tracks", "product_by_handle".

    Before a plural, an unknown word may be a verb that no table has: "dedupe_records".
    """
    at = next((at for at, word in enumerate(words) if at and word in _AMONG), None)
    if at is not None and words[at + 1 :]:  # "product_by_handle", "events_for_namespace"
        words = words[:at]
    if len(words) == 2 and words[1] in table.READS_BEFORE_NOUN and _is_plural(words[0]):  # "seats.remaining"
        return True
    *before, last = words
    if any(word not in things.NOUNS_BEFORE | table.SERVICES and not _is_plural(word) for word in before):
        return False
    if any(map(_may_be_verb, before)):
        return False
    if not before:  # a word alone may be a verb, or a thing that is made: "blocks", "hangs", "hotels"
        return at is not None and (_is_plural(last) or last in things.READ_ALONE)
    return _is_plural(last)


def _is_plural(word: str) -> bool:
    if word == "settings" or any(word.startswith(verb) for verb in table.UNPARTED_WRITES):  # "cancellations"
        return False
    noun = word.removesuffix("s")
    return noun != word and len(noun) > 3 and not (noun.endswith(("s", "u", "i")) or _may_be_verb(word) or writes(noun))


def _is_asked_about(words: list[str]) -> bool:
    """True for a verb that is a noun here: "order_status", "upload_progress"."""
    if len(words) < 2 or any(map(_may_be_verb, words[:-2])):
        return False
    first, last = words[-2:]
    return (
        (first in table.ASKED_ABOUT and last in table.ASPECTS)
        or (first in table.RUNNING and last in table.RUNNING_ASPECTS)
        or (first in things.RATED and last in ("rate", "rates"))
    )


def _may_be_verb(word: str) -> bool:
    return (
        writes(word)
        or may_be_rare_verb(word)
        or word in table.WRITES_FIRST | table.WRITES_IN_FRONT | table.OPEN | table.LIGHT | table.CONJUNCTIONS
        or word in table.PHRASAL_WRITES.keys() | table.ACTING_VERBS
    )


def _by_unparted_verb(word: str) -> Named | None:
    """Judge a name of one word by the verb at its start: "createuser", "getweather"."""
    command = _DATA_COMMAND.fullmatch(word)
    if command is not None:
        effect: ToolEffect = "read" if command["read"] else "write"
        return Named(effect, f'"{command["read"] or command["write"]}" in its name')
    for verb in (*table.UNPARTED_WRITES, *table.UNPARTED_READS):
        rest = word.removeprefix(verb)
        if rest == word or len(rest) < 3 or _INFLECTION.fullmatch(rest):
            continue
        second = _CONJUNCTION.match(rest)
        if second is not None and _may_be_verb(second.group(1)):  # "getandlock"
            return None
        if verb in table.UNPARTED_WRITES:
            return Named("write", f'"{verb}" in its name')
        if not any(second in rest for second in table.SECOND_HALVES | {"update", "set"}):
            return Named("read", f'"{verb}" in its name')
    return None
