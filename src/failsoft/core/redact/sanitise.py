"""The sanitiser: every text from outside passes it before any sink sees it.

Rules
-----
- ``sanitise`` accepts any object and returns text. It raises nothing itself; a ``BaseException`` from a ``__str__``, such
  as KeyboardInterrupt, propagates.
- The text is cut to the limit, in characters and in UTF-8 bytes, before any pattern runs, so the cost does not depend on
  its length. The result is within both limits. A "…" at the end marks a cut.
- A secret that the cut split is removed too: a part long enough to be recognised is masked, a shorter part is dropped
  with the unfinished word around it.
- Terminal escapes, control characters (except newline and tab), invisible direction marks and tags are removed.
  Surrogates are joined or replaced.
- Secrets become ``[redacted]``. They are recognised by their format (``core.redact.secret_formats``) or by the name that
  they are assigned to (``core.redact.secret_names``). Scheme, user, host and key name stay readable.
- A secret is followed over the ends of its lines (``core.redact.wrapped``).
- Escaped text is decoded and searched as well (``core.redact.escapes``).
- Sanitising is idempotent: masking is repeated until nothing changes.

There is one sanitiser so that no sink (log, model, trace, another tenant's rejection) can be forgotten.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sized
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

from failsoft.core.redact.secret_formats import (
    BLOCK,
    BLOCKS,
    HINT,
    LONG,
    QUERY_HINT,
    REDACTED,
    RUN,
    SHAPES,
    SHORT,
    TOKENS,
    WORDS,
    Hinted,
    Marks,
    by_hint,
    by_joint,
    by_marker,
    find_joined,
)
from failsoft.core.redact.secret_names import find_named
from failsoft.core.redact.spoken import find_in_sentences, find_near_topics
from failsoft.core.redact.wrapped import find_wrapped
from failsoft.core.startup.lazy_pattern import lazy_pattern

LIMIT = 8192
MORE = "…"

_ROUNDS = 3  # two suffice in practice: one masks, one finds nothing more
_TAIL = 96  # every pattern recognises its secret within this many characters
_TALK = (
    *("bearer", "basic", "pass", "pw", "token", "secret", "key", "auth", "cookie", "--", "login", "identified"),
    *("：", "flyv1", "-p", " -a ", " -w ", " -u", "log in", "logon", "sign", "credential", "rabbit"),
    *("kennwort", "wachtw", "contrase", "senha", "connect(", "connection(", "pdo", "snmp"),
)
_TALK_ABROAD = ("парол", "密码", "密碼", "口令", "パスワ", "비밀번")
_DENSE = lazy_pattern(r"[\w.~+/=%:$-]{" + str(SHORT) + ",}", re.ASCII)  # words that may be tokens
# A lower-case word with none of these is a name made of words, not a token.
_NO_WORD = lazy_pattern(r"[0-9_.=-](?:(?<=[0-9])|(?<=[_-])[a-z]{16}|(?<=\.)[a-f]{16}|=(?<=[a-z+/]{86}==))")
# Ids as model providers generate them. Nothing that ``sanitise`` masks has exactly these lengths.
_DIGEST = lazy_pattern("[0-9a-f]{8}")  # at the end of a masked id
_MADE_ID = lazy_pattern(
    r"call_[A-Za-z0-9]{24}|toolu_01[A-Za-z0-9]{22}|(?:pyd_ai_|chatcmpl-tool-)?[0-9a-f]{32}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_COLLECTIONS = frozenset({list, tuple, dict, set, frozenset})
_ARGS: Any = BaseException.args
_QUOTING = (BaseException.__str__, KeyError.__str__)  # the text is the repr of the arguments
_NAMESPACE: Any = SimpleNamespace.__repr__
_ITERATED: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_MOST_PARTS = 1_000  # of a collection that an exception quotes
_DEEPEST = 20  # levels of it
_FINISHED = lazy_pattern(r"[\s\S]*\s")

_HINT, _QUERY_HINT = lazy_pattern(HINT, re.ASCII), lazy_pattern(QUERY_HINT, re.ASCII)
_RUN = lazy_pattern(RUN, re.ASCII)
_BLOCK = lazy_pattern(BLOCK)

_ESCAPE = lazy_pattern(
    r"\x1b\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)"  # operating system command: titles, links
    r"|\x1b[PX^_][^\x07\x1b\n]{0,1024}\x1b\\"  # device strings
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours, cursor
    r"|\x1b[ -/]{0,8}[0-~]"  # all others
)
_LINE_END = lazy_pattern("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = lazy_pattern(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # control characters
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # no width, direction
    "\U000e0000-\U000e007f]"  # tags: text that people cannot see and models can
)


def sanitise(value: object, *, limit: int = LIMIT) -> str:
    """Return the text of ``value``, safe to store, log, show and pass to a model."""
    text = _read(value)
    cut = len(text) > limit
    if cut:
        text = text[:limit]
    if not (text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()):
        text = _clean(text)
    if not text.isascii() and len(encoded := text.encode()) > limit:
        text, cut = encoded[:limit].decode(errors="ignore"), True
    if not cut and text.isascii() and not _is_suspect(text):
        return text
    for _ in range(_ROUNDS):
        masked = _fit(_mask(text) if _is_suspect(text) else text, limit, cut=cut)
        if masked == text:
            return text
        text, cut = masked, False
    return REDACTED[:limit]


def mask_id(id: str) -> str:
    """Remove secrets from a call id. Different ids stay different, and the same id always gives the same result.

    Almost every id is returned unchanged. A masked id ends in a digest of the original.
    """
    if (len(id) < SHORT and id.isidentifier()) or _MADE_ID.fullmatch(id):
        return id
    head, _, digest = id.rpartition(" #")
    if REDACTED in head and _DIGEST.fullmatch(digest) and sanitise(head) == head:
        return id  # masked before: a rule could take the digest for a secret
    masked = sanitise(id)
    if masked == id:
        return id
    from hashlib import sha256  # lazy: needed only to mask

    return f"{masked} #{sha256(id.encode(errors='surrogatepass')).hexdigest()[:8]}"


def read_text(value: object) -> str:
    """Return ``str(value)``; exceptions propagate. Long arguments of an exception are shortened first.

    Quoting five megabytes in a ``KeyError``, or a list of a million numbers, would take a fifth of a second.
    """
    if isinstance(value, BaseException):
        value = _shorten_error(value)
    # the slice turns a subclass with its own methods into a plain str
    return str.__getitem__(str(value), slice(None))


def _shorten_error(error: BaseException) -> BaseException:
    """Return an exception with the same text, if that text is short; else one with the beginning of its arguments."""
    written = type(error).__str__
    if isinstance(error, OSError) and written is OSError.__str__ and error.errno is not None:
        parts = (error.errno, error.strerror, error.filename, None, error.filename2)
        return OSError(*_shorten_all(parts)) if _is_long(parts) else error
    args = _ARGS.__get__(error)  # a subclass may hide them
    if len(args) == 1 and isinstance(args[0], str) and written is not KeyError.__str__:
        return error
    if written not in _QUOTING or not _is_long(args):
        return error
    return (KeyError if written is KeyError.__str__ else Exception)(*_shorten_all(args))


def _is_long(argument: object) -> bool:
    """True if quoting an argument takes long: a long text, or a collection of many parts. A shared part counts each time."""
    todo, parts = [argument], 0
    while todo:
        one = todo.pop()
        if one is None:
            continue
        if isinstance(one, str | bytes | bytearray):
            if len(one) > LIMIT:
                return True
            continue
        inside = None if type(one) is int else _parts_of(one)
        parts += _weigh(one) if inside is None else len(inside)
        if parts > _MOST_PARTS:
            return True
        todo += inside or ()
    return False


def _parts_of(one: Any) -> Collection[Any] | None:
    """Return what an object quotes: the parts of a collection, an exception's arguments, the fields of a data class."""
    if isinstance(one, dict):
        return [*islice(dict.keys(one), _MOST_PARTS), *islice(dict.values(one), _MOST_PARTS)]
    for kind in _ITERATED:
        if isinstance(one, kind):
            return [*islice(kind.__iter__(one), _MOST_PARTS + 1)]
    if isinstance(one, BaseException):
        return cast("tuple[Any, ...]", _ARGS.__get__(one))
    if type(one).__repr__ is _NAMESPACE or "__dataclass_fields__" in type(one).__dict__:
        fields = getattr(one, "__dict__", None)
        return [*fields.values()] if type(fields) is dict else None
    return None


def _weigh(one: object) -> int:
    """Return the cost of quoting a single value: of a number by its digits, of any other value by its length."""
    if isinstance(one, int):
        return int.bit_length(one) // 256
    try:
        return len(one) if isinstance(one, Sized) else 0
    except Exception:  # a foreign length may raise anything
        return 0


def _shorten_all(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", _shorten(arguments, [_MOST_PARTS]))


def _shorten(argument: Any, room: list[int], depth: int = _DEEPEST) -> Any:
    """Cut a text or a collection to its first parts. ``room`` holds how many more parts there may be in all."""
    if isinstance(argument, str | bytes | bytearray):
        return argument[:LIMIT]
    if type(argument) not in _COLLECTIONS:
        if argument is None or not (_parts_of(argument) or _weigh(argument)):
            return argument
        return argument if isinstance(argument, int) and _weigh(argument) < 2 else _Unquoted(type(argument))
    if not depth:
        return MORE
    first = [*islice(argument, max(room[0], 0))]
    room[0] -= len(first)
    if type(argument) is dict:
        return {_shorten(key, room, depth - 1): _shorten(argument[key], room, depth - 1) for key in first}
    return type(argument)(_shorten(part, room, depth - 1) for part in first)


class _Unquoted:
    """Takes the place of an object that is not quoted: shows its type only."""

    def __init__(self, cls: type) -> None:
        self.name = type.__dict__["__name__"].__get__(cls)

    def __repr__(self) -> str:
        return f"<{self.name} {MORE}>"


def _read(value: object) -> str:
    try:
        return read_text(value)
    except Exception:  # a foreign __str__ may raise anything; then there is no text
        return f"<{type.__dict__['__name__'].__get__(type(value))}: its text could not be read>"


def _clean(text: str) -> str:
    """Remove characters that act on a terminal or a reader."""
    try:
        text.encode()
    except UnicodeEncodeError:  # surrogates: join pairs, replace single ones
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNSEEN.sub("", _LINE_END.sub("\n", _ESCAPE.sub("", text)))


def _is_suspect(text: str) -> bool:
    """True if the text may contain a secret. Most error texts end here."""
    if "=" in text or ":" in text or _DENSE.search(text):
        return True
    low = text.lower()
    for word in _TALK if text.isascii() else _TALK + _TALK_ABROAD:  # noqa: SIM110 - a generator costs twice as much
        if word in low:  # every call id comes here
            return True
    return False


def _mask(text: str) -> str:
    hinted = _is_hinted(text.lower())
    spans = _find_secrets(text, hinted=hinted)
    if "\\" in text or "%" in text or "&" in text:
        spans += _find_escaped(text)
    if hinted:
        spans += find_near_topics(text, spans)
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not parts:
            parts += text[done:start], REDACTED
        done = max(done, end)
    return "".join([*parts, text[done:]]) if parts else text


def _find_escaped(text: str) -> list[tuple[int, int]]:
    """Mask secrets found in the decoded text."""
    from failsoft.core.redact.escapes import unescape  # lazy: needed only for escaped text

    plain = unescape(text)
    if plain is None:
        return []
    found = _find_secrets(plain.text, hinted=_is_hinted(plain.text.lower()))
    return [(plain.places[start], plain.places[end]) for start, end in found]


# The tables are indexed on first use: few texts contain a word that may be a token.
@cache
def _shapes() -> Hinted:
    return by_hint(SHAPES)


@cache
def _tokens() -> dict[str, Marks]:
    return by_joint(TOKENS)


@cache
def _words() -> Marks:
    return by_marker(WORDS)


@cache
def _blocks() -> Marks:
    return by_marker(BLOCKS)


def _find_secrets(text: str, *, hinted: bool) -> list[tuple[int, int]]:
    """Return the spans of secrets in the text, unordered; some may overlap or occur twice."""
    low = f" {text.lower()}".replace("\n", " ").replace("\t", " ")
    found = _shapes().find(low, hinted=hinted)
    dense = _DENSE.findall(" ".join([part for part in text.split() if len(part) >= SHORT]))
    words = [word for word in dense if not word.islower() or _NO_WORD.search(word)]
    if words:
        found += find_joined(_tokens(), " ".join(words))
        long = " ".join([word for word in words if len(word) >= LONG])
        if long:
            found += _blocks().find(long) if _BLOCK.search(long) else []
            found += _words().find(long) if _RUN.match(long) else []
    spans = [span for form in found for span in form.find(text)] if found else []
    if hinted:
        spans = spans + find_named(text) + find_in_sentences(text)
    return spans + find_wrapped(text, spans, _tokens()) if "\n" in text else spans


def _is_hinted(low: str) -> bool:
    """True if the lowered text contains a word that marks a secret."""
    return bool(_HINT.search(low) or (("?" in low or "&" in low) and _QUERY_HINT.search(low)))


def _fit(text: str, limit: int, *, cut: bool) -> str:
    """Cut the text to the limit, and drop the unfinished word at a cut."""
    if not cut and len(text.encode()) <= limit:
        return text
    text = text.encode()[: max(limit - len(MORE.encode()), 0)].decode(errors="ignore")
    tail = max(len(text) - min(_TAIL, limit // 2), 0)
    finished = _FINISHED.match(text, tail)
    text = text[: finished.end() if finished else tail].rstrip()
    return text + MORE if len(MORE.encode()) <= limit else text
