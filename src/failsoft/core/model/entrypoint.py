"""Entry points of tools in a manifest: a Python function or a command.

Frozen values, validated when they are made: a wrong value raises ``ValueError`` and says what would be right. Nothing
is imported or started here. A runtime imports the module when it reads the manifest; a program is looked up at its
first call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import TYPE_CHECKING

from failsoft.core.model.fault import Code
from failsoft.core.model.validation import byte_size, code, fill, import_path, texts, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

_VARIABLE = re.compile(r"[^=\0$\s]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A Python function that runs in this process or, with ``isolation: process``, in a worker process."""

    path: str  # "package.module:name"

    def __post_init__(self) -> None:
        import_path("function", self.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A program that reads arguments as JSON from stdin and writes its value as JSON to stdout. No shell is used."""

    argv: tuple[str, ...]
    env: tuple[str, ...] = ()  # names of the environment variables that the program receives
    exit_codes: Mapping[int, Code] = field(default_factory=dict)  # added to the built-in ones (75 is UNAVAILABLE ...)
    max_output: int = 10_000_000  # bytes; longer output is a failure, not cut

    if TYPE_CHECKING:  # the types that may be written; the fields have the types that are read

        def __init__(
            self,
            *,
            argv: Iterable[str],
            env: Iterable[str] = ...,
            exit_codes: Mapping[int, Code | str] = ...,
            max_output: int | str = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        argv = texts("command", self.argv, like='["python", "-m", "search"]')
        if not argv or not argv[0]:
            raise ValueError('command: there is no program: write a list like ["python", "-m", "search"]')
        if any("\0" in part for part in argv):
            raise ValueError("command: a NUL character cannot be passed to a program")
        fill(self, "argv", argv)
        fill(self, "env", texts("env", self.env, like='["PATH", "HOME"]'))
        for name in self.env:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(
                    f'env: {brief(name)} is not the name of a variable: write it without a value, like "PATH"'
                )
        for status in self.exit_codes:
            whole("exit_codes", status, least=1, most=255)
        meanings = {status: code("exit_codes", meaning) for status, meaning in self.exit_codes.items()}
        fill(self, "exit_codes", meanings)
        byte_size(self, "max_output", least=1000)


Entrypoint = Function | Command
