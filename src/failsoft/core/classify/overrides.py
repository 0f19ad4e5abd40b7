"""Overrides: a tool's own rules for its errors. The first that matches decides.

Rules
-----
- All conditions of an override must hold. A condition that is not given always holds.
- ``as: permanent`` without a category gets the category that fits the code.
- A callable may return a whole fault, one word (a classification, a category, a code), or None for no match. A callable
  that raises or returns anything else is ignored, so that a mistake in an override never hides the error. It is logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from reprlib import repr as brief
from typing import Any, Final, get_args

from failsoft.core.model.compared import report_misuse
from failsoft.core.model.fault import Category, Classification, Code, Fault
from failsoft.core.model.options import Override

AnyOverride = Override | Mapping[str, Any] | Callable[[Any], Fault | str | None]

REASON: Final = "Tool manifest override respected"

_WORDS: Final = '"transient", "permanent", a category, a code, a Fault, or None if the error is another'
_SPELLINGS: Final = {"as": "as_", "httpStatus": "http_status", "toCode": "to_code"}  # spellings in a manifest
_CATEGORIES: Final = get_args(Category)
_CLASSIFICATIONS: Final = get_args(Classification)
_VALIDATION: Final = {
    Code.INVALID_ARGUMENT,
    Code.NOT_FOUND,
    Code.ALREADY_EXISTS,
    Code.OUT_OF_RANGE,
    Code.FAILED_PRECONDITION,
    Code.ABORTED,
}


def apply_overrides(
    fault: Fault, subject: BaseException | str, codes: Callable[[], Iterable[str]], overrides: Iterable[AnyOverride]
) -> Fault:
    """Apply the first matching override to a fault. ``codes`` returns the provider's own codes on demand."""
    for override in overrides:
        if callable(override):
            answer = _ask(override, subject)
            changed = answer if isinstance(answer, Fault) else _by_word(fault, answer)
            if changed is None and answer is not None and answer is not False:
                _report(override, f"returned {brief(answer)}, and is ignored: return {_WORDS}")
        else:
            changed = _by_row(fault, subject, codes, _row(override))
        if changed is not None:
            return changed
    return fault


def _row(override: Override | Mapping[str, Any]) -> Override:
    if isinstance(override, Override):
        return override
    return Override(**{_SPELLINGS.get(key, key): value for key, value in override.items()})


def _ask(override: Callable[[Any], Any], subject: BaseException | str) -> Any:
    try:
        return override(subject)
    except Exception as mistake:  # the error itself must still be reported
        _report(override, f"raised {type(mistake).__name__}, and is ignored")
        return None


def _report(override: Callable[[Any], Any], mistake: str) -> None:
    report_misuse("classification", f"{getattr(override, '__qualname__', type(override).__name__)} {mistake}")


def _by_word(fault: Fault, word: object) -> Fault | None:
    rule = "override: callable"
    if not isinstance(word, str):
        return None
    if not isinstance(word, Code) and word in _CLASSIFICATIONS:
        return _changed(fault, rule, classification=word)
    if not isinstance(word, Code) and word in _CATEGORIES:
        return _changed(fault, rule, category=word)
    try:
        return _changed(fault, rule, code=Code(word))
    except ValueError:
        return None


def _by_row(
    fault: Fault, subject: BaseException | str, codes: Callable[[], Iterable[str]], row: Override
) -> Fault | None:
    said = [
        text
        for text, holds in (
            (f"http_status {row.http_status}", row.http_status is None or row.http_status == fault.http_status),
            (f"code {row.code}", row.code is None or _same_code(row.code, fault, codes)),
            (f"exception {row.exception}", row.exception is None or _is_a(subject, row.exception)),
            (f"pattern {row.pattern}", row.pattern is None or re.search(row.pattern, fault.message) is not None),
            ("callable", row.matches is None or _ask(row.matches, subject)),
        )
        if not holds
    ]
    if said:
        return None
    stated = (row.http_status, row.code, row.exception, row.pattern, row.matches)
    names = ("http_status", "code", "exception", "pattern", "callable")
    rule = ", ".join(f"{name} {value}" for name, value in zip(names, stated, strict=True) if value is not None)
    return _changed(
        fault,
        f"override: {rule}",
        classification=row.as_,
        category=row.category,
        code=None if row.to_code is None else Code(row.to_code),
        effect=row.effect,
    )


def _same_code(wanted: str, fault: Fault, codes: Callable[[], Iterable[str]]) -> bool:
    try:
        if Code(wanted) is fault.code:
            return True
    except ValueError:
        pass
    folded = wanted.casefold()
    return any(folded == code.casefold() for code in codes())


def _is_a(subject: BaseException | str, name: str) -> bool:
    if isinstance(subject, str):
        return re.search(rf"(?<![\w.]){re.escape(name)}\b", subject) is not None
    return any(
        name in (cls.__name__, cls.__qualname__, f"{cls.__module__}.{cls.__qualname__}")
        for cls in type(subject).__mro__
    )


def _changed(
    fault: Fault,
    rule: str,
    *,
    classification: Any = None,
    category: Any = None,
    code: Code | None = None,
    effect: Any = None,
) -> Fault:
    code = fault.code if code is None else code
    if classification is None:
        classification = fault.classification
        if category is not None:
            classification = "transient" if category == "tool_transient" else "permanent"
    if classification == "transient":
        category = "tool_transient"
    elif category in (None, "tool_transient"):
        category = fault.category
        if category == "tool_transient":
            category = "tool_validation" if code in _VALIDATION else "tool_misconfigured"
    return fault._replace(
        code=code,
        classification=classification,
        category=category,
        effect=effect or fault.effect,
        reason=REASON,
        rule=rule,
        source=fault.source if effect is None else "stated",
    )
