"""`caudal completion`: the script with which a shell completes commands."""

from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script


class CompletingShell(StrEnum):
    """A shell that can complete commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[CompletingShell, typer.Argument(help="The shell that will run the script.")],
) -> None:
    """Print the script that completes commands in bash, zsh or fish.

    Examples:

    - `source <(caudal completion bash)`, in ~/.bashrc
    - `source <(caudal completion zsh)`, in ~/.zshrc after compinit
    - `caudal completion fish > ~/.config/fish/completions/caudal.fish`
    """
    script = get_completion_script(
        prog_name="caudal", complete_var="_CAUDAL_COMPLETE", shell=shell.value
    )
    typer.echo(script)
