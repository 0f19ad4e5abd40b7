r"""Secrets by the name that they are assigned to: ``password=…``, ``"api_key": "…"``, ``&token=…``.

Rules
-----
- A name is sure (``password``, ``client_secret``) or it is a secret's name among other things (``token``).
- In a query every such name has a secret. In quotes and after ``=`` a sure name has; so has any name that is quoted
  itself, as in JSON. Otherwise the value must look the part.
- Not a secret: nothing (``null``, ``***``), a type, a call, and what reads on: "password: must be changed".
- A value ends at its closing quote, or where it has none at the end of the line. Without quotes it ends at a blank,
  a quote, ``&`` or ``;``, or before the next ``,name=``.

Why so fine: masking every word behind "token" hides "Unexpected token: …" from the one who has to mend it, and
masking no short value lets ``password=hunter2`` through.
"""

from __future__ import annotations

import re

from failsoft.core.secret_formats import REDACTED, compiled

NAMES = ("pass", "pwd", "secret", "key", "token", "sig", "auth", "cred", "jwt", "otp", "pin", "sid", "session", "code")

_SURE = (
    r"passw(?:or)?d|passphrase|passcode|(?<![a-z0-9])(?:pwd|pass(?=[\"'\s]{0,3}(?:=|%3d)|\\*[\"']))"
    r"|(?-i:(?<=[a-z])P(?:ass|wd))|credentials?|secret"
    r"|(?:api|access|private|account|auth|secret|signing|encryption|master|subscription|license|app|application|storage"
    r"|consumer|deploy|ssh|webhook|function)[_\ -]?(?:access[_\ -]?)?key"
    r"|(?:access|refresh|id|auth|api|bearer|session|security|oauth|csrf|xsrf|bot|device|personal[_\ -]access)[_\ -]?token"
)
_MAYBE = r"token|signature|authorization|(?<![a-z0-9])(?:sig|auth|jwt|otp|pin|sid|session[_-]?id)"
_IN_QUERY = r"(?<=[?&])(?:key|code|k|s|auth|access|hash|hmac)(?==)"

_NAMED = rf"""(?ix)
    (?P<query> [?&] [\w.-]{{0,40}}? )?
    (?: (?P<sure> {_SURE} ) | {_MAYBE} | (?P<short> {_IN_QUERY} ) )
    (?: [_-]? (?: value | hash | raw | b64 | \d{{1,2}} ) )?
    (?P<quoted> \\{{0,4}} ["'`] | %2[27] )? \]?
    (?: [ ] (?: provided | given ) )?
    \s{{0,8}} (?: (?P<colon> :(?!=) | %3a ) | ==? | => | := | %3d ) >? \s{{0,8}}
"""
_QUOTED = r"""(?ix)
    [bru]{0,2}
    (?: "(?P<double> (?: [^"\\\n] | \\. )*+ )
      | '(?P<single> (?: [^'\\\n] | \\. )*+ )
      | `(?P<back> [^`\n]*+ )
      | \\{1,4} ["'] (?P<escaped> (?: [^\\\n"'] | \\{2,8} (?: \\["'] )? | \\(?!["'\\]) )*+ )
      | %2[27] (?P<percent> [^\s"'&%]*+ (?: %(?!2[276]) [^\s"'&%]*+ )*+ ) )
"""
_BARE = r"[^\s\"'`&;<>(){}\[\]\\,][^\s\"'`&;<>]*"
_NEXT = r",[\w.-]+[=:]"

_NOTHING = r"(?i)\W*|\*+\w{0,4}|[x.•]{3,}|\$?\{{0,2}[A-Z_]+\}{0,2}(?<=\})|\w*\s?\[redacted\]|[a-z_.]+(?:\(\)?|\[)"
_REMARKS = frozenset(
    "absent an any bad bool boolean bytes cannot changed default denied disabled does empty enabled error exceeded "
    "expected expired failed failure false field for format found given has hidden in incorrect int integer invalid is "
    "it malformed masked may mismatch missing must nil no none not null number of ok optional or present protected "
    "provided redacted rejected required revoked set should str string that the this too true type undefined unknown "
    "unset unsupported user value was with wrong yes your".split()
)
_WORD = r"[A-Z]?[a-z'’-]+[.,:]?|[A-Z]+"


def mask_named(text: str) -> str:
    """The text with ``[redacted]`` in place of every value that its name gives away."""
    parts = []
    done = 0
    for named in compiled(_NAMED).finditer(text):
        if named.start() >= done and (span := _find_secret(text, named)) is not None:
            parts += text[done : span[0]], REDACTED
            done = span[1]
    return "".join([*parts, text[done:]])


def _find_secret(text: str, named: re.Match[str]) -> tuple[int, int] | None:
    quoted = compiled(_QUOTED).match(text, named.end())
    if quoted is not None:
        inside = quoted[quoted.lastgroup or 0]
        return quoted.span(quoted.lastgroup or 0) if _is_secret_quoted(inside, named) else None
    bare = compiled(_BARE).match(text, named.end())
    if bare is None:
        return None
    value = compiled(_NEXT).split(bare[0], maxsplit=1)[0].rstrip("\\.,:)]}")
    end = bare.start() + len(value)
    return (bare.start(), end) if _is_secret_bare(value, text[end : end + 2], named) else None


def _is_secret_quoted(value: str, named: re.Match[str]) -> bool:
    words = value.lower().split()
    if compiled(_NOTHING).fullmatch(value) or (words and not _REMARKS.isdisjoint(words)):
        return False
    return bool(named["sure"] or named["quoted"] or named["query"] or not named["colon"]) or _looks_random(value)


def _is_secret_bare(value: str, after: str, named: re.Match[str]) -> bool:
    if not value or value.lower() in _REMARKS or compiled(_NOTHING).fullmatch(value):
        return False
    if named["query"] or named["short"]:
        return not (value.isdigit() and len(value) < 6)
    if not named["sure"]:
        return _looks_random(value)
    if not named["colon"]:
        return True
    reads_on = after[:1] in {" ", ",", "."} and compiled(_WORD).fullmatch(value)
    return not (reads_on or (value.isdigit() and len(value) < 4))


def _looks_random(value: str) -> bool:
    if "://" in value or " " in value:
        return False
    return len(value) >= 16 or (len(value) >= 6 and any(char.isdigit() for char in value))
