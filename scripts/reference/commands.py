"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import typer
from typer.cli import get_docs_for_click

from moorage.cli.app import COMMANDS, TARGETS, app

HEAD = """# Reference: the command line

Made by `make docs` from `moorage/cli/`. Do not edit by hand.

`moorage --help` lists the commands, `moorage COMMAND --help` prints what stands here. The
[exit code](troubleshooting.md) is the class of a failure.
"""


def command_line() -> str:
    """The page, with the commands under the headings of `moorage --help` and in their order."""
    parts = [HEAD, _options()]
    for heading, commands in COMMANDS.items():
        parts += [f"## {heading}\n", *map(_command, commands)]
    return "\n".join(parts).rstrip() + "\n"


def _options() -> str:
    """The options of every command, without those of Typer for the shell's completion."""
    group = typer.main.get_group(app)
    context = typer.Context(group, info_name="moorage")
    records = filter(None, (option.get_help_record(context) for option in group.params))
    return "".join(
        ["## Options of every command\n\n", *(f"* `{name}`: {text}\n" for name, text in records)]
    )


def _command(name: str) -> str:
    command = TARGETS[name].load(name)
    context = typer.Context(command, info_name=name)
    return (
        get_docs_for_click(
            obj=command, ctx=context, name=name, call_prefix="moorage", indent=2
        ).rstrip()
        + "\n"
    )
