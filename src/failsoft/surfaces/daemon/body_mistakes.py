"""The mistakes of a request's body and query, in words for the author of the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from failsoft.core.model.misspelt import did_you_mean

_Mistake = Mapping[str, Any]  # an error of pydantic
_UNKNOWN = "extra_forbidden"


def list_mistakes(found: Sequence[_Mistake], models: Sequence[type[BaseModel]]) -> list[dict[str, str]]:
    """List each mistake with its JSON pointer. Values are not repeated.

    A body may have one of several forms. Only the mistakes of the best-fitting form are listed.
    """
    if len(models) > 1 and all(one["loc"] for one in found):
        best = min(models, key=lambda model: sum(len(one["loc"]) <= 2 for one in _of_form(found, model)))
        found, models = [{**one, "loc": one["loc"][1:]} for one in _of_form(found, best)], [best]
    known = [name for model in models for name in model.model_fields]
    return [
        {"pointer": _pointer(one["loc"]), "detail": _detail(one, known)}
        for one in found
        if not _is_other_form(one, found)
    ]


def check_query(given: Iterable[tuple[str, str]], known: Sequence[str]) -> str | None:
    """Describe the first parameter that is unknown or repeated; None if there is none."""
    seen: set[str] = set()
    for name, _ in given:
        if name not in known:
            hint = did_you_mean(name, known) or (f"; known: {', '.join(known)}" if known else "")
            return f"{name[:200]}: is not a parameter of this route{hint}"
        if name in seen:
            return f"{name}: is given more than once"
        seen.add(name)
    return None


def _of_form(found: Sequence[_Mistake], model: type[BaseModel]) -> list[_Mistake]:
    return [one for one in found if one["loc"][0] == model.__name__]


def _detail(one: _Mistake, known: Sequence[str]) -> str:
    if one["type"] == _UNKNOWN:
        hint = did_you_mean(str(one["loc"][-1]), known) if len(one["loc"]) == 1 else ""
        return f"is not known here{hint}"
    if one["type"] == "missing":
        return "is missing"
    text: str = one["msg"]
    return text


def _is_other_form(one: _Mistake, found: Sequence[_Mistake]) -> bool:
    """True for the mistakes of another form, if the fields of the form that was written have mistakes of their own."""
    place = one["loc"]
    return (
        bool(place)
        and _is_form(place[-1])
        and any(other["loc"][: len(place) - 1] == place[:-1] and len(other["loc"]) > len(place) for other in found)
    )


def _is_form(part: str | int) -> bool:
    """True if a part of a location is pydantic's name for a form, not the name of a field."""
    return isinstance(part, str) and (part == "constrained-str" or part[:1].isupper())


def _pointer(place: Sequence[str | int]) -> str:
    # cut each part: the last one may be any field name that the client sent
    parts = [part for index, part in enumerate(place) if index == 0 or not _is_form(part)]
    return "".join("/" + str(part)[:200].replace("~", "~0").replace("/", "~1") for part in parts)
