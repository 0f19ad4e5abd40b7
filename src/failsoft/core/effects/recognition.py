"""Recognition: guess from its name and description whether a tool reads or writes.

Rules
-----
- The name decides if it can; otherwise the description does.
- The first verb of a name decides. Later words can change its meaning: "get_or_create", "check_in", "list_add".
- In a dotted, slashed or server-prefixed name the last part comes first: ``mcp__github__create_issue``.
- A read whose description admits a side effect is neither. So is every tool that no rule decides.

A write mistaken for a read may be done twice; a read mistaken for a write is only not repeated. In doubt, a tool is not a
read.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from failsoft.core.effects import words as table

ToolEffect = Literal["read", "write", "neither"]


class Recognised(NamedTuple):
    """The recognised effect of a tool, and the word that shows it."""

    effect: ToolEffect
    reason: str


_NAME_LIMIT = 200
_DESCRIPTION_LIMIT = 600
_SECTION = re.compile(
    r"\n[ \t]{0,40}(?:(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?)[ \t]{0,8}:?[ \t]{0,8}\n|:[a-z])"
)
_PARTS = re.compile(r"__+|[./:]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_INFLECTION = re.compile(r"(?:[lt]?(?:ed|ing|er)|l?ation|ion)s?")  # "cancelled", "sending", "insertion"
_METHOD = re.compile(r"__(?:get|head|post|put|patch|delete)$")  # "read_items_items__get"


class _Named(NamedTuple):
    effect: ToolEffect
    reason: str
    weak: bool = False  # the word may be a noun, so the description can contradict it


_UNDECIDED = Recognised("neither", "its name and description do not say")


def recognise(name: str, description: str = "") -> Recognised:
    """Recognise the effect of a tool with this name and description."""
    description = _SECTION.split(description[: _DESCRIPTION_LIMIT * 4], maxsplit=1)[0]
    description = " ".join(description.split())[:_DESCRIPTION_LIMIT]
    arithmetic = _found(table.SAYS_ARITHMETIC, description)
    if arithmetic:
        return Recognised("read", f'its description says "{arithmetic.strip()}"')
    named = _by_name(name[:_NAME_LIMIT])
    if named is None:
        return _by_description(description) or _by_thing(name[:_NAME_LIMIT], description) or _UNDECIDED
    opening = _by_opening(description) if named.weak else None
    if opening is not None and opening.effect == "write":
        return opening
    if named.effect == "read":
        admitted = _found(table.CONFESSIONS, description)
        if admitted:
            return Recognised("neither", f'{named.reason}, but its description says "{admitted}"')
    return Recognised(named.effect, named.reason)


# Names --------------------------------------------------------------------------------------------------------------


def _by_name(name: str) -> _Named | None:
    parts = [part for part in _PARTS.split(_METHOD.sub("", name)) if part]
    for number, part in enumerate(reversed(parts)):
        words = _words_of(part)
        if number and len(words) == 1 and words[0] in table.COMPUTES:
            continue
        said = _by_words(words) if number == 0 else _by_pure_verbs(words)
        if said is not None:
            return said
    method = _METHOD.search(name)
    return method and _by_words([method.group().strip("_")])


def _words_of(part: str) -> list[str]:
    """Split a part of a name into words, without a trailing version or "tool"."""
    words = _without_compounds([word.lower() for word in _WORDS.findall(part)])
    while len(words) > 1 and (words[-1] in table.ENDINGS or words[-1].isdigit()):
        words.pop()
    return words


def _by_thing(name: str, description: str) -> Recognised | None:
    """Judge a name without a verb by its last noun: "account_info", "order_history"."""
    words = [word for part in _PARTS.split(name) for word in _words_of(part)]
    opening = [word.lower() for word in _WORDS.findall(description[:40])][:1]
    named = len(words) > 1 and words[-1] in table.THINGS_TO_LOOK_AT
    if named and opening and (opening[0] in table.DESCRIBE_A_THING or opening[0] in words):
        return Recognised("read", f'its name ends in "{words[-1]}" and has no verb')
    return _by_unparted_verb(words[0]) if len(words) == 1 else None


def _by_unparted_verb(word: str) -> Recognised | None:
    """Judge a name of one word by the verb at its start: "createuser", "getweather"."""
    for verb in (*table.UNPARTED_WRITES, *table.UNPARTED_READS):
        rest = word.removeprefix(verb)
        if rest == word or len(rest) < 3 or _INFLECTION.fullmatch(rest):
            continue
        if verb in table.UNPARTED_WRITES:
            return Recognised("write", f'"{verb}" in its name')
        if not any(second in rest for second in table.SECOND_HALVES | {"update", "set"}):
            return Recognised("read", f'"{verb}" in its name')
    return None


def _by_words(words: list[str]) -> _Named | None:
    """Judge the part of a name that names the action."""
    if not words:
        return None
    first, last = words[0], words[-1]
    if len(words) > 1 and first in table.MANNERS and _reads(words[1]):
        return _by_words(words[1:])
    if len(words) == 2 and first in table.JOBS and last in table.STATES:
        return None
    if first == "resolve" and table.LOOKED_UP & set(words[1:]):
        return None
    if first in table.OPEN and not table.PHRASAL_WRITES.get(first, frozenset()) & set(words[1:2]):
        return _joined(words)
    if first in table.READS_FIRST:
        return _joined(words) or _read(first)
    if first in table.READS_BEFORE_NOUN and words[1:2] not in ([], ["up"]):
        return None if len(words) > 2 and _writes(last) else _read(first, weak=True)
    if len(words) > 1 and first in table.WRITES_FIRST and not _action(words):
        return None if last in table.LOOKED_AT else _write(first)
    return _by_pure_verbs(words) or _by_new(words) or _by_last(words)


def _by_new(words: list[str]) -> _Named | None:
    """Judge a name that ends in a new thing, without a verb: "new_event", but not "new_events"."""
    new = words[-2:-1] == ["new"] and not words[-1].endswith("s")
    return _write(f"new {words[-1]}") if new else None


def _by_last(words: list[str]) -> _Named | None:
    last = words[-1]
    if last in table.ACTIVITIES:
        return _Named("neither", f'"{last}" in its name', weak=True)
    if last in table.WRITES_LAST or (len(words) == 1 and last in table.WRITES_FIRST | table.WRITES_IN_FRONT):
        return _write(last)
    return _agent(last)


def _by_pure_verbs(words: list[str]) -> _Named | None:
    """Judge by the first word that is a verb in any position."""
    if len(words) > 1 and not (_reads(words[0]) or _writes(words[0])):
        agent = _agent(words[-1])
        if agent is not None:
            return agent
    for at, word in enumerate(words):
        behind = words[at + 1 :]
        following = behind[0] if behind else ""
        if following in table.PHRASAL_WRITES.get(word, ()):
            return _write(f"{word} {following}")
        if word in table.PARTED and _is_parted(word, behind):
            return _write(f"{word} … {behind[-1]}")
        if following in table.PHRASAL_READS.get(word, ()):
            return _joined(words) or _read(f"{word} {following}")
        if word in table.LIGHT and (behind or at) and (at == 0 or word not in ("make", "do")):
            return _light(word, behind)
        if _reads(word):
            return _turned(word, words[:at], behind)
        if _writes(word) or (word in table.WRITES_IN_FRONT and behind and (at == 0 or word == "set")):
            return _write(word)
        if at and word in table.WRITES_FIRST and following in table.ARTICLES:
            return _write(word)
        if word in table.OPEN and behind:
            return _joined(words)
    return None


def _is_parted(verb: str, behind: list[str]) -> bool:
    """True if the verb's particle ends the name: "check_guest_in", "turn_lights_off"."""
    return len(behind) > 1 and behind[-1] in table.PHRASAL_WRITES[verb] and not behind[-2].endswith(("ed", "en"))


def _joined(words: list[str]) -> _Named | None:
    """Return the write after a conjunction: "get_or_create", "download_and_install".

    A word that can also be a noun counts only after the first verb or at the end: "check_and_book", "log_in_and_post".
    """
    for at, (conjunction, word) in enumerate(pairwise(words)):
        if conjunction in table.CONJUNCTIONS:
            noun = word in table.WRITES_FIRST | table.WRITES_IN_FRONT
            if _writes(word) or word == "run" or (noun and (at <= 1 or at + 2 == len(words))):
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


def _light(verb: str, behind: list[str]) -> _Named | None:
    for word in behind:
        if word in table.LIGHT_READS:
            return _joined(behind) or _read(f"{verb} {word}")
        if word in table.LIGHT_OPEN:
            return None
    return _write(verb)


def _turned(verb: str, before: list[str], behind: list[str]) -> _Named | None:
    """Return a read, unless the words around the verb change its meaning."""
    joined = _joined([verb, *behind])
    if joined is not None:
        return joined
    if behind and behind[-1] in table.SECOND_HALVES and verb not in table.READS_THAT_ARE_NOUNS:
        return None
    noun = verb in table.READS_THAT_ARE_NOUNS
    if noun and behind and _writes(behind[-1]):
        return None if behind[-1] in table.WRITES_THAT_ARE_NOUNS else _write(behind[-1])
    if (
        verb == "list" and len(behind) > 1 and _writes(behind[0]) and not behind[-1].endswith("s")
    ):  # "todo_list_add_item"
        return _write(behind[0]) if before and behind[0] not in table.WRITES_THAT_ARE_NOUNS else None
    if verb == "read" and not behind and before and before[-1] in table.READ_MARKS:
        return None
    if verb == "query" and (before or table.LANGUAGES & set(behind)):  # "run_query", "sql_db_query", "query_graphql"
        return None
    if verb == "list" and ("sale" in behind or "on" in behind[:1]):  # "list_item_for_sale", "list_on_ebay"
        return None
    if verb in ("get", "fetch", "obtain", "request", "retrieve") and behind[-1:] and behind[-1] in table.ISSUED:
        return _Named("neither", f'"{verb} … {behind[-1]}" in its name may issue one')
    if verb == "convert" and table.CONVERTED & {*behind[:1], *(after for to, after in pairwise(behind) if to == "to")}:
        return None
    return _read(verb, weak=noun and bool(before))


def _action(words: list[str]) -> bool:
    """True if the first word is a noun and a verb follows: "message_get_status", "comment_list"."""
    return any(_reads(word) or _writes(word) for word in (words[1], words[-1]))


def _agent(word: str) -> _Named | None:
    """Judge a noun that names an agent by its verb: "reader", "updater", "creator"."""
    for ending in ("er", "or", "r"):
        verb = word.removesuffix(ending)
        if verb != word:
            for form in (verb, verb + "e"):
                if form in table.READS:
                    return _read(word)
                if form in table.WRITES:
                    return _write(word)
    return None


def _reads(word: str) -> bool:
    return word in table.READS or any(
        word.removeprefix(prefix) in table.READS for prefix in ("batch", "bulk") if word.startswith(prefix)
    )


def _writes(word: str) -> bool:
    if word in table.READS:
        return False
    return word in table.WRITES or any(
        word.removeprefix(prefix) in table.WRITES
        or (prefix not in ("batch", "bulk") and word.removeprefix(prefix) in table.WRITES_FIRST | table.WRITES_IN_FRONT)
        for prefix in table.PREFIXES
        if word.startswith(prefix)
    )


def _read(word: str, *, weak: bool = False) -> _Named:
    return _Named("read", f'"{word}" in its name', weak)


def _write(word: str) -> _Named:
    return _Named("write", f'"{word}" in its name')


# Descriptions -------------------------------------------------------------------------------------------------------

_LEAD_IN = re.compile(
    r"(?:^|\W)(?:"
    r"use(?:d|ful)? (?:this |it )?(?:tool |function |action |command )?(?:when |whenever |for |to |if |only )+"
    r"|(?:you|users?|agents?|he|she|they) (?:need|want|have|wish|ha(?:s|ve))s? to |need(?:s|ed)? to "
    r"|(?:allow|enable)(?:s|ing)? (?:you |users? |the user |agents? |the agent |clients? )?to "
    r"|lets? (?:you |users? |the user |agents? )|helps? (?:you |to )*"
    r"|(?:tool|function|method|endpoint|operation|action|api|call|command|service)s? (?:that |which |to |for |will |can )+"
    r"|(?:can|may|should|must) be used to |you can |purpose: (?:\d\. )?(?:this tool )?"
    r")(?:also |be |first |easily |quickly )*(?=([a-z]+))",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(
    r"^[^a-z(\[]*(?P<mark>\[[^\]]{0,40}\]\W{0,4}|\([^)]{0,40}\)\W{0,4})?"  # "[READ]", "(Beta)"
    r"(?:(?P<label>[a-z]{1,30})(?: \w{1,30})?: )?"  # "Jira: get an issue"
    r"(?:(?:this|the) (?:tool|function|operation|action|method|endpoint|api|command) |please |to |will "
    r"|(?:safe|optional|quick|easi|automatical|asynchronous|efficient|secure|direct|simp|programmatical|interactive)ly ){0,4}"
    r"(?P<word>[a-z]+)\b ?(?P<following>\w*)",
    re.IGNORECASE,
)
_AFTER_NOUNS = table.LOOKED_AT | frozenset(
    "from is are that which in with for sent received".split()
)  # "Message from a user"
_HANDED = re.compile(r"(?<!answer)(?<!answers) to (?:an?|the|your|another|one) \w+", re.IGNORECASE)
_SENTENCE = re.compile(r"[.:;](?:\s|$)")
_COORDINATED = re.compile(r"(?:, |\band |\bor |, and |, or |/|& )([a-z]+)")


def _by_description(description: str) -> Recognised | None:
    if not description:
        return None
    said = _found(table.SAYS_WRITE, description)
    if said:
        return Recognised("write", f'its description says "{said}"')
    said = _found(table.SAYS_READ, description)
    if said:
        return Recognised("read", f'its description says "{said}"')
    opening = _by_opening(description)
    if opening is not None:
        return opening
    for lead in _LEAD_IN.finditer(description[:300]):
        found = _described(lead.group(1), "the", description[lead.start(1) :])
        if found:
            return found
    admitted = _found(table.CONFESSIONS, description)
    return Recognised("write", f'its description says "{admitted}"') if admitted else None


def _by_opening(description: str) -> Recognised | None:
    """Judge by the first word of a description."""
    first = _FIRST_WORD.match(description)
    if first is None:
        return None
    mark = next((word for word in _WORDS.findall(first["mark"] or "") if _writes(word.lower())), None)
    if mark is not None:
        return Recognised("write", f'its description says "{mark}"')
    label = _verb(first["label"].lower()) if first["label"] else None
    if label is not None and (_reads(label) or _writes(label)):
        return _described(first["label"], "", description[first.start("label") :])
    word, following = first["word"].lower(), first["following"].lower()
    rest = description[first.start("word") :]
    stem = word.removesuffix("s")
    if stem in table.ENABLERS and _LEAD_IN.match(rest):
        return None
    if stem in table.OPENING_READS or (word in table.DESCRIBED_THINGS and following):
        also = _also_writes(description)
        return Recognised("write" if also else "read", f'its description says "{also or first["word"]}"')
    return _described(first["word"], following, rest)


def _described(word: str, following: str, rest: str) -> Recognised | None:
    """Judge by the verb that begins a description, or the rest of it."""
    light = next((form for form in _forms(word.lower()) if form in table.LIGHT), None)
    if light is not None:
        return _described_light(light, word, rest)
    verb = _verb(word.lower())
    if verb is None:
        is_open = not table.OPEN.isdisjoint(_forms(word.lower()))
        also = _also_writes(rest) if is_open else ""  # "Generates and sends an invoice"
        return Recognised("write", f'its description says "{also}"') if also else None
    said = f'its description says "{word}"'
    if following in table.PHRASAL_WRITES.get(verb, ()):
        return Recognised("write", f'its description says "{word} {following}"')
    if verb in table.DESCRIBED_READS or verb in table.READS:
        if _acts_on(verb, rest):
            return None
        also = _also_writes(rest)
        return Recognised("write", f'its description says "{also}"') if also else Recognised("read", said)
    noun = verb in table.WRITES_FIRST | table.WRITES_IN_FRONT and following in _AFTER_NOUNS
    if verb == "resolve":
        noun = bool(table.LOOKED_UP & set(_WORDS.findall(rest[:80].lower())))
    return None if noun else Recognised("write", said)


def _described_light(verb: str, word: str, rest: str) -> Recognised | None:
    """Judge a verb by its object: "Perform a search", "Execute a query", "Make a payment"."""
    behind = [found.lower() for found in _WORDS.findall(rest[len(word) : 80])]
    said = _light(verb, behind)
    also = _also_writes(rest) if said is not None and said.effect == "read" else ""
    if said is not None and said.effect == "read" and not also:
        thing = next(found for found in behind if found in table.LIGHT_READS)
        return Recognised("read", f'its description says "{word} … {thing}"')
    program = verb == "run" and not table.PROGRAMS.isdisjoint(behind[:3])
    if also or _joined(behind) or _writes(verb) or program or (verb == "make" and said is not None):
        return Recognised("write", f'its description says "{also or word}"')
    return None


def _acts_on(verb: str, rest: str) -> bool:
    """True if the object turns a read into an action: "Convert a lead", "Query a SQL database", "Give points to a user"."""
    objects = {word.lower() for word in _WORDS.findall(rest[:80])}
    if verb == "convert":
        return bool((table.CONVERTED - {"to"}) & objects)
    if verb == "give":
        return _HANDED.search(_SENTENCE.split(rest, maxsplit=1)[0]) is not None
    return verb == "query" and bool(table.LANGUAGES & objects)


def _also_writes(rest: str) -> str:
    """Return the write named beside a read: "List, create or close a tab", "returns them and marks them"."""
    sentence = _SENTENCE.split(rest, maxsplit=1)[0]
    for match in _COORDINATED.finditer(sentence):
        verb = _verb(match.group(1))
        if verb is not None and _writes(verb) and not match.group(1).endswith("ing"):
            return match.group().strip(" ,")
    return _found(table.CONFESSIONS, rest)


def _verb(word: str) -> str | None:
    """Return the verb of which a word is a form: "gets", "searches", "fetching"."""
    if word in table.READS_FIRST:
        return None
    for form in _forms(word):
        if (
            form in table.READS
            or form in table.DESCRIBED_READS
            or _writes(form)
            or form in table.WRITES_FIRST | table.WRITES_IN_FRONT
        ):
            return form
    return None


def _forms(word: str) -> list[str]:
    """Return a word and the verbs of which it may be a form."""
    forms = [word]
    if word.endswith("s"):
        forms += [word[:-1], word[:-2], f"{word[:-3]}y"]
    if word.endswith("ing") and len(word) > 5:
        stem = word[:-3]
        forms += [stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem]
    return forms


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group() if match else ""
