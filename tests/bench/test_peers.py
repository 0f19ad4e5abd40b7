"""The comparison with peers: the tool and the page agree, and our own column and one peer are really run."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from bench.peers import __main__ as peers_main
from bench.peers import page, prose, run
from bench.peers.__main__ import main
from bench.peers.cases import CASES
from bench.peers.cases.case import Case, Seen
from bench.peers.libraries import LIBRARIES
from bench.peers.library import Library, Option

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text()
OURS = [name for name, case in CASES.items() if case.lacks(LIBRARIES["failsoft"]()) is None]
TENACITY = [name for name, case in CASES.items() if case.lacks(LIBRARIES["tenacity"]()) is None]


# --- what is run ------------------------------------------------------------------------------------------------------


def test_every_case_applies_to_failsoft() -> None:
    assert [*CASES] == OURS


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_failsoft_does_not_have_the_fault(name: str) -> None:
    answer = look(name, "failsoft")
    assert page.verdict(answer) == expected(name, "failsoft"), answer
    assert page.verdict(answer) in ("none", "avoided"), answer


@pytest.mark.slow
@pytest.mark.parametrize("name", TENACITY)
def test_the_page_says_of_tenacity_what_is_seen_here(name: str) -> None:
    answer = look(name, "tenacity")
    assert not page.is_broken(answer), answer
    if version("tenacity") in PAGE:  # another version may behave otherwise
        assert page.verdict(answer) == expected(name, "tenacity"), answer


def look(case: str, library: str) -> dict[str, Any]:
    """The observed verdict, measured again if it differs from the page: the machine may have been busy."""
    answer = run.look(CASES[case], library)
    return answer if page.verdict(answer) == expected(case, library) else run.look(CASES[case], library)


def expected(case: str, library: str) -> str:
    """The verdicts in the page's table."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")
    ]
    heads = next(row for row in rows if "failsoft" in row)
    (row,) = [row for row in rows if row[0].startswith(f"{case}: ")]
    sign = re.sub(r"<sup>.*</sup>", "", row[heads.index(library)])
    return {sign: verdict for verdict, sign in page.SIGNS.items()}[sign]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_has_every_case_and_every_library() -> None:
    for name, case in CASES.items():
        assert f"| {name}: {case.fault} " in PAGE
        assert f"### {name}: {case.fault}\n" in PAGE
        for library in LIBRARIES:
            assert expected(name, library) != "error"
            assert (expected(name, library) == "no part") == (case.lacks(LIBRARIES[library]()) is not None)
    for library in LIBRARIES:
        assert re.search(rf"\b{library} \d+\.\d+", PAGE), f"the page does not say which {library} was run"


SEEN_IN_PEERS = 28  # the later ones were seen in failsoft 0.1.0 and in agent frameworks


def test_every_case_is_of_the_torture_list() -> None:
    rows = re.findall(r"^\| (T\d+) \|", (ROOT / "docs" / "torture.md").read_text(), re.MULTILINE)
    listed = {row for row in rows if int(row[1:]) <= SEEN_IN_PEERS}
    assert {case.number for case in CASES.values()} <= listed
    left_out = {*re.findall(r"\*\*(T\d+)\*\*", prose.NOT_RUN)}
    assert {case.number for case in CASES.values()} == (listed | {"T12"}) - left_out


def test_every_peer_has_its_own_words() -> None:
    assert {*prose.PEERS} == {*LIBRARIES} - {"failsoft"}


def test_the_versions_on_the_page_are_the_locked_ones() -> None:
    lock = (ROOT / "requirements" / "bench.lock").read_text()
    for library in prose.PEERS:
        (locked,) = re.findall(rf"^{library}(?:\[\w+\])?==(\S+)", lock, re.MULTILINE)
        assert f"{library} {locked}" in PAGE


def test_settings_and_notes_refer_to_existing_cases() -> None:
    assert {name for library in LIBRARIES.values() for name in library.notes} <= {*CASES}
    for library in ("failsoft", "tenacity"):  # those that are installed here
        assert {*LIBRARIES[library]().options()} <= {*CASES}


# --- the tool ---------------------------------------------------------------------------------------------------------


def answer(verdict: str, **more: Any) -> dict[str, Any]:
    return {"case": "T1", "library": "tenacity", "verdict": verdict, "words": "seen", **more}


def test_a_fault_that_a_setting_avoids_is_marked_as_avoided() -> None:
    setting = {"setting": "`careful=True`", "words": "one", "verdict": "none"}
    assert page.verdict(answer("fault", option=setting)) == "avoided"
    assert page.verdict(answer("fault", option={**setting, "verdict": "fault"})) == "fault"
    assert page.verdict(answer("fault")) == "fault"


def test_a_script_that_fails_is_no_verdict() -> None:
    assert page.is_broken(answer("error"))
    assert page.is_broken(answer("fault", option={"setting": "", "words": "", "verdict": "error"}))
    assert not page.is_broken(answer("fault"))


def test_the_page_shows_signs_notes_and_what_is_missing() -> None:
    setting = {"setting": "`careful=True`", "words": "one", "verdict": "none"}
    text = page.page(
        {
            "when": "2026-11-16", "python": "3.11.7", "system": "Linux",
            "versions": {"tenacity": "9", "stamina": "8", "hyx": None},
            "answers": [
                answer("fault", option=setting), {**answer("no part"), "library": "stamina"},
            ],
        }
    )  # fmt: skip
    assert re.search(r"\| T1: .* \| ◐<sup>1</sup> +\| · +\|", text)
    assert "1. tenacity, T1: with `careful=True` it is gone: one." in text
    assert "Not installed, and left out: hyx." in text
    assert "- · no such part: stamina" in text


class Half(Library):
    """A library with one part, and a setting that takes it away."""

    name = "half"

    def retry(self) -> None: ...

    def options(self) -> dict[str, Option]:
        return {"T0": Option("off", {"retry": None})}


def test_a_part_is_there_or_not() -> None:
    def look(_: Library) -> Seen:
        return Seen(False, "")

    both = Case("T0", "a fault", ("breaker|retry",), look, 0, 1.0, False, False)
    other = Case("T0", "a fault", ("breaker",), look, 0, 1.0, False, False)
    library = Half()
    assert (both.lacks(library), other.lacks(library)) == (None, "breaker")
    library.take(library.options()["T0"])
    assert both.lacks(library) == "breaker|retry"


def test_a_hang_is_a_result() -> None:
    case = CASES["T18"]._replace(limit=0.01)
    assert run.look(case, "tenacity") == {
        "case": "T18", "library": "tenacity", "verdict": "fault", "words": "no answer within 0 s",
    }  # fmt: skip


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["T9", "--only", "tenacity", "--json", str(tmp_path / "run.json")]) == 0
    found = json.loads((tmp_path / "run.json").read_text())
    assert [(one["case"], one["verdict"]) for one in found["answers"]] == [("T9", "fault"), ("T9 breaker", "no part")]
    assert "attempts: 4" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["T99"])
    assert "there is no case T99: name some of T1 " in capsys.readouterr().err


def test_peers_that_are_not_installed_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run.versions()
    for module in (run, peers_main):
        monkeypatch.setattr(module, "versions", lambda: {**here, "hyx": None})
    assert main(["T9", "--only", "hyx"]) == 0
    assert "hyx is not installed: left out" in capsys.readouterr().out
