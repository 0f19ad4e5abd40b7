r"""Secret names: find secrets by the name that they are assigned to.

Examples: ``password=…``, ``"api_key": "…"``, ``&token=…``, ``("pwd", "…")``.

Rules
-----
- A name is sure (``password``, ``client_secret``), ambiguous (``token``), or counts only in a query (``key``). Names are
  read word by word: ``dbPassword``, ``DB_PASSWORD`` and ``db-password`` are the same, and "compass" is not one.
- In a query the value of every such name is a secret. In quotes, after ``=`` and in a field of its own (``name: …
  value: …``, a part of a form, a model's ``input_value=``) the value of a sure name is a secret, and so is that of a
  quoted name, as in JSON. After any other sign, and in a sentence ("the API key … is not valid"), the value must also
  look like a secret.
- The value of a password named in another language (``Kennwort``, ``密码``) must look like a secret.
- Two adjacent quoted words may be a name and its value, or two names. The second is masked if it may be a secret.
- The value of any other key (``FERNET_KEY``, ``x-rapidapi-key``) is a secret if it can be nothing else. Lookup keys
  (``cache_key``) and public keys are not secrets.
- A text with more names of secrets than any message is masked after the last of them, so that no text takes long.
- These are not secrets: an empty value (``null``, ``***``), a type, a call, and a sentence: "password: must be changed".
- A quoted value ends at the same quote after the same number of backslashes; more backslashes mean an inner quote.
  Without a closing quote it ends with the line. A YAML block ends with its indentation.
- An unquoted value ends at a blank. A sign ends it only if the text clearly continues: ``&name=``, ``;name=`` or
  ``,name=`` with a plain value, a tag, a closing quote. Generated passwords contain all these signs, so a quote, ``&`` or
  ``<`` alone ends nothing. A value that begins with a sign must have at least eight characters, and not be a
  placeholder, a type or a list.

Masking every word after "token" would hide "Unexpected token: …" from the person who debugs it. Masking only long values
would miss ``password=hunter2``.
"""

from __future__ import annotations

import re

from failsoft.core.redact.secret_formats import compiled
from failsoft.core.redact.spoken import is_wordy, stands_out
from failsoft.core.startup.named_tuple import NamedTuple


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_SURE = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "privkey",
)
_SURE_ALONE = _words("pwd credential credentials accesstoken authtoken refreshtoken mnemonic psk")
_OF_A_KEY = _words(
    "access account api app application auth client consumer deploy encryption function functions license master private",
    "secret session signing",
    "ssh storage subscription webhook",
)
_OF_A_DIGITS_EARLY = _words("access api auth bearer bot csrf device id oauth refresh security session xsrf")
_MAYBE = _words("token authorization signature sig auth jwt otp pin sid sessid sessionid jsessionid phpsessid")
_NOT_OF_A_KEY = _words(  # lookup keys and public keys
    "cache dedup dedupe event foreign group hash host idempotency index issue lookup map message object order partition",
    "primary public range routing row s3 shard sort storage unique",
)
_IN_QUERY = _words("key code access hmac pw appid")
_ONLY_IN_QUERY = ("code", "access", "hmac", "pw=", "appid")  # "key" may be the end of a longer name
_ENDINGS = _words(
    "value hash raw data string base confirm confirmation"
)  # words that may follow a name without changing its meaning

# A value that is one of these describes the secret. A quoted value that contains one of the verdicts does too.
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

# passwords in other languages; ``secret_formats.HINT`` has a part of each, which is enough for a hint
_FOREIGN = r"(?:passwort|kennwort|wachtwoord|contrase(?:ña|nya)|senha|mot\ de\ passe|пароль|密码|密碼|口令|パスワード|비밀번호)"
_NAMED = r"""(?x)  # in the lowered text: what may be a name, what may close it, the sign
    (?: p(?: ass[_-]?w(?:or)?d | ass(?:phrase|code)? | wd | in | w | sk | hrase )
      | s(?: ecret(?:[_-]?id)? | ig(?:nature)? | id | ess(?:ion[_-]?)?id )
      | a(?: uth(?:orization)? | ccess | ppid ) | c(?: redentials? | ode ) | key | token | jwt | otp | hmac | mnemonic
      | _FOREIGN )
    (?: [_-]?(?:value|hash|raw|data|string|base|confirm(?:ation)?) | \d{1,3} )?+
    [\]"'`*\\]*+ (?:[ ](?:provided|is|was))?+
    (?P<sign> [ ]?：[ ]? | :[ ]?[a-z][\w.\[\],|]{0,40}[ ]?=(?=[ ]?["']) | \s{0,8}+ (?: :=?+ | == | =>?+ | -> ) | [ ]{1,40}+\|(?=[ ])
      | [,;]?+ \s{0,20}+ (?: ["']?\w{1,20}["']?\s?[:=]\s?["']?[\w.-]{1,40}["']?,?\s{1,8} ){0,2}?
        ["'\\]*+ value ["'\\]*+ \s{0,4}+ [:=]
      | \s{1,4}+ --(?:value|body|secret-string)(?:[ ]|=)
      | </\w{1,20}> \s{0,20}+ <\w{1,20}>
      | (?<=["']) (?: (?P<pair> ,\s{0,4}+ (?=[bru]{0,2}\\*+["']) ) | \n[ ]?\n )
      | (?P<spoken> \s{1,3}+ (?:(?:is|was|of)\s)?+ (?= ["'`] | (?=[a-z_]{0,40}+[^a-z_\s]) \S{8} ) )
      | \n[ ]{1,4}+ [^\n]{0,200}? [ ]input_value= | \)?+, [^{}]{0,300}? ["']input["']: )
""".replace("_FOREIGN", _FOREIGN)
_BEFORE = 32  # characters before a sign that are searched for a name
_QUERY = r"[?&][\w.-]*\Z"
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_VALUE = r"""(?x)
    [ ]{0,4}+ [|>][+-]?+ [ ]*+ \n (?P<indent> [ \t]++ ) (?P<block> [^\n]++ (?: \n (?P=indent) [^\n]++ )*+ )
    | (?: \s{0,16}+ (?: (?<=\s)-[ ] | string\(\d{1,9}\)[ ] )?+ (?: (?P<list> [\[(] \s{0,4}+ ) (?=[bruBRU]{0,2}\\{0,16}["'`]) )?+
    (?: [bruBRU]{0,2}
        (?P<escape> \\{0,16} ) (?P<quote> \'{3} | "{3} | ["'`] ) (?: (?:Bearer|Basic|Token)[ ] )?+
        (?P<quoted> (?: (?! (?<!\\) (?P=escape) (?P=quote) | (?<=[^\\]\\\\) (?P=quote) [)\]},] ) [^\n]
          | (?P=quote) (?: "'"(?P=quote) | (?P=quote) (?:(?P=quote){2}){0,3}+ (?! (?P=quote) | [;:.)\]}]{0,4}(?:[\s,]|\Z) ) ) )*+ )  # as a shell, or YAML, writes one within
      | \{ (?P<braced> [^\s{}]{6,128} ) \}
      | (?P<bare> (?!\\[nrt]) \S ) ) )
"""
# the next field in a list of fields, with a plain value
_FIELD = r"""[ ]?
    (?: [A-Z]{2,24}+(?:[_-][A-Z]{1,24}+){0,4}+
      | [A-Za-z][a-z]{2,24}+(?:[_.-]?[A-Za-z][a-z]{1,24}+|[ ][A-Z][a-z]{1,24}+){0,4}+
      | id|ts|db|ip|tz|to ) (?:\[\])? = (?: ["']?(?:[\w.%+/:@*()\\-]++|\[redacted\]) (?:[&;,\s"')\]}]|\Z) | \s | \Z )
    | (?<=&)[a-z]=[\w.%+\\-]++ (?:[&\s]|["')}]{0,3}(?:\s|\Z))"""
_CLOSED = r"""(?x) [)\]}>]{0,3}+ (?: [.,;:!?]*+ (?:\s|\Z) | [,:;|] [ ]?["'{\[\\] | /?>(?:\s|<|\Z) | \\[nrt"'] | ["'`][)\]}>,.;:!?]{0,4}(?:[\s"']|\Z)
    | [.&] [a-z]{3} | [,;)] [ ]? [A-Za-z_]\w{0,40} [=(] )"""
# a single quote within a text that a shell quotes; its first double quote does not end a value in double quotes
_SHELL_QUOTE = r"""(?:(?<=')"|"[)\]}>.,;:!?|]{0,4}'")'"'(?!\s|\Z)"""
_TAG = r"<(?:/[A-Za-z][a-z]{1,24}+(?:[A-Z:._-]?[a-z]{1,24}+){0,4}+|/?(?:a|b|br|code|div|em|h\d|hr|i|li|p|pre|span|strong|td|tr)\s?/?)>"
_PART = rf"""(?: [^\s"'`&;<,] | [&;,] (?! {_FIELD} | (?<=,) [a-z]{{3,24}}: (?:["'\w]|\[redacted\]) ) | < (?! {_TAG[1:]} )
    | '"'"' (?! [)\]}}>.,;:!?]{{0,4}} (?:\s|\Z) )
    | (?P<quote>["'`]) (?! [)\]}}>]{{0,3}}+ (?: [.,;:!?]*+ (?:\s|\Z) | [,:] [ ]? (?P=quote) | ,[{{\[] ) ) )"""
_BARE = rf"(?x) \S {_PART}*+"
_MOST_NAMES = 100  # of secrets, in one text; everything after them is masked
_JUDGED = 400  # characters of a value that are judged
# what an unquoted value that begins with a sign may be instead of a secret
_STRUCTURE = r"""(?x) \$?[(\[{<]{1,2}[\w .:@/-]*[)\]}>]{1,2}\W{0,2}\Z | [(\[{<]*[A-Za-z_.'-]+\W{0,3}\Z
    | [(\[{]{1,3} (?: ["'][\w .@:/-]*["'] | \d{1,10}(?![:(=]) | [A-Za-z_.]{3,40} ) [,:)\]}(=] | [^A-Za-z0-9]*\Z"""
_NOTHING = (
    r"(?i)\W{0,2}|\*+(?:\w{0,4}|(?-i:[a-z_]+))|<[\w .-]+>|<[a-z_ .-]+|\$\([a-z]+|[x.•]{3,}|\$?\{{1,2}\w+\}{0,2}|(?-i:\$[A-Z_]+)|\w*\s?\[redacted\]"
    r"|%\w|%\(\w+\)s|[a-z_.]+(?:\(\)?|\[)"
    r"|(?-i:[a-z_.]{3,}|(?:[A-Z][a-z]+){1,4})(?:\([\"']?[\w.,=*-]*|\[[\"'][\w.-]*)"
)
_NAME_PART = r"(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+)"
_NAME_ITSELF = (
    rf"(?i)\A--|(?-i:\A{_NAME_PART}(?:[_.-]{_NAME_PART})+\Z|\A[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)+\Z)"
    r"|(?:pass(?:word)?|secret|key|token)[_-]?\d{0,2}\Z"
)
_STRONG = (
    r"(?=[\w+/-]{0,40}\d)(?=[\w+/-]{0,40}[A-Z])(?=[\w+/-]{0,40}[a-z])(?=[\w+/-]*[A-Za-z\d]{12})[\w+/-]{24,}=*"
    r"|[0-9a-f]{32}[0-9a-f-]*"
)
_DIGITS_EARLY = r"(?=[A-Za-z_.~+/-]{0,40}\d)[\w.~+/=-]{12}"
_ENCODED = r"(?i)base64|sha\d|md5"  # "the token is base64-encoded"
_CLOSING = "\\.,:;)]}>|"  # not part of an unquoted value if at its end
_PATH = r"\s?/[\w./~-]*+(?![^\s,;:)\"'])"
_ODD_SIGN = r"[!#$%&*+/:;<=>?@\\^`|~{}]"
_PLACE = r"[\w .:$-]*"
_ITEM_BEGINS = r"[\[,]\s?[(\[]b?[\"'][\w.-]{0,24}\Z"
_ITEM_ENDS = r"b?([\"'])(?:(?!\1)[^\s\\]|\\\S){8,200}+\1[)\]](?:,\s?[(\[]|[)\]])"
_PLAIN_WORD = r"[A-Z]?[a-z'’]+(?:-[a-z'’]*)?|[A-Z]+"


class _Name(NamedTuple):
    """The name before a sign: what it says about the value after the sign."""

    sure: bool
    password: bool
    quoted: bool
    query: bool
    field: bool  # of a list of fields with semicolons
    strong: bool  # the name may be any key: the value is a secret only if it can be nothing else


class _Sign(NamedTuple):
    """The sign between a name and a value."""

    pair: bool  # it only separates two words
    colon: bool  # a sentence may follow
    spoken: bool  # name and value are part of a sentence or a table


class _Values:
    """The ends of the unquoted values in a text.

    A value that begins inside another one ends with it, so each character is read once, however many names there are.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._first = self._end = 0

    def end(self, first: int) -> int:
        if not self._first <= first < self._end:
            found = compiled(_BARE).match(self.text, first)
            self._first, self._end = first, first if found is None else found.end()
        return self._end


def find_named(text: str) -> list[tuple[int, int]]:
    """Return the spans of values whose names mark them as secrets."""
    spans: list[tuple[int, int]] = []
    values = _Values(text)
    done = names = 0
    for named in compiled(_NAMED).finditer(_lower(text)):
        if named.start() < done:
            continue  # inside a value that was found already
        before = text[max(done, named.start() - _BEFORE) : named.start("sign")]
        if named[0].startswith(_ONLY_IN_QUERY) and not ("?" in before or "&" in before):
            continue
        if named[0].startswith("pwd") and compiled(_PATH).match(text, named.end()):
            continue  # a path to a shell
        said = named["sign"].strip()
        if not said and "name=" not in before and named["spoken"] is None:
            continue  # an empty line that does not belong to a part of a form
        spoken = named["spoken"] is not None or said == "|"
        pair = named["pair"] is not None and not _is_item(text, named)
        sign = _Sign(pair=pair, colon=said in {":", "：", "->", "|"}, spoken=spoken)
        name = _read_name(before, sign)
        if name is None:
            continue
        names += 1
        if names > _MOST_NAMES:
            return [*spans, (named.end(), len(text))]
        span = _find_secret(values, named.end(), name, sign)
        if span is not None:
            spans.append(span)
            done = span[1]
    return spans


def _is_item(text: str, named: re.Match[str]) -> bool:
    """True if a pair is one of a list of pairs, as in ``[("Host", "…"), ("X-Api-Key", "…")]``: a name and its value."""
    start = max(named.start() - _BEFORE, 0)
    return (
        compiled(_ITEM_BEGINS).search(text, start, named.start()) is not None
        and compiled(_ITEM_ENDS).match(text, named.end()) is not None
    )


def _lower(text: str) -> str:
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _read_name(before: str, sign: _Sign) -> _Name | None:
    before = before.rstrip("*")
    name = before.removesuffix(" provided").removesuffix(" is").removesuffix(" was").rstrip("]\"'`\\*")
    if compiled(_FOREIGN + r"\s?\Z").search(_lower(name)):
        return _Name(sure=False, password=True, quoted=before[-1] in "\"'`", query=False, field=False, strong=False)
    words = [word.lower() for word in compiled(_WORD).findall(name)]
    while words and (words[-1].isdigit() or words[-1] in _ENDINGS):
        words.pop()
    if not words:
        return None
    last, other = words[-1], words[-2] if len(words) > 1 else ""
    if (other, last) == ("pass", "word"):
        last = "password"
    quoted = before[-1] in "\"'`"
    query = compiled(_QUERY).search(name) is not None
    sure = (
        last.endswith(_SURE)
        or last in _SURE_ALONE
        or (last == "key" and other in _OF_A_KEY)
        or (last == "phrase" and other in {"seed", "recovery"})
        or (last == "token" and other in _OF_A_DIGITS_EARLY)
        or (last == "pass" and (quoted or not sign.colon))  # "pass: 3, fail: 2"
    )
    maybe = (
        last.endswith("token")
        or last in _MAYBE
        or (last == "id" and other in {"session", "secret"})
        or (last == "pass" and name[-5:-4] not in {"", " "})
    )
    strong = not (sure or maybe) and last.endswith("key") and other not in _NOT_OF_A_KEY
    password = last.startswith(("passw", "passph", "pwd"))
    known = sure or maybe or strong or (query and last in _IN_QUERY)
    field = name.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ _").endswith(";")
    return _Name(sure, password, quoted, query, field, strong) if known else None


def _find_secret(values: _Values, start: int, name: _Name, sign: _Sign) -> tuple[int, int] | None:
    text = values.text
    found = compiled(_VALUE).match(text, start)
    if found is None:
        return None
    if found["block"] is not None:
        return found.span("block")
    if found["quoted"] is not None:
        span = _find_quoted(found, name, sign)
        if not (name.sure or name.password) or sign.pair or _is_closed(text, found):
            return span
        raw = _find_bare(values, found.start("quote" if found["list"] is None else "list"), name, sign)
        return span if raw is None else raw if span is None else (min(span[0], raw[0]), max(span[1], raw[1]))
    if found["braced"] is not None:
        said = found["braced"]
        placeholder = (said.islower() or said.isupper()) and compiled(_PLACE).fullmatch(said) is not None
        raw = _find_bare(values, found.start("braced") - 1, name, sign)
        if raw is not None and raw[1] > found.end():
            return raw
        field = name.field and text[found.end() : found.end() + 1] in {"", ";"}  # "Uid=app;Pwd={…};"
        return found.span("braced") if name.sure and (field or not placeholder) else None
    return _find_bare(values, found.start("bare"), name, sign)


def _is_closed(text: str, found: re.Match[str]) -> bool:
    """True if a quoted value ends plausibly. Otherwise the quote may be the first character of a password."""
    end = found.end()
    if not found["quoted"] and not found["escape"]:
        return text[end : end + 2].strip(" \n,;)]}") == found["quote"]
    if found["escape"]:
        return True
    return (
        text.startswith(found["quote"], end)
        and compiled(_CLOSED).match(text, end + len(found["quote"])) is not None
        and compiled(_SHELL_QUOTE).match(text, end) is None
    )


def _find_quoted(found: re.Match[str], name: _Name, sign: _Sign) -> tuple[int, int] | None:
    value, listed = found["quoted"], found["list"] is not None
    if name.strong and not name.query:
        return found.span("quoted") if compiled(_STRONG).fullmatch(value) else None
    return found.span("quoted") if _is_secret_quoted(value, name, sign, listed=listed) else None


def _find_bare(values: _Values, first: int, name: _Name, sign: _Sign) -> tuple[int, int] | None:
    text, end = values.text, values.end(first)
    value = text[first : min(end, first + 1 + _JUDGED)].rstrip(_CLOSING)
    after = first + len(value)
    if not _is_secret_bare(value, name, sign, text[after : after + 1]):
        return None
    return first, first + len(text[first:end].rstrip(_CLOSING))


def _is_secret_quoted(value: str, name: _Name, sign: _Sign, *, listed: bool) -> bool:
    words = [word.strip(".,:") for word in value.lower().split()]
    if compiled(_NOTHING).fullmatch(value) or (len(words) == 1 and words[0] in _REMARKS):
        return False
    if len(words) > 1 and (listed or not _VERDICTS.isdisjoint(words)):
        return False
    if sign.spoken and not name.password:
        return _looks_random(value) and any(char.isdigit() for char in value)
    if sign.pair or listed:
        generated = _looks_random(value) or _looks_generated(value) or (name.sure and stands_out(value))
        return generated and not compiled(_NAME_ITSELF).search(value)
    return name.sure or name.quoted or name.query or not sign.colon or _looks_random(value)


def _is_secret_bare(value: str, name: _Name, sign: _Sign, after: str) -> bool:
    if not value or value.lower() in _REMARKS or compiled(_NOTHING).fullmatch(value):
        return False
    if sign.spoken and not sign.colon:
        token = _is_long(value) and compiled(_DIGITS_EARLY).match(value) and not ("/" in value and is_wordy(value))
        return bool(token) or ((name.sure or name.password) and stands_out(value))
    if not value[0].isalnum() and value[0] not in "_.$%*/+-=~@":
        if len(value) < 8 or not (name.sure or name.password or name.query):
            return False
        return (name.field and value[0] == "{") or not _is_structure(value)  # "Uid=app;Pwd={a{b};"
    if sign.spoken:
        return _is_long(value)
    if name.strong and not name.query:
        return compiled(_STRONG).match(value) is not None
    if name.query:
        return not (value.isdigit() and len(value) < 6)  # ?code=200
    if not name.sure:
        return _looks_random(value)
    reads_on = after in {" ", ",", ".", ":"} and compiled(_PLAIN_WORD).fullmatch(value)
    return not (sign.colon and reads_on)


def _is_long(value: str) -> bool:
    return len(value) >= 12 and not compiled(_ENCODED).match(value) and any(map(str.isalpha, value))


def _is_structure(value: str) -> bool:
    """True if a value that begins with a sign is a placeholder, a type or a list, not a generated password."""
    if compiled(_STRUCTURE).match(value) is None:
        return False
    return not _has_all_kinds(value)


def _has_all_kinds(value: str) -> bool:
    """True if a value contains capitals, small letters, digits and signs but no blank, like a generated password."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return len(value) >= 12 and " " not in value and all(any(map(kind, value[1:-1])) for kind in kinds)


def _looks_generated(value: str) -> bool:
    """True if a value may be a password of capitals, small letters and many signs."""
    if len(value) < 12 or " " in value or value.islower() or value.isupper():
        return False
    return _has_all_kinds(value) or len(compiled(_ODD_SIGN).findall(value)) >= (3 if "(" in value else 1)


def _looks_random(value: str) -> bool:
    if "://" in value or " " in value or "(" in value:
        return False
    return len(value) >= 16 or (len(value) >= 6 and any(char.isdigit() for char in value))
