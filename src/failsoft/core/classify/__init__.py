"""Classification: turn an exception, a status or a text into a fault.

``classify`` looks through the chain of causes, reads what each exception offers (attributes, body, text), looks the
signals up in ``tables`` and weighs them. Imports ``core.model`` and ``core.redact``. Mirrored by
``tests/core/classify``; ``tests/corpus`` measures it on real errors of 40 libraries.

Rules
-----
- Overrides first; then what the exception says (status, code, body); then its type; then text on word boundaries; then
  unknown, which is transient.
- A wrapper gets the label of the error it wraps; a specific outer error beats a generic inner one.
- An exception group is permanent if any leaf is.
- The fault names the source of its evidence (``evidence_source``) and whether another part of the error contradicts its
  effect (``contradictions``). ``core.effects.call_effect`` uses both.
- The fault of an inner guarded call is kept: it was classified where more was known.
- Classifying an error imports nothing, awaits nothing, does no I/O and never raises.
- Results are cached, up to a fixed number, if type and text say everything about the error. Texts that contained a
  secret are not cached.

Why tables: the rules are data in ``tables``, each with its source. Adding a library means adding rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from failsoft.core.classify.cause_chain import LEAVES, Finding, codes_of, examine, find_doubt, leaves
from failsoft.core.classify.contradictions import doubts_text, is_only_quoted
from failsoft.core.classify.evidence_source import find_source
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.lookup import CODE, UNKNOWN, KindMatch, by_code, facts_of
from failsoft.core.classify.overrides import AnyOverride, apply_overrides
from failsoft.core.classify.retry_after import find_delay, find_spoken_delay
from failsoft.core.classify.returned import ReturnedFailure
from failsoft.core.classify.text_reader import LENGTH
from failsoft.core.classify.weigh import TEXT, judge_text
from failsoft.core.model.effect import BELIEVED, NothingDone, weakest_effect, worst_effect
from failsoft.core.model.fault import Fault, Source, show_fault
from failsoft.core.model.outcome import CallFailed, Outcome
from failsoft.core.redact.sanitise import read_text, sanitise

__all__ = ["classify", "key_of"]

_KEPT: Final = 1024
_KEPT_LENGTH: Final = 400

_LONG: Final = 8192
_CUT: Final = 384  # longer texts are cut: they are not messages, and short texts are cheap

_clean: set[int] = set()  # hashes of texts that need no masking
_Hint = tuple[float | None, Source]  # seconds, and the source of the hint
_NO_HINT: Final[_Hint] = (None, "stated")
_Key = tuple[type, object, object]
_memory: dict[_Key, tuple[Any, ...]] = {}  # type, first argument, second argument -> the fault without its cause
_Parts = dict[int, tuple[BaseException, Fault | None]]  # by id: parts of an error; no fault while a group is being read


def classify(
    error_or_text: BaseException | str,
    *,
    tool: str | None = None,  # noqa: ARG001 - unused: tool-specific rules come as overrides
    overrides: Iterable[AnyOverride] = (),
    now: float | None = None,
) -> Fault:
    """Classify an exception, or the error text that a tool returned.

    ``overrides`` are the tool's own rules for its errors. ``now`` (seconds since 1970) is used when a server names a point
    in time for the next call but does not send its own time.
    """
    return show_fault(classify_failure(error_or_text, overrides=overrides, now=now))


def classify_failure(
    error_or_text: BaseException | str, *, overrides: Iterable[AnyOverride] = (), now: float | None = None
) -> Fault:
    """Classify like ``classify``, for failsoft's own use: the texts of the fault are plain."""
    if issubclass(type(error_or_text), Outcome):  # ``__class__`` may raise
        raise TypeError("classify: got an Outcome: outcome.fault is its classified failure, or None")
    given: object = error_or_text
    if type(given) is bytes:
        error_or_text = given.decode(errors="replace")
    if error_or_text is None or issubclass(type(error_or_text), type):
        raise TypeError(f"classify: expected an exception or its text, got {error_or_text!r:.80}")
    if overrides and hasattr(overrides, "http_status"):
        raise TypeError("classify: overrides: expected a list, got one Override: put it in brackets")
    try:
        key = key_of(error_or_text)
    except Exception:  # a metaclass may raise anything
        key = None
    known = _memory.get(key) if key is not None else None
    if known is not None:
        fault = Fault._make((*known, None if isinstance(error_or_text, str) else error_or_text))
    else:
        fault = _classify(error_or_text, now)
        if key is not None:
            _remember(key, fault)
    if overrides:
        return apply_overrides(fault, error_or_text, lambda: codes_of(error_or_text), overrides)
    return fault


def key_of(subject: BaseException | str) -> _Key | None:
    """Return the cache key of a subject; None if type and text do not determine the fault."""
    if isinstance(subject, str):
        return (str, subject, None) if type(subject) is str and len(subject) <= _KEPT_LENGTH else None
    cls = type(subject)
    if not (
        isinstance(subject, BaseException)
        and facts_of(cls).plain
        and not subject.__dict__
        and subject.__cause__ is None
        and subject.__context__ is None
    ):
        return None
    args = subject.args
    if len(args) < 2 and isinstance(subject, OSError) and (subject.errno is not None or subject.filename is not None):
        return None  # an attribute was set by hand, which the arguments do not show
    if not args:
        return (cls, None, None)
    first = args[0]
    if len(args) == 1:
        return (cls, first, None) if type(first) is str and len(first) <= _KEPT_LENGTH else None
    if isinstance(subject, OSError) and len(args) == 2 and subject.filename is None:
        second = args[1]
        if type(first) is int and type(second) is str and len(second) <= _KEPT_LENGTH:
            return (cls, first, second)
    return None


def _remember(key: _Key, fault: Fault) -> None:
    if isinstance(key[1], str) and fault.message != key[1]:
        return  # something was masked or removed: do not keep the text
    if len(_memory) >= _KEPT:
        _memory.clear()
    _memory[key] = fault[:-1]


def _classify(subject: BaseException | str, now: float | None) -> Fault:
    try:
        if isinstance(subject, BaseException):
            fault = _classify_error(subject, now, {})
            group = isinstance(subject, BaseExceptionGroup)
            message = sanitise(fault.message) if group else _message(fault.message)
            return fault if message == fault.message else fault._replace(message=message)
        text = _text(subject)
        verdict = judge_text(text)
        transient = KINDS[verdict.kind].classification == "transient"
        delay = find_spoken_delay(text[:LENGTH]) if transient else None
        fault = _fault(verdict, _message(text), (delay, "words"), None)
        if _claims_nothing(fault) and doubts_text(text, verdict.kind):
            return fault._replace(source="disputed")
        quoted = fault.source == "remote" and is_only_quoted(text, verdict.kind)
        return fault._replace(source="words") if quoted else fault
    except Exception:  # an object whose every attribute raises is still reported
        return _fault(UNKNOWN, sanitise(subject), _NO_HINT, subject if isinstance(subject, BaseException) else None)


def _classify_part(part: BaseException, now: float | None, parts: _Parts) -> Fault | None:
    """Classify one part of an error, once. None while the part is being classified: a group may contain itself."""
    if id(part) not in parts:
        parts[id(part)] = part, None
        try:
            fault = _classify_error(part, now, parts)
        except Exception:
            fault = _fault(UNKNOWN, sanitise(part), _NO_HINT, part)
        parts[id(part)] = part, fault
    return parts[id(part)][1]


def _classify_error(error: BaseException, now: float | None, parts: _Parts) -> Fault:
    """Classify an error; its message is not sanitised yet, because most messages of parts are not used."""
    parts.setdefault(id(error), (error, None))
    if isinstance(error, CallFailed) and isinstance(inside := error.fault, Fault):
        return inside._replace(rule=f"nested: {inside.rule}", cause=error)
    if isinstance(error, BaseExceptionGroup):
        return _classify_group(error, now, parts)
    finding = examine(error, _text)
    if isinstance(error, NothingDone):
        return _take_word(error, finding, now)
    message = _shorten(finding.texts[0]) if finding.texts[0][:_LONG].strip() else type(error).__name__
    fault = _fault(finding.verdict, message, _delay(finding, now), error)
    if finding.nested is not None:
        parts[id(error)] = error, fault  # its fault if the group contains it again
        nested = _classify_part(finding.nested, now, parts)
        fault = fault if nested is None else nested._replace(cause=error)
    if _claims_nothing(fault) and _is_doubted(error, finding, now, parts):
        fault = fault._replace(source="disputed")
    elif fault.source == "remote" and finding.verdict.weight <= TEXT:
        unstated = isinstance(error, ReturnedFailure) and finding.verdict.status is None
        if unstated or _is_only_quoted(finding):
            fault = fault._replace(source="words")
    return fault


def _claims_nothing(fault: Fault) -> bool:
    """True if the fault says that nothing happened, and a call would believe it. Only then do contradictions matter."""
    return fault.effect == "none" and fault.source in BELIEVED


def _is_only_quoted(finding: Finding) -> bool:
    """True if the match rests only on words in quotation marks."""
    kind = finding.verdict.kind
    texts = [text for text in finding.texts if judge_text(text).kind == kind]
    return bool(texts) and all(is_only_quoted(text, kind) for text in texts)


def _take_word(error: NothingDone, finding: Finding, now: float | None) -> Fault:
    """Build the fault of ``NothingDone``: the effect is none, and the author's code is used if there is one."""
    verdict = finding.verdict
    if error.code is not None:
        kind = by_code("grpc", error.code.value).kind
        verdict = KindMatch(CODE, kind, f"code: {error.code}", verdict.status)
    fault = _fault(verdict, _shorten(finding.texts[0]) or type(error).__name__, _delay(finding, now), error)
    return fault._replace(effect="none", source="stated", code=error.code or fault.code)


def _is_doubted(error: BaseException, finding: Finding, now: float | None, parts: _Parts) -> bool:
    """True if another part of the error says that something may have happened."""
    others = [_classify_part(other, now, parts) for other in finding.set_aside]
    return any(fault is not None and fault.effect != "none" for fault in others) or find_doubt(error, finding, _text)


def _delay(finding: Finding, now: float | None) -> _Hint:
    """Return when a retry can help, and the source of that hint; no hint if the error is permanent."""
    if KINDS[finding.verdict.kind].classification == "permanent":
        return _NO_HINT
    for evidence in finding.evidence:
        headers = evidence.headers
        if headers or evidence.delays:
            delay = find_delay(headers, evidence.delays, now=now)
            if delay is not None:
                return delay, "remote"
    texts = [*finding.texts, *[text for evidence in finding.evidence for text in evidence.texts]]
    return find_spoken_delay("\n".join(dict.fromkeys([text[:LENGTH] for text in texts]))), "words"


def _message(text: str) -> str:
    """Sanitise a text. Texts known to be clean skip the sanitiser, the most expensive part of classification."""
    if len(text) > _LONG:
        return sanitise(text, limit=_CUT)
    key = hash(text)
    if key in _clean:
        return text
    safe = sanitise(text)
    if safe == text:
        if len(_clean) >= _KEPT:
            _clean.clear()
        _clean.add(key)
    return safe


def _shorten(text: str) -> str:
    """Sanitise a text that is too long for a message. Shorter texts are sanitised later, if they are used."""
    return sanitise(text, limit=_CUT) if len(text) > _LONG else text


def _classify_group(group: BaseException, now: float | None, parts: _Parts) -> Fault:
    members = leaves(group)
    judged = [_classify_part(leaf, now, parts) for leaf in members if not isinstance(leaf, BaseExceptionGroup)]
    faults = [fault for fault in judged if fault is not None]
    if not faults:
        return _fault(UNKNOWN, sanitise(group), _NO_HINT, group)
    decisive = next((fault for fault in faults if fault.classification == "permanent"), faults[0])
    source = weakest_effect(fault.source for fault in faults)
    unread = len(members) >= LEAVES or len(judged) < len(members)  # there may be more leaves
    if unread or find_doubt(group, Finding(), _text) or doubts_text(_text(group), "refused"):
        source = "disputed"
    delays = [(fault.retry_after, fault.hint_source) for fault in faults if fault.retry_after is not None]
    delay, said_by = max(delays, key=itemgetter(0), default=_NO_HINT)
    return decisive._replace(
        message=f"{_shorten(_text(group))}: {decisive.message}",
        rule=f"group: {decisive.rule}",
        effect=worst_effect(fault.effect for fault in faults),
        retry_after=delay,
        hint_source=said_by,
        cause=group,
        source=source,
    )


def _text(subject: object) -> str:
    try:
        return read_text(subject)
    except Exception:  # no text available; sanitise says so
        return ""


def _fault(verdict: KindMatch, message: str, hint: _Hint, cause: BaseException | None) -> Fault:
    kind = KINDS[verdict.kind]
    return Fault(
        kind.code,
        kind.classification,
        kind.category,
        kind.effect,
        message,
        kind.reason,
        _message(verdict.rule),  # may quote a code from outside
        hint[0],
        verdict.status,
        find_source(verdict),
        "stated" if hint[0] is None else hint[1],
        cause,
    )
