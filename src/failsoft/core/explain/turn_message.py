"""Compose a turn's message to the user: what was completed, what was not, and what the user is asked to do.

Rules
-----
- The first sentence has the form "Completed flight search, but hotel search timed out", without a full stop if it is
  the only sentence. Calls are named by their labels; after three names the others are counted.
- If calls with the same label ended differently, the counts are given: "Completed search (2 of 3), but search (1 of 3)
  failed".
- Skipped calls follow their cause. With several causes they get a sentence of their own.
- Requests to the user come from escalated failures: each request once, and at most two of one category, so that no
  category is left out. A policy's text for the user replaces the request, even if the failure was not escalated.
- Writes that failed, timed out or were stopped and may have taken effect are named last: a user who tries again would
  do them twice.
- Calls passed on to the agent framework (such as a call waiting for approval) are not mentioned: they are not over.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from failsoft.core.classify.nested import find_origin
from failsoft.core.explain.catalogue import ENGLISH, capitalise, describe_when, enumerate_names, fill
from failsoft.core.explain.explanation import describe_wanted
from failsoft.core.model.builtin_faults import PASSED_ON, is_dependency_lost

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from failsoft.core.explain.catalogue import Texts
    from failsoft.core.model.outcome import Outcome

Counts: TypeAlias = "Mapping[str, int]"  # by label

_MOST = 2  # most requests to the user of one category, and most causes of skips named


def compose(by_id: Mapping[str, Outcome[Any]], texts: Texts = ENGLISH, *, writes: Container[str] = ()) -> str:
    """Compose the turn's message to the user from its outcomes by call id.

    ``writes`` names the tools that must not run twice when the user tries again.
    """
    outcomes = [outcome for outcome in by_id.values() if not _is_passed_on(outcome)]
    completed = [outcome for outcome in outcomes if outcome.status == "succeeded"]
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped" and outcome.root is not None]
    of = Counter(outcome.label for outcome in outcomes)
    clauses = _clauses(outcomes, texts, of)
    sentences: list[str] = []
    if skipped and len(clauses) == 1 and not any(map(_has_lost_root, skipped)):
        clauses = [
            fill(texts["turn.so"], {"clause": clauses[0], "skipped": _several(skipped, "turn.skipped", texts, of)})
        ]
    elif skipped:
        sentences.append(_describe_skipped(skipped, by_id, texts, of))
    rest = reduce(lambda clause, more: fill(texts["turn.and"], {"clause": clause, "more": more}), clauses or [""])
    first = rest
    if completed:
        done = fill(texts["turn.completed"], {"labels": enumerate_names(texts, _names(completed, texts, of))})
        first = fill(texts["turn.but"], {"completed": done, "rest": rest}) if rest else done
    sentences = [sentence for sentence in (first, *sentences, *_asks(outcomes, texts, writes)) if sentence]
    if len(sentences) <= 1:
        return capitalise(*sentences or [texts["turn.nothing"]])
    return " ".join(capitalise(text if text.endswith((".", "!", "?")) else f"{text}.") for text in sentences)


def _is_passed_on(outcome: Outcome[Any]) -> bool:
    return outcome.fault is not None and outcome.fault.rule == PASSED_ON


def _clauses(outcomes: Sequence[Outcome[Any]], texts: Texts, of: Counts) -> list[str]:
    """One clause for each way in which calls did not succeed."""
    clauses: list[str] = []
    timed_out = _names([outcome for outcome in outcomes if outcome.status == "timed_out"], texts, of)
    if timed_out:
        clause = fill(texts["turn.timed_out"], {"labels": timed_out[0]})
        others = enumerate_names(texts, timed_out[1:])
        clauses.append(fill(texts["turn.so_did"], {"clause": clause, "labels": others}) if others else clause)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        clauses.append(fill(texts["turn.failed"], {"labels": enumerate_names(texts, _names(failed, texts, of))}))
    cancelled = [outcome for outcome in outcomes if outcome.status == "cancelled"]
    if cancelled:
        clauses.append(_several(cancelled, "turn.cancelled", texts, of))
    no_time = [outcome for outcome in outcomes if outcome.status == "skipped" and outcome.root is None]
    if no_time:
        clauses.append(fill(texts["turn.no_time"], {"labels": enumerate_names(texts, _names(no_time, texts, of))}))
    return clauses


def _describe_skipped(
    skipped: Sequence[Outcome[Any]], by_id: Mapping[str, Outcome[Any]], texts: Texts, of: Counts
) -> str:
    """The skipped calls and their causes; the calls only, if there are too many causes."""
    by_root: dict[str, list[Outcome[Any]]] = {}
    for outcome in skipped:
        root = by_id.get(outcome.root or "")
        by_root.setdefault(root.label if root is not None else outcome.root or "", []).append(outcome)
    if len(by_root) > _MOST:
        return _several(skipped, "turn.skipped", texts, of)
    parts = [
        fill(
            texts["turn.because_lost" if all(map(_has_lost_root, group)) else "turn.because"],
            {"skipped": _several(group, "turn.skipped", texts, of), "root": root},
        )
        for root, group in by_root.items()
    ]
    return reduce(lambda clause, more: fill(texts["turn.and"], {"clause": clause, "more": more}), parts)


def _has_lost_root(outcome: Outcome[Any]) -> bool:
    return outcome.fault is not None and is_dependency_lost(outcome.fault)


def _asks(outcomes: Sequence[Outcome[Any]], texts: Texts, writes: Container[str]) -> list[str]:
    """Requests to the user about escalated failures, then the writes to check."""
    from_policies: list[str] = []
    groups: dict[tuple[str, str, str], list[Outcome[Any]]] = {}
    unsure: list[Outcome[Any]] = []
    for outcome in outcomes:
        fault = outcome.fault
        if fault is None or outcome.status not in ("failed", "timed_out", "cancelled"):
            continue
        words = find_origin(outcome)[-1].told or outcome.told
        if words is not None:
            from_policies.append(words)
            continue
        acted = fault.effect != "none" and outcome.tool in writes
        if acted:
            unsure.append(outcome)
        if outcome.status == "failed" and outcome.escalated and not (acted and fault.retryable):
            key = (fault.category, describe_when(texts, fault.retry_after), describe_wanted(texts, fault)[1])
            groups.setdefault(key, []).append(outcome)
    requests = list(dict.fromkeys(from_policies))[:_MOST]
    asked: Counter[str] = Counter()  # by category
    for (about, when, wanted), group in groups.items():
        asked[about] += 1
        if asked[about] <= _MOST:
            facts = {"labels": enumerate_names(texts, _names(group, texts)), "when": when, "wanted": wanted}
            requests.append(fill(texts[f"ask.{about}"], facts))
    requests = list(dict.fromkeys(requests))
    if unsure:
        requests.append(fill(texts["ask.check_first"], {"labels": enumerate_names(texts, _names(unsure, texts))}))
    return requests


def _several(outcomes: Sequence[Outcome[Any]], key: str, texts: Texts, of: Counts) -> str:
    labels = enumerate_names(texts, _names(outcomes, texts, of))
    return fill(texts[key if len(outcomes) == 1 else f"{key}.several"], {"labels": labels})


def _names(outcomes: Sequence[Outcome[Any]], texts: Texts, of: Counts | None = None) -> list[str]:
    """The calls' labels, each once, in order of submission. ``of`` counts the turn's calls by label."""
    counts: dict[tuple[str, bool], int] = {}
    for outcome in outcomes:
        key = outcome.label, outcome.status != "succeeded" or outcome.missing is None
        counts[key] = counts.get(key, 0) + 1
    return [_name(label, whole, count, texts, of) for (label, whole), count in counts.items()]


def _name(label: str, whole: bool, count: int, texts: Texts, of: Counts | None) -> str:
    name = label if whole else fill(texts["turn.incomplete"], {"label": label})
    if of is not None and whole and count < of[label]:
        return fill(texts["turn.of"], {"label": name, "n": count, "all": of[label]})
    return name if count == 1 else fill(texts["turn.times"], {"label": name, "n": count})
