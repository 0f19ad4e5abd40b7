"""``failsoft completion``: print the shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from failsoft.surfaces.cli.console import json_option, print_json, print_text

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> int:
    """Print the completion script for a SHELL.

    bash: eval "$(failsoft completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc.
    fish: failsoft completion fish > ~/.config/fish/completions/failsoft.fish. Exit code: 0.
    """
    found = get_completion_class(shell)
    assert found is not None, "click supports all of SHELLS"
    # found.source() would start bash to ask for its version
    script = ShellComplete.source(found(context.find_root().command, {}, "failsoft", "_FAILSOFT_COMPLETE"))
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        print_text(script)
    return 0
