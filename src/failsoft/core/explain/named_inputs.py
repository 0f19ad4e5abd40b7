"""Find the inputs that an error text calls missing or invalid, so that the user can be asked for them.

Rules
-----
- Recognised forms: the fields of a pydantic error, the ``required`` and path messages of JSON Schema checkers, and
  common wordings ("missing required field: city", "city must be a string").
- A name is a short identifier, a path of identifiers, or up to three plain words. Nothing else of the text is returned.
- Generic words ("argument", "value", "request") are not names.
- The forms are tried in order, structured ones first. The first form that finds a name decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_IDENTIFIER = r"[A-Za-z_][\w.-]{0,59}"
_QUOTED = rf"[`'\"“‘]({_IDENTIFIER})[`'\"”’]"
_WORDS = r"[`'\"“‘]?([A-Za-z][\w.]{0,59}(?:[ _-][a-z]\w{0,39}){0,2})[`'\"”’]?"
_THING = r"(?:fields?|arguments?|parameters?|params?|inputs?|propert(?:y|ies)|keys?|options?|attributes?|columns?)"
_LIST = rf"\[?(?:and |or |, ?|[`'\"“‘ ]*{_IDENTIFIER}[`'\"”’]*)+\]?"
_LEAD = rf"(?:^|[.;:] |Error: )(?:the |your |a |an |{_THING} |value (?:of|for) )*"
_BAD = r"(?:missing|invalid|unknown|malformed|unsupported|bad|empty|illegal|incorrect)"
_KIND = r"(?:number|integer|int|float|string|str|date|time|boolean|bool|list|array|object|url|email)"
_ABSENT = r"not (?:provided|specified|given|supplied|set)"
_SHOULD = r"(?:must|should|has to|needs to|cannot|can't|can not|may not|must not|should not)"

_PYDANTIC = re.compile(
    rf"^({_IDENTIFIER})\n[ \t]+(?=\S)(?:[^\n]*[\[(]type=|Field required|field required|Input should|Value error)",
    re.MULTILINE,
)
_REQUIRED_PROPERTY = re.compile(
    r"'([^'\n]{1,60})' is a required property|(?:must have |missing )required property '([^'\n]{1,60})'"
    r"|must contain \['([^'\n]{1,60})'"
)
_PATH = re.compile(
    r"^On instance((?:\[(?:'[^'\n]{1,60}'|\d{1,6})\]){1,9}):|^\$?\.?(?:data|instance)?[./]([A-Za-z_]\w{0,59}) (?:must|should) ",
    re.MULTILINE,
)
_STEP = re.compile(r"\['([^']+)'\]|\[(\d+)\]")
_LISTED = re.compile(
    rf"\b(?:missing|unknown) (?:\d+ )?(?:required |mandatory )*(?:keyword-only |positional |query |path |body |input |request )*"
    rf"{_THING}(?: named| for| of)?\s*+(?:[:=(]\s*+)?({_LIST})"
    rf"|\b{_BAD} (?:value for |value of )?(?:query |path |body |input |request )?{_THING}(?: named| for| of)?[ :=(]++(?=[`'\"“‘])({_LIST})"
    rf"|\b{_BAD} (?:(?:value|type|format) (?:for|of) )?(?:fields?|param(?:eter)?s?|propert(?:y|ies)|attributes?|columns?|options?)[ :=(]++({_LIST})",
    re.IGNORECASE,
)
_NAME = re.compile(_IDENTIFIER)
# "invalid input:" may be followed by a value. Accept only lower-case identifiers that end the text.
_LOWER = r"[a-z][a-z0-9]{2,29}(?:_[a-z0-9]{1,29}){0,4}"
_COLON = re.compile(
    rf"(?i:^(?:{_BAD} (?:inputs?|request parameters?)|schema mismatch|(?:input |schema )?validation (?:failed|error|failure)))"
    rf"(?:: | \()({_LOWER}(?:(?:, | and ){_LOWER}){{0,5}})\)?\.?$"
)
_A_THING = re.compile(_THING, re.IGNORECASE)
_SENTENCES = tuple(
    re.compile(form, re.IGNORECASE | re.MULTILINE)
    for form in (
        rf"{_QUOTED} (?:{_THING} )?(?:(?:is|was|are|were) (?:a |an )?(?:required|missing|invalid|not (?:a )?valid|malformed|empty|unknown|mandatory)\b|{_SHOULD} )",
        rf"\b{_THING} [`'\"“‘]?({_IDENTIFIER})[`'\"”’]? (?:is|was|are|were|{_SHOULD})\b",
        rf"{_LEAD}{_WORDS} (?:{_THING} )?(?:(?:is|was|are|were) (?:required|missing|invalid|not (?:a )?valid|malformed|empty|mandatory|{_ABSENT}|not an? (?:valid )?{_KIND})\b|{_SHOULD} (?:not )?(?:be|contain|have|match|start|end)\b)",
        rf"^{_WORDS}: (?:this )?(?:field|value|input|property|argument|parameter)? ?(?:is )?(?:required|missing|invalid|mandatory|may not be|cannot be|must be)\b",
        rf"\b(?:required|expected) {_THING} [`'\"“‘]?({_IDENTIFIER})[`'\"”’]? (?:is|was|to be|not|missing)\b",
        rf"\b(?:{_THING} required|(?:required |mandatory )?{_THING} (?:is |was )?(?:missing|invalid))[:=] [`'\"“‘]?({_IDENTIFIER})",
        rf"{_LEAD}no {_WORDS} (?:was |were )?(?:provided|specified|given|supplied)\b",
        rf"\b(?:must|please) (?:provide|specify|supply|give|enter) (?:a |an |the |your )?(?:valid )?{_WORDS}(?=[.,;:]|$)",
        rf"^{_WORDS} (?:missing|required|invalid|{_ABSENT})[.!]?$",
        rf"\bexpected (?:an? )?(?:valid )?{_KIND} for (?:{_THING} )?[`'\"“‘]?({_IDENTIFIER})",
        rf"\b(?:(?:invalid|bad|wrong|incorrect) (?:value|type|format)(?: [`'\"][^`'\"\n]{{0,60}}[`'\"])?|(?:type|schema) mismatch|validation failed) (?:for|at|on|in) (?:the )?(?:{_THING} )?[`'\"“‘]?({_IDENTIFIER})",
        rf"(?:^|[.;:] )(?:{_THING} )?[`'\"“‘]?({_IDENTIFIER})[`'\"”’]?:? (?:expected (?:an? )?{_KIND}\b|(?:is |was )?out of (?:the )?(?:\w+ )?range\b|has (?:the |a )?(?:wrong|invalid|incorrect) (?:type|format|value)\b)",
        rf"\bvalue out of range: [`'\"“‘]?({_IDENTIFIER})[`'\"”’]?$",
        rf"[.;:] missing (?:required )?{_WORDS}(?=[.:]|$)",
        rf"^{_BAD} (?:required |value for )?[`'\"“‘]?([A-Za-z]\w{{0,39}}(?:[ _-][a-z]\w{{0,39}}){{0,2}})[`'\"”’]?(?=:|$| \()",
    )
)
_VAGUE = frozenset(
    "input inputs argument arguments parameter parameters param params value values field fields request response json "
    "data body payload object it this that you we they required property properties key keys type format schema "
    "arguments valid invalid missing the for of in is was a an and or not one all call tool result file index".split()
) | {f"{bad} {thing}" for bad in ("bad", "invalid") for thing in ("request", "input", "parameter", "argument")}
_BEFORE = frozenset("the your a an required valid".split())
_AFTER = frozenset("value is was are were".split())
_CLASS = re.compile(r"^(?:[\w.]{1,80}(?:Error|Exception): )+")
_LONGEST = 4_000  # characters searched


def find_inputs(text: str) -> tuple[str, ...]:
    """The names of the inputs that the text calls missing or invalid, in its order; () if it names none."""
    text = _CLASS.sub("", text[:_LONGEST])
    for form in (_fields, _required, _paths, _listed, _after_colon):
        found = tuple(dict.fromkeys(name for name in form(text) if name.lower() not in _VAGUE))
        if found:
            return found
    return next((found for form in _SENTENCES if (found := _sentences(form, text))), ())


def _fields(text: str) -> Iterator[str]:
    for match in _PYDANTIC.finditer(text):
        yield match[1]


def _required(text: str) -> Iterator[str]:
    for match in _REQUIRED_PROPERTY.finditer(text):
        yield match[match.lastindex or 0]


def _paths(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        steps = ".".join(name or number for name, number in _STEP.findall(match[1] or ""))
        yield steps or match[2]


def _listed(text: str) -> Iterator[str]:
    for match in _LISTED.finditer(text):
        for name in _NAME.findall(match[match.lastindex or 0]):
            if name.lower() not in ("and", "or"):
                yield name.rstrip(".-")


def _after_colon(text: str) -> Iterator[str]:
    match = _COLON.match(text)
    if match is not None:
        yield from re.split(", | and ", match[1])


def _sentences(form: re.Pattern[str], text: str) -> tuple[str, ...]:
    names = (_strip(match[1]).rstrip(".-") for match in form.finditer(text))
    plain = (name.lower() if " " in name else name for name in names)
    return tuple(dict.fromkeys(name for name in plain if name and name.lower() not in _VAGUE))


def _strip(name: str) -> str:
    """Remove the words around the name: "the city field is" becomes "city"."""
    words = name.split(" ")
    while len(words) > 1 and (words[0].lower() in _BEFORE or _A_THING.fullmatch(words[0])):
        del words[0]
    while len(words) > 1 and (words[-1].lower() in _AFTER or _A_THING.fullmatch(words[-1])):
        del words[-1]
    return " ".join(words)
