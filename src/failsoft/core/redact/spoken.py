r"""Secrets in sentences: "the password … is wrong", "login failed with …".

Rules
-----
- Only its form distinguishes a secret in a sentence from a word. So ``stands_out`` requires the form of a generated
  password: eight characters or more, of three kinds (capitals, small letters, digits, signs), or with three odd signs.
- Words, names, numbers, dates, versions, addresses, paths, calls, options, placeholders and lists do not stand out.
- A value that stands out is masked a few words after "password" or "credentials", and after a login "with" or "using" it.
- Near any word about secrets a value is masked if it stands out, contains an odd sign and is not made of words: an
  argument of a call, a column of a table, a parameter of SQL, an option of a program.

Masking every word after "password" would hide "password authentication failed" from the person who debugs it.
"""

from __future__ import annotations

from itertools import pairwise

from failsoft.core.redact.secret_formats import REDACTED, compiled

_LEAST = 8
_MOST = 128  # characters of a value that are judged
_EDGES = "()[]{}<>\"'`.,:;!?*"
_ODD = r"""[!#$%&*+/:;<=>?@\\^`|~{}\[\]()"',]"""
_TAGS = r"</?[A-Za-z]{1,24}+/?>"
_PIECE = r"""[^\s_.,:;/@=+&|\\()\[\]{}"'`>-]+"""  # the words of a name, an option or a call
_JOINT = r"""[-_.,:;/=&\\]|::|->|=>|//|["']?[:=,]["']?|[(\[]["']?|["']?[)\]][.,:]?"""  # between two of them
_WORD = r"(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,5}+[a-z]{3,}+|[A-Z]{2,}+)++\d{0,12}|0x[0-9A-Fa-f]++|v?\d++[A-Za-z]{0,2}|[A-Z]?[A-Za-z]\d{0,4}"
_WRITTEN = r"""(?x)  # addresses, accounts, dates, sets of characters, variables, paths
    [\w.-]{1,64}+'@'[\w.%:-]{1,64}+\Z |
    [a-z][a-z0-9+.-]{1,12}:// | [\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+)+\Z | [\dTZ:+./,-]+\Z
    | (?:[A-Za-z\d]-[A-Za-z\d],?)++\Z | \$\{?[A-Z_]+\}?\Z | [A-Z]:\\[A-Z]?[a-z]{3,}+\\
    | (?:~|\.{1,2}|/(?:app|code|data|etc|home|mnt|opt|private|proc|root|run|srv|sys|tmp|Users|usr|var|work))(?:/[\w.-]+)++/?\Z """
# A login with a value, a password that is described by a few words, a value that is not the password.
_SENTENCE = r"""(?xi) \b(?: (?:log(?:ged|ging)?[ -]?[io]n | sign(?:ed|ing)?[ -]?[io]n | auth[a-z]{0,20}+)\b [^\n]{0,60}?
        \s(?:with|using)(?:\sthe)?+(?:\s(?:credentials?|values?))?+
    | (?:pass(?:word|wd|phrase|code)|credential)s?+ (?: [,:]?[ ][('"]{0,2} (?-i:[a-z]{1,16}+) (?=['",:)]{0,2}[ ]) ['")]? ){0,6}+ )
    [,:]?[ ]\(? (?=(?P<value>\S{8,128}))"""
_DENIED = r"""(?xi) (?<!\S)(?P<value>\S{8,128}+)
    (?= \s(?:!=|==|is\snot|does\snot\smatch)\s (?:(?:the|a|an|your)\s)?(?:\w{1,20}\s)? pass(?:word|wd|phrase|code) )"""
# Words about secrets, and calls and programs that take a password without naming it.
_TOPIC = r"""(?xi) pass(?:word|wd|phrase|code|wort|e\b) | (?:\b|store|key)pass\b | kennwort | wachtwoord | contrase | \bsenha\b | парол | 密[码碼] | 口令 | パスワード | 비밀번호 | pwd | \bpw\b
    | secret | credential | \bapi[_-]?key | \blogin\b | \bauth\b | connect(?:ion)?\( | \bpdo\b | \bsnmp"""
_BEHIND, _AHEAD = 80, 240  # characters around a topic that are searched
_VALUE = r"""\S{8,}?(?=["']?,["']|["'],|\(["']|\s|\Z)"""
# quotes and a name before a value
_LEAD = r"""(?x) [(\[{,"'`]{0,4} (?: (?: [a-zà-ÿ_.-]{1,40}+ | [A-Z_]{1,40}+ | [A-Z]?[a-z]{2,24}+(?:[A-Z][a-z]{1,24}+){1,4}+ ) ["']?
    [=:] ["']? (?!//) )?"""
_FIELDS = r"[\w.+-]*+(?:[,;&][A-Za-z_]{1,24}=[\w.+-]*+)++\Z"  # m=65536,t=3,p=4
_SIGN = r"""[^\w.:/,()\[\]{}"'`;-]"""
# a word has a vowel
_LONG_WORD = r"(?=.?[a-z]{0,3}[aeiouy])[A-Z]?[a-z]{3,}|(?<![A-Za-z])(?=[A-Z]{0,3}[AEIOUY])[A-Z]{3,}(?![a-z])"


def find_in_sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of values in sentences about passwords and logins."""
    spans = [denied.span("value") for denied in compiled(_DENIED).finditer(text) if stands_out(denied["value"])]
    for found in compiled(_SENTENCE).finditer(text):
        start, end = found.span("value")
        if stands_out(found["value"]):
            rest = compiled(r"\S*").match(text, end)
            spans.append(_unquote(text, start, end if rest is None else rest.end()))
    return spans


def find_near_topics(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of generated values near words about secrets. Names whose values were found are left readable."""
    spans: list[tuple[int, int]] = []
    masked = bytearray(len(text))
    for start, end in found:
        masked[start:end] = b"1" * (end - start)
    for first, last in _windows(text):
        before = first, first  # the part before, if it is of the same word
        for value in compiled(_VALUE).finditer(text, first, last):
            start, end = _skip_lead(text, *value.span()), value.end()
            before, (last_start, last_end) = value.span(), before
            if not _is_generated(text[start:end]):
                continue
            if (any(masked[start:end]) or REDACTED in value[0]) and compiled(_TOPIC).search(text, *value.span()):
                continue  # a name and its value, which was found
            if last_start < last_end == value.start() and not _has_words(text[last_start:last_end]):
                start = _skip_lead(text, last_start, last_end)
            rest = compiled(r"\S*").match(text, end)
            end = end if rest is None else rest.end()
            spans.append((start, start + len(text[start:end].rstrip("\"'`)]}.,;:!?"))))
    return spans


def _skip_lead(text: str, start: int, end: int) -> int:
    lead = compiled(_LEAD).match(text, start, end)
    return start if lead is None else lead.end()


def _windows(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text around its topics. They do not overlap, and none begins inside a word, if possible."""
    windows: list[tuple[int, int]] = []
    done = 0
    for topic in compiled(_TOPIC).finditer(text):
        first, last = topic.start() - _BEHIND, topic.end() + _AHEAD
        if first <= done:
            first = windows.pop()[0] if windows else 0
        else:
            blank = compiled(r"\s").search(text, first, topic.start())
            first = topic.start() if blank is None else blank.end()
        done = min(last, len(text))
        windows.append((first, done))
    return windows


def _is_generated(value: str) -> bool:
    """True if a value stands out by its signs, and is not made of words."""
    core = value[:_MOST].strip(_EDGES)
    if _has_words(core) or compiled(_FIELDS).match(core):
        return False
    odd = len(compiled(_ODD).findall(core)) >= 3 and compiled("[A-Z0-9]").search(core) is not None
    closed = value.rstrip(")]},;:.")
    whole = closed[:-1] if closed.endswith(("'", '"', "`")) else core  # signs inside quotes belong to the value
    return (odd or compiled(_SIGN).search(core) is not None or _is_signed(whole)) and stands_out(value)


def _has_words(value: str) -> bool:
    """True if at least half of a value consists of words."""
    return 2 * sum(map(len, compiled(_LONG_WORD).findall(value))) >= len(value)


def _is_signed(value: str) -> bool:
    """True if a value has capitals, small letters and signs other than those of names."""
    return (
        compiled("[a-z]").search(value) is not None
        and compiled("[A-Z]").search(value) is not None
        and compiled(r"[^\w.'’-]").search(value) is not None
    )


def _unquote(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave the quotes around a value, and what closes the sentence, readable."""
    last = start + len(text[start:end].rstrip(").,;:!?]}"))
    if text[start] in "\"'`" and last > start + 1 and text[last - 1] == text[start]:
        return start + 1, last - 1
    return start, end


def stands_out(value: str) -> bool:
    """True if a value has the form of a generated password and of nothing else."""
    value = value[:_MOST]
    if len(value) < _LEAST or not _is_mixed(value):
        return False
    value = compiled(_TAGS).sub("", value)
    core = value.strip(_EDGES)
    if len(value) < _LEAST or not (_is_mixed(core) or is_shuffled(core)) or compiled(r"\s").search(core):
        return False
    return not (compiled(_WRITTEN).match(core) or is_wordy(core))


def _is_mixed(value: str) -> bool:
    """True if a value has letters or digits, and either three kinds of characters or three odd signs."""
    kinds = (
        (compiled("[a-z]").search(value) is not None)
        + (compiled("[A-Z]").search(value) is not None)
        + (compiled("[0-9]").search(value) is not None)
        + (compiled("[^A-Za-z0-9]").search(value) is not None)
    )
    if kinds < 3 and len(compiled(_ODD).findall(value)) < 3:
        return False
    return kinds > 1


def is_shuffled(core: str) -> bool:
    """True if a value of letters changes between capitals and small letters too often for words."""
    return len(core) >= _LEAST and 3 * _count_turns(core) > len(core)


def _count_turns(core: str) -> int:
    return sum(a.isalpha() and b.isalpha() and a.isupper() != b.isupper() for a, b in pairwise(core))


def is_wordy(core: str) -> bool:
    """True if a value consists of words and numbers: few of them are short, and few capitals are inside of a word."""
    pieces = compiled(_PIECE).findall(core)
    if not core.count("(") >= core.count(")") or not core.count("[") >= core.count("]"):
        return False
    joints = [joint for joint in compiled(_PIECE).split(core)[1:-1] if joint]
    if not (all(map(compiled(_WORD).fullmatch, pieces)) and all(map(compiled(_JOINT).fullmatch, joints))):
        return False
    return _count_turns(core) <= 1 + 0.4 * len(core) and 2 * sum(
        len(piece) for piece in pieces if len(piece) > 2
    ) >= len(core)
