"""``python -m bench.peers [T3 T7 …] [--only tenacity] [--json run.json] [--page docs/comparison.md]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.peers import page
from bench.peers.cases import CASES
from bench.peers.libraries import LIBRARIES
from bench.peers.run import Answer, run, versions


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description="Torture cases against failsoft and its peers."
    )
    parser.add_argument("cases", nargs="*", metavar="T1", help="by number; all when none is named")
    parser.add_argument("--only", action="append", metavar="LIBRARY", help="may be said several times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was seen here")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page here; takes all cases and libraries")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE", help="an earlier --json: nothing is run")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many processes at a time")
    said = parser.parse_args(arguments)
    cases, libraries = choose(parser, said.cases, said.only or [])
    if said.page and not said.source and (len(cases), len(libraries)) != (len(CASES), len(LIBRARIES)):
        parser.error("--page takes all cases and all libraries: leave out the rest")
    for name, installed in versions().items():
        if installed is None and name in libraries and not said.source:
            print(f"{name} is not installed: left out (`make comparison` installs all)")
    found = json.loads(said.source.read_text()) if said.source else run(cases, libraries, said.jobs, tell)
    print("\n" + page.table(found))
    if said.json:
        said.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if said.page:
        said.page.write_text(page.page(found))
    broken = [one for one in found["answers"] if page.is_broken(one)]
    for one in broken:
        print(f"\n{one['case']} could not be run against {one['library']}: {one['words']}\n{one.get('at', '')}")
    return 1 if broken else 0


def choose(parser: argparse.ArgumentParser, numbers: list[str], only: list[str]) -> tuple[list[str], list[str]]:
    known = list(dict.fromkeys(case.number for case in CASES.values()))
    for number in numbers:
        if number not in known:
            parser.error(f"there is no case {number}: name some of {' '.join(known)}")
    for name in only:
        if name not in LIBRARIES:
            parser.error(f"{name} is not among the libraries: name some of {' '.join(LIBRARIES)}")
    cases = [name for name, case in CASES.items() if not numbers or case.number in numbers]
    return cases, [name for name in LIBRARIES if not only or name in only]


def tell(answer: Answer) -> None:
    told: dict[str, Any] = {"option": {}, **answer}
    option = f" | with {told['option']['setting']}: {told['option']['words']}" if told["option"] else ""
    print(f"{told['case']:<15} {told['library']:<20} {told['verdict']:<8} {told['words']}{option}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
