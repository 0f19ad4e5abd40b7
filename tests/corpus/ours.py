"""failsoft's answer in the scorer's words: an unknown effect is an ambiguous one."""

from __future__ import annotations

from typing import Any

from failsoft import classify


def adapter(error_or_text: BaseException | str, _context: dict[str, Any]) -> dict[str, Any]:
    fault = classify(error_or_text)
    return {
        "classification": fault.classification,
        "code": fault.code.name,
        "category": fault.category,
        "ambiguous_effect": fault.effect == "unknown",
        "rule": fault.rule,
    }
