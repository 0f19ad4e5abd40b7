"""Judge a tool by its description: the verb that begins it, and the side effects that it admits."""

from __future__ import annotations

import re

from failsoft.core.effects import patterns, things
from failsoft.core.effects import words as table
from failsoft.core.effects.names import PARTS, WORDS, Named, joined, light, phrasal, reads, words_of, writes

_LEAD_IN = re.compile(
    r"(?:^|\W)(?:"
    r"use(?:d|ful)? (?:this |it )?(?:tool |function |action |command )?(?:when |whenever |for |to |if |only )+"
    r"(?:(?:you|users?|agents?) (?:need|want|have|wish)s? to )?"
    r"|(?<!if )(?:you|users?|agents?|he|she|they) (?:need|want|have|wish|ha(?:s|ve))s? to |(?<!you )need(?:s|ed)? to "
    r"|(?:allow|enable)(?:s|ing)? (?:you |users? |the user |agents? |the agent |clients? )?to "
    r"|lets? (?:you |(?:the )?(?:user|agent|client|caller)s? )|helps? (?:you |to )*"
    r"|(?:tool|function|helper|utility|method|endpoint|operation|action|api|call|command|service)s? (?:that |which |to |for |will |can )+"
    r"|(?:can|may|should|must) be used to |you can |purpose: (?:\d\. )?(?:this tool )?"
    r"|^(?:when )?given [^.,]{1,80}, (?:it |this tool )?"
    r")(?:also |be |first |easily |quickly |double )*(?=([a-z]+))",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(
    r"^[^a-z(\[]*(?P<mark>\[[^\]]{0,40}\]\W{0,4}|\([^)]{0,40}\)\W{0,4})?"  # "[READ]", "(Beta)"
    r"(?:(?P<label>[a-z]{1,30})(?: \w{1,30})?: )?"  # "Jira: get an issue"
    r"(?:(?:this|the) (?:tool |function |operation |action |method |endpoint |api |command )|this (?=will )|please |to |will |for (?=\w+ing )"
    r"|(?:safe|optional|quick|easi|automatical|asynchronous|efficient|secure|direct|simp|programmatical|interactive)ly ){0,4}"
    r"(?P<word>[a-z]+)\b ?(?P<following>\w*)",
    re.IGNORECASE,
)
_AFTER_NOUNS = things.LOOKED_AT | frozenset(
    "from is are that which in with for sent received".split()
)  # "Message from a user"
_TELLS = frozenset("whether if how what which when where current".split())  # "Reports whether it is up"
_HANDED = re.compile(r"(?<!answer)(?<!answers) to (?:an?|the|your|another|one) \w+", re.IGNORECASE)
_SENTENCE = re.compile(r"[.:;](?:\s|$)")
_AFTERWARDS = re.compile(r"\bthen ([a-z]+)")
_CLAUSE = re.compile(r"(?:[.:;,] |\b(?:and|or|then|to) )(?:then |also |automatically )?([A-Za-z]+)")
_FIRST_VERBS = re.compile(r"\W{0,9}(\w+(?:, \w+){0,3}(?:,? (?:and|or|and/or) \w+))\b")
_COORDINATED = re.compile(
    r"(?:, (?:and |or )?|\band |\bor |/|& )(?:then )?([a-z]+)(?= (it|them|the|an?|its|your|each|all)\b)?"
)
_COORDINATED_WRITES = (table.WRITES_FIRST | table.WRITES_IN_FRONT) - table.DESCRIBED_READS - {"report"}
_PHRASE = re.compile(r"[\w -]+?(?=$|[^\w -]| (?:to|for|from|in|on|at|of|with|by|and|or|as|into|via|using)\b)")


def by_description(description: str) -> Named | None:
    if not description:
        return None
    said = found(patterns.SAYS_WRITE, description)
    if said:
        return Named("write", f'its description says "{said}"')
    said = found(patterns.SAYS_READ, description)
    if said:
        return Named("read", f'its description says "{said}"')
    preamble = patterns.PREAMBLE.match(description)
    opening = by_opening(description[preamble.end() :] if preamble else description)
    if opening is not None:
        return opening
    for lead in _LEAD_IN.finditer(description[:300]):
        judged = _described(lead.group(1), "the", description[lead.start(1) :])
        if judged:
            return judged
    admitted = found(patterns.CONFESSIONS, description)
    if admitted:
        return Named("write", f'its description says "{admitted}"')
    search = patterns.NAMES_A_SEARCH.match(description)
    return Named("read", f'its description says "{search.group()}"') if search and not may_change(description) else None


def by_opening(description: str) -> Named | None:
    """Judge by the first word of a description."""
    first = _FIRST_WORD.match(description)
    if first is None:
        return None
    mark = next((word for word in WORDS.findall(first["mark"] or "") if writes(word.lower())), None)
    if mark is not None:
        return Named("write", f'its description says "{mark}"')
    label = _label(first["label"].lower()) if first["label"] else None
    if label is not None and (reads(label) or writes(label)):
        return _described(first["label"], "", description[first.start("label") :])
    word, following = first["word"].lower(), first["following"].lower()
    rest = description[first.start("word") :]
    stem = word.removesuffix("s")
    if label in table.OPENING_READS:
        return Named("read", f'its description says "{first["label"]}"')
    if patterns.HANDED_OVER.match(rest) and not (patterns.STORED.search(rest) or _also_writes(rest)):
        return Named("read", f'its description says "{first["word"]}"')
    if stem in table.ENABLERS and _LEAD_IN.match(rest):
        return None
    if stem in table.OPENING_READS or (word in table.DESCRIBED_THINGS and following):
        also = _also_writes(description)
        return Named("write" if also else "read", f'its description says "{also or first["word"]}"')
    return _described(first["word"], following, rest)


def _label(word: str) -> str | None:
    """Return the verb of a label: "Lists: ...", "Analyze locks: ..."."""
    return _verb(word) or next((form for form in forms_of(word) if form in table.OPENING_READS), None)


def begins_with_verb_of(name: str, description: str) -> bool:
    """True if a description begins with the first word of the name, and another word follows: "rent_compute: Rents a GPU".

    That word is then the verb of the name, even if no table knows it.
    """
    named = words_of(PARTS.split(name)[-1])
    told = [word.lower() for word in WORDS.findall(description[:60])][:2]
    return len(named) > 1 and len(told) > 1 and named[0] in forms_of(told[0]) and named[1] not in forms_of(told[1])


def _described(word: str, following: str, rest: str) -> Named | None:
    """Judge by the verb that begins a description, or the rest of it."""
    light = next((form for form in forms_of(word.lower()) if form in table.LIGHT), None)
    if light is not None:
        return _described_light(light, word, rest)
    acting = _phrasal(word, rest)
    if acting:
        return Named("write", f'its description says "{acting}"')
    verb = _verb(word.lower())
    if verb is None:
        is_open = not table.OPEN.isdisjoint(forms_of(word.lower()))
        also = _also_writes(rest) if is_open else ""  # "Generates and sends an invoice"
        return Named("write", f'its description says "{also}"') if also else None
    said = f'its description says "{word}"'
    if verb in table.DESCRIBED_READS or verb in table.READS:
        also = _also_writes(rest)
        if also:
            return Named("write", f'its description says "{also}"')
        return None if _acts_on(verb, rest) else Named("read", said)
    noun = verb in table.WRITES_FIRST | table.WRITES_IN_FRONT and following in _AFTER_NOUNS
    if verb == "report" and following in _TELLS:
        return Named("read", said)
    if verb == "resolve":
        noun = bool(things.LOOKED_UP & set(WORDS.findall(rest[:80].lower())))
    return None if noun else Named("write", said)


def _phrasal(word: str, rest: str) -> str:
    """Return the particle or object that makes a write of the first verb: "Hangs up", "Opens the garage door"."""
    phrase = _PHRASE.match(rest)
    behind = [one.lower() for one in WORDS.findall(phrase.group()[len(word) :])] if phrase else []
    following = WORDS.findall(rest[len(word) : 30])[:1]
    for form in forms_of(word.lower()):
        if following and following[0].lower() in table.PHRASAL_WRITES.get(form, ()):
            return f"{word} {following[0]}"
        if behind and form not in table.DESCRIBED_READS and phrasal(form, behind[-1:]):
            return f"{word} … {behind[-1]}"
    return ""


def _described_light(verb: str, word: str, rest: str) -> Named | None:
    """Judge a verb by its object: "Perform a search", "Execute a query", "Make a payment"."""
    behind = [one.lower() for one in WORDS.findall(rest[len(word) : 80])]
    said = light(verb, behind)
    also = _also_writes(rest) if said is not None and said.effect == "read" else ""
    if said is not None and said.effect == "read" and not also:
        thing = next(one for one in behind if one in table.LIGHT_READS)
        return Named("read", f'its description says "{word} … {thing}"')
    program = verb == "run" and not table.PROGRAMS.isdisjoint(behind[:3])
    if also or joined(behind) or writes(verb) or program or (verb == "make" and said is not None) or _is_deed(behind):
        return Named("write", f'its description says "{also or word}"')
    return None


def _is_deed(behind: list[str]) -> bool:
    """True for the object of "Performs a money transfer"."""
    return not table.DEEDS.isdisjoint(behind[:4])


def _acts_on(verb: str, rest: str) -> bool:
    """True if the object turns a read into an action: "Convert a lead", "Query a SQL database", "Give points to a user"."""
    objects = {word.lower() for word in WORDS.findall(rest[:80])}
    if verb == "convert":
        return bool(things.CONVERTED & objects) or things.MEASURES.isdisjoint(
            objects | {word.removesuffix("s") for word in objects}
        )
    sentence = _SENTENCE.split(rest, maxsplit=1)[0]
    if verb == "return":
        return patterns.GIVEN_BACK.search(sentence) is not None
    if verb in ("get", "obtain", "request", "fetch", "retrieve") and patterns.A_NEW_ONE.match(rest):
        return True
    if verb in ("show", "display"):
        return patterns.SHOWN_TO.search(sentence) is not None
    if verb == "give":
        return _HANDED.search(sentence) is not None
    if verb == "load":  # "Loads rows into a table"
        return "into" in objects
    return verb == "query" and bool(table.LANGUAGES & objects)


def only_looks_up(description: str) -> bool:
    """True if a description begins with a look-up, and no other sentence or clause begins with a write."""
    if not patterns.LOOKS_UP.match(description) or may_change(description):
        return False
    starts = [found.group(1) for found in _CLAUSE.finditer(description)]
    verbs = {form for word in starts for form in forms_of(word.lower())}
    return not any(writes(form) or form in table.WRITES_FIRST | table.WRITES_IN_FRONT for form in verbs)


def coordinated_write(description: str) -> str:
    """Return the write beside the verb that begins a description: "Gets or sets the volume", "Search, book or cancel"."""
    first_verbs = _FIRST_VERBS.match(description)
    words: list[str] = WORDS.findall(first_verbs.group(1)) if first_verbs else []
    for word in words[1:]:
        verb = _verb(word.lower())
        if verb is not None and not (reads(verb) or verb in table.DESCRIBED_READS):  # "Fetches and returns"
            return word
    return ""


def _also_writes(rest: str) -> str:
    """Return the write named beside a read: "List, create or close a tab", "returns them and marks them"."""
    beside = coordinated_write(rest)
    if beside:
        return beside
    sentence = _SENTENCE.split(rest, maxsplit=1)[0]
    third_person = re.match(r"\w+s\b", rest) is not None
    for match in _COORDINATED.finditer(sentence):
        if third_person and match.group(1) in table.WRITES_THAT_ARE_NOUNS:  # "Retrieves a page by its id or handle"
            continue
        verb, determiner = _verb(match.group(1)), match.group(2)
        acts = writes(verb or "") or (determiner and verb in _COORDINATED_WRITES)
        runs = determiner in ("it", "them") and match.group(1) in ("run", "runs")
        if (acts or runs) and not match.group(1).endswith("ing"):
            return match.group().strip(" ,")
    for match in _AFTERWARDS.finditer(sentence):  # "then pages the team": a noun does not stand there
        if not table.WRITES_FIRST.isdisjoint(forms_of(match.group(1))):
            return match.group()
    return found(patterns.CONFESSIONS, rest)


def _verb(word: str) -> str | None:
    """Return the verb of which a word is a form: "gets", "searches", "fetching"."""
    if word in table.READS_FIRST:
        return None
    for form in forms_of(word):
        if (
            form in table.READS
            or form in table.DESCRIBED_READS
            or writes(form)
            or form in table.WRITES_FIRST | table.WRITES_IN_FRONT
        ):
            return form
    return None


def forms_of(word: str) -> list[str]:
    """Return a word and the verbs of which it may be a form."""
    forms = [word]
    if word.endswith("s"):
        forms += [word[:-1], word[:-2], f"{word[:-3]}y"]
    if word.endswith("ing") and len(word) > 5:
        stem = word[:-3]
        forms += [stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem]
    return forms


def may_change(description: str) -> bool:
    """True if a description has any form of a verb that changes something, or names something to be given."""
    said = {word.lower() for word in WORDS.findall(description)}
    verbs = {form for word in said for form in forms_of(word)} - table.WRITES_THAT_ARE_NOUNS - table.NO_VERBS_IN_TEXTS
    past = {form for word in said for form in _before_past(word)}
    in_past = past & (table.WRITES_FIRST | table.WRITES_IN_FRONT | table.RARE_WRITES)
    return bool(said & table.GIVEN or in_past or verbs & table.RARE_WRITES) or any(map(writes, verbs | past))


def _before_past(word: str) -> list[str]:
    """Return the verbs of which a word may be the past: "stored", "moved", "cancelled", "sent"."""
    if word in table.IRREGULAR:
        return [table.IRREGULAR[word]]
    if not word.endswith("ed"):
        return []
    stem = word[:-2]
    return [stem, f"{stem}e", f"{stem[:-1]}y", stem[:-1] if stem[-1:] == stem[-2:-1] else stem]


def found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group() if match else ""
