"""The command line: ``failsoft`` and ``python -m failsoft``.

One module per command. May import everything but ``adapters`` and ``testing``; slow imports (rich, the manifest, the
demo) happen inside the command that needs them. Tested in ``tests/surfaces``; docs/reference/cli.md is made from the
help texts.

Rules
-----
- With ``--json`` stdout has one JSON document and nothing else, also after an error.
- Exit codes: 0 success, 1 the work failed, 2 the command could not be carried out as given.
- Errors outside of failsoft get one clear message, never a traceback.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import failsoft
from failsoft.errors import FailsoftError, ManifestError
from failsoft.surfaces.cli.check import check as _check
from failsoft.surfaces.cli.classify import classify as _classify
from failsoft.surfaces.cli.completion import completion as _completion
from failsoft.surfaces.cli.console import CommandError, clean, print_json, print_text
from failsoft.surfaces.cli.demo import demo as _demo
from failsoft.surfaces.cli.doctor import doctor as _doctor
from failsoft.surfaces.cli.init import init as _init
from failsoft.surfaces.cli.ledger import ledger as _ledger
from failsoft.surfaces.cli.run import run as _run
from failsoft.surfaces.cli.serve import serve as _serve
from failsoft.surfaces.cli.serve import token as _token
from failsoft.surfaces.cli.streams import give_up, prepare
from failsoft.surfaces.cli.tools import tools as _tools
from failsoft.surfaces.cli.trace import trace as _trace
from failsoft.surfaces.cli.why import why as _why

INTERRUPTED, CUT_OFF = 130, 141  # as in shells
_NO_COMMAND: type[click.UsageError] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since click 8.2


class Cli(click.Group):
    """A group whose commands return exit codes and whose errors are JSON under ``--json``."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "failsoft",
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 - always run in this mode
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        prepare()
        logging.getLogger("failsoft").addFilter(_is_not_a_call_event)
        stdout = sys.stdout
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
        try:
            code = super().main(given, prog_name, complete_var, standalone_mode=False, **extra) or 0
            sys.stdout.flush()
        except _NO_COMMAND as error:
            print_text(error.format_message(), err=True)
            code = 2
        except click.UsageError as error:
            code = fail(error.format_message(), 2, as_json=as_json, hint=_usage_hint(error))
        except click.ClickException as error:
            code = fail(error.format_message(), 2, as_json=as_json)
        except CommandError as error:
            code = fail(error.message, error.code, as_json=as_json, hint=error.hint, problems=error.problems)
        except ManifestError as error:
            code = fail("the input has mistakes", 2, as_json=as_json, problems=error.problems)
        except FailsoftError as error:
            code = fail(str(error), 2, as_json=as_json)
        except (KeyboardInterrupt, click.Abort):
            code = fail("stopped", INTERRUPTED, as_json=as_json)
        except (BrokenPipeError, SystemExit) as error:  # the reader closed the pipe
            if isinstance(error, SystemExit) and sys.stdout is stdout:
                raise  # click exits in this way only after it has replaced a broken stream
            give_up("stdout")
            code = CUT_OFF
        except OSError as error:
            give_up("stdout")
            code = fail(
                f"{error.filename or 'standard output'} could not be written: {error.strerror}", 1, as_json=False
            )
        finally:
            logging.getLogger("failsoft").removeFilter(_is_not_a_call_event)
        sys.exit(code)


def _is_not_a_call_event(record: logging.LogRecord) -> bool:
    """Keep log records of calls off the terminal: commands show calls themselves."""
    return not hasattr(record, "event_type")


def fail(message: str, code: int, *, as_json: bool, hint: str = "", problems: Sequence[str] = ()) -> int:
    """Report an error and a hint: to people on stderr, to programs on stdout."""
    if as_json:
        error = {"message": message, "exit_code": code}
        print_json({"error": {**error, **({"hint": hint} if hint else {}), "problems": list(problems)}})
    else:
        print_text(f"failsoft: {clean(message)}", err=True)
        for problem in problems:
            print_text(f"  {clean(problem)}", err=True)
        if hint:
            print_text(clean(hint), err=True)
    return code


def _usage_hint(error: click.UsageError) -> str:
    return "" if error.ctx is None else f"Try: {error.ctx.command_path} --help"


@click.group(
    "failsoft",
    cls=Cli,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 the work failed, 2 the command, its options or its files are wrong. "
    "NO_COLOR and FORCE_COLOR are honoured.",
)
@click.version_option(failsoft.__version__, prog_name="failsoft", message="%(prog)s %(version)s")
def cli() -> None:
    """Run the tool calls of LLM agents so that failure is handled well."""


for _command in (_demo, _run, _check, _tools, _init, _classify, _why, _trace, _ledger, _doctor, _completion):
    cli.add_command(_command)


cli.add_command(_serve)
cli.add_command(_token)


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(cli.main())
