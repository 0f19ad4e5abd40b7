"""``failsoft completion``: the script that teaches a shell to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the completion script for a SHELL.

    bash: eval "$(failsoft completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc.
    fish: failsoft completion fish > ~/.config/fish/completions/failsoft.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click has all of SHELLS"
    # not found.source(): for bash that starts one to ask for its version
    click.echo(ShellComplete.source(found(context.find_root().command, {}, "failsoft", "_FAILSOFT_COMPLETE")))
    return 0
