"""Score error classifiers on the corpus.

    python tests/corpus/score.py [module:function ...] [--baselines] [--errors N] [--no-contestable] [--json FILE]

A classifier is ``f(error_or_text, context) -> mapping`` with ``classification`` and, where it has them, ``code``,
``category`` and ``ambiguous_effect``. The context is ``{"text_only": bool}`` and nothing else: no labels, no library
name. Live cases whose library is missing are skipped and counted. A classifier that raises, or answers None, is wrong.
``strict`` means the first label; ``accept`` any label that LABELS.md holds defensible.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
SECONDS = 30  # for one case; importing a large library is part of it
COLUMNS = ("classification", "transient", "permanent", "hard", "text", "code", "strict", "category", "effect")

Row = dict[str, Any]
Classifier = Callable[[Any, dict[str, Any]], Any]


class TooLongError(BaseException):
    """A case has not come to its end."""


def _give_up(*_: object) -> NoReturn:
    raise TooLongError


def load(*, contestable: bool = True) -> list[Row]:
    rows = [json.loads(line) for line in (HERE / "errors.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if contestable or not row["contestable"]]


def materialise(rows: Sequence[Row]) -> tuple[list[tuple[Row, Any]], list[str]]:
    """The live exceptions and the texts; and the ids of those that could not be made here."""
    import cases

    signal.signal(signal.SIGALRM, _give_up)
    made: list[tuple[Row, Any]] = []
    skipped: list[str] = []
    for row in rows:
        if row["text_only"]:
            made.append((row, row["message"]))
            continue
        signal.alarm(SECONDS)
        try:
            error = cases.produce(row["case"])
        except (AssertionError, TooLongError):
            error = None
        finally:
            signal.alarm(0)
        if error is None or isinstance(error, TooLongError):
            skipped.append(row["id"])
            continue
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        if name != row["exception_type"]:
            print(f"note: {row['id']} raised {name} here, recorded {row['exception_type']}")
        made.append((row, error))
    return made, skipped


def answer(classifier: Classifier, row: Row, subject: Any) -> dict[str, Any]:
    try:
        said = classifier(subject, {"text_only": row["text_only"]})
    except Exception as error:
        return {"classification": f"raised {type(error).__name__}"}
    return dict(said or {})


def score(classifier: Classifier, items: Sequence[tuple[Row, Any]]) -> dict[str, Any]:
    """Shares in percent; None where the classifier does not answer, or no item asks."""
    answers = [(row, answer(classifier, row, subject)) for row, subject in items]

    def share(right: Callable[[Row, dict[str, Any]], bool], of: Callable[[Row], bool] = lambda _: True) -> float | None:
        asked = [right(row, said) for row, said in answers if of(row)]
        return 100 * sum(asked) / len(asked) if asked else None

    def agrees(row: Row, said: dict[str, Any]) -> bool:
        return bool(said.get("classification") == row["classification"])

    says = {key for _, said in answers for key in said}
    return {
        "classification": share(agrees),
        "transient": share(agrees, lambda row: row["classification"] == "transient"),
        "permanent": share(agrees, lambda row: row["classification"] == "permanent"),
        "hard": share(agrees, lambda row: row["hard"]),
        "text": share(agrees, lambda row: row["text_only"]),
        "code": share(lambda row, said: said.get("code") in row["code_accept"]) if "code" in says else None,
        "strict": share(lambda row, said: said.get("code") == row["code"]) if "code" in says else None,
        "category": share(lambda row, said: said.get("category") in row["category_accept"])
        if "category" in says
        else None,
        "effect": share(lambda row, said: said.get("ambiguous_effect") is row["ambiguous_effect"])
        if "ambiguous_effect" in says
        else None,
        "wrong": [
            f"{row['id']}: {row['classification']}, not {said.get('classification')} ({said.get('rule', '')})"
            for row, said in answers
            if not agrees(row, said)
        ],
    }


def show(results: dict[str, dict[str, Any]], asked: Sequence[str], errors: int) -> None:
    width = max(map(len, results))
    print("\n" + " " * width + "".join(f"{name:>15}" for name in COLUMNS))
    for name, result in results.items():
        cells = ("-" if result[key] is None else f"{result[key]:.1f} %" for key in COLUMNS)
        print(f"{name:<{width}}" + "".join(f"{cell:>15}" for cell in cells))
    for name in asked:
        for line in results[name]["wrong"][:errors]:
            print(f"  wrong ({name}): {line}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", default=["ours:adapter"], help="module:function")
    parser.add_argument("--baselines", action="store_true", help="what others' rules reach")
    parser.add_argument(
        "--no-contestable", action="store_true", help="leave out what reasonable people might decide otherwise"
    )
    parser.add_argument("--errors", type=int, default=0, help="show so many mistakes of each target")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    items, skipped = materialise(load(contestable=not options.no_contestable))
    print(f"{len(items)} errors; {len(skipped)} skipped, their library is missing: {' '.join(skipped)}")
    targets = list(options.targets)
    if options.baselines:
        targets += [f"baselines:{name}" for name in importlib.import_module("baselines").ALL]
    results: dict[str, dict[str, Any]] = {}
    for target in targets:
        module, _, function = target.partition(":")
        results[target] = score(getattr(importlib.import_module(module), function), items)
    show(results, options.targets, options.errors)
    if options.json:
        options.json.write_text(json.dumps({"items": len(items), "skipped": skipped, "results": results}, indent=1))


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(Path.cwd())]
    main()
    sys.stdout.flush()
    sys.modules["cases"]._tmp.cleanup()
    os._exit(0)  # the cases' server threads are daemons; nothing is left to wait for
