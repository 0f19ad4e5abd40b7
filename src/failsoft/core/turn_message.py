"""A turn in one or two sentences, for the user: what was completed, what was not, and what is asked of them.

Rules
-----
- The first sentence is S-tests 4.2's: "Completed flight search, but hotel search timed out", without a full stop when
  it stands alone. Calls are called by their labels; after three names the others are counted.
- Skipped calls follow what they were skipped for. With more than one cause they get a sentence of their own.
- What is asked comes from the escalated failures, each thing once, two at most.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from failsoft.core.explain import say_wanted
from failsoft.core.phrases import ENGLISH, capitalise, enumerate_names, fill, say_when

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from failsoft.core.outcome import Outcome
    from failsoft.core.phrases import Texts
    from failsoft.core.report import TurnReport

_MOST = 2  # things asked, causes of skips named


def compose(report: TurnReport, texts: Texts = ENGLISH, *, unsafe: Container[str] = ()) -> str:
    """The turn's message to the user. ``unsafe``: tools that must not be repeated while their effect is unknown."""
    outcomes = list(report.outcomes.values())
    completed = [outcome for outcome in outcomes if outcome.status == "succeeded"]
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped" and outcome.root is not None]
    clauses = _clauses(outcomes, texts)
    sentences: list[str] = []
    if skipped and len(clauses) == 1:
        clauses = [fill(texts["turn.so"], {"clause": clauses[0], "skipped": _several(skipped, "turn.skipped", texts)})]
    elif skipped:
        sentences.append(_say_skipped(skipped, report, texts))
    rest = reduce(lambda clause, more: fill(texts["turn.and"], {"clause": clause, "more": more}), clauses or [""])
    first = rest
    if completed:
        done = fill(texts["turn.completed"], {"labels": enumerate_names(texts, _names(completed, texts))})
        first = fill(texts["turn.but"], {"completed": done, "rest": rest}) if rest else done
    sentences = [sentence for sentence in (first, *sentences, *_asks(outcomes, texts, unsafe)) if sentence]
    if len(sentences) <= 1:
        return capitalise(*sentences or [texts["turn.nothing"]])
    return " ".join(capitalise(text if text.endswith((".", "!", "?")) else f"{text}.") for text in sentences)


def _clauses(outcomes: Sequence[Outcome[Any]], texts: Texts) -> list[str]:
    """What went wrong, one clause a way of going wrong."""
    clauses: list[str] = []
    timed_out = _names([outcome for outcome in outcomes if outcome.status == "timed_out"], texts)
    if timed_out:
        clause = fill(texts["turn.timed_out"], {"labels": timed_out[0]})
        others = enumerate_names(texts, timed_out[1:])
        clauses.append(fill(texts["turn.so_did"], {"clause": clause, "labels": others}) if others else clause)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        clauses.append(fill(texts["turn.failed"], {"labels": enumerate_names(texts, _names(failed, texts))}))
    cancelled = [outcome for outcome in outcomes if outcome.status == "cancelled"]
    if cancelled:
        clauses.append(_several(cancelled, "turn.cancelled", texts))
    no_time = [outcome for outcome in outcomes if outcome.status == "skipped" and outcome.root is None]
    if no_time:
        clauses.append(fill(texts["turn.no_time"], {"labels": enumerate_names(texts, _names(no_time, texts))}))
    return clauses


def _say_skipped(skipped: Sequence[Outcome[Any]], report: TurnReport, texts: Texts) -> str:
    """What was skipped, and for what, unless that would be a long story."""
    by_root: dict[str, list[Outcome[Any]]] = {}
    for outcome in skipped:
        root = report.outcomes.get(outcome.root or "")
        by_root.setdefault(root.label if root is not None else outcome.root or "", []).append(outcome)
    if len(by_root) > _MOST:
        return _several(skipped, "turn.skipped", texts)
    parts = [
        fill(texts["turn.because"], {"skipped": _several(group, "turn.skipped", texts), "root": root})
        for root, group in by_root.items()
    ]
    return reduce(lambda clause, more: fill(texts["turn.and"], {"clause": clause, "more": more}), parts)


def _asks(outcomes: Sequence[Outcome[Any]], texts: Texts, unsafe: Container[str]) -> list[str]:
    """What the user is asked or told about the failures that need somebody."""
    groups: dict[tuple[str, str, str], list[Outcome[Any]]] = {}
    for outcome in outcomes:
        fault = outcome.fault
        if outcome.escalated and outcome.status == "failed" and fault is not None:
            acted = fault.effect != "none" and fault.retryable and outcome.tool in unsafe
            about = "check_first" if acted else fault.category
            key = (about, say_when(texts, fault.retry_after), say_wanted(texts, fault)[1])
            groups.setdefault(key, []).append(outcome)
    asks = [
        fill(
            texts[f"ask.{about}"],
            {"labels": enumerate_names(texts, _names(group, texts)), "when": when, "wanted": wanted},
        )
        for (about, when, wanted), group in groups.items()
    ]
    return list(dict.fromkeys(asks))[:_MOST]


def _several(outcomes: Sequence[Outcome[Any]], key: str, texts: Texts) -> str:
    labels = enumerate_names(texts, _names(outcomes, texts))
    return fill(texts[key if len(outcomes) == 1 else f"{key}.several"], {"labels": labels})


def _names(outcomes: Sequence[Outcome[Any]], texts: Texts) -> list[str]:
    """How the calls are called, each name once, in the order of submission."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        whole = outcome.status != "succeeded" or outcome.missing is None
        name = outcome.label if whole else fill(texts["turn.incomplete"], {"label": outcome.label})
        counts[name] = counts.get(name, 0) + 1
    return [
        name if count == 1 else fill(texts["turn.times"], {"label": name, "n": count}) for name, count in counts.items()
    ]
