"""``Override``: a tool's own classification of an error."""

from __future__ import annotations

import re
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING

from failsoft.core.model.fault import Category, Classification, Code, Effect
from failsoft.core.model.frozen_options import Options, options
from failsoft.core.model.validation import code, fill, one_of, refuse, whole, word

if TYPE_CHECKING:
    from collections.abc import Callable


@options
class Override(Options):
    """A tool's own classification of an error. The first match decides. At least one condition must be given."""

    http_status: int | None = None  # condition: the error has this status
    code: Code | str | None = None  # condition: a status code, or the text of a provider's own error code
    exception: str | None = None  # condition: a (qualified) class name, matched over the MRO
    pattern: str | None = None  # condition: a regular expression found in the sanitised text
    matches: Callable[[BaseException | str], bool] | None = None  # condition: a function of the error; Python only
    as_: Classification | None = None  # result: transient or permanent
    category: Category | None = None  # result: who must act
    to_code: Code | None = None  # result: the code
    effect: Effect | None = None  # result: whether the tool has acted

    def __post_init__(self) -> None:
        conditions = (self.http_status, self.code, self.exception, self.pattern, self.matches)
        if all(condition is None for condition in conditions):
            raise ValueError("expected a condition: http_status, code, exception or pattern")
        if self.as_ is None and self.category is None and self.to_code is None and self.effect is None:
            raise ValueError("expected a result: as, category, to_code or effect")
        if self.http_status is not None:
            whole("http_status", self.http_status, least=100, most=599)
        for name, text in (("code", self.code), ("exception", self.exception), ("pattern", self.pattern)):
            if text is not None:
                word(name, text)
        if self.matches is not None:
            require_classifier("matches", self.matches, "is not a function of the error")
        _refuse_odd_pattern(self.pattern)
        for name, value, words in (
            ("as", self.as_, Classification),
            ("category", self.category, Category),
            ("effect", self.effect, Effect),
        ):
            if value is not None:
                one_of(name, value, words)
        if self.to_code is not None:
            fill(self, "to_code", code("to_code", self.to_code))
        if self.as_ and self.category and (self.as_ == "transient") != (self.category == "tool_transient"):
            raise ValueError(
                f"category: {self.category} cannot be {self.as_}: transient and tool_transient go together"
            )


def require_classifier(name: str, function: object, otherwise: str) -> None:
    """Require a function of an error, which is called with it alone and not awaited."""
    if not callable(function):
        refuse(name, function, otherwise)
    if isinstance(function, type) and issubclass(function, BaseException):
        refuse(name, function, f'is a class: write Override(exception="{function.__name__}", as_="transient")')
    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        refuse(name, function, "is async and would not be awaited: give a plain function")
    try:
        signature(function).bind(None)
    except ValueError:  # it has no signature
        pass
    except TypeError:
        refuse(name, function, "cannot be called with the error alone: give a function of one argument")


def _refuse_odd_pattern(pattern: str | None) -> None:
    if pattern is None:
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as wrong:
        refuse("pattern", pattern, f"is not a regular expression: {wrong}")
