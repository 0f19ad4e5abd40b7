from __future__ import annotations

import pickle

import pytest

from failsoft.core.model.entrypoint import Command, Function
from failsoft.core.model.fault import Code


def test_a_function_is_an_import_path():
    assert Function(path="travel.tools:flight_search").path == "travel.tools:flight_search"
    assert Function(path="travel:Search.flights").path == "travel:Search.flights"


@pytest.mark.parametrize(
    "path", ["", "travel.tools", "travel.tools:", ":name", "a b:c", "a.b:c()", "../x:y", "1a:b", 3]
)
def test_a_path_that_is_not_an_import_path_is_rejected(path):
    with pytest.raises(ValueError, match='function: .* is not an import path: write "package.module:name"'):
        Function(path=path)


def test_a_command_keeps_what_was_said():
    command = Command(argv=["search", "--json"], env=["PATH"], exit_codes={75: "Unavailable"}, max_output="64kB")
    assert command.argv == ("search", "--json")
    assert command.env == ("PATH",)
    assert command.exit_codes == {75: Code.UNAVAILABLE}
    assert command.max_output == 64_000
    assert pickle.loads(pickle.dumps(command)) == command


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"argv": "ls -l"}, "command: 'ls -l' is not a list of texts"),
        ({"argv": []}, "command: there is no program"),
        ({"argv": [""]}, "command: there is no program"),
        ({"argv": ["ls", 3]}, "command: .* is not a list of texts"),
        ({"argv": ["ls", "a\0b"]}, "command: a NUL character"),
        ({"argv": ["ls"], "env": "PATH"}, "env: 'PATH' is not a list of texts"),
        ({"argv": ["ls"], "env": ["A=1"]}, "env: 'A=1' is not the name of a variable"),
        ({"argv": ["ls"], "exit_codes": {0: "UNAVAILABLE"}}, "exit_codes: 0 is not a whole number between 1 and 255"),
        ({"argv": ["ls"], "exit_codes": {256: "UNAVAILABLE"}}, "exit_codes: 256 is not"),
        ({"argv": ["ls"], "exit_codes": {True: "UNAVAILABLE"}}, "exit_codes: True is not"),
        ({"argv": ["ls"], "exit_codes": {75: "UNAVAILBLE"}}, "did you mean UNAVAILABLE"),
        ({"argv": ["ls"], "max_output": 10}, "max_output: 10 is too small"),
    ],
)
def test_a_command_that_cannot_work_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Command(**wrong)
