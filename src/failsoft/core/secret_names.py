r"""Secrets by the name that they are assigned to: ``password=…``, ``"api_key": "…"``, ``&token=…``.

Rules
-----
- A name is sure (``password``, ``client_secret``) or it is a secret's name among other things (``token``); some are
  one in a query only (``key``). It is read word by word, so that ``dbPassword``, ``DB_PASSWORD`` and ``db-password``
  are one, and "compass" is none.
- In a query every such name has a secret. In quotes and after ``=`` a sure name has; so has any name that is quoted
  itself, as in JSON. Otherwise the value must look the part.
- Not a secret: nothing (``null``, ``***``), a type, a call, and what reads on: "password: must be changed".
- A quoted value ends at the same quote behind as many backslashes (more of them are a quote within), or where there
  is none at the end of the line. Without quotes it ends at a blank, a quote, ``&``, ``;`` or before ``,name=``.

Why so fine: masking every word behind "token" hides "Unexpected token: …" from the one who has to mend it, and
masking no short value lets ``password=hunter2`` through.
"""

from __future__ import annotations

from typing import NamedTuple

from failsoft.core.secret_formats import REDACTED, compiled


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_SURE = ("password", "passwd", "passphrase", "passcode", "secret", "apikey", "accesskey", "secretkey", "privatekey")
_SURE_ALONE = _words("pwd credential credentials accesstoken authtoken refreshtoken")
_OF_A_KEY = _words(
    "access account api app application auth consumer deploy encryption function license master private secret signing",
    "ssh storage subscription webhook",
)
_OF_A_TOKEN = _words("access api auth bearer bot csrf device id oauth refresh security session xsrf")
_MAYBE = _words("token authorization signature sig auth jwt otp pin sid sessionid")
_IN_QUERY = _words("key code access hmac")
_ONLY_IN_QUERY = ("code", "access", "hmac")  # "key" may be the end of a longer name
_ENDINGS = _words("value hash raw")  # words after a name that do not make it another thing

# A value that is one of these says something about the secret; in quotes, one that holds a verdict does.
_REMARKS = _words(
    "absent an any bad bool boolean bytes cannot changed default denied disabled empty enabled error exceeded expected",
    "expired failed failure false field for format found given has hidden incorrect int integer invalid is it malformed",
    "masked may mismatch missing must nil no none not null number ok optional or present protected provided redacted",
    "rejected required revoked secretbytes secretstr set should str string that the this too true type undefined",
    "unknown unset unsupported user value was with wrong yes your",
)
_VERDICTS = _words(
    "cannot denied expected expired failed incorrect invalid mismatch missing must required should wrong"
)

_NAMED = r"""(?x)  # in the lowered text: what may be a name, what may close it, the sign
    (?: p(?: assw(?:or)?d | ass(?:phrase|code)? | wd | in ) | s(?: ecret | ig(?:nature)? | id | ession[_-]?id ) | key
      | token | c(?: redentials? | ode ) | a(?: uth(?:orization)? | ccess ) | jwt | otp | hmac )
    (?: [_-]?(?:value|hash|raw) | \d{1,3} )?+ [\]"'`\\]*+ (?:%2[27])?+ (?:[ ]provided)?+ \s{0,8}+
    (?P<sign> :=?+ | == | =>?+ | %3[ad] )
"""
_NOISE = r"\\[nrtbfv]|%[0-9A-Fa-f]{2}|\[[0-9;]{0,8}m"  # escapes that were written out: not letters of a name
_BEFORE = 32  # how far back a name is looked for
_QUERY = r"(?:[?&]|%3[Ff]|%26)[\w.-]*\Z"
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_VALUE = r"""(?x) \s{0,8}+ (?:
    [bruBRU]{0,2}
    (?: (?P<escape> \\{0,16} ) (?P<quote> ["'`] ) (?P<quoted> (?: (?! (?<!\\) (?P=escape) (?P=quote) ) [^\n] )*+ )
      | %2[27] (?P<encoded> [^\s"'&%]*+ (?: %(?!2[276]) [^\s"'&%]*+ )*+ ) )
    | (?P<bare> [^\s"'`&;<>(){}\[\]\\,] [^\s"'`&;<>]*+ ) )
"""
_NEXT = r",[\w.-]+[=:]"
_NOTHING = (
    r"(?i)\W{0,2}|\*+\w{0,4}|[x.•]{3,}|\$?\{{1,2}\w+\}{1,2}|\w*\s?\[redacted\]|%\w|%\(\w+\)s|[a-z_.]+(?:\(\)?|\[)"
)
_PLAIN_WORD = r"[A-Z]?[a-z'’-]+|[A-Z]+"


class _Name(NamedTuple):
    """What the name before a sign promises about the value behind it."""

    sure: bool
    quoted: bool
    query: bool


def mask_named(text: str) -> str:
    """The text with ``[redacted]`` in place of every value that its name gives away."""
    parts: list[str] = []
    done = 0
    for named in compiled(_NAMED).finditer(_lower(text)):
        if named.start() < done:
            continue  # within a value that is masked already
        before = text[max(done, named.start() - _BEFORE) : named.start("sign")]
        if named[0].startswith(_ONLY_IN_QUERY) and not ("?" in before or "&" in before or "%" in before):
            continue
        colon = named["sign"] in {":", "%3a"}
        name = _read_name(before, colon=colon)
        span = None if name is None else _find_secret(text, named.end(), name, colon=colon)
        if span is not None:
            parts += text[done : span[0]], REDACTED
            done = span[1]
    return "".join([*parts, text[done:]]) if parts else text


def _lower(text: str) -> str:
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _read_name(before: str, *, colon: bool) -> _Name | None:
    before = before.rstrip()
    name = before.rstrip("]\"'`\\").removesuffix("%22").removesuffix("%27").removesuffix(" provided")
    words = [word.lower() for word in compiled(_WORD).findall(compiled(_NOISE).sub(" ", name))]
    while words and (words[-1].isdigit() or words[-1] in _ENDINGS):
        words.pop()
    if not words:
        return None
    last, other = words[-1], words[-2] if len(words) > 1 else ""
    quoted = before[-1] in "\"'`" or before.endswith(("%22", "%27"))
    query = compiled(_QUERY).search(name) is not None
    sure = (
        last.endswith(_SURE)
        or last in _SURE_ALONE
        or (last == "key" and other in _OF_A_KEY)
        or (last == "token" and other in _OF_A_TOKEN)
        or (last == "pass" and (quoted or not colon))  # "pass: 3, fail: 2"
    )
    maybe = last.endswith("token") or last in _MAYBE or (last == "id" and other == "session")
    return _Name(sure, quoted, query) if sure or maybe or (query and last in _IN_QUERY) else None


def _find_secret(text: str, start: int, name: _Name, *, colon: bool) -> tuple[int, int] | None:
    found = compiled(_VALUE).match(text, start)
    if found is None:
        return None
    if found["bare"] is None:
        group = "encoded" if found["quoted"] is None else "quoted"
        return found.span(group) if _is_secret_quoted(found[group], name, colon=colon) else None
    value = compiled(_NEXT).split(found["bare"], maxsplit=1)[0].rstrip("\\.,:)]}")
    first = found.start("bare")
    end = first + len(value)
    return (first, end) if _is_secret_bare(value, name, text[end : end + 1], colon=colon) else None


def _is_secret_quoted(value: str, name: _Name, *, colon: bool) -> bool:
    words = [word.strip(".,:") for word in value.lower().split()]
    if compiled(_NOTHING).fullmatch(value) or (len(words) == 1 and words[0] in _REMARKS):
        return False
    if len(words) > 1 and not _VERDICTS.isdisjoint(words):
        return False
    return name.sure or name.quoted or name.query or not colon or _looks_random(value)


def _is_secret_bare(value: str, name: _Name, after: str, *, colon: bool) -> bool:
    if not value or value.lower() in _REMARKS or compiled(_NOTHING).fullmatch(value):
        return False
    if name.query:
        return not (value.isdigit() and len(value) < 6)  # ?code=200
    if not name.sure:
        return _looks_random(value)
    reads_on = after in {" ", ",", ".", ":"} and compiled(_PLAIN_WORD).fullmatch(value)
    return not (colon and reads_on)


def _looks_random(value: str) -> bool:
    if "://" in value or " " in value or "(" in value:
        return False
    return len(value) >= 16 or (len(value) >= 6 and any(char.isdigit() for char in value))
