"""``failsoft init``: write a commented manifest, and its schema for completion in editors."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from failsoft.surfaces.cli.console import CommandError, json_option, print_json, print_text
from failsoft.surfaces.cli.files import cannot_write

_FILES = ("failsoft.yaml", "failsoft.schema.json")


@click.command(short_help="Write a commented manifest and its schema.")
@click.argument("directory", default=".", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
def init(directory: Path, force: bool, as_json: bool) -> int:
    """Write failsoft.yaml, a commented manifest, and failsoft.schema.json into DIRECTORY.

    Existing files are not overwritten without --force. Exit codes: 0 written, 2 not written.
    """
    existing = [name for name in _FILES if (directory / name).exists()]
    if existing and not force:
        names = " and ".join(str(directory / name) for name in existing)
        raise CommandError(
            f"{names} already {'exists' if len(existing) == 1 else 'exist'}: nothing was written",
            hint="Try: failsoft init --force to overwrite, or failsoft check to validate it.",
        )
    shipped = files("failsoft") / "schema"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (directory / name).write_bytes((shipped / name).read_bytes())
    except (FileExistsError, NotADirectoryError) as error:
        raise CommandError(
            f"{error.filename} is not a directory", hint="Name a directory; it is created if needed."
        ) from None
    except OSError as error:
        raise cannot_write(Path(error.filename or directory), error) from None
    written = [str(directory / name) for name in _FILES]
    if as_json:
        print_json({"written": written})
    else:
        print_text(f"Wrote {' and '.join(written)}.")
        manifest = "" if directory == Path() else f" --manifest {written[0]}"
        print_text(f"Next: put your own tools into {written[0]}, then run failsoft check{manifest}.")
    return 0
